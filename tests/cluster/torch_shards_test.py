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
    "clipping": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
torch.nn.utils.clip_grad_norm_(net.parameters(), .01)
refused(optimizer.step)
""", r'the gradient of "[01]\.(weight|bias)" was changed after backward\(\).*mode="ddp"'),
}

# Each prints "fine".
FINE = {
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
assert held.data_ptr() != net[0].weight.data_ptr()
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
poseidon.join(net, optimizer, mode="local" if case == "another mode" and not first else "shards")
for clock in range(6):
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
        self.refused_by_all("another rate", r'clock 3, ".*": worker [01] has the learning rate 0\.0?1, worker [01] 0\.0?1\. Give all workers')
        self.refused_by_all("another momentum", r'clock 0, ".*": workers [01] and [01] have the same learning rate, and another momentum')
        self.refused_by_all("state on one", r'clock 0, ".*": workers [01] and [01] have the same .* number of steps.*on all of them')


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
