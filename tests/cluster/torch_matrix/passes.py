# tests/cluster/torch_matrix/passes.py - how scripts clear gradients, and how they compute a loss.
import os
import shutil
import sysconfig

import torch
from torch.utils.checkpoint import checkpoint

from pieces import ASK_MODE, LATE, has, piece

# -- zero


@piece("zero", "to None")
def _(loop):
    for optimizer in loop.optimizers:
        optimizer.zero_grad(set_to_none=True)


@piece("zero", "keeps zeros", refused=LATE)
def _(loop):
    for optimizer in loop.optimizers:
        optimizer.zero_grad(set_to_none=False)


@piece("zero", "never", refused=LATE)
def _(loop):
    pass


@piece("zero", "the model keeps zeros", refused=LATE)
def _(loop):
    loop.net.zero_grad(set_to_none=False)


@piece("zero", "every second step", refused=LATE)
def _(loop):
    if loop.clock % 2 == 0:
        for optimizer in loop.optimizers:
            optimizer.zero_grad(set_to_none=True)


@piece("zero", "as this PyTorch does")
def _(loop):
    for optimizer in loop.optimizers:
        optimizer.zero_grad()


@piece("zero", "by hand", refused=LATE)
def _(loop):
    for p in loop.net.parameters():
        if p.grad is not None:
            p.grad.detach_()
            p.grad.zero_()


@piece("zero", "by hand to None")
def _(loop):
    for p in loop.net.parameters():
        p.grad = None


# -- forward: the loss of a micro-batch is what loss() returns


@piece("forward", "plain")
def _(loop, loss):
    return loss()


@piece("forward", "autocast bf16")
def _(loop, loss):
    with torch.autocast("cpu", torch.bfloat16):
        return loss()


@piece("forward", "checkpoint")
def _(loop, loss):
    return checkpoint(lambda _: loss(), torch.ones(1, requires_grad=True), use_reentrant=False)


@piece("forward", "reentrant checkpoint", refused=LATE, says=rf"use_reentrant=False|{ASK_MODE}")
def _(loop, loss):
    return checkpoint(lambda _: loss(), torch.ones(1, requires_grad=True), use_reentrant=True)


@piece("forward", "model twice")
def _(loop, loss):
    return loss() + .5 * loss()


@piece("forward", "saved on hooks")
def _(loop, loss):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        return loss()


@piece("forward", "penalty of weights")
def _(loop, loss):
    return loss() + sum(p.pow(2).sum() for p in loop.net.parameters()) * .01


@piece("forward", "gradient penalty")
def _(loop, loss):
    value = loss()
    parameters = [p for p in loop.net.parameters() if p.requires_grad]
    found = torch.autograd.grad(value, parameters, create_graph=True, allow_unused=True)
    return value + sum(g.pow(2).sum() for g in found if g is not None) * .01


@piece("forward", "saved on the CPU")
def _(loop, loss):
    with torch.autograd.graph.save_on_cpu():
        return loss()


@piece("forward", "frozen in between")
def _(loop, loss):
    """As a GAN's generator step does with its critic."""
    p = next(p for p in loop.net.parameters())
    was = p.requires_grad
    p.requires_grad_(False)
    try:
        return loss() + 0 * sum(q.sum() for q in loop.net.parameters())
    finally:
        p.requires_grad_(was)


def compiled(backend, **more):
    def make(loop, loss):
        if "compiled" not in loop.kept:
            torch._dynamo.reset()
            loop.kept["compiled"] = loop.run = torch.compile(loop.run, backend=backend, **more)
        return loss()
    return make


# What inductor writes in C++ includes Python's header (Debian: python3-dev).
COMPILES = shutil.which("g++") is not None and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
for backend in "eager", "aot_eager", "inductor":
    piece("forward", f"compile {backend}", here=has("compile") and (COMPILES or backend != "inductor"), weight=.1)(compiled(backend))
piece("forward", "compile fullgraph", here=has("compile"), weight=.1, refused=LATE)(compiled("eager", fullgraph=True))


@piece("forward", "functional_call", here=has("func.functional_call"), refused=LATE)
def _(loop, loss):
    values = dict(loop.net.named_parameters())
    was, loop.run = loop.run, lambda *inputs: torch.func.functional_call(loop.net, values, inputs)
    try:
        return loss()
    finally:
        loop.run = was
