"""What a worker's gradient counts in the mean of a step: workers whose batches have different sizes, or none, in the last step of an epoch."""

import weakref
from typing import Callable, List, Optional

import torch


class Weights:
    """Of one worker. Without a sampler that is asked for it every gradient counts alike."""

    def __init__(self):
        self._sampler: Callable[[], Optional[object]] = lambda: None
        self._asked: Optional[int] = None  # the clock whose gradients leave
        self._before = 1.0  # the scale with which they leave
        self.now = 1.0  # by what this worker's are multiplied; 0: none leaves

    def ask(self, sampler) -> None:
        """From now on this one, whose loop has begun, as long as it is alive. `sampler.weight(clock)`: this worker's weight; `sampler.scale(clock)`: the
        part of it that all have in common, which depends on who is there."""
        self._sampler = weakref.ref(sampler)

    def weight(self, clock: int) -> float:
        sampler = self._sampler()
        return 1.0 if sampler is None else sampler.weight(clock)

    def scale(self, clock: int) -> float:
        sampler = self._sampler()
        return 1.0 if sampler is None else sampler.scale(clock)

    def begin(self, clock: int) -> None:
        """Before the first gradient of a clock leaves, and whenever another one does."""
        if self._asked == clock:
            return
        self._asked, self.now, self._before = clock, self.weight(clock), self.scale(clock)

    def of(self, g: torch.Tensor) -> Optional[torch.Tensor]:
        """What leaves for this gradient."""
        return g if self.now == 1.0 else None if self.now == 0.0 else g.detach() * self.now

    def correct(self, clock: int, parameters: List[torch.Tensor]) -> None:
        """A worker was lost in this clock, and the means are over the others, whose gradients had left with a weight that counts it, too. What is wrong
        is one factor, the same for all."""
        if self._asked != clock:
            return
        now = self.scale(clock)
        if now != self._before:
            torch._foreach_mul_([p.grad for p in parameters if p.grad is not None], now / self._before)
