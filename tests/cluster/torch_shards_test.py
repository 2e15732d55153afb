# tests/cluster/torch_shards_test.py - mode "shards": what the shards cannot step is refused, and the library's memory outlives the run.
import unittest

import cluster
import programs
from torch_refusals_test import HEAD

# By name: the script of the only worker, and what it prints.
ALONE = {
    "another optimizer": ("""
net, _ = made()
refused(lambda: poseidon.join(net, torch.optim.RMSprop(net.parameters()), mode="shards"))
""", r'the shards know SGD, Adam and AdamW, not RMSprop.*mode="local"'),
    "an option of it": ("""
net, _ = made()
refused(lambda: poseidon.join(net, torch.optim.Adam(net.parameters(), amsgrad=True), mode="shards"))
""", r"the shards know no Adam with amsgrad=True"),
    "a rate that changes too late": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
optimizer.param_groups[0]["lr"] = .5
refused(optimizer.step)
""", r"lr of group 0 was 0\.1 when its gradients left, and is 0\.5 at step\(\)"),
    "momentum that begins later": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
optimizer.param_groups[0]["momentum"] = .9
refused(lambda: net(torch.ones(2, 4)).sum().backward())
""", r"the momentum of group 0 is 0\.9 and was 0 at join\(\)"),
    "state that comes too late": ("""
net, optimizer = made()
state = optimizer.state_dict()
poseidon.join(net, optimizer, mode="shards")
refused(lambda: optimizer.load_state_dict(state))
""", r"load_state_dict\(\) after join\(\).*before join\(\), on all workers"),
    "state in between": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
refused(optimizer.state_dict)
""", r"between backward\(\) and step\(\)"),
    "an option that is set later": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
optimizer.param_groups[0]["maximize"] = True
refused(lambda: step(net, optimizer))
""", r'the shards know no SGD with maximize=True, as group 0 has it since join\(\): mode="local"'),
    "a rate that becomes a tensor": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
optimizer.param_groups[0]["lr"] = torch.tensor(.1)
refused(lambda: step(net, optimizer))
""", r"the shards know no SGD whose lr is a Tensor, expected a number"),
    "a parameter that changes its group": ("""
net, _ = made()
optimizer = torch.optim.SGD([{"params": net[0].parameters(), "lr": .2}, {"params": net[1].parameters()}], .1)
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
optimizer.param_groups[1]["params"].append(optimizer.param_groups[0]["params"].pop(0))
refused(lambda: step(net, optimizer))
""", r'"0\.weight" is in group 1 of the optimizer, and was in group 0 at join\(\)'),
    "a parameter that leaves its group": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
del optimizer.param_groups[0]["params"][0]
refused(lambda: step(net, optimizer))
""", r"the optimizer has 3 parameters, and had 4 at join\(\): freeze by lr 0"),
    "clipping": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
refused(lambda: torch.nn.utils.clip_grad_norm_(net.parameters(), .01))
""", r'the gradient of "[01]\.(weight|bias)" is read or was changed after backward\(\).*mode="ddp"'),
}

# Each prints "fine".
FINE = {
    "an AdamW that says what it is": """
net, _ = made()
optimizer = torch.optim.AdamW(net.parameters(), .1)
optimizer.param_groups[0]["decoupled_weight_decay"] = True  # as in PyTorch 2.11
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
print("fine", flush=True)
""",
    "a graph of an older clock": """
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
for _ in range(3):
    old = net(torch.ones(2, 4)).sum()
    step(net, optimizer)
    try:
        old.backward()
    except RuntimeError as e:
        if "modified by an inplace operation" not in str(e):
            raise
    else:
        raise AssertionError("it computed with values of two clocks")
    optimizer.zero_grad()
print("fine", flush=True)
""",
    "memory after the end": """
net, optimizer = made()
run = poseidon.join(net, optimizer, mode="shards")
for _ in range(3):
    step(net, optimizer)
held = net[0].weight.detach()
before = held.clone()
poseidon.leave()
del run
import gc
gc.collect()
assert torch.equal(held, before) and torch.equal(net[0].weight, before)
step(net, optimizer)  # it trains on by itself
assert not torch.equal(net[0].weight, before)
print("fine", flush=True)
""",
    "trained on after the end": """
import copy
net, optimizer = made()
optimizer = torch.optim.Adam(net.parameters(), .01)
alone = copy.deepcopy(net)
other = torch.optim.Adam(alone.parameters(), .01)
with poseidon.join(net, optimizer, mode="shards"):
    for _ in range(3):
        step(net, optimizer)
for _ in range(3):
    step(alone, other)
for n, o in (net, optimizer), (alone, other):
    step(n, o)
assert all(torch.equal(a, b) for a, b in zip(net.parameters(), alone.parameters()))
print("fine", flush=True)
""",
    "a copy of the optimizer has its state": """
import copy, pickle
net, _ = made()
optimizer = torch.optim.Adam(net.parameters(), .1)
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
for other in copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer)):
    assert type(other) is torch.optim.Adam and len(other.state) == 4 and not optimizer.state
    assert all(s["step"] == 1 for s in other.state.values())
print("fine", flush=True)
""",
    "betas in a list that is written to": """
import copy
net, _ = made()
alone = copy.deepcopy(net)
optimizers = [torch.optim.Adam(n.parameters(), .1) for n in (net, alone)]
poseidon.join(net, optimizers[0], mode="shards")
for clock in range(4):
    for n, o in zip((net, alone), optimizers):
        if clock == 1:
            o.param_groups[0]["betas"] = [.9, .999]
        if clock == 2:
            o.param_groups[0]["betas"][0] = .6
        step(n, o)
assert all(torch.equal(a, b) for a, b in zip(net.parameters(), alone.parameters()))
print("fine", flush=True)
""",
    "foreach": """
import copy
net, _ = made()
alone = copy.deepcopy(net)
optimizers = [torch.optim.AdamW(n.parameters(), .1, foreach=True) for n in (net, alone)]
poseidon.join(net, optimizers[0], mode="shards")
for clock in range(4):
    for n, o in zip((net, alone), optimizers):
        step(n, o)
assert all(torch.equal(a, b) for a, b in zip(net.parameters(), alone.parameters()))
print("fine", flush=True)
""",
    "copies and files": """
import copy, io
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
copied = copy.deepcopy(net)
file = io.BytesIO()
torch.save(net.state_dict(), file)
file.seek(0)
read = torch.load(file)
step(net, optimizer)
net[0].weight.sum().item()
assert torch.equal(copied[0].weight, read["0.weight"]) and not torch.equal(net[0].weight, read["0.weight"])
print("fine", flush=True)
""",
}

TWO = HEAD + """
import pathlib, time
case = sys.argv[1]
first = "POSEIDON_LISTEN" in os.environ
net, _ = made()
optimizer = torch.optim.SGD(net.parameters(), .1, momentum=.9)
if case == "another optimizer" and not first:
    optimizer = torch.optim.AdamW(net.parameters(), .1)
if case == "another momentum" and not first:
    optimizer = torch.optim.SGD(net.parameters(), .1, momentum=.8)
if case == "state on one" and first:
    step(net, optimizer)
if case == "other state":
    net(torch.full((2, 4), 1. + first)).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
before = copy.deepcopy(optimizer.state_dict())
poseidon.join(net, optimizer, mode="local" if case == "another mode" and not first else "shards")
for clock in range(6):
    if case == "a worker dies" and clock == 3:
        # Not before the other one is here, too: what it needs for the clock before may still wait in this process.
        there = pathlib.Path(__file__ + ".there")
        if not first:
            while not there.exists():
                time.sleep(.01)
            os.kill(os.getpid(), 9)
        there.touch()
        try:
            for _ in range(3):
                step(net, optimizer)
        except poseidon.PoseidonError:
            pass
        try:
            poseidon.leave()
        except poseidon.PoseidonError:
            pass
        refused(optimizer.state_dict)
        refused(optimizer.step)
        optimizer.load_state_dict(before)
        optimizer.zero_grad(set_to_none=True)
        step(net, optimizer)
        print("momentum of", len(optimizer.state_dict()["state"]), flush=True)
        sys.exit()
    if case == "another rate" and not first and clock == 3:
        optimizer.param_groups[0]["lr"] = .01
    step(net, optimizer)
net(torch.ones(2, 4))
print("trained", flush=True)
"""


class Shards(unittest.TestCase):
    def test_alone(self):
        programs.each_is_refused(self, HEAD, ALONE)

    def test_what_works(self):
        programs.each_is_fine(self, HEAD, FINE)

    def refused_by_all(self, case, text):
        with self.subTest(case), programs.Programs() as c:
            workers = c.workers(TWO, 2, case)
            for worker in workers:
                self.assertNotEqual(worker.wait(), 0, workers)
                self.assertRegex(worker.output, text, workers)
                self.assertNotIn("trained", worker.output, workers)

    def test_workers_that_step_otherwise(self):
        self.refused_by_all("another optimizer", "worker 0 makes steps of SGD on the shards, this one steps of AdamW on the shards")
        self.refused_by_all("another mode", "worker 0 makes steps of SGD on the shards, this one its own steps")
        self.refused_by_all("another rate", r'step 3, ".*": worker [01] has the learning rate 0\.0?1, worker [01] 0\.0?1\. .*same schedule')
        self.refused_by_all("another momentum", r'step 0, ".*": workers [01] and [01] have the same learning rate, and another momentum')
        self.refused_by_all("other state", r'step 0, ".*": workers [01] and [01] have the same .* first state.*on all of them')
        self.refused_by_all("state on one", r'step 0, ".*": workers [01] and [01] have the same .* number of steps.*on all of them')

    def test_an_optimizer_whose_state_is_lost_says_so(self):
        with programs.Programs() as c:
            first, _ = c.workers(TWO, 2, "a worker dies")
            self.assertEqual(first.wait(), 0, first)
            said = "refused: the state of this optimizer was on the shards of a run that has failed: load_state_dict"
            self.assertEqual(first.output.count(said), 2, first)
            self.assertIn("momentum of 4", first.output, first)

    def test_one_worker_saves_the_state_while_the_others_leave(self):
        with programs.Programs() as c:
            for worker in c.workers(TWO.replace('print("trained"', 'print("state of", len(optimizer.state_dict()["state"]) if first else 0)\n'
                                                'print("trained"'), 2, "plain"):
                self.assertEqual(worker.wait(), 0, worker)
                self.assertIn("trained", worker.output, worker)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
