"""Being told when a backward pass has ended, and when one has ended by an error."""

import functools
import sys
import weakref
from typing import Callable, List, Optional, Tuple

import torch

# A backward pass that is run by a node of another one (a checkpoint with use_reentrant=True) runs inside this function.
_NODE = torch.autograd.function.BackwardCFunction.apply.__code__
_BACKWARD = torch.autograd.backward.__code__


class _End:
    """What the engine calls at the end of a pass. A pass that ends by an error drops it uncalled."""

    def __init__(self, passes: "Passes"):
        self._passes = weakref.ref(passes)
        self._called = False

    def __call__(self) -> None:
        self._called = True
        passes = self._passes()
        if passes is not None:
            passes._end()

    def __del__(self) -> None:
        passes = self._passes()
        if passes is not None and not self._called:
            passes._broken()


class Passes:
    """Of one client. A pass inside another one belongs to it: only the outermost one ends a clock."""

    def __init__(self, ended: Callable[[], None], broken: Callable[[], None], refused: Callable[[str], Exception], each: bool):
        """`broken` is told of a pass that an error has ended. `refused` makes the error of a pass that is in no place for one. `each`: the threads of
        a GPU's passes may hold what an earlier pass has left, so that each gradient asks anew."""
        self._ended, self._was_broken, self._refused = ended, broken, refused
        self._each = each
        self.under_way = False
        self._asked: Callable[[], Optional[_End]] = lambda: None
        self._waiting: List[Tuple[object, object]] = []  # hooks of nodes that come after a pass inside another one

    def reached(self) -> bool:
        """A pass has written a gradient. Returns  True: it is the first one that asks to be told of its pass's end."""
        first = not self.under_way
        self.under_way = True
        if self._asked() is None or self._each:
            end = _End(self)
            self._asked = weakref.ref(end)
            torch.autograd.Variable._execution_engine.queue_callback(end)
        return first

    def _end(self) -> None:
        if not self.under_way:
            return  # another one has been told
        outer, depth = _around()
        if outer is not None:
            self._wait_for(outer)
            return
        if depth > 1:
            raise self._refused("a backward pass runs inside a hook of another one, and nothing tells which of the two a step ends with: call "
                                "backward() after the first one has ended, or wrap the inner one in no_sync()")
        self.under_way = False
        self._forget_nodes()
        self._ended()

    def _wait_for(self, outer) -> None:
        """The pass around it may reach no parameter any more. Its next nodes run after this one."""
        self._asked = lambda: None
        for node, _ in outer.next_functions:
            if node is not None:
                self._waiting.append((node, node.register_hook(functools.partial(_ask, weakref.ref(self)))))

    def _forget_nodes(self) -> None:
        for _, handle in self._waiting:
            handle.remove()
        self._waiting.clear()

    def _broken(self) -> None:
        self._forget_nodes()
        if self.under_way:
            self.under_way = False
            self._was_broken()


def _ask(passes: "weakref.ref[Passes]", *_) -> None:
    of = passes()
    if of is not None and of.under_way:
        of.reached()


def _around() -> Tuple[Optional[object], int]:
    """The node of another pass that has run this one, and how many passes the calling thread is in."""
    frame, depth = sys._getframe(1), 0
    while frame is not None:
        if frame.f_code is _NODE:
            return frame.f_locals["self"], depth
        depth += frame.f_code is _BACKWARD
        frame = frame.f_back
    return None, depth
