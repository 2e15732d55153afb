# tests/cluster/torch_uneven_test.py - DistributedDataParallel.join(): workers with different numbers of batches.
import unittest

import cluster
import programs
from torch_wire_test import HEAD

SCRIPT = HEAD + """
made = Net()
net = poseidon.DistributedDataParallel(made)
me, workers = poseidon.rank(), poseidon.size()
if form != "float32":
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, quantization_hooks
    net.register_comm_hook(None, default_hooks.bf16_compress_hook if form == "bfloat16" else quantization_hooks.quantization_pertensor_hook)
optimizer = torch.optim.SGD(net.parameters(), .3, momentum=.9)
BATCHES = {2: (5, 3), 3: (2, 6, 6)}[workers]
for epoch in range(2):
    with net.join():
        for step in range(BATCHES[me]):
            optimizer.zero_grad(set_to_none=True)
            loss(net, 10 * epoch + step, me).backward()
            optimizer.step()
    optimizer = torch.optim.SGD(net.parameters(), .3, momentum=.9)  # a worker that has made fewer steps has another state
values = [p.detach().clone() for p in net.parameters()]

alone = Net()
for epoch in range(2):
    theirs = torch.optim.SGD(alone.parameters(), .3, momentum=.9)
    for step in range(max(BATCHES)):
        there = {p: [] for p in alone.parameters()}
        for worker in range(workers):
            if step < BATCHES[worker]:
                theirs.zero_grad(set_to_none=True)
                loss(alone, 10 * epoch + step, worker).backward()
                for p in there:
                    if p.grad is not None:
                        there[p].append(cast(p.grad))
        for p, parts in there.items():
            p.grad = cast(sum(parts[1:], parts[0]) * torch.tensor(1 / workers, dtype=torch.float32)) if parts else None
        theirs.step()
same = all(torch.equal(a, b) for a, b in zip(values, alone.parameters()))
print("equal" if same else "different", workers, flush=True)
"""

REFUSED = HEAD + """
net = poseidon.DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)))
refused(net.join().__enter__)
refused(lambda: net.join(divide_by_initial_world_size=False))
refused(lambda: net.join(throw_on_early_termination=True))
refused(lambda: net.join_hook())
with net.join(enable=False):
    print("fine", flush=True)
"""


class Uneven(unittest.TestCase):
    def test_all_end_with_the_parameters_of_one_that_had_the_most_batches(self):
        for form, number in ("float32", 2), ("float32", 3), ("bfloat16", 3), ("int8", 3):
            with self.subTest(f"{form} {number}"), programs.Programs(whole_ends=True) as c:  # without leave()
                for worker in c.workers(SCRIPT, number, "ddp", form):
                    self.assertEqual(worker.wait(), 0, worker)
                    self.assertIn(f"equal {number}", worker.output, worker)

    def test_what_it_cannot_do(self):
        with programs.Programs() as c:
            for worker in c.workers(REFUSED, 2, "ddp", "float32"):
                self.assertEqual(worker.wait(), 0, worker)
                self.assertRegex(worker.output, r"(?s)join\(\): the model has buffers.*join\(divide_by_initial_world_size=False\).*"
                                 r"join\(throw_on_early_termination=True\).*join_hook.*fine", worker)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
