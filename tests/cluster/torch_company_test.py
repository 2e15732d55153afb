# tests/cluster/torch_company_test.py - what people put around a model trains the same bits with Poseidon as without it.
"""One worker; the reference is the same script without join(). What a PyTorch does not have yet is left out."""
import unittest

import cluster
import programs

HEAD = """
import sys
import torch
from torch import nn
import poseidon.torch as poseidon
torch.set_num_threads(1)
mode = sys.argv[1]
if not (HAS):
    print("not in this PyTorch", flush=True)
    sys.exit()

def data(clock):
    return torch.randn(7, 4, generator=torch.Generator().manual_seed(clock))

def trained(join):
    torch.manual_seed(1)
    net = made()
    optimizer = torch.optim.Adam(net.parameters(), .01)
    if join:
        with poseidon.join(net, optimizer, mode=mode):
            train(net, optimizer)
    else:
        train(net, optimizer)
    return net

def small():
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))

def plain(net, optimizer, run=None):
    for clock in range(6):
        optimizer.zero_grad()
        out = (run or net)(data(clock))
        (out[0] if isinstance(out, tuple) else out).pow(2).sum().backward()
        optimizer.step()
"""
TAIL = """
alone, joined = trained(False), trained(True)
different = [name for (name, a), b in zip(joined.named_parameters(), alone.parameters()) if not torch.equal(a, b)]
print("different: " + str(different) if different else "equal", flush=True)
"""

# By name: the modes, what PyTorch needs for it, and the functions made() and train().
COMPANY = {
    "weights that other parameters make": (("local", "shards", "ddp"), "True", """
def made():
    return nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(4, 6)), nn.Tanh(), torch.nn.utils.spectral_norm(nn.Linear(6, 3)), nn.LSTM(3, 5))
train = plain
"""),
    "torch.compile": (("local", "shards", "ddp"), 'hasattr(torch, "compile")', """
made = small
def train(net, optimizer):
    plain(net, optimizer, torch.compile(net, backend="eager"))
"""),
    "GradScaler, with a step that it skips": (("ddp",), 'hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler")', """
made = small
def train(net, optimizer):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.)
    for clock in range(6):
        optimizer.zero_grad()
        loss = net(data(clock)).pow(2).sum()
        scaler.scale(loss * (float("inf") if clock == 2 else 1)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), .5)
        scaler.step(optimizer)
        scaler.update()
"""),
    "a rate and a momentum that go around": (("local", "shards", "ddp"), "True", """
made = small
def train(net, optimizer):
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, .1, 12)
    for clock in range(12):
        optimizer.zero_grad()
        net(data(clock)).pow(2).sum().backward()
        optimizer.step()
        schedule.step()
"""),
    "runs one after the other, in turn with no run": (("local", "shards"), "True", """
made = small
def train(net, optimizer):
    plain(net, optimizer)
    if poseidon.Client.current is not None:
        for next_mode in "shards", "local":
            poseidon.leave()
            plain(net, optimizer)
            poseidon.join(net, optimizer, mode=next_mode)
            plain(net, optimizer)
    else:
        for _ in range(4):
            plain(net, optimizer)
"""),
}


class Company(unittest.TestCase):
    def test_it_trains_the_same(self):
        for name, (modes, has, script) in COMPANY.items():
            for mode in modes:
                with self.subTest(name, mode=mode), programs.Programs() as c:
                    (worker,) = c.workers(HEAD.replace("HAS", has) + script + TAIL, 1, mode)
                    self.assertEqual(worker.wait(), 0, worker)
                    self.assertRegex(worker.output, "(?m)^(equal|not in this PyTorch)$", worker)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
