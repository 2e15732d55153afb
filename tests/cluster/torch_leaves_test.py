# tests/cluster/torch_leaves_test.py - workers leave a PyTorch script that trains on, and others come in their place: what they have trained counts.
import signal
import unittest

import cluster
import programs
from elastic_run import Elastic

LEAVES = "after the step", "leave for good"


class Leaves(Elastic):
    whole_ends = True

    def left(self, worker):
        self.assertEqual(worker.wait(), 0, worker)
        self.assertIn("left", worker.lines, worker)

    def three(self, wanted, leave, **more):
        """By seat. Those that are to leave do so after step 5."""
        ends = {seat: (5, *LEAVES) for seat in leave}
        workers = [self.started(wanted, first=3 if place == 0 else 0, ends=ends, **more) for place in range(3)]
        return sorted(workers, key=lambda worker: int(worker.wait_for(r"^seat (\d+)")[1]))

    def test_one_of_three(self):
        for seat in range(3):
            with self.subTest(seat=seat):
                workers = self.three(2, [seat])
                self.left(workers.pop(seat))
                self.are_equal(workers)
                for worker in workers:
                    self.assertIn(f"poseidon: worker {seat} is gone: 2 workers go on, from step 6 on", worker.output, worker)
                    self.assertRegex(worker.output, rf"(?m)^change \(6, [01], 2, 3, \({seat},\), \(\)\) in step 6$", worker)

    def test_two_at_once_and_one_goes_on_alone(self):
        workers = self.three(1, [0, 2])
        self.left(workers.pop(2))
        self.left(workers.pop(0))
        self.are_equal(workers)

    def test_all_leave_after_the_same_step(self):
        for worker in self.three(1, [0, 1, 2]):
            self.left(worker)

    def test_one_leaves_and_comes_back(self):
        more = {"without": (0,), "ends": {0: (4, *LEAVES)}}
        first, second = self.started(2, first=2, **more), self.started(2, **more)
        self.left(first)
        at = second.wait_for(r"this worker listens on (\S+)")[1]
        self.are_equal([second, self.started(2, env={"POSEIDON_JOIN": f"{self.address},{at}"}, without=(0,))])

    def test_the_same_command_begins_and_comes_back(self):
        there = self.enterContext(cluster.reserved_address())
        commands = ({"POSEIDON_JOIN": there}, {"POSEIDON_LISTEN": there, "POSEIDON_NODES": "", "POSEIDON_JOIN": self.address})
        first, second = (self.started(2, first=1, env=env, without=(0,)) for env in commands)
        second.wait_for("^trains")
        first.kill()
        first.wait()
        again = self.started(2, first=1, env=commands[0], without=(0,))
        self.are_equal([second, again])
        self.assertIn("nobody at join is in a run: this worker begins it", first.output, first)
        self.assertIn(f"the worker at {there} is in a run: this worker joins it", again.output, again)
        self.assertIn(f"this worker listens on {there}", second.output, second)

    def test_a_script_that_runs_alone(self):
        (worker,) = self.c.workers("""
import torch
import poseidon.torch as poseidon
net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), .1)
poseidon.join(net, optimizer, state=[])
poseidon.on_change(print)
net(torch.ones(1, 2)).sum().backward()
optimizer.step()
poseidon.leave(others_go_on=True)
print("left", flush=True)
""", 1)
        self.left(worker)

    def test_the_others_cannot_go_on(self):
        workers = self.three(2, [1], state="none", options={"on_loss": "end"})
        for worker in workers:
            self.assertEqual(worker.wait(), 1, worker)
        self.assertRegex(workers[1].output, r"PoseidonError: .*in this run \(on_loss=end\) they cannot go on without it", workers[1])


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
