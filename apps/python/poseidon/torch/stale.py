"""A parameter between step() and its next use: the same object, of another class. Whoever touches it first waits."""

import copy
import functools
import inspect
import os
import sys
import threading
import weakref
from typing import Callable, Dict, Tuple

import torch
from torch import nn

from ..library import PoseidonError

# By id of a parameter: what brings its fresh value, and what zero_grad() of one is. A parameter is of one model, and a model of one client.
_fresheners: Dict[int, "weakref.WeakMethod"] = {}
_clearers: Dict[int, "weakref.WeakMethod"] = {}

# Held while one is brought: of several threads that read a model after step(), one makes the steps, and the others wait for it.
_bringing = threading.RLock()


def _not_held() -> None:
    """In a fork, whatever other threads did when it was made."""
    global _bringing
    _bringing = threading.RLock()


os.register_at_fork(after_in_child=_not_held)

_GRADIENT = torch.Tensor.grad.__get__
_ZERO_GRAD = nn.Module.zero_grad.__code__


class StaleParameter(nn.Parameter):
    """Every function of torch that gets one goes through here first."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function == _GRADIENT:
            by = sys._getframe(1)
            if by.f_code is _ZERO_GRAD:  # of a whole model, after the step: nothing of it is read
                _clearers[id(args[0])]()(args[0], by.f_locals["set_to_none"])
                return None
        for value in torch.utils._pytree.tree_flatten((args, kwargs))[0]:
            freshen(value)
        return function(*args, **kwargs)

    # These two ask for the type before they ask for values, and would make copies of this class.
    def __deepcopy__(self, memo):
        freshen(self)
        return copy.deepcopy(self, memo)

    def __reduce_ex__(self, protocol):
        freshen(self)
        return self.__reduce_ex__(protocol)


def watch(p: nn.Parameter, freshener: Callable[[nn.Parameter], None], clearer: Callable[[nn.Parameter, bool], None]) -> None:
    """From now on `freshener`, a method, is called with `p` where it is stale and touched, and `clearer` where its gradient is cleared.
    The freshener calls forget_stale() before it touches `p` itself, and as late as it can: other threads do not wait for it any more."""
    _fresheners[id(p)] = weakref.WeakMethod(freshener)
    _clearers[id(p)] = weakref.WeakMethod(clearer)


def forget_stale(p: nn.Parameter) -> None:
    """It is fresh, or about to be."""
    if type(p) is StaleParameter:
        p.__class__ = nn.Parameter


def forget(p: nn.Parameter) -> None:
    forget_stale(p)
    _fresheners.pop(id(p), None)
    _clearers.pop(id(p), None)


def make_stale(p: nn.Parameter) -> None:
    p.__class__ = StaleParameter


def freshen(value) -> None:
    if type(value) is not StaleParameter:
        return
    with _bringing:
        if type(value) is StaleParameter:  # else another thread has brought it meanwhile
            bring = _fresheners[id(value)]()
            if bring is None:
                forget_stale(value)
            else:
                bring(value)


# What waits is not for torch.compile, which traces into hooks: its graph ends there. Where it may not end, PyTorch's error names the function.
_WHY = 'mode "local" and "shards" wait here for a parameter, which no graph can do: fullgraph=True and torch.export need mode="ddp"'


def _untraced(function):
    disable = getattr(getattr(torch, "compiler", None), "disable", None)
    if disable is None:
        return function
    if "reason" in inspect.signature(disable).parameters:
        return disable(function, reason=_WHY)
    function.__qualname__ = _WHY
    return disable(function)


class NotForScript(PoseidonError, AttributeError):
    """Who asks whether there is an attribute learns that there is none."""


# A pre-hook of Python's own that changes nothing: of (module, inputs) it answers the inputs.
_NOTHING = functools.partial(dict.get, {})


class BeforeForward:
    """A module's forward pre-hook, which freshens the module's own parameters. It is copied and pickled with its module: a copy
    does nothing, and a file does not name this package."""

    def __init__(self, own: Tuple[nn.Parameter, ...] = (), used: Callable[[Tuple[nn.Parameter, ...]], None] = None, *,
                 in_evaluation: bool = False):
        """`in_evaluation`: only there."""
        self._own, self.used, self._in_evaluation = own, used, in_evaluation

    @_untraced
    def __call__(self, module, inputs) -> None:
        if self._in_evaluation and module.training:
            return
        if self.used is not None:
            self.used(self._own)
        with _bringing:  # also for one that is not stale any more and whose step another thread is making
            for p in self._own:
                if type(p) is StaleParameter:
                    freshen(p)

    @property
    def __name__(self) -> str:
        """torch.jit.script asks for it, and nobody else."""
        raise NotForScript('torch.jit.script makes a module that reads parameters past Python, where nobody waits for them: mode="ddp"')

    def __deepcopy__(self, memo) -> "BeforeForward":
        return BeforeForward()

    def __reduce__(self):
        return _NOTHING.__reduce__()
