# tests/cluster/newcomer_world.py - the world of sampler_world.py, whose newcomers are given their Samplers' states as in a real run: by members that
# have the batch of a step in hand, in the middle of that step.
"""A script makes one Sampler or two, before its epochs or in each of them. What a step has used is counted by loop: a script with two Samplers has two
loops in each epoch, over different numbers of samples."""
import json

from torch.utils.data import BatchSampler, DataLoader

from poseidon.torch.carried_samplers import Samplers
from poseidon.torch.sampler import Sampler
from sampler_world import Drawing, Progress, Run, Worker, World

KINDS = ["one", "in each epoch", "two", "two in each epoch", "two, one of which never trains"]


class Joined(Run):
    """A run as far as Samplers see it, with those of this process."""

    def __init__(self, name, seat, clock, views, came=None):
        super().__init__(name, seat, clock, views)
        self.samplers = Samplers()
        if came is not None:
            self.samplers.came(came, clock)

    def carry(self, sampler):
        return self.samplers.carry(sampler)


class Script(Worker):
    def __init__(self, kind, plan, run, progress, random_):
        self.kind, self.plan, self.run, self.random = kind, plan, run, random_
        self.progress = Progress(epoch=0)
        self.progress.load_state_dict(progress)
        self.sampler = None  # the one that trains
        self._steps = self._script()

    def _made(self, length):
        return Sampler(length, run=self.run, **self.plan.sampler)

    def _loader(self, sampler):
        by = sampler.batch_sampler
        if self.plan.by_indices:
            by = BatchSampler(sampler, self.plan.sampler["batch_size"], self.plan.sampler.get("drop_last", False))
        if self.plan.loader == "torch":
            return DataLoader(range(sampler.length), batch_sampler=by, collate_fn=list, **self.random.choice([{}, {"num_workers": 2}]))
        return Drawing(by, self.random.randint(0, self.plan.loader))

    def _both(self):
        lengths = [self.plan.length, self.plan.length + 7]
        return [self._made(length) for length in lengths[:1 if self.kind in ("one", "in each epoch") else 2]]

    def _script(self):
        anew, samplers = "in each epoch" in self.kind, []
        if not anew:
            samplers = self._both()
            loaders = [self._loader(sampler) for sampler in samplers]
        for self.progress.epoch in range(self.progress.epoch, self.plan.epochs):
            if anew:
                samplers = self._both()
                loaders = [self._loader(sampler) for sampler in samplers]
            for place, (self.sampler, loader) in enumerate(zip(samplers, loaders)):
                if place == 1 and self.kind == KINDS[-1]:
                    continue
                if anew or self.plan.set_epoch:
                    self.sampler.set_epoch(self.progress.epoch)
                share = []
                for batch in self.sampler.batches(loader):
                    share.append(list(batch))
                    if self.sampler.ends_step:
                        yield (self.progress.epoch, place), share
                        share = []
                assert not share, "a step has not ended"

    def end(self):
        self.run.quiet = True
        self._steps.close()


class NewcomerWorld(World):
    def __init__(self, seed, kind, plan, workers, rate, join_at=None):
        """`join_at`: whether one comes in a step, as join_at(world, shares) says; None: by chance."""
        self.kind, self.join_at, self.joins = kind, join_at, []
        super().__init__(seed, plan, 0, rate)
        self.seats, self.views = workers, [self.views[0]._replace(seats=tuple(range(workers)))]
        self.alive = {seat: Script(kind, plan, Joined(self.name, seat, 0, self.views), {"epoch": 0}, self.random) for seat in range(workers)}

    def _change(self):
        """Some leave, from the clock on that comes."""
        if len(self.alive) > 1 and self.random.random() < self.rate[1]:
            seat = self.random.choice(sorted(self.alive))
            self.alive.pop(seat).end()
            self._view(self.clock, [other for other in self.views[-1].seats if other != seat], self.random.random() < 0.5)

    def state(self):
        """What all members give, as it comes to a newcomer."""
        given = {json.dumps([script.run.samplers.states(), script.progress.state_dict()], sort_keys=True) for script in self.alive.values()}
        assert len(given) == 1, given
        return json.loads(given.pop())

    def _joining(self, shares):
        if self.join_at is not None:
            return int(self.join_at(self, shares))
        return self.random.choice([1, 1, 2, 3]) if len(self.alive) < 7 and self.random.random() < self.rate[2] else 0

    def _hand_in(self):
        """Some come when all members have this step's batch in hand. They train it, too; and some die."""
        shares = super()._hand_in()
        number = self._joining(shares) if shares else 0
        if not number:
            return shares
        states, progress = self.state()
        new = list(range(self.seats, self.seats + number))
        self.seats += number
        joined = len(self.views)
        self._view(self.clock, [*self.views[-1].seats, *new], True)
        self.joins.append(self.clock)
        for seat in new:
            views = self.views[joined:] if self.random.random() < 0.5 else self.views
            script = self.alive[seat] = Script(self.kind, self.plan, Joined(self.name, seat, self.clock, views, states), progress, self.random)
            shares[seat] = script.step()
            assert shares[seat] is not None, "a newcomer's script is over before its first step"
            script.run.samplers.require_all_made(self.clock)
            victims = self._victims(self.rate[0])
            for dead in victims:
                shares.pop(dead, None)
            self._die(victims, self.clock, self.random.random() < 0.5)
            if seat in victims:
                continue
        for seat in self.alive:
            self._tell(seat)
        return shares

    def missing(self):
        """By loop, how many samples were never used; none may have been used twice."""
        assert all(times == 1 for times in self.used.values()), [sample for sample, times in self.used.items() if times > 1]
        loops = [0, 1] if self.kind.startswith("two") and self.kind != KINDS[-1] else [0]
        whole = {(epoch, place): self.plan.length + 7 * place for epoch in range(self.plan.epochs) for place in loops}
        for loop, _ in self.used:
            whole[loop] -= 1
        return {loop: number for loop, number in whole.items() if number}
