"""Being told when an optimizer has made a step, and when a GradScaler has left one out."""

import types
from typing import Callable, List, Tuple

import torch
from torch import optim

_OF_SCHEDULES = ("_with_counter", "_wrapped_by_lr_sched")  # a schedule looks whether step() is the one that it has wrapped


def _scalers() -> List[type]:
    kinds = [getattr(torch.cuda.amp, "GradScaler", None), getattr(getattr(torch, "amp", None), "GradScaler", None)]
    return [kind for place, kind in enumerate(kinds) if kind is not None and kind not in kinds[:place] and "step" in vars(kind)]


class InnerSteps:
    """Of one optimizer, until undo()."""

    def __init__(self, optimizer: optim.Optimizer, made: Callable[[], None]):
        """`made` is called after each step, a left out one too: all workers make equally many then."""
        self._optimizer, self._made, self._count = optimizer, made, 0
        self._had_own = optimizer.__dict__.get("step")
        before, me = optimizer.step, self

        def step(self, *arguments, **named):
            result = before(*arguments, **named)
            me._count += 1
            me._made()
            return result

        for name in _OF_SCHEDULES:
            if hasattr(before, name):
                setattr(step, name, True)
        optimizer.step = types.MethodType(step, optimizer)
        self._scalers: List[Tuple[type, Callable]] = [(kind, kind.step) for kind in _scalers()]
        for kind, scales in self._scalers:
            kind.step = self._counted(scales)

    def _counted(self, scales: Callable) -> Callable:
        me = self

        def step(self, optimizer, *arguments, **named):
            count = me._count
            result = scales(self, optimizer, *arguments, **named)
            if optimizer is me._optimizer and me._count == count:
                me._count += 1
                me._made()
            return result

        return step

    def undo(self) -> None:
        if self._had_own is None:
            self._optimizer.__dict__.pop("step", None)
        else:
            self._optimizer.step = self._had_own
        for kind, scales in self._scalers:
            kind.step = scales
