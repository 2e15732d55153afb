# tests/cluster/torch_sampler_test.py - each sample of an epoch is trained once, whatever workers come, leave and die in it.
"""Runs under the Python that has PyTorch. Walks are seeded: a failure names its seed, and `python3 torch_sampler_test.py WalkTest` walks it again."""
import random
import unittest

import cluster
import programs

if __name__ == "__main__":
    programs.run_where("torch")

import torch  # noqa: E402
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler  # noqa: E402

import sampler_world  # noqa: E402
from poseidon.torch.epochs import View  # noqa: E402
from sampler_world import Drawing, Plan, Run, Worker, World, alone  # noqa: E402

RATES = [(0, 0, 0), (0.03, 0.03, 0.1), (0.1, 0.1, 0.4), (0.2, 0, 0.8), (0.03, 0.1, 0)]  # of deaths, leaves, joins


def tearDownModule():
    Run.silence_all()


def drawn_plan(at, **given):
    """A plan by chance."""
    sampler = {"batch_size": at.choice([1, 2, 3, 4]), "batches_per_step": at.choice([1, 1, 1, 2, 3]), "ahead": at.choice([0, 1, 3, 6]),
               "seed": at.randint(0, 99), "shuffle": at.random() < 0.9, "global_batch": "keep" if at.random() < 0.25 else None}
    plan = {"length": at.choice([0, 1, 5, 17, 40, 60, 61]), "epochs": at.randint(1, 3), "set_epoch": at.random() < 0.7,
            "by_indices": sampler["global_batch"] is None and sampler["batches_per_step"] == 1 and at.random() < 0.4}
    plan = {**plan, "loader": sampler["ahead"], **{name: value for name, value in given.items() if name in ("loader", "grows", "by_indices", "epochs")}}
    return Plan(**plan, **{**sampler, **{name: value for name, value in given.items() if name not in plan and name != "grows"}})


class Walks(unittest.TestCase):
    def walked(self, seeds, check, plan):
        """A world for each seed, which has to end."""
        for seed in seeds:
            at = random.Random(seed)
            try:
                world = World(seed, plan(at), at.choice([1, 2, 3, 5]), at.choice(RATES))
                check(world)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error


class WalkTest(Walks):
    def test_each_sample_is_used_once(self):
        kills = []

        def check(world):
            said = sampler_world.unused_said(world.run)
            self.assertEqual((world.missing(), said), ({}, {}))
            kills.append(world.kills)

        self.walked(range(400), check, drawn_plan)
        self.assertGreater(sum(kills), 1000)  # else this walk shows nothing

    def test_a_plain_loop_says_what_it_does_not_use(self):
        lost = []

        def check(world):
            said, missing = sampler_world.unused_said(world.run), world.missing()
            if len({view.seats[0] for view in world.views}) > 1:  # who was to say it may have died
                missing = {epoch: number for epoch, number in missing.items() if epoch in said}
            self.assertEqual(missing, said)
            lost.append(len(said))

        self.walked(range(250), check, lambda at: drawn_plan(at, grows=False, batches_per_step=1))
        self.assertGreater(sum(lost), 20)

    def test_with_drop_last_all_shares_are_full(self):
        def check(world):
            sampler = world.plan.sampler
            full = sampler["batch_size"] * sampler["batches_per_step"]
            self.assertEqual(sampler_world.unused_said(world.run), {})
            most = max(len(view.seats) for view in world.views)
            self.assertEqual({size for sizes in world.sizes for size in sizes} - {0, full}, set())
            for epoch, missing in world.missing().items():
                self.assertLess(missing, full * most, f"epoch {epoch}")

        self.walked(range(150), check, lambda at: drawn_plan(at, drop_last=True, global_batch=None))

    def test_a_checkpoint_goes_on_with_other_workers(self):
        def check(world):
            at, plan = world.random, world.plan
            for run in range(3):
                over = []
                sampler_world.unused_said(lambda: over.append(world.run(world.clock + at.randint(0, 8) if run < 2 else None)))
                if over[0]:
                    break
                state, progress = world.state()
                sampler = {**plan.sampler, "batch_size": at.choice([1, 2, 5]), "batches_per_step": at.choice([1, 2])}
                plan = Plan(plan.length, plan.epochs, plan.loader, by_indices=False, set_epoch=plan.set_epoch, **sampler)
                world = World(at.randint(0, 1 << 30), plan, at.choice([1, 2, 4]), at.choice(RATES), f"run {run}", world.used, progress, state)
            self.assertEqual(world.missing(), {})

        self.walked(range(150), check, drawn_plan)

    def test_the_same_with_pytorchs_loader(self):
        def check(world):
            world.run()
            self.assertEqual(world.missing(), {})

        self.walked(range(10), check, lambda at: drawn_plan(at, loader="torch", epochs=1, ahead=4))


class StillTest(unittest.TestCase):
    """Nobody comes or goes."""

    def test_it_gives_what_distributed_sampler_gives(self):
        for workers in 1, 2, 3, 4:
            for length in 0, 1, 24, 61:
                for drop_last in False, True:
                    for seat in range(workers):
                        with self.subTest(workers=workers, length=length, drop_last=drop_last, seat=seat):
                            sampler, run = alone(length, Run("a run", seat, 0, [View(0, tuple(range(workers)))]), seed=5, batch_size=4, drop_last=drop_last)
                            theirs = DistributedSampler(range(length), workers, seat, seed=5, drop_last=drop_last)
                            for epoch in 0, 3:
                                sampler.set_epoch(epoch)
                                theirs.set_epoch(epoch)
                                planned, ours = len(sampler.batch_sampler), []
                                for batch in sampler.batches(Drawing(sampler.batch_sampler, 2)):
                                    ours += [batch] if run.weight(run.clock) > 0 else []
                                    planned -= 1
                                    run.clock += 1
                                self.assertEqual(planned, 0)
                                if length % workers == 0 or drop_last:
                                    self.assertEqual(ours, list(BatchSampler(theirs, 4, drop_last)))
                                else:  # theirs repeats a sample at the end
                                    flat, repeated = sum(ours, []), list(theirs)
                                    self.assertIn(flat, [repeated, repeated[:-1]])

    def test_the_loaders_length_is_that_of_the_loop(self):
        for steps, last in (1, False), (1, True), (3, False):
            sampler, run = alone(61, Run("a run", 1, 0, [View(0, (0, 1, 2))]), batch_size=4, batches_per_step=steps, drop_last=last)
            loader = DataLoader(range(61), batch_sampler=sampler.batch_sampler)
            batches, planned = 0, len(loader)
            for _ in sampler.batches(loader):
                batches += 1
                self.assertEqual(len(loader), planned)
                run.clock += sampler.ends_step
            self.assertEqual(batches, planned)

    def test_the_weights_make_the_mean_that_of_the_samples(self):
        runs = [Run("a run", seat, 0, [View(0, (4, 7, 9))]) for seat in (4, 7, 9)]
        samplers = [alone(3 * 4 + 5, run, batch_size=4)[0] for run in runs]
        loops = [sampler.batches(Drawing(sampler.batch_sampler, 0)) for sampler in samplers]
        first = [next(loop) for loop in loops]
        self.assertEqual([run.weight(0) for run in runs], [1.0] * 3)
        for run in runs:
            run.clock += 1
        last = [next(loop) for loop in loops]
        self.assertEqual(sorted(sum(first + last, [])), list(range(17)))
        self.assertEqual([len(batch) for batch in last], [2, 2, 1])
        self.assertEqual([run.weight(1) for run in runs], [6 / 5, 6 / 5, 3 / 5])
        values = torch.arange(17, dtype=torch.float64) ** 2
        means = sum(run.weight(1) * values[batch].mean() for run, batch in zip(runs, last)) / 3
        self.assertAlmostEqual(means.item(), values[sum(last, [])].mean().item())

    def test_who_has_nothing_to_train_goes_along(self):
        runs = [Run("a run", seat, 0, [View(0, (0, 1, 2))]) for seat in range(3)]
        samplers = [alone(2, run, batch_size=4)[0] for run in runs]
        given = [next(sampler.batches(Drawing(sampler.batch_sampler, 0))) for sampler in samplers]
        self.assertEqual([sampler.idle for sampler in samplers], [False, False, True])
        self.assertEqual([run.weight(0) for run in runs], [1.5, 1.5, 0.0])
        self.assertEqual([len(batch) for batch in given], [1, 1, 2])

    def test_each_share_has_as_many_batches(self):
        """While there is a sample for each, so that scripts may count batches."""
        for length in range(8, 61):
            given = []
            for seat in range(4):
                sampler, run = alone(length, Run("a run", seat, 0, [View(0, (0, 1, 2, 3))]), batch_size=2, batches_per_step=3)
                for _ in sampler.batches(Drawing(sampler.batch_sampler, 0)):
                    given.append(run.clock)
                    run.clock += sampler.ends_step
            if length % 24 not in (1, 2):
                self.assertEqual({given.count(clock) for clock in given}, {3 * 4}, length)

    def test_a_plain_loop_over_indices(self):
        """As short as it can be: the batch size is the loader's, and each loop is an epoch."""
        sampler, run = alone(range(10), seed=1)
        progress, epochs = sampler_world.Progress(epoch=0), []
        for progress.epoch in range(progress.epoch, 3):
            batches = []
            for batch in DataLoader(range(10), 4, sampler=sampler, num_workers=2 * (progress.epoch == 1)):
                batches.append(batch.tolist())
                run.clock += 1
            epochs.append(batches)
            self.assertEqual((sampler.epoch, [len(batch) for batch in batches], sorted(sum(batches, []))), (progress.epoch, [4, 4, 2], list(range(10))))
        self.assertNotEqual(epochs[0], epochs[1])

    def test_the_loop_goes_on_where_it_was_left(self):
        sampler, run = alone(10, batch_size=2, shuffle=False)
        loop = sampler.batches(Drawing(sampler.batch_sampler, 3))
        for _ in range(2):
            next(loop)
            run.clock += 1
        loop.close()
        rest = []
        for batch in sampler.batches(Drawing(sampler.batch_sampler, 3)):
            rest += batch
            run.clock += 1
        self.assertEqual(rest, [4, 5, 6, 7, 8, 9])


class ChangeTest(unittest.TestCase):
    def steps(self, workers, clocks):
        """All train so many clocks. By worker, the samples of each clock."""
        out = [[] for _ in workers]
        for _ in range(clocks):
            for place, worker in enumerate(workers):
                got = worker.step()
                out[place].append(None if got is None else sum(got[1], []))
            for worker in workers:
                worker.run.clock += 1
        return out

    def workers(self, plan, seats, views=None):
        views = views or [View(0, tuple(seats))]
        return [Worker(plan, Run("a run", seat, 0, views), {"epoch": 0}) for seat in seats]

    def test_a_death_after_the_others_have_drawn_all(self):
        for by_indices in False, True:
            with self.subTest(by_indices=by_indices):
                plan = Plan(12, 1, 0, by_indices=by_indices, batch_size=2, ahead=4, shuffle=False)
                workers = self.workers(plan, range(3))
                for worker in workers:
                    worker.loader = Drawing(worker.loader._batches, 4)
                self.steps(workers, 1)
                last = [worker.step() for worker in workers]
                self.assertEqual(sorted(sum((sum(share, []) for _, share in last), [])), list(range(6, 12)))
                for worker in workers[:2]:
                    worker.run.views.append(View(1, (0, 1)))  # its gradient of clock 1 counts nowhere
                    worker.run.clock += 1
                self.assertEqual(sorted(sum((sum(w.step()[1], []) for w in workers[:2]), [])), sorted(sum(last[2][1], [])))
                for worker in workers[:2]:
                    worker.run.clock += 1
                    self.assertIsNone(worker.step())

    def test_shares_of_fewer_batches_are_not_drawn_too_far(self):
        worker = self.workers(Plan(8, 1, 0, batch_size=1, batches_per_step=3, ahead=3), range(2))[0]
        worker.loader = Drawing(worker.sampler.batch_sampler, 3)
        worker.run.views.append(View(0, (0,)))
        given = []
        for clock, batches in enumerate((3, 2, 3)):
            _, share = worker.step()
            self.assertEqual(len(share), batches)
            self.assertLessEqual({drawn for drawn, _ in worker.sampler._drawn}, {clock + 1})  # and not two steps ahead
            given += sum(share, [])
            worker.run.clock += 1
        self.assertEqual((sorted(given), worker.step()), (list(range(8)), None))

    def test_a_plain_loop_says_how_many_are_lost_by_it(self):
        plan = Plan(12, 1, 0, grows=False, batch_size=2, ahead=4, shuffle=False)
        workers = self.workers(plan, range(3))
        self.steps(workers, 1)

        def rest():
            for worker in workers:
                worker.step()
            for worker in workers[:2]:
                worker.run.views.append(View(1, (0, 1)))
                worker.run.clock += 1
                self.assertIsNone(worker.step())
                worker.sampler._words.say_unused()

        self.assertEqual(sampler_world.unused_said(rest), {0: 2})
        workers[1].run.views.append(View(2, (1,)))  # worker 0 has died, too
        self.assertEqual(sampler_world.unused_said(workers[1].sampler._words.say_unused), {0: 2})

    def test_the_global_batch_is_kept(self):
        plan = Plan(64 * 12, 1, 0, batch_size=16, global_batch="keep", ahead=2)
        workers = self.workers(plan, range(4))
        sizes = [list(map(len, step)) for step in zip(*self.steps(workers, 2))]
        self.assertEqual(sizes, [[16] * 4] * 2)
        for worker in workers[:3]:
            worker.run.views.append(View(2, (0, 1, 2)))
        sizes = [list(map(len, step)) for step in zip(*self.steps(workers[:3], 6))]
        self.assertEqual(sizes, [[16] * 3] * 3 + [[22, 21, 21]] * 3)  # what may be drawn comes first, as it is
        self.assertAlmostEqual(workers[0].run.weight(8), 3 * 22 / 64)

    def test_a_newcomer_has_a_share_at_once(self):
        plan = Plan(200, 1, 0, batch_size=4, ahead=4)
        workers = self.workers(plan, range(2))
        self.steps(workers, 3)
        state = workers[0].sampler.state_dict()
        self.assertEqual(state, workers[1].sampler.state_dict())
        for worker in workers:
            worker.run.views.append(View(3, (0, 1, 2)))
        newcomer = Worker(plan, Run("a run", 2, 3, [View(3, (0, 1, 2))], state), {"epoch": 0})
        self.steps([*workers, newcomer], 1)
        self.assertEqual(newcomer.run.weight(3), 1.0)


if __name__ == "__main__":
    cluster.main()
