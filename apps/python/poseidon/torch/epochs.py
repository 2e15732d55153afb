"""Which samples does each worker train in which step of an epoch, when workers come, leave and die in it? Arithmetic alone: every worker computes
it from the order of the samples and the list of views, and nothing is sent.

A step's samples are a block of those that no step has yet, dealt to the members like cards, one share each. When the members change, each one that
stays keeps its next shares, as many as a DataLoader may have drawn ahead of training (`Cut.kept`). All else, what the others had not trained
included, is dealt anew. So nothing that is drawn is drawn in vain, a newcomer has a share from its first step on, and all end in the same step."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch


class View(NamedTuple):
    """The members from a clock on."""

    first_clock: int  # the first one whose means are over these members
    seats: Tuple[int, ...]  # in the order of their ranks; a worker's seat is its alone, also after its end


def views_from(clock: int, views: List[View]) -> List[View]:
    """The newest one that began before this clock, or else the oldest one, and all since."""
    before = [place for place, view in enumerate(views) if view.first_clock < clock]
    return views[before[-1] if before else 0:]


class Cut(NamedTuple):
    """How samples are cut into steps, shares and batches; equal on all workers."""

    batch_size: int
    batches_per_step: int
    drop_last: bool
    ahead: int  # batches that a DataLoader may have drawn and not trained
    step_size: Optional[int]  # samples of a step, whatever the number of members; None: so many full shares as there are members

    @property
    def share(self) -> int:
        """Samples of a full share."""
        return self.batch_size * self.batches_per_step

    @property
    def kept(self) -> int:
        """Shares that may be drawn when the members change: those ahead of training, and the one that is trained."""
        return -(-self.ahead // self.batches_per_step) + 1

    def batches(self, share: List[int]) -> List[List[int]]:
        """A share as the batches of one step, whose sizes differ by one at most; none is empty."""
        count = min(self.batches_per_step, len(share))
        ends = [len(share) * i // count for i in range(count + 1)] if count else [0]
        return [share[begin:end] for begin, end in zip(ends, ends[1:])]

    def takers(self, block: int, members: int) -> int:
        """How many of the members have a share of a block: all, if there is a sample for each batch."""
        return max(1, min(members, block // self.batches_per_step))


class Stretch:
    """An epoch from a clock on, as long as the members stay."""

    def __init__(self, cut: Cut, view: View, kept: Dict[int, List[torch.Tensor]], pool: torch.Tensor, limit: Optional[int] = None):
        """`kept`: by seat, the shares of the next steps that are drawn already; empty: nothing to train in that step. `pool`: the other samples.
        `limit`: there are not more steps than so many, even if samples are left."""
        self.cut, self.first, self.seats, self.kept, self.pool = cut, view.first_clock, view.seats, kept, pool
        self._early: List[Tuple[int, int, List[int]]] = []  # by step, while shares are kept: a block of the pool, and who has a share of it
        self._early_end = 0
        early = max((len(shares) for shares in kept.values()), default=0)
        for step in range(early):
            takers = [seat for seat in self.seats if step >= len(kept.get(seat, ()))]
            wanted = cut.share * len(takers)
            if cut.step_size is not None:
                wanted = max(0, cut.step_size - sum(len(shares[step]) for shares in kept.values() if step < len(shares))) if takers else 0
            left = len(pool) - self._early_end
            # Smaller shares come last: a loader of indices ends with its first small batch.
            block = wanted if wanted <= left else left if step == early - 1 and not cut.drop_last else 0
            self._early.append((self._early_end, block, takers))
            self._early_end += block
        self.block = cut.step_size or cut.share * len(self.seats)
        left = len(pool) - self._early_end
        whole = left // self.block if self.seats else 0
        self._end = self._early_end + whole * self.block if cut.drop_last or not self.seats else len(pool)
        steps = len(self._early) + -(-(self._end - self._early_end) // self.block) if self.seats else 0
        self.steps = steps if limit is None else min(steps, limit)

    def _step(self, step: int) -> Tuple[int, int, Sequence[int]]:
        """Where its block begins in the pool, how long it is, and who has a share of it."""
        if step < len(self._early):
            return self._early[step]
        begin = min(self._early_end + (step - len(self._early)) * self.block, self._end)
        return begin, min(self.block, self._end - begin), self.seats

    def share(self, seat: int, step: int) -> torch.Tensor:
        """The samples of a member in a step; none where it has nothing to train."""
        kept = self.kept.get(seat, ())
        if step < len(kept):
            return kept[step]
        begin, block, takers = self._step(step)
        every, place = self.cut.takers(block, len(takers)), takers.index(seat)
        return self.pool[begin + place:begin + block:every] if place < every else self.pool[:0]

    def size(self, seat: int, step: int) -> int:
        """How many samples that share has."""
        kept = self.kept.get(seat, ())
        if step < len(kept):
            return len(kept[step])
        _, block, takers = self._step(step)
        every, place = self.cut.takers(block, len(takers)), takers.index(seat)
        return -(-(block - place) // every) if place < every else 0

    def total(self, step: int) -> int:
        """How many samples a step has."""
        return self._step(step)[1] + sum(len(shares[step]) for shares in self.kept.values() if step < len(shares))

    def unplaced(self) -> int:
        """How many samples no step of it has."""
        return len(self.pool) - self._step(self.steps)[0] if self.seats else len(self.pool)

    def after(self, view: View, grows: bool) -> "Stretch":
        """The rest of the epoch with other members. `grows`: it may get more steps when all that it has may be drawn."""
        now = view.first_clock - self.first
        drawn = max(now, min(now + self.cut.kept, self.steps))
        kept = {seat: [self.share(seat, step) for step in range(now, drawn)] for seat in view.seats if seat in self.seats}
        back = [self.share(seat, step) for step in range(now, drawn) for seat in self.seats if seat not in kept]
        pool = torch.cat([*back, self.pool[self._step(drawn)[0]:]])
        left = self.steps - now
        return Stretch(self.cut, view, kept, pool, left if not grows and left <= self.cut.kept else None)


class Epoch:
    """The stretches of one epoch, the last one being in force."""

    def __init__(self, number: int, cut: Cut, first: int, grows: bool, samples: torch.Tensor, views: Sequence[View]):
        """`first`: the clock of its first step; `samples`: in their order. `views`: as views_from() has them. It begins with the first of them on all workers, also on one that has heard of the next one in time: another one
        may have drawn shares by then."""
        self.number, self.cut, self.first, self.grows, self.samples = number, cut, first, grows, samples
        self.stretches = [Stretch(cut, View(first, views[0].seats), {}, samples)]
        for view in views[1:]:
            self.follow(view)

    @property
    def end(self) -> int:
        """The clock after that of its last step."""
        last = self.stretches[-1]
        return last.first + last.steps

    def follow(self, view: View) -> None:
        """Takes the next view. One that begins earlier than the one before it makes that one void: those who had the means that it was to begin
        with have died, too. Whatever is drawn by then is kept by both."""
        if view.first_clock >= self.end:
            return
        while len(self.stretches) > 1 and self.stretches[-1].first > view.first_clock:
            self.stretches.pop()
        if view.seats != self.stretches[-1].seats:
            self.stretches.append(self.stretches[-1].after(view, self.grows))

    def forget(self, clock: int) -> None:
        """Nobody asks for shares of a clock before this one any more; of their sizes perhaps."""
        for stretch, following in zip(self.stretches, self.stretches[1:]):
            if following.first <= clock and len(stretch.pool):
                stretch.pool = stretch.pool[:0].clone()

    def at(self, clock: int) -> Stretch:
        return next(stretch for stretch in reversed(self.stretches) if stretch.first <= clock)

    def _has(self, seat: int, clock: int) -> bool:
        """It is a member in that clock, and the epoch has such a step."""
        return self.first <= clock < self.end and seat in self.at(clock).seats

    def share(self, seat: int, clock: int) -> Optional[torch.Tensor]:
        """None: it is no member in that clock, or the epoch has no such step."""
        if not self._has(seat, clock):
            return None
        stretch = self.at(clock)
        return stretch.share(seat, clock - stretch.first)

    def size(self, seat: int, clock: int) -> Optional[int]:
        if not self._has(seat, clock):
            return None
        stretch = self.at(clock)
        return stretch.size(seat, clock - stretch.first)

    def weight(self, seat: int, clock: int) -> float:
        """By what a member's gradient is multiplied, so that the mean over the members is the mean over the samples of the step."""
        if not self._has(seat, clock):
            return 1.0
        stretch = self.at(clock)
        step = clock - stretch.first
        own, total = stretch.size(seat, step) * len(stretch.seats), stretch.total(step)
        return 1.0 if own == total and own else own / max(1, total)

    def scale(self, clock: int) -> float:
        """By what a member's number of samples is multiplied in its weight: the same for all members."""
        if not self.first <= clock < self.end:
            return 1.0
        stretch = self.at(clock)
        return len(stretch.seats) / max(1, stretch.total(clock - stretch.first))

    def rest(self, clock: int) -> torch.Tensor:
        """The samples of no step before this clock."""
        if clock >= self.end:
            return self.samples[:0]
        return self.at(clock).after(View(clock, ()), True).pool
