# examples/torch_resume.py - evaluates on worker 0, saves a checkpoint there after each epoch, and goes on from it when it is started again.
"""tools/launch/local 2 python3 examples/torch_resume.py checkpoint.pt 4; the last word is the epoch at which it ends

On several machines every worker reads the checkpoint: copy the file to all, or name one in a folder that all share."""
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

import poseidon.torch as poseidon

FILE, EPOCHS = sys.argv[1], int(sys.argv[2])
STEPS, BATCH = 20, 32

torch.manual_seed(1)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)


def samples(number, seed):
    x = torch.randn(number, 20, generator=torch.Generator().manual_seed(seed))
    return x, (x[:, :10].sum(1) > x[:, 10:].sum(1)).long()


def load(path):
    if not os.path.exists(path):
        return 0
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    schedule.load_state_dict(checkpoint["schedule"])
    return checkpoint["epoch"]


def save(path, epoch):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "epoch": epoch}, path + ".new")
    os.replace(path + ".new", path)  # the old checkpoint stays whole until the new one is


@torch.no_grad()
def accuracy():
    model.eval()
    x, y = samples(1000, 0)
    right = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return right


begin = load(FILE)  # on all workers, before join()
with poseidon.join(model, optimizer):
    for epoch in range(begin, EPOCHS):
        torch.manual_seed(1000 * epoch + poseidon.rank())  # dropout, the same after a resume
        for step in range(STEPS):
            x, y = samples(BATCH, 1 + (epoch * STEPS + step) * poseidon.size() + poseidon.rank())
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        schedule.step()
        if poseidon.rank() == 0:
            print(f"epoch {epoch}: {100 * accuracy():.1f} % of 1000 samples are right", flush=True)
            save(FILE, epoch + 1)
