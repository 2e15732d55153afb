# tests/cluster/torch_outer_test.py - outer steps: N workers have, bit for bit, what one process has that makes the steps of all of them.
import signal
import unittest

import cluster
import programs
from outer_world import SCRIPT

KILL = int(signal.SIGKILL)
STREAMS = {"every": 6, "fragments": 3, "delay": 1}

WRONG = """
import torch
from torch import nn
import poseidon.torch as poseidon
net = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 2))
optimizer = torch.optim.SGD(net.parameters(), .1)
Outer, join = poseidon.Outer, poseidon.join
""" + programs.REFUSED

REFUSED = {
    "every": ("refused(lambda: Outer(0))", "every is 0"),
    "rate": ("refused(lambda: Outer(5, rate=-1.))", r"rate is -1\.0"),
    "momentum": ("refused(lambda: Outer(5, momentum=1.))", r"momentum is 1\.0"),
    "fragments": ("refused(lambda: Outer(5, fragments=2))", "every=5 is no multiple of fragments=2"),
    "delay": ("refused(lambda: Outer(6, fragments=2, delay=3))", "delay=3 is not less than every/fragments=3"),
    "mix": ("refused(lambda: Outer(6, mix=.5))", "mix=0.5 is for delay=1"),
    "layers": ("refused(lambda: join(net, optimizer, outer=Outer(6, fragments=3)))", "has 2 layers"),
    "a number": ("refused(lambda: join(net, optimizer, outer=5))", r"expected a poseidon\.Outer"),
    "mode": ('refused(lambda: join(net, optimizer, mode="local", outer=Outer(5)))', 'mode="local" exclude'),
    "no optimizer": ("refused(lambda: join(net, outer=Outer(5)))", "counts the steps of the optimizer"),
    "two optimizers": ("refused(lambda: join(net, torch.optim.SGD(net[0].parameters(), .1), outer=Outer(5)))", r'"1\.weight" trains and is not in this'),
    "factors": ('refused(lambda: join(net, optimizer, outer=Outer(5), routes="sfb"))', "has no factors"),
    "streams": ("refused(lambda: join(net, optimizer, outer=Outer(6, fragments=2), state=[]))", r"state=\[\.\.\.\] lets others join later, and Outer"),
    "ddp": ("refused(lambda: poseidon.DistributedDataParallel(net, outer=Outer(5)))", "has no outer"),
    "sampler": ("join(net, optimizer, outer=Outer(5))\nrefused(lambda: poseidon.Sampler(10, batch_size=1))", "use DistributedSampler"),
}

DIFFERENT = WRONG + """
import os
refused(lambda: join(net, optimizer, outer=Outer(5) if "POSEIDON_LISTEN" in os.environ else Outer(10)))
"""

# All values are multiples of 2^-10 and small, so that nothing rounds: an outer step after each inner one is then a step with the mean gradient.
EXACT = """
import sys
import torch
from torch import nn
import poseidon.torch as poseidon

def trained(**how):
    net = nn.Linear(4, 2)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.arange(p.numel()).reshape(p.shape) / 8)
    optimizer = torch.optim.SGD(net.parameters(), .25)
    poseidon.join(net, optimizer, **how)
    for step in range(4):
        g = torch.Generator().manual_seed(10 * step + poseidon.rank())
        optimizer.zero_grad()
        (net(torch.randint(-2, 3, (2, 4), generator=g).float()) * torch.randint(-2, 3, (2, 2), generator=g)).sum().backward()
        optimizer.step()
    poseidon.leave()
    return [p.detach().clone() for p in net.parameters()]

values = trained(**({"outer": poseidon.Outer(every=1)} if sys.argv[1] == "outer" else {}))
print("values", [v.tolist() for v in values], flush=True)
"""

SCALER = """
import collections
import warnings
import torch
from torch.cuda.amp.grad_scaler import OptState
from torch import nn
import poseidon.torch as poseidon

warnings.filterwarnings("ignore", "`torch.cuda.amp.GradScaler")  # newer ones want torch.amp.GradScaler, which older ones have not

class Scaler(torch.cuda.amp.GradScaler):
    # As on a GPU: an infinite gradient in step 1.
    def __init__(self):
        super().__init__(enabled=False)
        self._enabled, self.steps = True, 0
        self._per_optimizer_states = collections.defaultdict(lambda: {"stage": OptState.READY, "found_inf_per_device": {}})
    def _check_scale_growth_tracker(self, name):
        return torch.ones(1), torch.zeros(1)
    def unscale_(self, optimizer):
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = {"cpu": torch.tensor(float(self.steps == 1))}
        self.steps += 1
    def update(self):
        self._per_optimizer_states.clear()

net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), .1)
before = optimizer.step.__func__, torch.cuda.amp.GradScaler.step
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
joined = poseidon.join(net, optimizer, outer=poseidon.Outer(every=2))
torch.optim.lr_scheduler.StepLR(optimizer, 2)
scaler = Scaler()
for step in range(4):
    optimizer.zero_grad()
    net(torch.ones(1, 4)).sum().backward()
    was = net.weight.clone()
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    print("step", step, joined.clock, torch.equal(was, net.weight), flush=True)
poseidon.leave()
print("as before", torch.cuda.amp.GradScaler.step is before[1], flush=True)
"""


class Outer(unittest.TestCase):
    def setUp(self):
        self.c = self.enterContext(programs.Programs())
        self.address = self.enterContext(cluster.reserved_address())

    def started(self, outer, wanted, *, first=0, state=True, ends=None, without=(), more=0, env=()):
        who = {"POSEIDON_LISTEN": self.address, "POSEIDON_NODES": first} if first else {"POSEIDON_JOIN": self.address}
        words = repr(outer), repr((wanted, without, more)), repr(state), repr(ends or {})
        (worker,) = self.c.workers(SCRIPT, 1, *words, env={**who, **dict(env)})
        return worker

    def group(self, number, outer, wanted, **more):
        return [self.started(outer, wanted, first=number, **more), *(self.started(outer, wanted, **more) for _ in range(number - 1))]

    def are_equal(self, workers):
        programs.same_digest(self, workers)
        for worker in workers:
            if worker.wait_for(r"^seat \d+ from \d+ (\d+)")[1] == "0":
                worker.wait_for("^oracle")
                self.assertIn("oracle equal", worker.output, worker)

    def test_all_are_equal_to_one_process_that_makes_the_steps_of_all(self):
        for outer, number, more in (({"every": 1}, 2, 0), ({"every": 4}, 3, 2), ({"every": 3, "rate": .7, "momentum": .5}, 2, 0),
                                    ({"every": 3, "rate": .7, "momentum": .5, "nesterov": False}, 2, 1), ({"every": 3, "model": "small"}, 2, 0),
                                    ({"every": 3, "wire": "bfloat16"}, 3, 0)):
            with self.subTest(outer=outer):
                self.setUp()
                workers = self.group(number, outer, number, state=False, more=more)
                self.are_equal(workers)
                self.assertIn("workers are equal after outer steps", "\n".join(workers[0].errors))

    def test_fragments_take_turns_and_travel_while_workers_train(self):
        for outer, number, more in (({"every": 4, "delay": 2}, 2, 0), ({"every": 4, "fragments": 2, "momentum": .5}, 2, 1), (STREAMS, 3, 1),
                                    ({**STREAMS, "mix": 0., "model": "small"}, 2, 0)):
            with self.subTest(outer=outer):
                self.setUp()
                self.are_equal(self.group(number, outer, number, state=False, more=more))

    def test_one_is_killed_one_joins_and_one_leaves(self):
        outer = {"every": 3, "rate": .7, "momentum": .5}
        ends = {2: (4, KILL), 1: (15, "leave")}
        workers = self.group(3, outer, 2, ends=ends, without=(1, 2))
        by_seat = {int(w.wait_for(r"^seat (\d+)")[1]): w for w in workers}
        self.assertEqual(by_seat[2].wait(), -KILL, by_seat[2])
        by_seat[0].wait_for("^trains")
        newcomer = self.started(outer, 2, without=(1, 2))
        self.assertEqual(by_seat[1].wait(), 0, by_seat[1])
        self.are_equal([by_seat[0], newcomer])
        self.assertRegex("\n".join(by_seat[0].errors), r"worker 2 is gone: 2 workers go on, from outer step \d+ on")

    def test_a_loss_while_a_fragment_is_on_its_way(self):
        workers = self.group(3, STREAMS, 2, state=False, ends={2: (3, KILL)}, without=(2,))
        by_seat = {int(w.wait_for(r"^seat (\d+)")[1]): w for w in workers}
        self.assertEqual(by_seat[2].wait(), -KILL, by_seat[2])
        self.are_equal([by_seat[0], by_seat[1]])

    def outputs(self, script, number, *words):
        workers = self.c.workers(script, number, *words)
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker)
        return [worker.output for worker in workers]

    def test_after_each_step_it_is_what_ddp_does_where_nothing_rounds(self):
        values = {line for how in ("outer", "ddp") for output in self.outputs(EXACT, 2, how) for line in output.splitlines() if line.startswith("values")}
        self.assertEqual(len(values), 1, values)

    def test_a_step_that_a_scaler_leaves_out_counts(self):
        (output,) = self.outputs(SCALER, 1)
        for line in "step 0 0 False", "step 1 1 True", "step 3 2 False", "as before True":
            self.assertIn(line, output)
        self.assertNotIn("Warning", output)

    def test_another_outer_is_refused(self):
        for output in self.outputs(DIFFERENT, 2):
            self.assertRegex(output, r'refused: .*"Outer\(every=5, .*on worker 0 and "Outer\(every=10, ')

    def test_what_is_refused(self):
        programs.each_is_refused(self, WRONG, REFUSED)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
