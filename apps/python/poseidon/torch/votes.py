"""How the workers' votes about formats travel: as one more small parameter, of which a worker mostly has no gradient."""

from typing import Callable, Tuple

import torch

from ..library import Run, View
from .ladder import VALUES, Ladder
from .waits import Times


class Votes:
    def __init__(self, harshest: str):
        self.ladder = Ladder(harshest)
        self._mine = torch.zeros(VALUES)  # the library reads it until the mean is here
        self._number = 0

    def declared(self, number: int) -> Tuple[str, Tuple[int, ...], int]:
        """Name, shape and address; it has this number in the run."""
        self._number = number
        return f"votes about lossy={self.ladder.harshest}", (VALUES,), self._mine.data_ptr()

    def push(self, run: Run, clock: int, rounded: Callable[[], float]) -> None:
        """This worker's vote of a clock, or that it has none. `rounded`: the part of all bytes that a format changes."""
        values = self.ladder.vote(rounded)
        if values is None:
            return run.push_nothing(self._number, clock)
        self._mine.copy_(torch.tensor(values))
        run.push(self._number, clock, self._mine.data_ptr(), 4 * VALUES)

    def take(self, run: Run, clock: int, view: View, times: Times) -> str:
        """What this clock's votes have come to: from the next one on gradients go in the format that they choose. Returns what is to be said of it."""
        self.ladder.follow(view)
        self.ladder.trained(clock, times)
        if not run.wait(self._number, clock + 1):
            return ""
        values = torch.frombuffer(run.memory(run.values(self._number, clock + 1), VALUES), dtype=torch.float32).tolist()
        decision = self.ladder.decide(clock + 1, values)
        run.wire(decision.form)
        return decision.line
