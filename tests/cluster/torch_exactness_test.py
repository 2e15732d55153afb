# tests/cluster/torch_exactness_test.py - N PyTorch workers train what one process trains that adds N micro-batches, bit for bit.
"""Real processes. The reference adds the gradients of all workers' batches in the order of the workers, multiplies them by 1/N
in float32, and steps with torch's own optimizer."""
import unittest

import cluster
import programs

SCRIPT = """
import contextlib, os, sys
import torch, torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
import poseidon.torch as poseidon

case, mode, rule = sys.argv[1:4]
torch.set_num_threads(1)
device = os.environ.get("TEST_DEVICE", "cpu")
torch.backends.cudnn.deterministic = True
CLOCKS = 12

class Net(nn.Module):
    # Convolution, statistics of a batch, a shared weight, a layer that is used now and then, and one that never is.
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 5, 3), nn.BatchNorm2d(5)
        self.a, self.b, self.again = nn.Linear(45, 21), nn.Linear(21, 21), nn.Linear(21, 21)
        self.again.weight = self.b.weight
        self.out, self.extra, self.never = nn.Linear(21, 3), nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x, extra):
        x = F.max_pool2d(torch.relu(self.norm(self.conv(x))), 2).flatten(1)
        if case == "checkpoint":
            x = checkpoint(lambda v: torch.relu(self.a(v)), x, use_reentrant=False)
        else:
            x = torch.relu(self.a(x))
        x = self.out(torch.tanh(self.again(self.b(x))))
        return self.extra(x) if extra else x

def optimizer_of(net):
    p = list(net.parameters())
    groups = [{"params": p[:5], "lr": .02}, {"params": p[5:], "weight_decay": .1}]
    return {"dampening": lambda: torch.optim.SGD(p, .05, .9, dampening=.3, weight_decay=1e-3),
            "decay": lambda: torch.optim.Adam(p, .01, weight_decay=.01), "groups": lambda: torch.optim.AdamW(groups, .01),
            "sgd": lambda: torch.optim.SGD(p, .05), "nesterov": lambda: torch.optim.SGD(p, .05, .9, weight_decay=1e-3, nesterov=True),
            "adam": lambda: torch.optim.Adam(p, .01, amsgrad=True), "adamw": lambda: torch.optim.AdamW(p, .01),
            "rmsprop": lambda: torch.optim.RMSprop(p, .01)}[rule]()

def batches(workers):
    g = torch.Generator().manual_seed(3)
    return [[(torch.randn(6, 1, 8, 8, generator=g).to(device), torch.randint(0, 3, (6,), generator=g).to(device))
             for _ in range(workers)] for _ in range(CLOCKS)]

def uses_extra(clock, worker):  # some of the workers in some clocks, nobody in others
    return clock % 3 == 1 and worker % 2 == 0

def halves(x, y):
    return ((x[:3], y[:3]), (x[3:], y[3:])) if case == "accumulate" else ((x, y),)

def backward(net, x, y, extra):
    for part_x, part_y in halves(x, y):
        F.cross_entropy(net(part_x, extra), part_y).backward()

def clip(net):
    if case == "clip":
        torch.nn.utils.clip_grad_norm_(net.parameters(), .5)

def steps_before(net, optimizer):
    #Some of one process alone, whose state a run begins with.
    if case == "resumed":
        g = torch.Generator().manual_seed(9)
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            backward(net, torch.randn(6, 1, 8, 8, generator=g).to(device), torch.zeros(6, dtype=torch.long, device=device), False)
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)

def one_process(workers):
    torch.manual_seed(1)
    net = Net().to(device)
    optimizer = optimizer_of(net)
    steps_before(net, optimizer)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, .5)
    for clock, of_all in enumerate(batches(workers)):
        sums = {}
        for worker, (x, y) in enumerate(of_all):
            optimizer.zero_grad(set_to_none=True)
            backward(net, x, y, uses_extra(clock, worker))
            for p in net.parameters():
                if p.grad is not None:
                    sums[p] = p.grad if p not in sums else sums[p] + p.grad
        for p in net.parameters():
            p.grad = sums.get(p)
            if p.grad is not None:
                p.grad.mul_(torch.tensor(1 / workers, dtype=torch.float32))
        clip(net)
        optimizer.step()
        schedule.step()
    return net, optimizer

net = Net()  # of another seed on each worker: all take worker 0's
if case == "resumed" or "POSEIDON_JOIN" not in os.environ:
    torch.manual_seed(1)
    net = Net()
net = net.to(device)
optimizer = optimizer_of(net)
steps_before(net, optimizer)
early = torch.optim.lr_scheduler.StepLR(optimizer, 5, .5) if case == "early schedule" else None
average = None
with poseidon.join(net, optimizer, mode=mode):
    schedule = early or torch.optim.lr_scheduler.StepLR(optimizer, 5, .5)
    me, workers = poseidon.rank(), poseidon.size()
    if case == "resumed":  # before any other worker need have begun
        assert len(optimizer.state_dict()["state"]) > 5
    for clock, of_all in enumerate(batches(workers)):
        optimizer.zero_grad(set_to_none=True)
        x, y = of_all[me]
        extra = uses_extra(clock, me)
        if case == "accumulate" and mode == "ddp":
            (first, second) = halves(x, y)
            with poseidon.no_sync():
                F.cross_entropy(net(first[0], extra), first[1]).backward()
            F.cross_entropy(net(second[0], extra), second[1]).backward()
        else:
            backward(net, x, y, extra)
        clip(net)
        optimizer.step()
        schedule.step()
        if case == "state" and me == clock % 3:  # one worker asks, the others know nothing of it
            torch.save(optimizer.state_dict(), __import__("io").BytesIO())
        if case == "early reads":  # an average of the weights, a copy, a norm: each waits for what it reads
            with torch.no_grad():
                now = [p.detach().clone() for p in net.parameters()]
                average = now if average is None else [.9 * a + .1 * n for a, n in zip(average, now)]
            net.state_dict()
wanted, theirs = one_process(workers)
def are_same(a, b):  # the shards step on CPUs, which round otherwise than a GPU
    a, b = torch.as_tensor(a).to(device), torch.as_tensor(b).to(device)
    return torch.allclose(a, b, rtol=1e-4, atol=1e-6) if mode == "shards" and device != "cpu" else torch.equal(a, b)

# The gradient of a bias before a BatchNorm is rounding errors alone. Adam's division makes steps of them, so where roundings differ such a bias does, too.
only_rounding = {"conv.bias"} if mode == "shards" and device != "cpu" and rule.startswith("adam") else set()
names = [name for name, _ in net.named_parameters()]
different = [name for name, a, b in zip(names, net.parameters(), wanted.parameters()) if name not in only_rounding and not are_same(a, b)]
state = optimizer.state_dict()["state"]
for index, other in theirs.state_dict()["state"].items():
    for key, value in other.items():
        if value is not None and names[index] not in only_rounding and not are_same(state[index][key], value):
            different.append(f"state {key} of {names[index]}")
print("equal" if not different else f"different: {different}", type(net.out.weight).__name__, flush=True)
"""


PRETENDED = (cluster.ROOT / "tests/cluster/pretended_cuda.py").read_text() + "install()\n"


def check(test, workers, case, mode, rule, device="cpu"):
    """`device`: of the workers and of the one process, "cpu", "cuda" or "pretended"."""
    script = PRETENDED + SCRIPT if device == "pretended" else SCRIPT
    with test.subTest(workers=workers, case=case, mode=mode, rule=rule, device=device), programs.Programs() as c:
        for worker in c.workers(script, workers, case, mode, rule, env=(("TEST_DEVICE", "cuda" if device == "cuda" else "cpu"),)):
            test.assertEqual(worker.wait(), 0, worker)
            test.assertIn("equal Parameter", worker.output, worker)


class Exactness(unittest.TestCase):
    def check(self, *words):
        check(self, *words)

    def test_local(self):
        for workers in 1, 2, 3:
            self.check(workers, "plain", "local", "nesterov")
        for rule in "sgd", "adam", "adamw", "rmsprop":
            self.check(2, "plain", "local", rule)

    def test_shards(self):
        for workers in 1, 2, 3:
            self.check(workers, "plain", "shards", "nesterov")
        for rule in "sgd", "dampening", "decay", "adamw", "groups":
            self.check(2, "plain", "shards", rule)

    def test_state_on_shards(self):
        self.check(3, "state", "shards", "adamw")
        for rule in "nesterov", "decay":
            self.check(2, "resumed", "shards", rule)

    def test_ddp(self):
        for workers in 1, 2, 3:
            self.check(workers, "clip", "ddp", "nesterov")
        self.check(2, "plain", "ddp", "adam")

    def test_loops_that_are_not_plain(self):
        for case in "accumulate", "checkpoint", "early schedule", "early reads":
            self.check(2, case, "local", "adamw")
            self.check(2, case, "shards", "adamw")
        self.check(2, "accumulate", "ddp", "adamw")


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
