"""What `.grad` holds after a step that is put off: the mean, as after PyTorch's own step, until zero_grad() says otherwise."""

from typing import Dict, Iterable, List, Optional, Tuple

import torch
from torch import nn

from .sent import come_back


def zero(gradients: List[torch.Tensor]) -> None:
    """As zero_grad(set_to_none=False) does it."""
    for g in gradients:
        if g.grad_fn is not None:
            g.detach_()
        else:
            g.requires_grad_(False)
    if gradients:
        torch._foreach_zero_(gradients)


class Gradients:
    """Of parameters whose step is put off. A gradient that has left is the script's memory, and back when the mean is here: the mean goes there."""

    def __init__(self, parameters: List[nn.Parameter]):
        self._parameters = parameters
        self._own: Dict[int, torch.Tensor] = {}
        self._cleared: Dict[int, bool] = {}  # since the step; True: to None
        self._means: Dict[int, Tuple[torch.Tensor, int]] = {}  # that no zero_grad() has cleared, and their versions

    def keep(self) -> None:
        """At the step of a clock: those of all parameters."""
        own = self._own
        for i, p in enumerate(self._parameters):
            g = p.grad
            if g is not None:
                come_back(g)
                own[i], p.grad = g, None  # a backward pass of an older clock's graph would write to it
        self._cleared.clear()
        self._means.clear()

    def clear(self, i: int, set_to_none: bool) -> None:
        """zero_grad() of a parameter whose step is put off."""
        self._cleared[i] = set_to_none or self._cleared.get(i, False)

    def own(self, i: int) -> Optional[torch.Tensor]:
        """The gradient that this worker had; it leaves this object."""
        return self._own.pop(i, None)

    def kept_mean(self, i: int) -> Optional[torch.Tensor]:
        """What .grad holds, if that is still the mean of a step before."""
        mean, version = self._means.get(i, (None, 0))
        return mean if mean is not None and self._parameters[i].grad is mean and mean._version == version else None

    def is_cleared(self, i: int) -> bool:
        return i in self._cleared

    @staticmethod
    def clear_now(parameters: Iterable[nn.Parameter], set_to_none: bool) -> None:
        """zero_grad() of parameters whose step is made."""
        having = [p for p in parameters if p.grad is not None]
        if not set_to_none:
            return zero([p.grad for p in having])
        for p in having:
            p.grad = None

    def settle(self, of: List[int], added: Dict[int, torch.Tensor]) -> None:
        """After the steps of these: what zero_grad() has said meanwhile, then what an older clock's graph has `added`."""
        parameters, cleared = self._parameters, self._cleared
        for set_to_none in False, True:
            self.clear_now([parameters[i] for i in of if cleared.get(i) is set_to_none], set_to_none)
        for i in of:
            p = parameters[i]
            if cleared.pop(i, None) is None:
                mean = p.grad
                if mean is not None:
                    self._means[i] = mean, mean._version
            g = added.get(i)
            if g is not None:
                p.grad = g if p.grad is None else p.grad.add_(g)
