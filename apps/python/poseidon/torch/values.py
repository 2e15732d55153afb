"""Mode `shards`: a parameter's values lie in the script's memory. A step begins with what is there, so that what the script has written to
it since the step before is part of the model; fresh values are copied to it."""

from typing import Callable, Dict, List

import torch
from torch import nn

from ..library import Run

# On a GPU: in the first clocks all bits are compared, later a few, now and then. A script that writes past PyTorch does so from the beginning.
_CLOCKS_COMPARED, _COMPARED_EVERY, _VALUES_COMPARED = 3, 10, 16


def _bits(t: torch.Tensor, all_of_them: bool = True) -> torch.Tensor:
    """A version number misses `.data.clamp_()` and NumPy, so bits are compared: as integers, where a NaN equals itself."""
    flat = torch.as_strided(t.detach(), (t.numel(),), (1,)).view(torch.int32)
    return flat if all_of_them else flat[::max(1, t.numel() // _VALUES_COMPARED)]


class Values:
    def __init__(self, run: Run, parameters: List[nn.Parameter], ring: Callable[[int, int], torch.Tensor], names: List[str],
                 failed: Callable[[str], Exception]):
        self._run, self._parameters, self._ring, self._names, self._failed = run, parameters, ring, names, failed
        self._strides = [p.stride() for p in parameters]
        # By parameter, as it was lent last: tensors over the memory, which keep it.
        self._lent: List[torch.Tensor] = [torch.empty(0)] * len(parameters)
        self._places = [0] * len(parameters)  # their addresses; 0: the library's memory has the same values
        self._versions: Dict[int, int] = {}  # in this clock, at its push
        self._bits: Dict[int, torch.Tensor] = {}  # in this clock, of those that somebody has touched since
        # On a GPU a step begins with the library's memory, but where the script has written since the values were taken.
        self._taken: Dict[int, int] = {}

    def begin(self) -> None:
        self._taken = {i: p._version for i, p in enumerate(self._parameters) if p.is_cuda}

    def lend(self, i: int, clock: int) -> None:
        """Before the push of its gradient, from which on the values stay as they are."""
        p = self._parameters[i]
        if p.is_cuda:
            self._lend_copy(i, clock)
        else:
            place = p.data_ptr()
            if place != self._places[i]:
                self._require_same_form(i)
                self._lend(i, p.detach(), place)
        self._versions[i] = p._version

    def touched(self, i: int) -> None:
        """Whoever is about to touch a parameter between backward() and step() may write to it."""
        if i in self._versions:
            self._bits[i] = _bits(self._parameters[i]).clone()

    def _lend(self, i: int, values: torch.Tensor, place: int) -> None:
        self._run.step_from(i, place)
        self._lent[i], self._places[i] = values, place

    def _require_same_form(self, i: int) -> None:
        p = self._parameters[i]
        if p.stride() != self._strides[i] or p.dtype != torch.float32:
            raise self._failed(f'"{self._names[i]}" is {p.dtype} with strides {p.stride()} now, and had torch.float32 and strides {self._strides[i]} at '
                               "join(): write to it in place (p.copy_() under torch.no_grad())")

    def _lend_copy(self, i: int, clock: int) -> None:
        p = self._parameters[i]
        if p._version != self._taken[i]:  # else, if it was lent a copy and no step was made of it, that is still the same
            self._require_same_form(i)
            copied = torch.empty_strided(p.shape, p.stride(), dtype=torch.float32).copy_(p.detach())
            return self._lend(i, copied, copied.data_ptr())
        compares, all_bits = clock < _CLOCKS_COMPARED or clock % _COMPARED_EVERY == 0, clock < _CLOCKS_COMPARED
        if compares and not self._places[i] and not torch.equal(_bits(p, all_bits).cpu(), _bits(self._ring(i, clock), all_bits)):
            raise self._failed(f'"{self._names[i]}" was written to past PyTorch (p.data, DLPack), and the shards would not see it: write to it under '
                               'torch.no_grad(), or use mode="local"')

    def require_unchanged(self) -> None:
        """At step(): the shards read the values meanwhile."""
        for i, version in self._versions.items():
            p = self._parameters[i]
            before = self._bits.get(i)
            if p._version != version or (not p.is_cuda and p.data_ptr() != self._places[i]) or not (
                    before is None or torch.equal(_bits(p), before)):
                raise self._failed(f'"{self._names[i]}" was written to between backward() and step(), when its step had begun already on the shards: '
                                   'write to it after step() or before backward(), or use mode="local"')
        self._versions.clear()
        self._bits.clear()

    @torch.no_grad()
    def take(self, i: int, version: int, there: bool) -> None:
        """`there`: somebody had a gradient, so that there are fresh values."""
        p = self._parameters[i]
        if there:
            p.copy_(self._ring(i, version), non_blocking=True)
            if p.is_cuda and self._places[i]:
                self._lend(i, torch.empty(0), 0)
        if p.is_cuda:
            self._taken[i] = p._version
