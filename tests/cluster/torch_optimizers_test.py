# tests/cluster/torch_optimizers_test.py - what modes "local" and "shards" ask of an optimizer, and of those of all workers together.
import unittest

import cluster
import programs
from torch_refusals_test import HEAD

# By name: the script of the only worker, and what it prints.
ALONE = {
    "two tensors over one memory": ("""
net, _ = made()
net[1].bias.data = net[0].bias.data[:2]
refused(lambda: poseidon.join(net, torch.optim.SGD(net.parameters(), .1), mode="local"))
""", r'"[01]\.bias" and "[01]\.bias" are two tensors over one memory.*the same parameter'),
    "another step": ("""
net, optimizer = made()
own = optimizer.step
optimizer.step = lambda: own()
refused(lambda: poseidon.join(net, optimizer, mode="local"))
""", r'the step\(\) of this SGD has been replaced by .*mode="ddp"'),
    "a hook of the optimizer": ("""
net, optimizer = made()
if hasattr(optimizer, "register_step_pre_hook"):
    optimizer.register_step_pre_hook(lambda *_: None)
else:  # as PyTorch 2 keeps it
    optimizer._optimizer_step_pre_hooks = {0: None}
refused(lambda: poseidon.join(net, optimizer, mode="local"))
""", r'the optimizer has a hook for its steps.*mode="ddp"'),
    "a hook that comes later": ("""
net, optimizer = made()
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
if hasattr(optimizer, "register_step_post_hook"):
    optimizer.register_step_post_hook(lambda *_: None)
else:
    optimizer._optimizer_step_post_hooks = {0: None}
refused(lambda: step(net, optimizer))
""", r"the optimizer has a hook for its steps"),
}

# Each prints "fine".
FINE = {
    "a rate in a tensor that is written to": """
net, optimizer = made()
alone = copy.deepcopy(net)
other = torch.optim.SGD(alone.parameters(), .1)
poseidon.join(net, optimizer, mode="local")
for clock in range(4):
    for n, o in (net, optimizer), (alone, other):
        if clock == 1:
            o.param_groups[0]["lr"] = torch.tensor(.1)
        step(n, o)
        if clock > 1:
            o.param_groups[0]["lr"].fill_(.1 * clock)  # the step that is made later keeps its own
assert all(torch.equal(a, b) for a, b in zip(net.parameters(), alone.parameters()))
print("fine", flush=True)
""",
    "an optimizer that nobody knows goes by ddp": """
class Clips(torch.optim.SGD):
    def step(self):
        nn.utils.clip_grad_norm_(self.param_groups[0]["params"], .01)
        super().step()
net, _ = made()
alone = copy.deepcopy(net)
run = poseidon.join(net, Clips(net.parameters(), .1))
assert type(run) is poseidon.Client
for n in net, alone:
    optimizer = Clips(n.parameters(), .1)
    for _ in range(3):
        step(n, optimizer)
assert all(torch.equal(a, b) for a, b in zip(net.parameters(), alone.parameters()))
print("fine", flush=True)
""",
}

TWO = HEAD + """
case = sys.argv[1]
first = "POSEIDON_LISTEN" in os.environ
net, optimizer = made()
if case == "another rate" and not first:
    optimizer = torch.optim.SGD(net.parameters(), .2)
if case == "another optimizer" and not first:
    optimizer = torch.optim.RMSprop(net.parameters(), .1)
if case == "state on one":
    optimizer = torch.optim.Adam(net.parameters(), .1)
    if first:
        step(net, optimizer)
poseidon.join(net, optimizer, mode="local")
for _ in range(3):
    step(net, optimizer)
net(torch.ones(2, 4))
print("trained", flush=True)
"""


class Optimizers(unittest.TestCase):
    def test_alone(self):
        programs.each_is_refused(self, HEAD, ALONE)

    def test_what_works(self):
        programs.each_is_fine(self, HEAD, FINE)

    def test_workers_whose_optimizers_differ(self):
        alike = r'step 0, ".*": workers [01] and [01] have the same learning rate, and another .*on all of them'
        for case, text in (("another rate", r'step 0, ".*": worker [01] has the learning rate 0\.[12], worker [01] 0\.[12]\. .*same schedule'),
                           ("another optimizer", alike), ("state on one", alike)):
            with self.subTest(case), programs.Programs() as c:
                for worker in c.workers(TWO, 2, case):
                    self.assertNotEqual(worker.wait(), 0, worker)
                    self.assertRegex(worker.output, text, worker)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
