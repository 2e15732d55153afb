"""A sampler for workers that come, go and die: each sample of an epoch is trained exactly once."""

import atexit
import contextlib
import sys
import weakref
from collections import deque
from typing import Deque, Iterable, Iterator, List, Optional, Tuple

import torch
from torch.utils.data import Sampler as TorchSampler

from ..library import PoseidonError
from .epochs import Cut, Epoch, View, views_from
from .joined import Joined
from .sampler_draws import Batches, ByBatch
from .sampler_state import Past, State
from .sampler_words import Words, length_of, whole_number


class Sampler(TorchSampler):
    """In the place of DistributedSampler. On all workers alike:

        sampler = poseidon.Sampler(dataset, seed=1, batch_size=32)
        loader = DataLoader(dataset, batch_sampler=sampler.batch_sampler, num_workers=4)      # or DataLoader(dataset, 32, sampler=sampler)
        for epoch in range(90):
            sampler.set_epoch(epoch)
            for batch in sampler.batches(loader):
                ...

    `batches_per_step`: backward passes of a step, all but the last one within no_sync(); `ends_step` says which is the last one. `ahead`: how many
    batches a DataLoader may draw ahead of training, at least num_workers * prefetch_factor of every worker. `global_batch="keep"`: a step has as many
    samples as the first one had, however many workers there are.

    As long as no worker comes or goes, it gives the batches that DistributedSampler with the same seed gives, without the samples that it repeats."""

    def __init__(self, dataset, *, shuffle: bool = True, seed: int = 0, batch_size: Optional[int] = None, batches_per_step: int = 1,
                 drop_last: bool = False, ahead: int = 16, global_batch: Optional[str] = None, run=None):
        """`dataset`: anything that has a length, or the number of its samples. `run`: None: the one that this process has joined."""
        self.length = length_of(dataset)
        self.shuffle, self.drop_last = bool(shuffle), bool(drop_last)
        self.seed = whole_number("seed", seed, None)
        self.batch_size = None if batch_size is None else whole_number("batch_size", batch_size, 1)
        self.batches_per_step = whole_number("batches_per_step", batches_per_step, 1)
        self.ahead = whole_number("ahead", ahead, 0)
        if global_batch not in (None, "keep"):
            raise PoseidonError(f'Sampler: global_batch is {global_batch!r}, expected "keep" or None')
        self.global_batch = global_batch
        self.ends_step = True  # of the batch that batches() has given last
        self._given_run, self._run = run, None
        self._views: List[View] = []  # the newest one from before the epoch's first clock, and all since
        self._seen = 0  # of the run's views
        self._now: Optional[Epoch] = None
        self._past: List[Past] = []  # what earlier runs have trained of this epoch
        self._step_size: Optional[int] = None
        self._asked: Optional[int] = None  # by set_epoch()
        self._number = 0  # of the epoch
        self._kept_state: Optional[dict] = None  # until the run is known
        self._loaded: Optional[int] = None  # the clock at which an epoch was loaded: a loop that begins then is the rest of it, even if nothing is left
        self._in_batches = False
        self._planned: Optional[Tuple[tuple, Tuple[int, int]]] = None  # for which plan, and what it comes to: a script may ask for len() in each step
        self._drawn: Deque[Tuple[int, bool]] = deque()  # by batch that batches() has not given yet: its clock, and whether it ends a step
        atexit.register(_say_at_exit, weakref.ref(self))
        if run is not None or Joined.current is not None:
            self._joined()

    # -- what the user calls

    @property
    def batch_sampler(self) -> ByBatch:
        """This sampler for DataLoader(dataset, batch_sampler=...)."""
        return ByBatch(self)

    @property
    def epoch(self) -> int:
        return self._number if self._asked is None else self._asked

    def set_epoch(self, epoch: int) -> None:
        """The next loop trains this epoch, or what is left of it. Without it each loop trains the next epoch."""
        self._asked = whole_number("epoch", epoch, 0)

    @property
    def idle(self) -> bool:
        """Whether this worker has nothing to train in the step that comes: its batch is a repeated one, its gradient counts nothing, and its
        optimizer makes the others' step."""
        return self._joined().clock < self._end() and self.weight(self._run.clock) == 0.0

    def weight(self, clock: int) -> float:
        """By what this worker's gradient of a clock is multiplied, so that the mean over all workers is the mean over the step's samples; 0: nothing is
        pushed. The run asks for it."""
        if self._now is None:
            return 1.0
        self._follow()
        return self._now.weight(self._run.seat, clock)

    def scale(self, clock: int) -> float:
        """The part of the weight in a clock that all workers have in common."""
        if self._now is None:
            return 1.0
        self._follow()
        return self._now.scale(clock)

    def batches(self, loader: Iterable) -> Iterator:
        """The batches of a loader that draws from this sampler, until all workers have trained all of the epoch."""
        self._words.require_draws_here(loader)
        self._learn(getattr(getattr(loader, "batch_sampler", None), "batch_size", None), "DataLoader")
        return self._loop(loader)

    def state_dict(self) -> dict:
        """The epoch and what is trained of it; equal on all workers after the same step."""
        if self._run is None and (self._given_run is not None or Joined.current is not None):
            self._joined()
        if self._kept_state is not None:
            return dict(self._kept_state)
        return State.of(self).as_dict()

    def load_state_dict(self, state: dict) -> None:
        """Goes on where the state was taken: in the same run as a worker that comes later, or in another one, by any number of workers."""
        State.read(state).require_fits(self)
        self._kept_state = dict(state)
        if self._run is not None:
            self._take_state()

    # -- what a DataLoader calls

    def __iter__(self) -> Iterator[int]:
        asks = self._words.who_asks(sys._getframe(1), self)
        if asks is not None:
            self._learn(asks.batch_size, "BatchSampler")
        if self.global_batch is not None:
            raise PoseidonError('Sampler: global_batch="keep" has batches of several sizes: write DataLoader(dataset, batch_sampler=sampler.batch_sampler)')
        return self._indices(Batches(self))

    def __len__(self) -> int:
        return self.planned()[0]

    def _indices(self, batches: Iterator[List[int]]) -> Iterator[int]:
        for batch in batches:
            yield from batch
            if len(batch) < self.batch_size:
                return  # else the loader's BatchSampler would fill this batch with samples of the next one

    def _draw(self, epoch: Epoch, clock: int, ahead: int) -> Optional[List[List[int]]]:
        """The batches of a step, or None: there is none, or not yet. `ahead`: how many batches of steps that have not begun are drawn."""
        self._follow()
        share = epoch.share(self._run.seat, clock) if epoch is self._now else None
        if share is None:
            return None
        self._words.require_in_reach(clock, self._run.clock, epoch, ahead)
        if clock >= self._run.clock + epoch.cut.kept:
            return None  # shares of fewer batches than others: the members must not change what is drawn
        batches = epoch.cut.batches((share if len(share) else epoch.samples[:epoch.cut.share]).tolist())
        if self._in_batches:
            self._drawn.extend((clock, last == len(batches)) for last in range(1, len(batches) + 1))
        return batches

    def _begin_to_draw(self) -> Tuple[Epoch, int]:
        """At the first draw of a loop."""
        self._begin_epoch()
        return self._now, self._run.clock

    def _loop(self, loader: Iterable) -> Iterator:
        trained = 0
        while True:
            began = self._joined().clock
            for batch in self._pass(loader):
                clock, self.ends_step = self._drawn.popleft() if self._drawn else self._words.strange_batch()
                self._words.require_trained(clock, self._run.clock, trained)
                yield batch
                trained += 1
            self._follow()
            left = self._end() - self._run.clock
            if left <= 0 or self._run.seat not in self._now.at(self._run.clock).seats:
                return
            if self._run.clock == began:
                raise self._words.not_trained(trained, left)

    def _pass(self, loader: Iterable) -> Iterator:
        """Once through the loader, whose epoch may get more steps meanwhile."""
        self._in_batches = True
        self._drawn.clear()
        try:
            yield from loader
        finally:
            self._in_batches = False

    @property
    def _words(self) -> Words:
        return Words(self)

    # -- the epoch

    def _joined(self):
        """The run."""
        if self._run is None:
            run = self._given_run if self._given_run is not None else Joined.current
            self._words.require_run(run)
            self._run, self._seat = run, run.seat
            given = run.carry(self)
            if given is not None:
                State.read(given).require_fits(self)
                self._kept_state = given
            self._follow()
            self._take_state()
        return self._run

    def _follow(self) -> None:
        """The members as the run knows them now."""
        if self._run.seat != self._seat:
            raise self._words.other_seat(self._seat)
        views = self._run.views
        while self._seen < len(views):
            view = View(int(views[self._seen][0]), tuple(views[self._seen][1]))
            self._seen += 1
            self._views.append(view)
            if self._now is not None:
                self._now.follow(view)
        if self._now is not None:
            self._now.forget(self._run.clock)

    @property
    def ended(self) -> bool:
        """Whether no epoch has begun, or the one that has is trained."""
        return self._run is None or self._end() <= self._run.clock

    def _end(self) -> int:
        return self._run.clock if self._now is None else self._now.end

    def _begin_epoch(self) -> None:
        """Before a loop: goes on with the epoch, or begins the next one."""
        run = self._joined()
        self._follow()
        asked, self._asked = self._asked, None
        over = self._now is not None and run.clock >= self._now.end
        if self._loaded is not None and self._now is not None and asked is not None and asked < self._number:
            raise self._words.came_later(asked)
        if self._now is None:
            self._make_epoch(self._number if asked is None else asked)
            if asked is None and self._past and len(self._now.samples) == 0:
                self._words.say_nothing_left()
        elif asked not in (None, self._number) or (over and self._loaded != run.clock):
            self._words.say_unused()
            self._past = []
            self._make_epoch(self._number + 1 if asked is None else asked)
        elif self._now.grows != self._in_batches:
            raise self._words.other_loop()
        self._loaded = None
        run.weigh(self)

    def _samples(self, number: int) -> torch.Tensor:
        """Those of an epoch that no earlier run has trained, in the order of DistributedSampler."""
        if self.shuffle:
            generator = torch.Generator()
            generator.manual_seed(self.seed + number)
            samples = torch.randperm(self.length, generator=generator)
        else:
            samples = torch.arange(self.length)
        for past in self._past:
            samples = past.rest(number, samples)
        return samples

    def _make_epoch(self, number: int) -> None:
        if number != self._number:
            self._past = []
        self._number = number
        self._views = views_from(self._run.clock, self._views)
        if self.global_batch is not None and self._step_size is None:
            self._step_size = self._cut().share * len(self._views[0].seats)
        self._now = Epoch(number, self._cut(), self._run.clock, self._in_batches, self._samples(number), self._views)

    def _cut(self) -> Cut:
        if self.batch_size is None:
            raise PoseidonError("Sampler: batch_size is not known: Sampler(dataset, batch_size=32), with the number that the DataLoader has")
        return Cut(self.batch_size, self.batches_per_step, self.drop_last, self.ahead, self._step_size)

    def planned(self) -> Tuple[int, int]:
        """Samples and batches of this worker in the epoch, as far as they are known: those of a whole epoch before it begins."""
        run = self._joined()
        self._follow()
        epoch = self._now
        if epoch is None or run.clock >= epoch.end:
            members = views_from(run.clock, self._views)[-1].seats
            of, epoch = (members, self._cut()), None
        else:
            of = (epoch.number, epoch.first, len(self._views))
        if self._planned is None or self._planned[0] != of:
            epoch = epoch or Epoch(0, self._cut(), 0, True, torch.arange(self.length), [View(0, members)])
            full = min(epoch.cut.share, len(epoch.samples))
            sizes = [size or full for clock in range(epoch.first, epoch.end) for size in [epoch.size(run.seat, clock)] if size is not None]
            self._planned = of, (sum(sizes), sum(min(size, self.batches_per_step) for size in sizes))
        return self._planned[1]

    def _take_state(self) -> None:
        """Once the run is known: a state of this run is that of the others, one of another run says what is left."""
        if self._kept_state is None:
            return
        state, self._kept_state = State.read(self._kept_state), None
        state.require_fits(self)
        state.give_to(self)

    # -- what the loader's batches are

    def _learn(self, batch_size: Optional[int], of: str) -> None:
        if batch_size is None:
            return
        if self.batch_size is None:
            self.batch_size = batch_size
        elif self.batch_size != batch_size:
            raise self._words.other_batch_size(batch_size, of)


def _say_at_exit(of: "weakref.ref[Sampler]") -> None:
    sampler = of()
    if sampler is not None and getattr(sys, "last_value", None) is None:
        with contextlib.suppress(PoseidonError):
            sampler._words.say_unused()
