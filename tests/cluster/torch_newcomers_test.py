# tests/cluster/torch_newcomers_test.py - workers that come in the middle of an epoch go on with the Samplers that the others have.
"""Runs under the Python that has PyTorch. Walks are seeded: a failure names its seed."""
import contextlib
import gc
import io
import random
import types
import unittest
import unittest.mock
import weakref

import cluster
import programs

if __name__ == "__main__":
    programs.run_where("torch")

from torch.utils.data import DataLoader  # noqa: E402

from newcomer_world import KINDS, Joined, NewcomerWorld  # noqa: E402
from poseidon.library import LeftOut, PoseidonError  # noqa: E402
from poseidon.torch.client import Client  # noqa: E402
from poseidon.torch.members import Change, Members  # noqa: E402
from poseidon.torch.epochs import View  # noqa: E402
from poseidon.torch.sampler import Sampler  # noqa: E402
from sampler_world import Drawing, Plan, Run, unused_said  # noqa: E402

RATES = [(0, 0, 0.3), (0.03, 0.03, 0.1), (0.1, 0.1, 0.4), (0.2, 0, 0.8)]  # of deaths, leaves, joins


def tearDownModule():
    Run.silence_all()


def drawn_plan(at, **given):
    """A plan by chance."""
    plan = {"batch_size": at.choice([1, 2, 3, 4]), "batches_per_step": at.choice([1, 1, 2, 3]), "ahead": at.choice([0, 1, 3, 6]),
            "seed": at.randint(0, 99), "shuffle": at.random() < 0.9, "global_batch": "keep" if at.random() < 0.25 else None, **given}
    by_indices = plan["global_batch"] is None and plan["batches_per_step"] == 1 and at.random() < 0.4
    return Plan(at.choice([1, 5, 17, 40, 60]), at.randint(1, 3), plan.pop("loader", plan["ahead"]), by_indices=by_indices,
                set_epoch=at.random() < 0.7, **plan)


class WithoutCollector(unittest.TestCase):
    """Of the objects that no script holds any more, those are gone that nothing refers to."""

    def setUp(self):
        gc.disable()
        self.addCleanup(gc.enable)
        self.collected = self.enterContext(unittest.mock.patch("gc.collect"))


class WalkTest(WithoutCollector):
    def walked(self, seeds, plan):
        joins = kills = 0
        for seed in seeds:
            at = random.Random(seed)
            try:
                world = NewcomerWorld(seed, at.choice(KINDS), plan(at), at.choice([1, 2, 3]), at.choice(RATES))
                said = unused_said(world.run)
                self.assertEqual((world.missing(), said), ({}, {}))
            except Exception as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
            joins, kills = joins + len(world.joins), kills + world.kills
        return joins, kills

    def test_each_sample_is_used_once(self):
        self.assertGreater(min(self.walked(range(250), drawn_plan)), 1000)  # else this walk shows nothing

    def test_the_same_with_pytorchs_loader(self):
        self.assertGreater(min(self.walked(range(5), lambda at: drawn_plan(at, loader="torch", ahead=4))), 5)


class OccasionTest(WithoutCollector):
    """One comes, or some do, in a step that the test names; nobody dies or leaves, if it does not say so."""

    def joined(self, occasion, rate=(0, 0, 0), kinds=KINDS, **given):
        worlds = []
        for kind in kinds:
            for seed in range(4):
                with self.subTest(kind=kind, seed=seed):
                    plan = {"batch_size": 4, "ahead": 4, "seed": seed, **given}
                    world = NewcomerWorld(seed, kind, Plan(50, 2, plan["ahead"], set_epoch=seed % 2 == 0, **plan), 2, rate, occasion)
                    said = unused_said(world.run)
                    self.assertEqual((world.missing(), said), ({}, {}))
                    self.assertTrue(world.joins)
                    worlds.append(world)
        return worlds

    @staticmethod
    def left(world):
        """How many steps the loop in force has, with the one in hand."""
        sampler = next(iter(world.alive.values())).sampler
        return sampler._end() - world.clock

    @staticmethod
    def trained(world):
        sampler = next(iter(world.alive.values())).sampler
        return world.clock - sampler._now.first

    def test_in_the_middle_of_an_epoch(self):
        for world in self.joined(lambda world, shares: self.trained(world) == 2):
            self.assertGreaterEqual(len(world.joins), 2)

    def test_in_the_first_step_of_each_epoch(self):
        for world in self.joined(lambda world, shares: self.trained(world) == 0):
            self.assertEqual(world.joins[0], 0)

    def test_in_the_last_step_of_each_epoch(self):
        for world in self.joined(lambda world, shares: self.left(world) == 1 and len(world.alive) < 6):
            self.assertEqual(world.joins[-1], world.clock - 1)

    def test_in_the_step_before_the_last_one_three_at_a_time(self):
        self.joined(lambda world, shares: 3 * (self.left(world) == 2 and len(world.alive) < 6))

    def test_in_each_step_of_several_batches(self):
        for world in self.joined(lambda world, shares: len(world.alive) < 6, batches_per_step=2):
            self.assertEqual(len(world.joins), 4)

    def test_with_a_global_batch_that_is_kept(self):
        for world in self.joined(lambda world, shares: self.trained(world) == 1 and len(world.alive) < 6, kinds=KINDS[:1], global_batch="keep"):
            sizes = [sum(sizes) for sizes in world.sizes]
            self.assertEqual((max(sizes), sizes.count(8)), (8, 2 * (50 // 8)))

    def test_with_losses_in_the_same_step(self):
        kills = sum(world.kills for world in self.joined(lambda world, shares: len(world.alive) < 5, (0.15, 0, 0)))
        self.assertGreater(kills, 20)

    def test_a_newcomer_weighs_by_the_sampler_that_trains(self):
        """Not by the one that it has made last."""
        def occasion(world, shares):
            return next(iter(shares.values()))[0] == (1, 0) and self.left(world) == 2

        self.joined(occasion)


class RefusalTest(unittest.TestCase):
    def came(self, *lengths):
        """A newcomer's run, when the others have Samplers of these lengths and train with the first one."""
        others = Joined("a run", 0, 0, [View(0, (0,))])
        samplers = [Sampler(length, run=others, batch_size=2) for length in lengths]
        loops = [sampler.batches(Drawing(sampler.batch_sampler, 2)) for sampler in samplers[:1]]
        for loop in loops:
            next(loop)
        return Joined("a run", 1, 0, [View(0, (0, 1))], others.samplers.states())

    def test_a_script_that_makes_more(self):
        run = self.came(10)
        Sampler(10, run=run, batch_size=2)
        with self.assertRaisesRegex(PoseidonError, "the others had 1 Sampler, and its script makes number 2"):
            Sampler(10, run=run, batch_size=2)

    def test_a_script_that_makes_fewer(self):
        run = self.came(10, 20)
        sampler = Sampler(10, run=run, batch_size=2)
        self.assertEqual(len(next(iter(sampler.batches(Drawing(sampler.batch_sampler, 2))))), 2)
        with self.assertRaisesRegex(PoseidonError, "had 2 Samplers, and its script has made 1 of them"):
            run.samplers.require_all_made(0)
        with self.assertRaisesRegex(PoseidonError, "had 2 Samplers, and its script has made 0 of them"):
            self.came(10, 20).samplers.require_all_made(0)

    def test_samplers_in_another_order(self):
        run = self.came(10, 20)
        with self.assertRaisesRegex(PoseidonError, "the other workers' Sampler has length=10, this one has length=20"):
            Sampler(20, run=run, batch_size=2)

    def test_what_is_made_after_the_first_step_begins_anew(self):
        run = self.came(10)
        sampler = Sampler(10, run=run, batch_size=2)
        run.samplers.require_all_made(0)
        run.clock += 1
        self.assertEqual((Sampler(30, run=run, batch_size=2).epoch, sampler.epoch), (0, 0))


class ViewsTest(unittest.TestCase):
    def test_a_newcomer_remembers_the_view_that_it_came_with(self):
        """A worker is lost while it reads the others' state: the view that is in force then begins with the same step."""
        came_with, now = View(5, (0, 1, 2)), View(5, (0, 2))
        views = [came_with]
        run = types.SimpleNamespace(worker=2, view=lambda number: views[number] if number < len(views) else None)
        members = Members(run, quiet=True)
        members.look(5)
        views[:], run.worker = [now], 1
        members.begin(5)
        self.assertEqual((members.seat, members.all_views, members.size), (2, [came_with, now], 2))

    def test_a_change_is_told_in_its_step(self):
        views = [View(0, (0, 1))]
        members, told = Members(types.SimpleNamespace(worker=0, view=lambda number: views[number] if number < len(views) else None), quiet=True), []
        members.begin(0)
        members.tell(told.append)
        views.append(View(4, (0, 1, 2)))
        members.follow(3)  # the next step is its first one
        self.assertEqual((told, members.size), ([], 3))
        views.append(View(5, (0, 2)))
        members.follow(4)
        self.assertEqual(told, [Change(4, 0, 3, 2, (), (2,))])
        members.follow(5)
        self.assertEqual(told[1:], [Change(5, 0, 2, 3, (1,), ())])


class LeftOutTest(unittest.TestCase):
    def test_a_newcomer_that_is_left_out_joins_again(self):
        begin = unittest.mock.Mock(side_effect=[LeftOut("one of the others was lost"), "joined"])
        with unittest.mock.patch.object(Client, "of", return_value=types.SimpleNamespace(begin=begin)) as of, \
                contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(Client.begun("model", quiet=True), "joined")
        self.assertEqual(of.call_args_list, 2 * [unittest.mock.call("model", quiet=True)])
        self.assertEqual(said.getvalue(), "poseidon: one of the others was lost\n")


class CollectorTest(unittest.TestCase):
    """Which Samplers are alive is equal on all workers, whenever their collectors run."""

    def loops(self, run, how):
        sampler = Sampler(12, run=run, batch_size=2, ahead=4)
        loader = DataLoader(range(12), batch_sampler=sampler.batch_sampler, **how) if how is not None else Drawing(sampler.batch_sampler, 2)
        for place, _ in enumerate(sampler.batches(loader)):
            run.clock += 1
            if place == 3:
                break
        return weakref.ref(sampler)

    def test_a_sampler_ends_with_its_last_reference(self):
        gc.disable()
        self.addCleanup(gc.enable)
        for how in None, {}, {"num_workers": 2}, {"num_workers": 1, "persistent_workers": True}:
            with self.subTest(how=how):
                run = Joined("a run", 0, 0, [View(0, (0,))])
                self.assertIsNone(self.loops(run, how)())
                self.assertEqual(run.samplers.states(), [])

    def test_one_that_only_a_loader_holds_goes_on(self):
        run = Joined("a run", 0, 0, [View(0, (0, 1))])
        loop = iter(DataLoader(range(3), batch_sampler=Sampler(3, run=run, batch_size=2).batch_sampler))
        next(loop)
        self.assertEqual((len(run.samplers.states()), run.weight(0)), (1, 4 / 3))

    def test_one_in_a_circle_of_the_script_is_not_given(self):
        class Trainer:
            def __init__(self, run):
                self.me, self.sampler = self, Sampler(10, run=run, batch_size=2)

        gc.disable()
        self.addCleanup(gc.enable)
        run = Joined("a run", 0, 0, [View(0, (0,))])
        for trainers in 1, 2:
            for _ in range(trainers):
                trainer = Trainer(run)
            self.assertEqual(len(run.samplers.states()), 1)
            del trainer
            self.assertEqual(len(run.samplers.states()), 0)

    def test_the_usual_script_is_not_collected(self):
        run = Joined("a run", 0, 0, [View(0, (0,))])
        sampler = Sampler(10, run=run, batch_size=2)
        loop = sampler.batches(Drawing(sampler.batch_sampler, 2))
        next(loop)
        with unittest.mock.patch("gc.collect") as collected:
            self.assertEqual(len(run.samplers.states()), 1)
        collected.assert_not_called()


if __name__ == "__main__":
    cluster.main()
