# examples/torch_elastic.py - a PyTorch loop that others join while it trains, and that goes on when a worker is killed.
"""Fashion-MNIST. On this machine, three workers of which the first one is killed, and one that joins the others:

    tools/launch/local 1 /usr/bin/python3 examples/torch_elastic_show.py

By hand, the same command for each worker, at any time:

    POSEIDON_LISTEN=0.0.0.0:7600 POSEIDON_NODES=3 POSEIDON_TOKEN_FILE=token python3 examples/torch_elastic.py    # the first
    POSEIDON_JOIN=head:7600 POSEIDON_TOKEN_FILE=token python3 examples/torch_elastic.py                          # each other one

PYTHONPATH has apps/python, and POSEIDON_LIBRARY names build/release/lib/libposeidon.so, where Poseidon is not installed."""
import gzip
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import poseidon.torch as poseidon

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist"
EPOCHS, BATCH = 3, 32


def read(name, header):
    with gzip.open(f"{FOLDER}/{name}-ubyte.gz") as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def read_set(name):
    images = read(f"{name}-images-idx3", 16).view(-1, 1, 28, 28).float() / 255
    return TensorDataset(images, read(f"{name}-labels-idx1", 8).long())


torch.manual_seed(1)
torch.set_num_threads(1)  # three workers on one machine
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.MaxPool2d(2), nn.BatchNorm2d(16), nn.ReLU(),
                      nn.Conv2d(16, 32, 3, padding=1), nn.MaxPool2d(2), nn.BatchNorm2d(32), nn.ReLU(),
                      nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.4)
progress = poseidon.Progress(epoch=0, step=0)
data = read_set("train")

with poseidon.join(model, optimizer, state=[schedule, progress]):
    print(f"begins with step {progress.step}, as one of {poseidon.size()} workers", flush=True)
    sampler = poseidon.Sampler(data, seed=1, batch_size=BATCH)
    loader = DataLoader(data, batch_sampler=sampler.batch_sampler)
    for progress.epoch in range(progress.epoch, EPOCHS):  # a worker that joins begins with the others' epoch
        sampler.set_epoch(progress.epoch)
        for images, labels in sampler.batches(loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            progress.step += 1
            if poseidon.rank() == 0 and progress.step % 50 == 0:
                print(f"epoch {progress.epoch}, step {progress.step}: loss {loss.item():.3f}, {poseidon.size()} workers", flush=True)
        schedule.step()

data = read_set("t10k")
model.eval()
with torch.no_grad():
    right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in DataLoader(data, 500))
print(f"{100 * right / len(data):.2f} % of {len(data)} test images are right")
