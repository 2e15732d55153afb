"""Outer steps (local SGD, DiLoCo): how often workers that train by themselves exchange what they have come to, and what is done with it."""

from typing import List, Optional, Sequence, Tuple

import torch

from ..library import PoseidonError

_SHORT = 10  # inner steps: up to here plain averaging is the safe rule
_RATE, _MOMENTUM = 0.7, 0.5  # beyond


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:
        raise PoseidonError(f"Outer: {name} is {value!r}, expected a whole number from {least} on")
    return value.__index__()


def _number(name: str, value: object, least: float, below: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < below:
        raise PoseidonError(f"Outer: {name} is {value!r}, expected a number from {least:g} on and less than {below:g}")
    return float(value)


class Outer:
    """`poseidon.Outer(every=20)`: each worker makes 20 steps of its own optimizer, in which nothing travels. The mean of what the workers have moved
    is then the gradient of one outer step (SGD), with which all begin again.

    `rate`, `momentum`, `nesterov`: of the outer step; where they are left out, rate 1 without momentum (the mean of the parameters) up to every=10, beyond
    rate 0.7 and momentum 0.5. `fragments`: groups of layers that take turns, one each every/fragments steps. `delay`: steps that the worker trains
    on while a fragment's mean is on its way. `mix`: the part of this worker's own values that is kept when it comes; half where it is left out."""

    def __init__(self, every: int, rate: Optional[float] = None, momentum: Optional[float] = None, nesterov: bool = True, fragments: int = 1,
                 delay: int = 0, mix: Optional[float] = None):
        self.every, self.fragments, self.delay = _whole("every", every, 1), _whole("fragments", fragments, 1), _whole("delay", delay, 0)
        short = self.every <= _SHORT
        self.rate = _number("rate", (1.0 if short else _RATE) if rate is None else rate, 0.0, 1e6)
        self.momentum = _number("momentum", (0.0 if short else _MOMENTUM) if momentum is None else momentum, 0.0, 1.0)
        self.nesterov = bool(nesterov)
        if self.every % self.fragments:
            raise PoseidonError(f"Outer: every={self.every} is no multiple of fragments={self.fragments}: each fragment takes its turn after every/fragments steps")
        if self.delay >= self.turn:
            raise PoseidonError(f"Outer: delay={self.delay} is not less than every/fragments={self.turn}: one fragment is on its way at a time")
        if mix is not None and self.delay == 0:
            raise PoseidonError(f"Outer: mix={mix!r} is for delay=1 and more: without a delay a worker has made no steps of its own when the mean comes")
        self.mix = _number("mix", (0.5 if self.delay else 0.0) if mix is None else mix, 0.0, 1.0)

    @property
    def turn(self) -> int:
        """Inner steps from one outer clock to the next one."""
        return self.every // self.fragments

    @property
    def streams(self) -> bool:
        """Whether workers have values of their own when an outer clock is over."""
        return self.fragments > 1 or self.delay > 0

    def __repr__(self) -> str:
        return (f"Outer(every={self.every}, rate={self.rate:g}, momentum={self.momentum:g}, nesterov={self.nesterov}, fragments={self.fragments}, "
                f"delay={self.delay}, mix={self.mix:g})")

    def cut(self, names: Sequence[str], sizes: Sequence[int]) -> List[int]:
        """By parameter: its fragment. A layer's parameters stay together, neighbours too, and fragments are about equally large."""
        layers: List[Tuple[str, int]] = []
        for name, size in zip(names, sizes):
            layer = name.rpartition(".")[0]
            if layers and layers[-1][0] == layer:
                layers[-1] = layer, layers[-1][1] + size
            else:
                layers.append((layer, size))
        if len(layers) < self.fragments:
            raise PoseidonError(f"Outer: fragments={self.fragments}, and the model has {len(layers)} layers with parameters: each fragment needs one")
        left, total, of_layer, fragment, here = sum(size for _, size in layers), 0, [], 0, 0
        for place, (_, size) in enumerate(layers):
            to_come = self.fragments - fragment - 1
            if here and to_come and (len(layers) - place <= to_come or 2 * total + size > 2 * left // (to_come + 1)):
                left, total, here, fragment = left - total, 0, 0, fragment + 1
            total, here = total + size, here + 1
            of_layer.append(fragment)
        out, place, before = [], -1, None
        for name in names:
            layer = name.rpartition(".")[0]
            place, before = place + (layer != before), layer
            out.append(of_layer[place])
        return out


class Rule:
    """SGD on what all workers have had alike. Each operation is rounded by itself, so that all workers have the same bits on any processor."""

    def __init__(self, outer: Outer, values: Sequence[torch.Tensor]):
        self._outer = outer
        self.anchors = [v.detach().clone() for v in values]  # strides stay
        self.momenta = [torch.zeros_like(v) for v in self.anchors] if outer.momentum else []

    def step(self, i: int, mean: torch.Tensor) -> torch.Tensor:
        """The anchor of parameter i after the step."""
        o, direction = self._outer, mean
        if o.momentum:
            moved = self.momenta[i].mul_(o.momentum).add_(mean)
            direction = moved.mul(o.momentum).add_(mean) if o.nesterov else moved
        return self.anchors[i].sub_(direction.mul(o.rate))
