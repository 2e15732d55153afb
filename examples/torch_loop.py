# examples/torch_loop.py - a plain PyTorch loop that trains on a cluster; the lines with "poseidon" are all that is new.
"""Fashion-MNIST on one machine, or on several.

    python3 examples/torch_loop.py                                                            # alone
    tools/launch/local 2 python3 examples/torch_loop.py                                       # two workers on this machine
    POSEIDON_LISTEN=0.0.0.0:7600 POSEIDON_NODES=2 POSEIDON_TOKEN_FILE=token python3 examples/torch_loop.py    # the first of two machines
    POSEIDON_JOIN=head:7600 POSEIDON_TOKEN_FILE=token python3 examples/torch_loop.py          # the other, which has a copy of the token's file

On two machines, with the same secret on both (openssl rand -hex 32 > token):

    POSEIDON_LISTEN=0.0.0.0:7600 POSEIDON_NODES=2 POSEIDON_TOKEN_FILE=token python3 examples/torch_loop.py    # the first
    POSEIDON_JOIN=head:7600 POSEIDON_TOKEN_FILE=token python3 examples/torch_loop.py                          # the other

PYTHONPATH has apps/python, and POSEIDON_LIBRARY names build/release/lib/libposeidon.so, where Poseidon is not installed."""
import gzip
import sys

import torch
import torch.nn.functional as F
from torch import nn

import poseidon.torch as poseidon

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist"
EPOCHS, BATCH = 5, 50


def read(name, header):
    with gzip.open(f"{FOLDER}/{name}-ubyte.gz") as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def read_set(name):
    images = read(f"{name}-images-idx3", 16).view(-1, 1, 28, 28).float() / 255
    return images, read(f"{name}-labels-idx1", 8).long()


torch.manual_seed(1)
torch.set_num_threads(max(1, torch.get_num_threads() // 2))  # the exchange wants a core, too
model = nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)

with poseidon.join(model, optimizer):
    if poseidon.rank() == 0:
        poseidon.progress()
    images, labels = read_set("train")
    for epoch in range(EPOCHS):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        order = order[:len(order) // (BATCH * poseidon.size()) * BATCH * poseidon.size()]  # as many batches on each worker
        for mine in order[poseidon.rank()::poseidon.size()].split(BATCH):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[mine]), labels[mine])
            loss.backward()
            optimizer.step()
        schedule.step()
        poseidon.report(loss.item(), len(order) // poseidon.size())

images, labels = read_set("t10k")
with torch.no_grad():
    right = (model(images).argmax(1) == labels).sum().item()
print(f"{100 * right / len(images):.2f} % of {len(images)} test images are right")
