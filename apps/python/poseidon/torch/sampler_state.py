"""What a Sampler writes into a checkpoint, and gives to a worker that comes later: which samples of the epoch are trained, as the views that say
so."""

from dataclasses import dataclass, field
from typing import List, Optional

import torch

from ..library import PoseidonError
from .epochs import Cut, Epoch, View, views_from

_FORMAT = 1


@dataclass
class Past:
    """What a run has trained of an epoch: from its first clock until another one."""

    first: int
    clock: int
    grows: bool
    cut: Cut
    views: List[View]

    def epoch(self, number: int, samples: torch.Tensor) -> Epoch:
        return Epoch(number, self.cut, self.first, self.grows, samples, self.views)

    def rest(self, number: int, samples: torch.Tensor) -> torch.Tensor:
        return self.epoch(number, samples).rest(self.clock)

    def as_dict(self) -> dict:
        return {"first": self.first, "clock": self.clock, "grows": self.grows, "cut": list(self.cut), "views": _plain(self.views)}

    @staticmethod
    def read(state: dict) -> "Past":
        cut, first, clock = Cut(*state["cut"]), state["first"], state["clock"]
        sizes = (cut.batch_size, cut.batches_per_step, 1 if cut.step_size is None else cut.step_size)
        if not all(type(number) is int for number in (*sizes, cut.ahead, first, clock)) or min(sizes) < 1 or cut.ahead < 0 or not 0 <= first <= clock:
            raise ValueError(f"steps from {first!r} to {clock!r}, cut as {tuple(cut)!r}")
        views = _views(state["views"])
        if not views or not all(view.seats for view in views):
            raise ValueError(f"members {state['views']!r}")
        return Past(first, clock, bool(state["grows"]), cut, views)


def _plain(views: List[View]) -> list:
    return [[first, list(seats)] for first, seats in views]


def _views(plain: list) -> List[View]:
    return [View(int(first), tuple(int(seat) for seat in seats)) for first, seats in plain]


@dataclass
class State:
    """Equal on all workers of a run after the same step."""

    order: dict  # of what the samples and their order are made
    cut: dict  # how they are cut
    run: Optional[str]
    epoch: int
    step_size: Optional[int]
    views: List[View]
    now: Optional[Past]  # of this run
    past: List[Past] = field(default_factory=list)  # of earlier runs, in the same epoch

    @staticmethod
    def of(sampler) -> "State":
        run, now = sampler._run, None
        views: List[View] = []
        if run is not None:
            sampler._follow()
            views = views_from(run.clock if sampler._now is None else sampler._now.first, sampler._views)
            if sampler._now is not None:
                now = Past(sampler._now.first, run.clock, sampler._now.grows, sampler._now.cut, views)
        return State({"length": sampler.length, "shuffle": sampler.shuffle, "seed": sampler.seed},
                     {"batch_size": sampler.batch_size, "batches_per_step": sampler.batches_per_step, "drop_last": sampler.drop_last, "ahead": sampler.ahead,
                      "global_batch": sampler.global_batch},
                     None if run is None else str(run.id), sampler._number, sampler._step_size, views, now, list(sampler._past))

    def as_dict(self) -> dict:
        return {"format": _FORMAT, **self.order, **self.cut, "run": self.run, "epoch": self.epoch, "step_size": self.step_size, "views": _plain(self.views),
                "now": None if self.now is None else self.now.as_dict(), "past": [past.as_dict() for past in self.past]}

    @staticmethod
    def read(state: dict) -> "State":
        try:
            if state["format"] != _FORMAT:
                raise PoseidonError(f"Sampler.load_state_dict: the state has format {state['format']!r}, expected {_FORMAT}: a newer version has written it")
            return State({name: state[name] for name in ("length", "shuffle", "seed")},
                         {name: state[name] for name in ("batch_size", "batches_per_step", "drop_last", "ahead", "global_batch")}, state["run"],
                         int(state["epoch"]), state["step_size"], _views(state["views"]), None if state["now"] is None else Past.read(state["now"]),
                         [Past.read(past) for past in state["past"]])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise PoseidonError(f"Sampler.load_state_dict: this is not what state_dict() of a Sampler has returned ({type(error).__name__}: {error})") from error

    def require_fits(self, sampler) -> None:
        """Refuses a state of other samples, or of another order; and what the workers of one run have to have alike."""
        of_run = sampler._run is not None and self.run == str(sampler._run.id)
        for name, value in {**self.order, **(self.cut if of_run else {})}.items():
            has = getattr(sampler, name)
            if has != value and not (name == "batch_size" and None in (has, value)):
                whose = "the other workers' Sampler has" if of_run else "the state was taken with"
                raise PoseidonError(f"Sampler: {whose} {name}={value!r}, this one has {name}={has!r}: which samples are left of epoch {self.epoch} depends on "
                                    "it. Give it the same value")

    def give_to(self, sampler) -> None:
        """Of this run: as the others are. Of another one: what that one has left is the epoch."""
        run = sampler._run
        sampler._number, sampler._past, sampler._now = self.epoch, list(self.past), None
        if sampler.global_batch is not None:
            sampler._step_size = self.step_size
        if self.run != str(run.id):
            if self.now is not None:
                sampler._past.append(self.now)
            return
        if sampler.batch_size is None:
            sampler.batch_size = self.cut["batch_size"]
        sampler._seen = len(run.views)
        sampler._views = self._views_with(run)
        if self.now is not None:
            self.now.views = views_from(self.now.first, sampler._views)
            sampler._now = self.now.epoch(self.epoch, sampler._samples(self.epoch))
            sampler._loaded = run.clock

    def _views_with(self, run) -> List[View]:
        """Those from before the first one that has this worker, as the others know them, and then the run's."""
        def first_own(views: List[View]) -> int:
            return next((place for place, view in enumerate(views) if run.seat in view.seats), len(views))

        own = [View(int(first), tuple(seats)) for first, seats in run.views]
        return self.views[:first_own(self.views)] + own[first_own(own):]
