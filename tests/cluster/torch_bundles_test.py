# tests/cluster/torch_bundles_test.py - small parameters travel together in modes ddp and local, and train what one process trains, bit for bit.
"""Real processes. The reference is torch_exactness_test's: it adds the gradients of all workers in their order, and multiplies by 1/N in
float32. Some parameters have a gradient on one worker only, in some clocks only, or never; some gradients are -0.0."""
import itertools
import unittest

import cluster
import programs

SCRIPT = """
import os, sys
import torch
from torch import nn
import poseidon.torch as poseidon

case, mode = sys.argv[1:]
torch.set_num_threads(1)
CLOCKS = 6

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.randn(3, 1 + i % 5)) for i in range(30)])
        self.large = nn.Linear(40, 30)
        self.last = nn.ParameterList([nn.Parameter(torch.randn(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)) for _ in range(6)])
        if case == "another model" and "POSEIDON_JOIN" in os.environ:
            self.scales[7] = nn.Parameter(torch.randn(4, 3))
        if case == "another order" and "POSEIDON_JOIN" in os.environ:
            self.last[2] = nn.Parameter(torch.randn(2, 3, 2, 2))
        if case == "another order of a large one" and "POSEIDON_JOIN" in os.environ:
            self.large.weight = nn.Parameter(torch.randn(40, 30).t())

    def loss(self, clock, worker):
        g = torch.Generator().manual_seed(100 * clock + worker)
        parts = [self.large(torch.randn(2, 40, generator=g)).pow(2).sum()]
        for i, p in enumerate(self.scales):
            if i % 7 == 3 or (i % 7 == 4 and worker != 1) or (i % 7 == 5 and clock % 2):
                continue  # never, on worker 1 only, in every second clock
            if i % 7 == 4:
                parts.append((p * -0.0).sum())
                continue
            parts.append((p * torch.randn(p.shape, generator=g)).pow(3).sum())
        return torch.stack(parts + [p.pow(2).sum() * (worker + clock) for p in self.last]).sum()

def optimizer_of(net):
    # Two groups, which step otherwise.
    own = list(net.parameters())
    return torch.optim.Adam([{"params": own[:20]}, {"params": own[20:], "lr": .02, "weight_decay": .1}], .01)

def gradients(net, keep, clock, worker):
    if not keep:
        net.zero_grad(set_to_none=True)
    net.loss(clock, worker).backward()

def one_process(workers):
    torch.manual_seed(1)
    net = Net()
    optimizer = optimizer_of(net)
    seen = []
    for clock in range(CLOCKS):
        sums = {}
        for worker in range(workers):
            gradients(net, False, clock, worker)
            for name, p in net.named_parameters():
                if p.grad is not None:
                    sums[name] = sums[name] + p.grad if name in sums else p.grad.clone()
        for name, p in net.named_parameters():
            p.grad = sums[name].mul_(torch.tensor(1 / workers, dtype=torch.float32)) if name in sums else None
        optimizer.step()
        seen.append({name: None if p.grad is None else p.grad.clone() for name, p in net.named_parameters()})
    return net, seen

torch.manual_seed(1 if "POSEIDON_JOIN" not in os.environ else 2)
net = Net()
optimizer = optimizer_of(net)
different, kept = [], []
with poseidon.join(net, optimizer, mode=mode):
    me, workers = poseidon.rank(), poseidon.size()
    wanted, seen = one_process(workers)
    for clock in range(CLOCKS):
        gradients(net, False, clock, me)
        if mode == "local":  # .grad is on its way, and refuses to be read
            optimizer.step()
            if clock == 2:  # between steps values are those of one process, whoever reads them
                poseidon.synchronize()
            continue
        for name, p in net.named_parameters():
            a, b = p.grad, seen[clock][name]
            bits = lambda t: None if t is None else t.contiguous().view(torch.int32).tolist()
            if bits(a) != bits(b):
                different.append((clock, name))
        kept.append([None if p.grad is None else (p.grad, p.grad.clone()) for p in net.parameters()])  # a script's own: nobody writes to it later
        optimizer.step()
    together = sum(b is not None for b in poseidon.client.Client.current.declared.bundles) if hasattr(poseidon, "client") else 0
different += [name for (name, a), b in zip(net.named_parameters(), wanted.parameters()) if not torch.equal(a, b)]
different += ["a kept gradient" for of in kept for pair in of if pair is not None and not torch.equal(*pair)]
print(f"equal, {together} bundles" if not different else f"different: {different}", flush=True)
"""

# Memory for a gradient is given again when nothing lies in it any more: no tensor, no view, no NumPy array.
PIECES = """
import torch
from poseidon.torch.means import Pieces

pieces = Pieces(torch.nn.Parameter(torch.zeros(30, 20).t()))
a = pieces.take()
at = a.data_ptr()
assert at % 64 == 0 and a.stride() == (1, 20) and a.shape == (20, 30)
seen = a.numpy()
del a
b = pieces.take()
assert b.data_ptr() != at  # NumPy still looks at the first one
del seen
view = b[3:]
del b
c = pieces.take()
assert c.data_ptr() == at
assert pieces.take().data_ptr() not in (at, view.data_ptr() - 12)  # three rows are 12 bytes on: the first stride is 1
print("fine", flush=True)
"""

PRETENDED = (cluster.ROOT / "tests/cluster/pretended_cuda.py").read_text() + "install()\n"


class Bundles(unittest.TestCase):
    def test_they_train_what_one_process_trains(self):
        for mode, workers, head in itertools.product(("ddp", "local"), (1, 2, 3), ("", PRETENDED)):
            if head and workers != 2:
                continue
            with self.subTest(mode=mode, workers=workers, pretended=bool(head)), programs.Programs() as c:
                for worker in c.workers(head + SCRIPT, workers, "plain", mode):
                    self.assertEqual(worker.wait(), 0, worker)
                    # In mode local a group says how its members are stepped: each has a bundle of its own.
                    self.assertIn(f"equal, {1 if mode == 'ddp' else 2} bundles", worker.output, worker)

    def test_memory_is_given_again_when_nobody_looks_at_it(self):
        with programs.Programs() as c:
            (worker,) = c.workers(PIECES, 1)
            self.assertEqual(worker.wait(), 0, worker)
            self.assertIn("fine", worker.output, worker)

    def test_another_model_is_refused_by_the_parameters_name(self):
        for case, text in (("another model", '"scales.7 [3x3]" on worker 0 and "scales.7 [4x3]" here'),
                           # Values travel in the order of the memory: they would be others here.
                           ("another order", '"last.2 (channels_last) [2x3x2x2]" on worker 0 and "last.2 [2x3x2x2]" here'),
                           ("another order of a large one",
                            '"large.weight" 30x40 on worker 0 and "large.weight (in memory by axes 1 0)" 40x30 here')):
            with self.subTest(case), programs.Programs() as c:
                for worker in c.workers(SCRIPT, 2, case, "ddp"):
                    self.assertNotEqual(worker.wait(), 0, worker)
                    self.assertIn(text, worker.output, worker)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
