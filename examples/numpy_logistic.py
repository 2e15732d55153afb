# examples/numpy_logistic.py - logistic regression on Fashion-MNIST with NumPy alone, on any number of workers.
"""POSEIDON_LISTEN=0.0.0.0:7600 POSEIDON_NODES=2 POSEIDON_TOKEN_FILE=token python3 examples/numpy_logistic.py, and on the other machine
POSEIDON_JOIN=head:7600 POSEIDON_TOKEN_FILE=token python3 examples/numpy_logistic.py, with the same secret (openssl rand -hex 32 > token)"""
import gzip
import sys

import numpy as np

import poseidon.numpy

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist"
RATE, BATCH, EPOCHS = np.float32(0.1), 100, 3


def read(name, header):
    with gzip.open(f"{FOLDER}/{name}-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def read_set(name):
    return (read(f"{name}-images-idx3", 16).reshape(-1, 784) / np.float32(255)).astype(np.float32), read(f"{name}-labels-idx1", 8)


x, y = read_set("train")
v = {"weight": np.zeros((784, 10), np.float32), "bias": np.zeros(10, np.float32)}
with poseidon.numpy.Worker(v) as worker:
    for epoch in range(EPOCHS):
        batches = len(x) // (BATCH * worker.size)
        for b in range(batches):
            at = slice((b * worker.size + worker.rank) * BATCH, (b * worker.size + worker.rank + 1) * BATCH)
            scores = x[at] @ v["weight"] + v["bias"]
            e = np.exp(scores - scores.max(1, keepdims=True))
            e /= e.sum(1, keepdims=True)
            e[np.arange(BATCH), y[at]] -= 1
            worker.push("weight", x[at].T @ e / BATCH)  # it travels while the next line computes
            worker.push("bias", e.mean(0))
            for name in v:
                v[name] -= RATE * worker.mean(name)

x, y = read_set("t10k")
print(f'{100 * ((x @ v["weight"] + v["bias"]).argmax(1) == y).mean():.2f} % of {len(x)} test images are right')
