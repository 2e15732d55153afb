"""Where the means of a clock go: each into `.grad` when it comes, whichever comes first, while the others are still on their way."""

import ctypes
import weakref
from typing import Callable, Dict, List, Tuple

import torch
from torch import nn

from ..library import HERE, NOT_YET, Run
from .bundles import Declared

_ALIGNED = 64  # bytes, as PyTorch's own memory
_KEPT = 2  # pieces of memory for a parameter


class Pieces:
    """Memory for gradients of one parameter that are made for a script. A piece is given again when no tensor lies in it any more: new memory
    from the system costs more time, page by page, than what is written to it."""

    def __init__(self, p: nn.Parameter):
        self._size, self._stride, self._values = p.shape, p.stride(), p.numel()
        self._lent: List[Tuple[ctypes.Array, weakref.ref]] = []  # pieces, and who uses each

    def take(self) -> torch.Tensor:
        piece = next((piece for piece, user in self._lent if user() is None), None)
        if piece is None:
            piece = (ctypes.c_char * (4 * self._values + _ALIGNED))()
        # The tensors' storage refers to the user, nobody else does, and the user to the piece.
        user = type(piece).from_buffer(piece)
        others = [entry for entry in self._lent if entry[0] is not piece]
        self._lent = [(piece, weakref.ref(user))] + others[:_KEPT - 1]
        values = torch.frombuffer(user, dtype=torch.float32, count=self._values, offset=-ctypes.addressof(piece) % _ALIGNED)
        return torch.as_strided(values, self._size, self._stride)


class Means:
    def __init__(self, run: Run, parameters: List[nn.Parameter], declared: Declared):
        self._run, self._parameters, self._declared = run, parameters, declared
        count = len(declared)
        self._all = (ctypes.c_uint32 * count)(*range(count))
        self._to = (ctypes.c_void_p * count)()
        self._answers = (ctypes.c_uint8 * count)()
        self._not_yet = bytes([NOT_YET]) * count
        self._pieces: Dict[int, Pieces] = {}
        self.made: Dict[int, torch.Tensor] = {}  # in this clock: where the library makes means of factors

    def place_for(self, i: int) -> int:
        """Where the library is to make a mean of factors."""
        if i not in self._pieces:
            self._pieces[i] = Pieces(self._parameters[i])
        self.made[i] = self._pieces[i].take()
        return self.made[i].data_ptr()

    def collect(self, version: int, lent: Dict[int, torch.Tensor], take: Callable[[int, bool], None]) -> None:
        """Until all that has been declared is here. `lent`: gradients that have been pushed; where `.grad` is still that one, its mean is
        written over it. All others, by their numbers, are for `take`, which learns whether somebody had a gradient."""
        to, answers = self._to, self._answers
        ctypes.memmove(answers, self._not_yet, len(self._not_yet))
        others = []
        for number, i in enumerate(self._declared.first):
            g = lent.get(i)
            if g is not None and self._parameters[i].grad is g and not g.requires_grad:
                to[number] = g.data_ptr()
            else:
                to[number] = None
                others.append(number)
        missing = 1
        while missing:
            missing = self._run.collect(self._all, version, to, answers)
            came = [number for number in others if answers[number] != NOT_YET]
            for number in came:
                take(number, answers[number] == HERE)
            if came:
                others = [number for number in others if answers[number] == NOT_YET]
        lent.clear()
        self.made.clear()
