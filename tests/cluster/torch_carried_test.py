# tests/cluster/torch_carried_test.py - a fresh worker that unpacks the others' state goes on bit for bit as they do.
"""Runs under the Python that has PyTorch."""
import collections
import random
import unittest

import cluster
import programs

if __name__ == "__main__":
    programs.run_where("torch")

import torch  # noqa: E402

from poseidon.library import PoseidonError  # noqa: E402
from poseidon.torch.carried import Carried  # noqa: E402

L = torch.optim.lr_scheduler
OPTIMIZERS = {"SGD": {"momentum": 0.9}, "Adam": {"amsgrad": True}, "AdamW": {}, "Adamax": {}, "NAdam": {}, "RAdam": {}, "ASGD": {}, "Adadelta": {},
              "Adagrad": {}, "RMSprop": {}, "Rprop": {}, "LBFGS": {}}
SCHEDULERS = [lambda o: L.StepLR(o, 2), lambda o: L.MultiStepLR(o, [2, 4]), lambda o: L.OneCycleLR(o, 0.1, total_steps=20),
              lambda o: L.CosineAnnealingWarmRestarts(o, 3), lambda o: L.LambdaLR(o, lambda e: 0.9 ** e),
              lambda o: L.ChainedScheduler([L.StepLR(o, 2), L.ExponentialLR(o, 0.9)]), lambda o: torch.optim.swa_utils.SWALR(o, 0.05)]


class Script:
    def __init__(self, seed, name="SGD", scheduler=SCHEDULERS[0]):
        torch.manual_seed(seed)
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        self.optimizer = getattr(torch.optim, name)(self.model.parameters(), lr=0.01, **OPTIMIZERS[name])
        self.scheduler = scheduler(self.optimizer)
        self.buffers = dict(self.model.named_buffers())
        self.carried = Carried(self.model, self.optimizer, [self.scheduler], True)

    def step(self, number):
        inputs = torch.randn(8, 3, generator=torch.Generator().manual_seed(number))

        def closure():
            self.optimizer.zero_grad()
            loss = self.model(inputs).pow(2).mean()
            loss.backward()
            return loss
        self.optimizer.step(closure)
        self.scheduler.step()

    def pack(self):
        return self.carried.pack(self.buffers, [{"epoch": 1}])


class CarriedTest(unittest.TestCase):
    def continues(self, name, scheduler):
        old, new = Script(1, name, scheduler), Script(2, name, scheduler)
        for number in range(3):
            old.step(number)
        self.assertEqual(new.carried.unpack(old.pack()[0]), [{"epoch": 1}])
        self.assertTrue(torch.equal(old.pack()[0], new.pack()[0]))
        for number in range(3, 6):
            old.step(number)
            new.step(number)
        self.assertTrue(torch.equal(old.pack()[0], new.pack()[0]))

    def test_each_optimizer_goes_on_bit_for_bit(self):
        for name in OPTIMIZERS:
            with self.subTest(name):
                self.continues(name, SCHEDULERS[0])

    def test_each_scheduler_goes_on_bit_for_bit(self):
        for place, scheduler in enumerate(SCHEDULERS):
            with self.subTest(place):
                self.continues("SGD", scheduler)

    def test_without_broadcast_the_buffers_of_other_modules_are_each_workers_own(self):
        def made(seed, running):
            torch.manual_seed(seed)
            model, other = (torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)) for _ in range(2))
            for module in model, other:
                module[1].running_mean.fill_(running)
            return other, Carried(model, None, [other], False)

        (_, one), (_, two), (_, another) = made(1, 5.0), made(1, 6.0), made(2, 5.0)
        self.assertEqual(one.sums(), two.sums())
        self.assertNotEqual(one.sums(), another.sums())
        (block, own), (same, _) = (carried.pack({}, []) for carried in (one, two))
        self.assertTrue(torch.equal(block[own:], same[own:]))
        self.assertFalse(torch.equal(block[:own], same[:own]))
        fresh, carried = made(3, 7.0)
        carried.unpack(block)
        self.assertEqual(fresh[1].running_mean.tolist(), [5.0] * 4)
        self.assertTrue(torch.equal(carried.pack({}, [])[0], block))

    def test_a_module_whose_tensors_come_in_another_order_is_refused(self):
        def made(*names):
            model = torch.nn.Linear(2, 2)
            return Carried(model, None, [torch.nn.ModuleDict({name: torch.nn.BatchNorm1d(4) for name in names})], broadcast)

        for broadcast in True, False:
            block, _ = made("a", "b").pack({}, [])
            made("a", "b").unpack(block)
            with self.assertRaisesRegex(PoseidonError, "in the order"):
                made("b", "a").unpack(block)

    def test_damaged_blocks_are_refused(self):
        script, at = Script(1), random.Random(1)
        block = script.pack()[0]
        for _ in range(300):
            bad = block.clone()
            bad[at.randrange(len(bad))] ^= 1 << at.randrange(8)
            with self.assertRaises(PoseidonError):
                script.carried.unpack(bad)
            with self.assertRaises(PoseidonError):
                script.carried.unpack(block[:at.randrange(len(block))])
        with self.assertRaises(PoseidonError):
            script.carried.unpack(torch.cat([block, block[:16]]))

    def test_other_objects_are_refused(self):
        with self.assertRaisesRegex(PoseidonError, r"SGD\(6 parameters\), StepLR and this one's SGD\(6 parameters\), MultiStepLR"):
            Script(1, "SGD", SCHEDULERS[1]).carried.unpack(Script(1).pack()[0])
        with self.assertRaisesRegex(PoseidonError, r"state\[0\] is a int"):
            Carried(torch.nn.Linear(1, 1), None, [3], True)

    def test_a_tree_keeps_types_and_bits(self):
        class Holder:
            def state_dict(self):
                return self.state

            def load_state_dict(self, state):
                self.state = state
        old, new, model = Holder(), Holder(), torch.nn.Linear(1, 1)
        old.state = {"a": [None, True, -3 ** 90, float("-inf"), -0.0, 1j, "ü", b"\0", (1,)], 2: collections.Counter({3: 1}), "e": torch.empty(0, 3),
                     "h": torch.tensor(1.5, dtype=torch.bfloat16), "t": torch.arange(6).view(2, 3).t(), "s": {3, 1}, "d": torch.float16}
        new.state = {}
        Carried(model, None, [new], True).unpack(Carried(model, None, [old], True).pack({}, [])[0])
        self.assertEqual(repr(old.state), repr(new.state))


if __name__ == "__main__":
    cluster.main() if hasattr(cluster, "main") else unittest.main()
