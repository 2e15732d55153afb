# tests/cluster/py - a run of workers as plain objects, which come, go and die by a seeded walk, each with a poseidon.Sampler.
"""No process and no library: a clock ends when all members have handed in their share, as in a run. What a step has used is written down where its
means count, as the interface of a run says: everything of the clocks before a view's first one, nothing of those that are gone from it on."""
import collections
import contextlib
import io
import json
import random
import re

from torch.utils.data import BatchSampler, DataLoader

from poseidon.library import PoseidonError  # noqa: F401
from poseidon.torch.agreed import Progress
from poseidon.torch.epochs import View
from poseidon.torch.sampler import Sampler
from poseidon.torch.weights import Weights


class Run:
    """What a Sampler asks of the run that it is in."""

    made = []

    def __init__(self, name, seat, clock, views, given=None):
        self.id, self.seat, self.clock, self.views, self._given = name, seat, clock, list(views), given
        self._weights = Weights()
        self.quiet = False
        Run.made.append(self)

    @staticmethod
    def silence_all():
        """What these tests leave unfinished is not to be said when the process ends."""
        for run in Run.made:
            run.quiet = True

    def carry(self, what):
        given, self._given = self._given, None
        return given

    def weigh(self, sampler):
        self._weights.ask(sampler)

    def weight(self, clock):
        return self._weights.weight(clock)


class Drawing:
    """A loader that draws ahead as DataLoader does: some batches at first, then one whenever it gives one."""

    def __init__(self, batches, ahead):
        self._batches, self._ahead = batches, ahead

    def __iter__(self):
        batches, drawn = iter(self._batches), collections.deque()

        def draw():
            with contextlib.suppress(StopIteration):
                drawn.append(next(batches))

        for _ in range(self._ahead):
            draw()
        while True:
            if self._ahead == 0:
                draw()
            if not drawn:
                return
            batch = drawn.popleft()
            if self._ahead:
                draw()
            yield batch


class Plan:
    """How the workers of a walk are made, alike on all."""

    def __init__(self, length, epochs, loader, grows=True, by_indices=False, set_epoch=True, **sampler):
        self.length, self.epochs, self.loader, self.grows, self.by_indices, self.set_epoch = length, epochs, loader, grows, by_indices, set_epoch
        self.sampler = sampler


class Worker:
    def __init__(self, plan, run, progress, state=None, random_=random):
        self.run, self.plan, self.progress = run, plan, Progress(epoch=0)
        self.progress.load_state_dict(progress)
        self.sampler = Sampler(plan.length, run=None if state else run, **plan.sampler)
        if state:  # before the run is there, as by join(state=[sampler])
            self.sampler.load_state_dict(state)
            self.sampler._given_run = run
        by = self.sampler.batch_sampler
        if plan.by_indices:
            by = BatchSampler(self.sampler, plan.sampler["batch_size"], plan.sampler.get("drop_last", False))
        if plan.loader == "torch":
            how = random_.choice([{}, {"num_workers": 2}, {"num_workers": 1, "persistent_workers": True}])
            self.loader = DataLoader(range(plan.length), batch_sampler=by, collate_fn=list, **how)
        else:
            self.loader = Drawing(by, random_.randint(0, plan.loader))
        self._steps = self._script()

    def _script(self):
        for self.progress.epoch in range(self.progress.epoch, self.plan.epochs):
            if self.plan.set_epoch:
                self.sampler.set_epoch(self.progress.epoch)
            share = []
            for batch in self.sampler.batches(self.loader) if self.plan.grows else self.loader:
                share.append(list(batch))
                if self.sampler.ends_step if self.plan.grows else len(share) == self.sampler.batches_per_step:
                    yield self.progress.epoch, share
                    share = []
            assert not share, "a step has not ended"

    def step(self):
        """The epoch and the batches of the clock that comes; None: its script is over."""
        return next(self._steps, None)


    def end(self):
        self.run.quiet = True
        self._steps.close()
        del self.loader


class World:
    def __init__(self, seed, plan, workers, rate, name="a run", used=None, progress=None, state=None):
        """`rate`: of deaths, of leaves and of joins, for each occasion."""
        self.random, self.plan, self.rate, self.name = random.Random(seed), plan, rate, name
        self.clock, self.seats = 0, workers
        self.used = used if used is not None else collections.Counter()
        self.steps = collections.Counter()  # by epoch
        self.sizes = []  # by clock: of the members' shares, in the order of their ranks
        self.repeated = 0  # shares that counted nothing
        self.views = [View(0, tuple(range(workers)))]
        self.late = {}  # by seat, the views that it has not heard of
        progress = progress or {"epoch": 0}
        self.alive = {seat: Worker(plan, Run(name, seat, 0, self.views), progress, state, self.random) for seat in range(workers)}
        self.kills = 0

    def _view(self, first, seats, now):
        view = View(first, tuple(seats))
        self.views.append(view)
        for seat in self.alive:
            self.late.setdefault(seat, []).append(view)
            if now:
                self._tell(seat)

    def _tell(self, seat):
        self.alive[seat].run.views += self.late.pop(seat, [])

    def _victims(self, rate):
        """Some die, but never all."""
        if len(self.alive) == 1 or self.random.random() >= rate:
            return []
        return self.random.sample(sorted(self.alive), self.random.choice([1, 1, 1, 2, len(self.alive) - 1]) % len(self.alive))

    def _die(self, victims, first, now):
        for seat in victims:
            self.alive.pop(seat).end()
            self.late.pop(seat, None)
            self.kills += 1
        if victims:
            self._view(first, [seat for seat in self.views[-1].seats if seat not in victims], now)

    def _hand_in(self):
        """Each worker trains its share of this clock; some die meanwhile."""
        shares, over = {}, set()
        while True:
            waiting = [seat for seat in self.alive if seat not in shares and seat not in over]
            if not waiting:
                break
            seat = self.random.choice(waiting)
            if self.random.random() < 0.5:
                self._tell(seat)
            got = self.alive[seat].step()
            drawn, sampler = self.alive[seat].sampler._drawn, self.alive[seat].sampler
            assert not drawn or drawn[-1][0] < self.clock + sampler._now.cut.kept, (self.clock, drawn, "members may change what is drawn")
            self._tell(seat)
            if got is None:
                over.add(seat)
            else:
                shares[seat] = got
            for dead in (victims := self._victims(self.rate[0])):
                shares.pop(dead, None)
                over.discard(dead)
            self._die(victims, self.clock, self.random.random() < 0.5)
        for seat in self.alive:
            self._tell(seat)
        assert not (over and shares), (self.clock, over, sorted(shares), "some have ended their script and others train")
        return shares

    def _finish(self, shares):
        """The means go to one worker after the other; some die meanwhile. Who has died counts if somebody has the means that it is in."""
        done = []
        for seat in self.random.sample(sorted(shares), len(shares)):
            victims = self._victims(self.rate[0])
            if victims:
                survive = [s for s in done if s not in victims]
                if not survive:  # also if somebody had them when another one died
                    shares = {s: share for s, share in shares.items() if s in self.alive and s not in victims}
                done = survive
                self._die(victims, self.clock + bool(survive), not survive)
            if seat in self.alive:
                done.append(seat)
        counted = self._weights(shares)  # all of one view: whoever died before somebody had the means is out of it
        for seat in self.alive:
            self.alive[seat].run.clock += 1
        return counted

    def _weights(self, shares):
        sizes = {}
        members = next(view for view in reversed(self.views) if view.first_clock <= self.clock).seats
        for seat in members:
            worker = self.alive.get(seat)
            if worker is not None:
                sizes[seat] = 0 if worker.run.weight(self.clock) == 0 else sum(map(len, shares[seat][1]))
            else:
                stretch = next(iter(self.alive.values())).sampler._now.at(self.clock)
                sizes[seat] = stretch.size(seat, self.clock - stretch.first)
        total = sum(sizes.values())
        for seat in members:
            if seat in self.alive:
                weight = self.alive[seat].run.weight(self.clock)
                assert abs(weight * total - sizes[seat] * len(members)) < 1e-9 * max(1, total), (weight, sizes)
                assert len(set(sizes.values())) > 1 or total == 0 or weight == 1.0
        self.repeated += sum(size == 0 for size in sizes.values())
        self.sizes.append([sizes[seat] for seat in members])
        return {seat: shares[seat] for seat in shares if sizes[seat]}

    def _count(self, shares):
        for epoch, share in shares.values():
            for batch in share:
                assert batch, "a batch is empty"
                self.used.update((epoch, sample) for sample in batch)
        self.steps[next(iter(shares.values()))[0] if shares else -1] += 1

    def _change(self):
        """Some leave and some join, from the clock on that comes."""
        leave = self.random.sample(sorted(self.alive), 1) if len(self.alive) > 1 and self.random.random() < self.rate[1] else []
        join = self.random.choice([1, 1, 2, 3]) if len(self.alive) < 7 and self.random.random() < self.rate[2] else 0
        if not leave and not join:
            return
        for seat in self.alive:
            self._tell(seat)
        new = list(range(self.seats, self.seats + join))
        self.seats += join
        before, at_once = self.state(), self.random.random() < 0.5
        for seat in leave:
            self.alive.pop(seat).end()
        self._view(self.clock, [seat for seat in self.views[-1].seats if seat not in leave] + new, at_once)
        state, progress = self.state() if at_once else before  # with the new members in it, or without
        for seat in new:
            views, kept = self.views[-1:] if self.random.random() < 0.5 else self.views, self.random.random() < 0.5
            self.alive[seat] = Worker(self.plan, Run(self.name, seat, self.clock, views, state), progress, state if kept else None, self.random)

    def state(self):
        """What all workers write, as a file has it."""
        written = {json.dumps([worker.sampler.state_dict(), worker.progress.state_dict()], sort_keys=True) for worker in self.alive.values()}
        assert len(written) == 1, written
        return json.loads(written.pop())

    def run(self, until=None):
        """Until all scripts have ended (True), or before that clock."""
        while until is None or self.clock < until:
            shares = self._hand_in()
            if not shares:
                self._end()
                return True
            self._count(self._finish(shares))
            self.clock += 1
            self._change()
        for seat in self.alive:
            self._tell(seat)
        return False

    def _end(self):
        """As at the end of their processes."""
        for worker in self.alive.values():
            worker.sampler._words.say_unused()
            worker.end()

    def missing(self):
        """By epoch, how many samples were never used; no sample may have been used twice."""
        twice = [sample for sample, times in self.used.items() if times > 1]
        assert not twice, twice
        by_epoch = collections.Counter(epoch for epoch, _ in self.used)
        return {epoch: self.plan.length - by_epoch[epoch] for epoch in range(self.plan.epochs) if by_epoch[epoch] < self.plan.length}


def unused_said(call):
    """By epoch, the samples that lines on stderr say were not used."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        call()
    return {int(epoch): int(number) for number, epoch in re.findall(r"poseidon: (\d+) of \d+ samples of epoch (\d+) were not used: .", said.getvalue())}


def alone(length, run=None, **sampler):
    """A sampler of an only worker, and its run."""
    run = run or Run("a run", 0, 0, [View(0, (0,))])
    return Sampler(length, run=run, **sampler), run
