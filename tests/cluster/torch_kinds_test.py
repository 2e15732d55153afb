# tests/cluster/torch_kinds_test.py - PyTorch scripts whose workers round otherwise are told so when they join.
import unittest

import cluster
import programs

SCRIPT = """
import os
import torch
torch.set_num_threads(int(os.environ["THREADS"]))  # PyTorch may have been imported before these variables were set
import poseidon.torch as poseidon
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
poseidon.join(model, optimizer)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
poseidon.leave()
print("trained", flush=True)
"""
LINE = "poseidon: results: not bit-equal to one process: "


class TorchKinds(unittest.TestCase):
    def lines(self, each):
        """What each of two workers says of its results."""
        with programs.Programs() as c:
            workers = c.workers(SCRIPT, 2, each=each)
            for worker in workers:
                self.assertEqual(worker.wait(), 0, worker)
                self.assertIn("trained", worker.output, worker)
            return [[line for line in worker.lines if "results: " in line] for worker in workers]

    def test_workers_of_one_kind_are_told_nothing(self):
        self.assertEqual(self.lines(lambda place: {"THREADS": 1}), [[], []])

    def test_another_number_of_threads_is_named_with_both_values(self):
        line = LINE + "PyTorch's threads are 1 on worker 0, 2 on worker 1"
        self.assertEqual(self.lines(lambda place: {"THREADS": place + 1}), [[line], [line]])

    def test_other_kernels_are_named_with_both_values(self):
        said = self.lines(lambda place: {"THREADS": 1, "ATEN_CPU_CAPABILITY": ("default", "avx2")[place]})
        self.assertEqual(said[0], said[1])
        (line,) = said[0]
        self.assertRegex(line, LINE + r"PyTorch's kernels are .* on worker 0, AVX2 on worker 1$")


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
