# tests/cluster/torch_ddp_test.py - a script for DistributedDataParallel, of which one import has changed.
import unittest

import cluster
import programs

SCRIPT = """
import sys
import torch
from torch import nn
from poseidon.torch import DistributedDataParallel as DDP

how = sys.argv[1]
torch.set_num_threads(1)
if how == "process group":
    import torch.distributed as dist
    dist.init_process_group("gloo")

def made():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

def batch(step, worker):
    return torch.randn(5, 6, generator=torch.Generator().manual_seed(100 * step + worker))

def step_of(net, optimizer):
    nn.utils.clip_grad_norm_(net.parameters(), .7)
    optimizer.step()

import poseidon.torch as poseidon
optimizer = None
if how == "with optimizer":
    inside = made()
    optimizer = torch.optim.Adam(inside.parameters(), .01)
    net = DDP(inside, optimizer=optimizer)
else:
    net = DDP(made(), device_ids=None, find_unused_parameters=True, bucket_cap_mb=1)
    optimizer = torch.optim.Adam(net.parameters(), .01)
me, workers = poseidon.rank(), poseidon.size()
assert isinstance(net.module, nn.Sequential) and sorted(net.state_dict())[0] == "module.0.bias"
for step in range(6):
    optimizer.zero_grad(set_to_none=True)
    if step % 2 and how != "with optimizer":
        with net.no_sync():
            net(batch(step, 10 + me)).pow(2).sum().backward()
    net(batch(step, me)).pow(2).sum().backward()
    if how == "with optimizer":
        optimizer.step()
    else:
        step_of(net, optimizer)
values = [p.detach().clone() for p in net.parameters()]

alone = made()
theirs = torch.optim.Adam(alone.parameters(), .01)
for step in range(6):
    sums = {}
    for worker in range(workers):
        theirs.zero_grad(set_to_none=True)
        if step % 2 and how != "with optimizer":
            alone(batch(step, 10 + worker)).pow(2).sum().backward()
        alone(batch(step, worker)).pow(2).sum().backward()
        for p in alone.parameters():
            sums[p] = sums[p] + p.grad if p in sums else p.grad
    for p, g in sums.items():
        p.grad = g * torch.tensor(1 / workers, dtype=torch.float32)
    if how == "with optimizer":
        theirs.step()
    else:
        step_of(alone, theirs)
same = all(torch.equal(a, b) for a, b in zip(values, alone.parameters()))
print("equal" if same else "different", workers, flush=True)
"""


class Ddp(unittest.TestCase):
    def master_port(self):
        """Of PyTorch's own rendezvous; Poseidon's is the one after it."""
        return self.enterContext(cluster.reserved_address(2)).split(":")[1]

    def check(self, how, variables):
        with self.subTest(how), programs.Programs() as c:
            for worker in c.workers(SCRIPT, 2, how, each=variables):
                self.assertEqual(worker.wait(), 0, worker)
                self.assertIn("equal 2", worker.output, worker)

    def test_world_from_poseidons_variables(self):
        self.check("plain", lambda place: {})
        self.check("with optimizer", lambda place: {})

    def test_world_from_torchruns_variables_and_from_a_process_group(self):
        for how in "torchrun", "process group":
            port = self.master_port()
            self.check(how, lambda place, port=port: {
                "POSEIDON_LISTEN": "", "POSEIDON_NODES": "", "POSEIDON_JOIN": "", "RANK": place, "WORLD_SIZE": 2,
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo", "USE_LIBUV": 0})

    def test_the_example(self):
        port = self.master_port()
        with programs.Programs() as c:
            started = c.workers((cluster.ROOT / "examples/torch_ddp.py").read_text(), 2, each=lambda place: {
                "POSEIDON_LISTEN": "", "POSEIDON_NODES": "", "POSEIDON_JOIN": "", "RANK": place, "WORLD_SIZE": 2,
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo", "USE_LIBUV": 0})
            for worker in started:
                self.assertEqual(worker.wait(), 0, worker)
            self.assertRegex(started[0].output, r"loss 0\.\d+ \['module\.0\.bias'", started[0])


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
