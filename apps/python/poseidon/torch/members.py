"""Who trains together: the views of a run as they come, which worker this is in them, and who is told of a change."""

import sys
from typing import Callable, List, NamedTuple, Optional, Tuple

from ..library import Run, View


class Change(NamedTuple):
    """What on_change() tells. Workers are named by the numbers that they keep as long as they take part, which are their ranks at first."""
    step: int  # with outer=..., an outer step: the means of this step and of later ones are over the workers that are there now
    rank: int  # of this worker now
    size: int  # workers that are there now
    size_before: int
    gone: Tuple[int, ...]
    joined: Tuple[int, ...]


def _text(change: Change, steps: str) -> str:
    said = [", ".join(f"worker {seat}" for seat in who) + (one if len(who) == 1 else many)
            for who, one, many in ((change.gone, " is gone", " are gone"), (change.joined, " joined", " joined")) if who]
    workers = "this worker goes on alone" if change.size == 1 else f"{change.size} workers go on"
    return f"{', '.join(said)}: {workers}, from {steps} {change.step} on"


class Members:
    def __init__(self, run: Run, quiet: bool):
        self._run, self._quiet = run, quiet
        self.steps = "step"  # what this run's clocks are called
        self.views: List[View] = []  # those that count
        self.all_views: List[View] = []  # and those that another one has taken the place of
        self.seat: Optional[int] = None
        self._told: List[Callable[[Change], object]] = []
        self._coming: List[Change] = []  # with a later step than the one that is under way

    def look(self, clock: int) -> None:
        """Takes the views that have come, before this worker trains."""
        self._changes(clock)

    def begin(self, clock: int) -> None:
        """This worker's seat, by its number in the newest view: an older worker may be lost between the two questions, which are asked again then."""
        worker = None
        while worker != self._run.worker:
            worker = self._run.worker
            self._changes(clock)
        self.seat = self.views[-1].seats[worker]

    @property
    def rank(self) -> int:
        return self.views[-1].seats.index(self.seat)

    @property
    def size(self) -> int:
        return len(self.views[-1].seats)

    def tell(self, callback: Callable[[Change], object]) -> None:
        """Of each change from now on."""
        self._told.append(callback)

    def follow(self, clock: int) -> None:
        """Takes the views that have come, and tells of them; `clock`: the one that this worker is in."""
        for before, now in self._changes(clock):
            self._coming.append(self._change(before, now))
            if not self._quiet:
                print(f"poseidon: {_text(self._coming[-1], self.steps)}", file=sys.stderr, flush=True)
        while self._coming and self._coming[0].step <= clock:
            change = self._coming.pop(0)
            for callback in self._told:
                callback(change)

    def _change(self, before: View, now: View) -> Change:
        return Change(now.first_clock, now.seats.index(self.seat), len(now.seats), len(before.seats),
                      tuple(seat for seat in before.seats if seat not in now.seats), tuple(seat for seat in now.seats if seat not in before.seats))

    def _changes(self, clock: int) -> List[Tuple[View, View]]:
        """Since it was called last: the view before, and the one after it."""
        before, changes = self.views[-1:], []
        while self.views and self._run.view(len(self.views) - 1) != self.views[-1]:
            self.views.pop()  # another one has taken its place
        while True:
            view = self._run.view(len(self.views))
            if view is None or view.first_clock > clock + 1:  # the next step may be its first one
                return changes
            if before and before[0].seats != view.seats:  # else its routes have changed
                changes.append((before[0], view))
            if not before or before[0].seats != view.seats:
                self.all_views.append(view)
            self.views.append(view)
            before = [view]
