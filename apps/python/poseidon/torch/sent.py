"""A gradient between backward() and step(): the same object, of another class. It is on its way already, and not the mean: whoever reads it would
read this worker's own, and whoever changes it would change nothing, or half of it."""

import contextlib
import weakref
from typing import Dict, Iterable, Tuple

import torch

# By id of a gradient: who refuses what is done to it, and the number of its parameter.
_refusers: Dict[int, Tuple["weakref.WeakMethod", int]] = {}

_T = torch.Tensor
_ABOUT_IT = [getattr(_T, name).__get__ for name in (
    "shape", "dtype", "device", "layout", "ndim", "requires_grad", "grad_fn", "is_leaf", "is_sparse", "is_cuda", "is_quantized", "is_meta", "_version")]
_ABOUT_IT += [_T.size, _T.dim, _T.numel, _T.stride, _T.is_contiguous, _T.is_floating_point, _T.is_complex, _T.element_size, _T.data_ptr, _T.get_device,
              _T.__len__, _T.__hash__]


class SentGradient(torch.Tensor):
    """Every function of torch that gets one goes through here first; those that ask about its form may."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function not in _ABOUT_IT:
            for value in torch.utils._pytree.tree_flatten((args, kwargs))[0]:
                if type(value) is SentGradient:
                    refuser, i = _refusers[id(value)]
                    refuse = refuser()
                    if refuse is not None:
                        raise refuse(i)
                    come_back(value)  # the client has gone
        with torch._C.DisableTorchFunction():
            return function(*args, **kwargs)


def send(g: torch.Tensor, refuser: "weakref.WeakMethod", i: int) -> None:
    """From now on the method `refuser` makes the error for who touches `g`, the gradient of parameter i."""
    _refusers[id(g)] = refuser, i
    g.__class__ = SentGradient


def come_back(g: torch.Tensor) -> None:
    if type(g) is SentGradient:
        g.__class__ = torch.Tensor
        _refusers.pop(id(g), None)


@contextlib.contextmanager
def readable(gradients: Iterable[torch.Tensor]):
    """Within it, those of `gradients` that are on their way are plain tensors: for the client itself."""
    sent = [g for g in gradients if type(g) is SentGradient]
    for g in sent:
        g.__class__ = torch.Tensor
    try:
        yield
    finally:
        for g in sent:
            g.__class__ = SentGradient
