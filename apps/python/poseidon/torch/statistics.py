"""A model's floating-point buffers (the statistics of BatchNorm) as one value of the run, whose mean all workers take at outer steps."""

from typing import Callable, Dict, FrozenSet, List

import torch
from torch import nn

from .state import buffers_of


def averaged(model: nn.Module, ignored: FrozenSet[str]) -> FrozenSet[str]:
    """The names of the buffers that have a mean."""
    return frozenset(name for name, t in model.named_buffers() if t.is_floating_point() and name not in ignored)


class Statistics:
    def __init__(self, model: nn.Module, names: FrozenSet[str], failed: Callable[[str], Exception]):
        self._failed = failed
        self._places = [(of, key, name, t.shape) for of, key, name, t in buffers_of(model, names.__contains__)]
        self.values = sum(shape.numel() for *_, shape in self._places)
        self.lent = torch.zeros(self.values)  # the library reads it until the mean is here
        self._last = torch.zeros(self.values)

    def _current(self) -> List[torch.Tensor]:
        out = []
        for of, key, name, shape in self._places:
            t = of.get(key)
            if t is None or t.shape != shape:
                raise self._failed(f'buffer "{name}" is {"gone" if t is None else list(t.shape)}, and was {list(shape)} at join(): all workers take the mean of '
                                   "theirs at outer steps. broadcast_buffers=False leaves each its own")
            out.append(t.detach())
        return out

    @torch.no_grad()
    def pack(self) -> torch.Tensor:
        self.lent.copy_(torch.cat([t.reshape(-1).to("cpu", torch.float32) for t in self._current()]))
        return self.lent

    def begin(self) -> None:
        """All workers have the same ones now."""
        self._last = self.pack().clone()

    @torch.no_grad()
    def take(self, mean: torch.Tensor, mix: float) -> None:
        """`mix`: the part of this worker's own values that stays."""
        self._last.copy_(mean)
        for t, came in zip(self._current(), self._last.split([shape.numel() for *_, shape in self._places])):
            came = came.view(t.shape).to(t.device, t.dtype)
            t.copy_(t.mul(mix).add_(came.mul(1 - mix)) if mix else came)

    def of_last_step(self) -> Dict[str, torch.Tensor]:
        """By name, as the last outer step has left them: a forward pass may have changed those of the modules since."""
        pieces = self._last.split([shape.numel() for *_, shape in self._places])
        return {name: piece.view(shape).to(of[key].dtype) for piece, (of, key, name, shape) in zip(pieces, self._places)}
