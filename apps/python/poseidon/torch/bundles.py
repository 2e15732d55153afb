"""Small parameters that travel together: what one costs on its way, in messages and calls, does not depend on its size.

A bundle is declared as one parameter. It holds its members' values one after the other, and behind them a number for each member: 1 where
this worker has a gradient of it. So a bundle's mean says of which members somebody had one. A member without a gradient is filled with
-0.0, which changes no bit of a sum that it is added to. All workers make the same bundles: it is by the shapes, and where a group says
how its members are stepped by the groups, and by nothing else."""

import ctypes
from typing import Callable, List, Optional, Sequence, Tuple

import torch

from ..library import BUNDLE, MEAN

_FEWEST = 24  # small parameters: below, each goes by itself
_SMALL = 1 << 14  # values
_SMALL_MATRIX = 1 << 10  # of two dimensions: a larger one may go as factors
_MOST = 1 << 15  # values of a bundle
_LONGEST_NAME = 3000  # bytes: the names of its members, which worker 0 tells the others
_CHANNELS_LAST = ((4, torch.channels_last), (5, torch.channels_last_3d))

_copy = ctypes.memmove


def _axes_in_memory(p: torch.Tensor) -> List[int]:
    """The axes of a tensor without gaps, outermost first. One with a single entry is nowhere."""
    return sorted((axis for axis in range(p.dim()) if p.shape[axis] > 1), key=lambda axis: -p.stride(axis))


def _is_row_major(p: torch.Tensor) -> bool:
    axes = _axes_in_memory(p)
    return axes == sorted(axes)


def _shape_in_memory(p: torch.Tensor) -> Sequence[int]:
    """Values travel in the order of the parameter's memory, and what is made of them as a matrix has to be one."""
    return p.shape if _is_row_major(p) else [p.shape[axis] for axis in _axes_in_memory(p)]


def _named(name: str, p: torch.Tensor) -> str:
    """Workers compare what they declare, and the order of a parameter's memory has to be the same on all of them."""
    if _is_row_major(p):
        return name
    if any(p.dim() == dim and p.is_contiguous(memory_format=form) for dim, form in _CHANNELS_LAST):
        return f"{name} (channels_last)"
    return f"{name} (in memory by axes {' '.join(map(str, _axes_in_memory(p)))})"


def _described(name: str, p: torch.Tensor) -> str:
    return f"{_named(name, p)} [{'x'.join(map(str, p.shape))}]"


def _is_small(p: torch.Tensor) -> bool:
    return 0 < p.numel() <= (_SMALL_MATRIX if p.dim() == 2 else _SMALL)


def _lies_as(g: torch.Tensor, p: torch.Tensor) -> bool:
    """Whether a gradient's values lie on a CPU in the order of its parameter's."""
    return g.is_cpu and (g.is_contiguous() and p.is_contiguous() or g.stride() == p.stride())


class Bundle:
    def __init__(self, members: List[int], parameters: Sequence[torch.Tensor]):
        self.members = members
        self._of = [parameters[i] for i in members]
        self.offsets: List[int] = []
        self.values = 0
        for p in self._of:
            self.offsets.append(self.values)
            self.values += p.numel()
        self.size = self.values + len(members)
        self.missing = len(members)  # that have not been pushed in this clock
        self._on = self._of[0].device
        self._sizes = [4 * p.numel() for p in self._of]
        # What is pushed, on a CPU the same memory in every clock: the mean of one is here before the next one's gradients.
        self._filled = torch.empty(self.size) if self._on.type == "cpu" else None

    def name(self, names: Sequence[str]) -> str:
        return " + ".join(_described(names[i], p) for i, p in zip(self.members, self._of))

    def filled(self, gradients: Sequence[Optional[torch.Tensor]]) -> torch.Tensor:
        """The gradients of all members, None: there is none, as they are pushed."""
        filled = torch.empty(self.size, device=self._on) if self._filled is None else self._filled
        at = filled.data_ptr()
        for g, p, offset, size in zip(gradients, self._of, self.offsets, self._sizes):
            if self._filled is not None and g is not None and _lies_as(g, p):
                _copy(at + 4 * offset, g.data_ptr(), size)
                continue
            place = torch.as_strided(filled, p.shape, p.stride(), offset)
            place.fill_(-0.0) if g is None else place.copy_(g.detach())
        flags = filled[self.values:]
        flags.fill_(1)
        if any(g is None for g in gradients):
            flags.copy_(torch.tensor([float(g is not None) for g in gradients]))
        return filled

    def spread(self, mean: int, gradients: Sequence[Optional[torch.Tensor]], take: Callable[[int, bool], None]) -> None:
        """`mean`: its address. It is written over the gradients; None: take() is told, which learns whether somebody had one."""
        flags = (ctypes.c_float * len(self.members)).from_address(mean + 4 * self.values)
        for i, g, p, offset, size, had in zip(self.members, gradients, self._of, self.offsets, self._sizes, flags):
            if g is not None and _lies_as(g, p) and not g.requires_grad:
                _copy(g.data_ptr(), mean + 4 * offset, size)
            else:
                take(i, had > 0)


class Declared:
    """What a client declares: its parameters, small ones as bundles."""

    def __init__(self, names: Sequence[str], parameters: Sequence[torch.Tensor], bundled: bool, apart: Sequence[int]):
        """`apart`: only parameters of the same number travel together."""
        self._names, self._parameters, self._apart = names, parameters, apart
        self.bundles: List[Optional[Bundle]] = []  # by number in the run; None: a parameter by itself
        self.first: List[int] = []  # by number: its first parameter
        self.of: List[int] = [0] * len(parameters)  # by parameter: its number in the run
        self.offset: List[int] = [0] * len(parameters)  # and where in it, in bytes
        small = [i for i, p in enumerate(parameters) if _is_small(p)] if bundled else []
        for members in self._cut(small if len(small) >= _FEWEST else []):
            bundle = Bundle(members, parameters) if len(members) > 1 else None
            for at, i in enumerate(members):
                self.of[i] = len(self.bundles)
                self.offset[i] = 4 * bundle.offsets[at] if bundle is not None else 0
            self.bundles.append(bundle)
            self.first.append(members[0])

    def _cut(self, small: List[int]) -> List[List[int]]:
        """What is declared, in the order of the first members."""
        waiting: List[int] = []
        values = name = 0
        among, out, of = set(small), [], None
        for i, p in enumerate(self._parameters):
            if i not in among:
                out.append([i])
                continue
            more = len(_described(self._names[i], p).encode()) + 3
            if not waiting or values + p.numel() > _MOST or name + more > _LONGEST_NAME or self._apart[i] != of:
                waiting, values, name, of = [], 0, 0, self._apart[i]
                out.append(waiting)
            waiting.append(i)
            values, name = values + p.numel(), name + more
        return out

    def __len__(self) -> int:
        return len(self.bundles)

    def bundle_of(self, i: int) -> Optional[Bundle]:
        return self.bundles[self.of[i]]

    def place_of_flag(self, i: int) -> Optional[int]:
        """Where in its bundle, in bytes, lies whether somebody had a gradient of parameter i; None: it travels by itself."""
        bundle = self.bundle_of(i)
        return None if bundle is None else 4 * (bundle.values + bundle.members.index(i))

    def declared(self, first: Sequence[torch.Tensor]) -> Tuple[list, list]:
        """What is to be declared: name, shape and address of the first values; and what is to stay while these are read."""
        out, kept = [], []
        for number, bundle in enumerate(self.bundles):
            if bundle is None:
                i = self.first[number]
                out.append((_named(self._names[i], first[i]), _shape_in_memory(first[i]), first[i].data_ptr()))
                continue
            values = torch.zeros(bundle.size)
            for i, offset in zip(bundle.members, bundle.offsets):
                torch.as_strided(values, first[i].shape, first[i].stride(), offset).copy_(first[i])
            out.append((bundle.name(self._names), (bundle.size,), values.data_ptr()))
            kept.append(values)
        return out, kept

    def kinds(self) -> List[int]:
        """By number in the run. A bundle's values have nothing in common, and its flags have to arrive."""
        return [MEAN if bundle is None else BUNDLE for bundle in self.bundles]

    def tensors(self) -> List[torch.Tensor]:
        """By number in the run, a tensor of that shape where its first parameter is."""
        return [self._parameters[i] if bundle is None else torch.empty(bundle.size, device=self._parameters[i].device)
                for i, bundle in zip(self.first, self.bundles)]
