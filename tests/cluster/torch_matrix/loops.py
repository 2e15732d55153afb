# tests/cluster/torch_matrix/loops.py - how scripts clear gradients, compute a loss, and make a step of it.
import contextlib

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from pieces import ALL, ASK_MODE, LATE, has, piece

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
        if loop.run is loop.net:
            torch._dynamo.reset()
            loop.run = torch.compile(loop.net, backend=backend, **more)
        return loss()
    return make


for backend in "eager", "aot_eager", "inductor":
    piece("forward", f"compile {backend}", here=has("compile"), weight=.1)(compiled(backend))
piece("forward", "compile fullgraph", here=has("compile"), weight=.1, refused=LATE)(compiled("eager", fullgraph=True))


@piece("forward", "functional_call", here=has("func.functional_call"), refused=LATE)
def _(loop, loss):
    values = dict(loop.net.named_parameters())
    was, loop.run = loop.run, lambda *inputs: torch.func.functional_call(loop.net, values, inputs)
    try:
        return loss()
    finally:
        loop.run = was


# -- loop


@piece("loop", "plain")
def _(loop):
    loop.backward()
    loop.call("between")
    loop.step()


@piece("loop", "accumulates", refused=LATE)
def _(loop):
    for part in range(2):
        loop.backward(lambda worker: loop.loss(worker, part) / 2)
    loop.call("between")
    loop.step()


@piece("loop", "accumulates in no_sync")
def _(loop):
    with loop.no_sync():
        loop.backward(lambda worker: loop.loss(worker, 0) / 2)
    loop.backward(lambda worker: loop.loss(worker, 1) / 2)
    loop.call("between")
    loop.step()


@piece("loop", "one pass or two", refused=LATE)
def _(loop):
    """Their number varies from step to step."""
    for part in range(1 + loop.clock % 2):
        loop.backward(lambda worker: loop.loss(worker, part))
    loop.call("between")
    loop.step()


@piece("loop", "no_sync now and then", refused=LATE, says=rf'{ASK_MODE}|routes="ps"')
def _(loop):
    with loop.no_sync() if loop.clock % 3 == 1 else contextlib.nullcontext():
        loop.backward()
    if loop.clock % 3 != 1:
        loop.call("between")
        loop.step()


@piece("loop", "a step every second time", refused=LATE, says=rf"{ASK_MODE}|Call it after step")
def _(loop):
    loop.backward()
    if loop.clock % 2:
        loop.call("between")
        loop.step()


@piece("loop", "one graph and two backward passes", refused=LATE)
def _(loop):
    made = {}

    def first(worker):
        made[worker] = loop.loss(worker)
        return _Kept(made[worker])

    loop.backward(first)
    loop.backward(lambda worker: made[worker] * .5)
    loop.call("between")
    loop.step()


class _Kept:
    """A loss whose graph stays."""

    def __init__(self, loss):
        self.loss = loss

    def backward(self):
        self.loss.backward(retain_graph=True)

    def detach(self):
        return self.loss.detach()


@piece("loop", "a closure", refused=LATE)
def _(loop):
    def closure():
        for p in loop.net.parameters():
            p.grad = None
        with torch.enable_grad():
            loop.backward()
        return sum(p.grad.pow(2).sum() for p in loop.net.parameters() if p.grad is not None)  # the same on all workers
    loop.step(lambda optimizer: optimizer.step(closure))


@piece("loop", "GradScaler", here=has("amp.GradScaler"), refused=LATE)
def _(loop):
    scaler = loop.kept.setdefault("scaler", None) or torch.amp.GradScaler("cpu", init_scale=1024.)
    loop.kept["scaler"] = scaler
    loop.backward(lambda worker: scaler.scale(loop.loss(worker) * (float("inf") if loop.clock == 2 else 1)))
    loop.step(scaler.step)
    scaler.update()
    loop.note(scaler.get_scale())


@piece("loop", "GradScaler that clips", here=has("amp.GradScaler"), refused=LATE)
def _(loop):
    scaler = loop.kept.setdefault("scaler", None) or torch.amp.GradScaler("cpu", init_scale=512.)
    loop.kept["scaler"] = scaler
    loop.backward(lambda worker: scaler.scale(loop.loss(worker)))
    for optimizer in loop.optimizers:
        scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(loop.net.parameters(), .5)
    loop.step(scaler.step)
    scaler.update()


@piece("loop", "GradScaler for CUDA that is disabled", refused=LATE)
def _(loop):
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    loop.backward(lambda worker: scaler.scale(loop.loss(worker)))
    loop.step(scaler.step)
    scaler.update()


class _Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, dy):
        raise ValueError("in backward")


def _with_error(loop, loss):
    if loop.clock == 3:
        with contextlib.suppress(ValueError):
            loop.backward(loss)
        for p in loop.net.parameters():
            p.grad = None
    loop.backward()
    loop.step()


@piece("loop", "an error in forward that is caught")
def _(loop):
    def raises(worker):
        loop.loss(worker)
        raise ValueError("in forward")
    _with_error(loop, raises)


@piece("loop", "an error before the first gradient that is caught", refused=LATE)
def _(loop):
    _with_error(loop, lambda worker: _Raises.apply(loop.loss(worker)))


@piece("loop", "an error in the middle of backward that is caught", refused=ALL, says=r"caught|gradient|backward")
def _(loop):
    """The last parameter's gradient is there already."""
    last = list(loop.net.parameters())[-1]
    _with_error(loop, lambda worker: loop.loss(worker) + _Raises.apply(next(loop.net.parameters())).sum() + last.sum())


@piece("loop", "an error in step that is caught", refused=LATE)
def _(loop):
    loop.backward()
    if loop.clock == 3:
        try:
            loop.step(lambda optimizer: 1 / 0)
        except ZeroDivisionError:
            pass
    loop.step()


@piece("loop", "the critic and then the generator", refused=LATE, says=rf"{ASK_MODE}|Call it after step")
def _(loop):
    """Two optimizers of two halves of the parameters, each with a backward pass that reaches all."""
    for optimizer in loop.optimizers:
        for p in loop.net.parameters():
            p.grad = None
        loop.backward()
        loop.step_of(optimizer)
