# tests/cluster/torch_matrix/loops.py - how scripts make a step of a loss.
import contextlib

import torch
from torch import nn

from pieces import ALL, ASK_MODE, LATE, has, piece


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
