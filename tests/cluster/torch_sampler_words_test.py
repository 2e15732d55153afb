# tests/cluster/torch_sampler_words_test.py - what a Sampler refuses, and that each line says what to do.
import contextlib
import io
import unittest

import cluster
import programs

if __name__ == "__main__":
    programs.run_where("torch")

from torch.utils.data import DataLoader  # noqa: E402

import sampler_world  # noqa: E402
from poseidon.torch.epochs import View  # noqa: E402
from sampler_world import Drawing, Run, alone  # noqa: E402


def tearDownModule():
    Run.silence_all()


class RefusalTest(unittest.TestCase):
    def refused(self, text, call):
        with self.assertRaisesRegex(sampler_world.PoseidonError, text):
            call()

    def test_what_is_no_sampler(self):
        made = sampler_world.Sampler
        for text, call in {
                "the dataset is a generator, which has no length": lambda: made(i for i in range(3)),
                "dataset is -1, expected a whole number from 0 on": lambda: made(-1),
                "dataset is True, expected a whole number": lambda: made(True),
                "batch_size is 0, expected a whole number from 1 on": lambda: made(3, batch_size=0),
                "batches_per_step is 1.5, expected a whole number from 1 on": lambda: made(3, batches_per_step=1.5),
                "ahead is -1, expected a whole number from 0 on": lambda: made(3, ahead=-1),
                "seed is 'a', expected a whole number$": lambda: made(3, seed="a"),
                'global_batch is 64, expected "keep" or None': lambda: made(3, global_batch=64),
                "epoch is -1, expected a whole number from 0 on": lambda: made(3).set_epoch(-1),
                "this process has not joined.*call join": lambda: len(made(3)),
                r"this run \(object\) does not say who its members are.*mode=\"ddp\"": lambda: made(3, run=object()),
                "the run has not begun, and has no members yet": lambda: made(3, run=Run("a run", 0, 0, [])),
                "batch_size is not known: Sampler\\(dataset, batch_size=32\\)": lambda: len(alone(3)[0])}.items():
            with self.subTest(text):
                self.refused(text, call)

    def test_a_loader_that_does_not_fit(self):
        sampler, _ = alone(30, batch_size=4)
        several, _ = alone(30, batch_size=4, batches_per_step=2)
        kept, _ = alone(30, batch_size=4, global_batch="keep")
        data = range(30)
        for text, call in {
                "makes batches of 5, and the Sampler's batch_size is 4": lambda: list(DataLoader(data, 5, sampler=sampler)),
                "DataLoader makes batches of 5, and the Sampler's batch_size is 4": lambda: sampler.batches(DataLoader(data, 5, sampler=sampler)),
                "loader has drop_last=True and the Sampler drop_last=False": lambda: list(DataLoader(data, 4, sampler=sampler, drop_last=True)),
                "gives whole batches, and the loader asks it for indices: write .*batch_sampler=sampler.batch_sampler": lambda: list(
                    DataLoader(data, 4, sampler=sampler.batch_sampler)),
                "gives indices, and the loader asks it for batches: write .*batch_sampler=sampler.batch_sampler": lambda: list(
                    DataLoader(data, batch_sampler=sampler)),
                "wants the DataLoader that draws from this sampler": lambda: sampler.batches(DataLoader(data, 4)),
                "num_workers . prefetch_factor = 2 . 9 = 18 batches ahead of training, and ahead is 16: .*ahead=18":
                    lambda: sampler.batches(DataLoader(data, 4, sampler=sampler, num_workers=2, prefetch_factor=9)),
                "with batches_per_step=2 the last step has smaller batches": lambda: list(DataLoader(data, 4, sampler=several)),
                'global_batch="keep" has batches of several sizes': lambda: list(DataLoader(data, 4, sampler=kept))}.items():
            with self.subTest(text):
                self.refused(text, call)

    def test_in_order_loaders_only(self):
        sampler, _ = alone(30, batch_size=4)
        loader = DataLoader(range(30), batch_sampler=sampler.batch_sampler, num_workers=1)
        loader.in_order = False  # PyTorch 2.6 has an argument of this name
        self.refused("in_order=False", lambda: sampler.batches(loader))

    def test_batches_that_are_not_trained(self):
        sampler, run = alone(200, batch_size=2, ahead=4)
        self.refused("step 5 of epoch 0 when 0 are trained, more than ahead=4 batches ahead", lambda: list(Drawing(sampler.batch_sampler, 3)))
        sampler, run = alone(200, batch_size=2, ahead=4)
        loop = sampler.batches(Drawing(sampler.batch_sampler, 3))
        next(loop)
        self.refused("batch 1 of this loop belongs to step 1 of the run, and 0 steps are trained", lambda: next(loop))
        sampler, run = alone(200, batch_size=2, ahead=4)
        loader = iter(Drawing(sampler.batch_sampler, 0))
        next(loader)
        run.clock += 3
        self.refused("3 steps of epoch 0 are trained, and the loader has drawn 1", lambda: next(loader))

    def test_a_loader_that_gives_less_or_more(self):
        sampler, _ = alone(20, batch_size=2)

        def none():
            next(iter(sampler.batch_sampler))
            yield from ()

        self.refused("the loader has given 0 batches, and no step was trained with them; 10 steps of epoch 0 are left", lambda: list(sampler.batches(none())))
        self.refused("the loader gives more batches than it has drawn", lambda: list(sampler.batches([[0, 1]])))

    def test_who_comes_back_is_another_one(self):
        sampler, run = alone(20, batch_size=2)
        loop = sampler.batches(Drawing(sampler.batch_sampler, 2))
        next(loop)
        run.seat, run.clock = 1, 1
        run.views.append(View(1, (1,)))
        self.refused("this worker was 0 of the run and is 1 now.*begins its script anew", lambda: next(loop))

    def test_one_kind_of_loop_in_an_epoch(self):
        sampler, run = alone(20, batch_size=2)
        next(iter(Drawing(sampler.batch_sampler, 0)))
        self.refused("was begun with a plain loop and goes on with sampler.batches", lambda: list(sampler.batches(Drawing(sampler.batch_sampler, 0))))

    def test_a_late_worker_is_as_the_others(self):
        views = [View(0, (3, 4))]
        sampler, run = alone(20, Run("a run", 3, 0, views), batch_size=2)
        sampler.set_epoch(2)
        loop = sampler.batches(Drawing(sampler.batch_sampler, 0))
        for _ in range(3):
            next(loop)
            run.clock += 1
        state = sampler.state_dict()

        def late(epoch=2, **given):
            newcomer, _ = alone(20, Run("a run", 5, 3, [View(3, (3, 4, 5))], state), **{"batch_size": 2, **given})
            newcomer.set_epoch(epoch)
            return next(newcomer.batches(Drawing(newcomer.batch_sampler, 0)))

        self.assertEqual(len(late()), 2)
        self.assertEqual(len(late(batch_size=None)), 2)
        self.refused("come when the others were in epoch 2, and its script begins with epoch 0", lambda: late(0))
        for name, value in {"batch_size": 3, "ahead": 4, "seed": 1, "drop_last": True, "batches_per_step": 2, "shuffle": False, "global_batch": "keep"}.items():
            self.refused(f"the other workers' Sampler has {name}=.*, this one has {name}={value!r}", lambda: late(**{name: value}))

    def test_a_checkpoint_of_an_epoch_that_is_over(self):
        sampler, run = alone(8, batch_size=2)
        for _ in sampler.batches(Drawing(sampler.batch_sampler, 1)):
            run.clock += 1
        state = sampler.state_dict()
        for asked, samples, said in (None, 0, "poseidon: an earlier run has trained all of epoch 0, so this loop has no batches; sampler.set_epoch(1) begins"), \
                (0, 0, ""), (1, 8, ""):
            later, run = alone(8, Run("another", 0, 0, [View(0, (0,))]), batch_size=4)
            later.load_state_dict(state)
            if asked is not None:
                later.set_epoch(asked)
            given = []
            with contextlib.redirect_stderr(io.StringIO()) as lines:
                for batch in later.batches(Drawing(later.batch_sampler, 1)):
                    given += batch
                    run.clock += 1
            self.assertEqual(len(given), samples)
            self.assertTrue(lines.getvalue().startswith(said) and bool(said) == bool(lines.getvalue()), lines.getvalue())

    def test_what_drop_last_has_left_out_is_no_rest(self):
        sampler, run = alone(9, batch_size=2, drop_last=True)
        for _ in sampler.batches(Drawing(sampler.batch_sampler, 1)):
            run.clock += 1
        later, _ = alone(9, Run("another", 0, 0, [View(0, (0,))]), batch_size=1)
        later.load_state_dict(sampler.state_dict())
        later.set_epoch(0)
        self.assertEqual(list(later.batches(Drawing(later.batch_sampler, 1))), [])

    def test_a_state_of_something_else(self):
        sampler, _ = alone(20, batch_size=2)
        state = sampler.state_dict()
        self.refused("the state was taken with length=20, this one has length=21", lambda: alone(21, Run("another", 0, 0, [View(0, (0,))]))[0].load_state_dict(state))
        for wrong in None, [], {}, {**state, "views": 3}, {**state, "epoch": "x"}, {**state, "now": {}}, {**state, "past": [1]}:
            self.refused("this is not what state_dict\\(\\) of a Sampler has returned", lambda: sampler.load_state_dict(wrong))
        self.refused("the state has format 7, expected 1", lambda: sampler.load_state_dict({**state, "format": 7}))


if __name__ == "__main__":
    cluster.main()
