# tests/cluster/torch_matrix/faults.py - faults that the harness has to see; no list and no walk has them.
import os

import torch

import poseidon.torch as poseidon
from company import more
from loop import Joined


@more("broken on all workers", "between", weight=0)
def _(loop):
    if isinstance(loop, Joined):
        for p in loop.net.parameters():
            p.grad.mul_(1 + 1e-6)


@more("broken on one worker", "after", weight=0)
def _(loop):
    if isinstance(loop, Joined) and loop.rank == 1 and loop.clock == 5:
        with torch.no_grad():
            next(loop.net.parameters()).flatten()[:1].add_(1e-6)


@more("dies", "after", weight=0)
def _(loop):
    if isinstance(loop, Joined) and loop.rank == 1:
        os._exit(3)


@more("raises", "after", weight=0)
def _(loop):
    if isinstance(loop, Joined) and loop.rank == 1:
        raise ValueError("of this worker alone")


@more("refuses", "after", weight=0)
def _(loop):
    if isinstance(loop, Joined):
        raise RuntimeError("wrapped") from poseidon.PoseidonError("no piece has declared this")
