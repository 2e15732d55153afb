# tests/cluster/torch_factors_test.py - sufficient factors of nn.Linear under PyTorch: within 1e-5 of one process that adds the micro-batches.
"""Real processes on one machine, so they are told `routes=sfb`. After the clocks in which the client looks, all gradients of Linears go as
factors that can."""
import unittest

import cluster
import programs

SCRIPT = """
import copy, hashlib, io, sys
import torch, torch.nn.functional as F
from torch import nn
import poseidon.torch as poseidon

case, mode, rule = sys.argv[1:4]
torch.set_num_threads(1)
CLOCKS = 14

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 5, 3), nn.BatchNorm2d(5)
        self.first = nn.Linear(45, 24)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)  # reads its Linear's weight itself
        self.tokens = nn.Linear(8, 8, bias=False)  # of three dimensions
        self.tied, self.again = nn.Linear(24, 24), nn.Linear(24, 24)
        self.again.weight = self.tied.weight
        self.twice = nn.Linear(24, 24)
        self.sometimes, self.out, self.late = nn.Linear(24, 24), nn.Linear(24, 3), nn.Linear(3, 3)

    def forward(self, x, clock, worker):
        x = F.max_pool2d(torch.relu(self.norm(self.conv(x))), 2).flatten(1)
        x = torch.relu(self.first(x)).view(-1, 3, 8)
        x = x + self.tokens(self.attention(x, x, x)[0])
        x = self.again(torch.tanh(self.tied(x.flatten(1))))
        x = self.twice(torch.tanh(self.twice(x)))
        # From clock 6 on now and then by some workers, or by none.
        if clock < 6 or clock % 3 == 0 and worker % 2 == 0:
            x = x + self.sometimes(x)
        x = self.out(x)
        return self.late(x) if clock > 8 else x  # no clock in which the client looked has reached it

def optimizer_of(net):
    p = net.parameters()
    return torch.optim.SGD(p, .05, .9, weight_decay=1e-3) if rule == "sgd" else torch.optim.Adam(p, .01, eps=1e-4)

def batches(workers):
    g = torch.Generator().manual_seed(3)
    # The last one is smaller, as a loader's is without drop_last.
    return [[(torch.randn(n, 1, 8, 8, generator=g), torch.randint(0, 3, (n,), generator=g)) for _ in range(workers)]
            for n in [6] * (CLOCKS - 1) + [4]]

def one_process(workers):
    torch.manual_seed(1)
    net = Net()
    optimizer = optimizer_of(net)
    for clock, of_all in enumerate(batches(workers)):
        sums = {}
        for worker, (x, y) in enumerate(of_all):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(net(x, clock, worker), y).backward()
            for p in net.parameters():
                if p.grad is not None:
                    sums[p] = p.grad if p not in sums else sums[p] + p.grad
        for p in net.parameters():
            p.grad = sums[p] * (1 / workers) if p in sums else None
        optimizer.step()
    return net

torch.manual_seed(1)
net = Net()
optimizer = optimizer_of(net)
used = set()
with poseidon.join(net, optimizer, mode=mode) as run:
    names = dict(net.named_parameters())
    for clock, of_all in enumerate(batches(run.size)):
        optimizer.zero_grad(set_to_none=clock != 6)  # before this one there are zeros to add to
        x, y = of_all[run.rank]
        if case == "larger" and clock == 8:
            x, y = torch.cat([x, x]), torch.cat([y, y])
        if clock == 9:  # others use the model in between
            same = copy.deepcopy(net).eval()
            file = io.BytesIO()
            torch.save(net, file)
            loaded = torch.load(io.BytesIO(file.getvalue()), weights_only=False).eval()
            with torch.no_grad():
                now = net.eval()(x, clock, run.rank)
                assert torch.equal(same(x, clock, run.rank), now) and torch.equal(loaded(x, clock, run.rank), now)
            assert b"_Forward" not in file.getvalue() and loaded.first.forward.__func__ is nn.Linear.forward
            net.train()
            # A backward pass that wants no weight's gradient.
            net.norm.track_running_stats = False
            wanted = x.clone().requires_grad_()
            torch.autograd.grad(net(wanted, clock, run.rank).sum(), wanted)
            net.norm.track_running_stats = True
        with torch.autocast("cpu", torch.bfloat16, enabled=case == "autocast" and clock == 8):  # its layers give whole gradients
            loss = F.cross_entropy(net(x, clock, run.rank), y)
        if case == "another way" and clock == 8:
            loss = loss + net.first.weight.norm()
        if case == "no_sync" and clock == 8:
            with poseidon.no_sync():
                loss.backward()
        loss.backward()
        used |= {run.names[i] for i in range(len(run.names)) if run.factors and run.factors.on_factors(i)}
        optimizer.step()
wanted = one_process(run.size)
far = {name: float((a - b).detach().abs().max() / b.detach().abs().max())
       for (name, a), b in zip(net.named_parameters(), wanted.parameters())}
bits = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest()[:16]
print("bits", bits, "by factors", sorted(used), "right" if max(far.values()) < 1e-5 else f"wrong: {far}",
      "patched" if any("forward" in m.__dict__ for m in net.modules()) else "restored", flush=True)
"""

BY_FACTORS = "by factors ['first.weight', 'out.weight', 'sometimes.weight', 'tokens.weight'] right restored"


class Factors(unittest.TestCase):
    def train(self, c, number, *words, env=(("POSEIDON_ROUTES", "sfb"),)):
        """Their lines, which begin with the bits of all parameters; all of them train the same."""
        lines = set()
        for worker in c.workers(SCRIPT, number, *words, env=env):
            self.assertEqual(worker.wait(), 0, worker)
            lines.update(line for line in worker.output.splitlines() if line.startswith("bits "))  # warnings come among them
        self.assertEqual(len(lines), 1, lines)
        return lines.pop()

    def test_they_train_the_same_net(self):
        for mode in "local", "shards", "ddp":
            for number, rule in (2, "sgd"), (3, "adam"):
                with self.subTest(mode=mode, number=number, rule=rule), programs.Programs() as c:
                    self.assertIn(BY_FACTORS, self.train(c, number, "plain", mode, rule))

    def test_without_need_there_are_none(self):
        alone, kept = (("POSEIDON_ROUTES", "sfb"),), (("POSEIDON_ROUTES", "auto"),)
        for number, env in (1, alone), (2, kept), (2, (("POSEIDON_ROUTES", "ps"),)):
            with self.subTest(number=number, env=env), programs.Programs() as c:
                self.assertIn("by factors [] right restored", self.train(c, number, "plain", "local", "sgd", env=env))

    def test_what_they_cannot_do_is_refused(self):
        for case, mode, text in (("larger", "local", "have 12 rows in step 8, at most 6 were offered"),
                                 ("another way", "local", '"first.weight" goes as factors, and a backward pass has reached it by another way'),
                                 ("autocast", "local", "goes as factors, and a backward pass has reached it by another way"),
                                 ("autocast", "ddp", "goes as factors, and a backward pass has reached it by another way"),
                                 ("no_sync", "local", "goes as factors, and is reached in no_sync()")):
            with self.subTest(case=case, mode=mode), programs.Programs() as c:
                for worker in c.workers(SCRIPT, 2, case, mode, "sgd", env=(("POSEIDON_ROUTES", "sfb"),)):
                    self.assertNotEqual(worker.wait(), 0, worker)
                    self.assertIn(text, worker.output, worker)
                    self.assertIn('routes="ps"' if case != "larger" else "routes=ps", worker.output, worker)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
