# tests/cluster/torch_joins_test.py - workers join a PyTorch script that trains: they have what the others have, and what all train from then on is
# what one process trains that adds, at each step, the gradients of those that were there.
import re
import signal
import unittest

import cluster
import programs
from elastic_run import Elastic

KILL = int(signal.SIGKILL)


class Joins(Elastic):
    def test_one_joins_two_and_another_one_joins_these(self):
        wanted = (0, 1, 2, 3)
        workers = self.pair(wanted)
        for seat in 2, 3:
            workers.append(self.started(wanted))
            workers[-1].wait_for("^trains")
        self.are_equal(workers, wanted)
        self.assertRegex("\n".join(workers[0].errors), r"poseidon: worker 2 joined: 3 workers go on, from step \d+ on")
        self.assertRegex(workers[0].output, r"(?m)^change \(\d+, 0, 3, 2, \(\), \(2,\)\) in step")

    def test_three_join_at_once(self):
        wanted = (0, 1, 2, 3, 4)
        workers = self.pair(wanted)
        workers += [self.started(wanted) for _ in range(3)]
        self.are_equal(workers, wanted)

    def test_one_joins_a_run_that_begins_with_one_worker(self):
        wanted = (0, 1)
        first = self.started(wanted, first=1)
        first.wait_for("^trains")
        self.are_equal([first, self.started(wanted)], wanted)

    def test_distributed_data_parallel(self):
        wanted = (0, 1, 2)
        workers = self.pair(wanted, options={"ddp": True})
        self.are_equal([*workers, self.started(wanted, options={"ddp": True})], wanted)

    def test_the_first_worker_dies_and_another_one_comes(self):
        wanted = (1, 2)
        ends = {0: (3, "after the step", KILL)}
        first, second = self.started(wanted, first=2, ends=ends), self.started(wanted, ends=ends)
        self.assertEqual(first.wait(), -KILL, first)
        second.wait_for("^trains")
        at = re.search(r"this node listens on (\S+)", "\n".join(second.errors))[1]
        self.are_equal([second, self.started(wanted, ends=ends, env={"POSEIDON_JOIN": f"{self.address},{at}"})], wanted)

    def test_one_that_joined_dies(self):
        wanted = (0, 1, 3)
        ends = {2: (4, "after the step", KILL)}
        workers = self.pair(wanted, ends=ends)
        gone = self.started(wanted, ends=ends)
        self.assertEqual(gone.wait(), -KILL, gone)
        self.are_equal([*workers, self.started(wanted, ends=ends)], wanted)

    def test_what_is_refused(self):
        refusals = {"less": r"StepLR.*on worker 0.*Progress", "none": r"state=\[\.\.\.\], and this one with no state"}
        wanted = (0, 1, 4)  # these have got numbers, too
        workers = self.pair(wanted)
        for state, text in refusals.items():
            with self.subTest(state=state):
                other = self.started(wanted, state=state)
                self.assertEqual(other.wait(), 3, other)
                self.assertRegex(other.output, "refused: .*" + text, other)
        self.are_equal([*workers, self.started(wanted)], wanted)

    def test_newcomers_that_fail_end_nobody_else(self):
        wanted = (0, 1, 5)
        ends = {seat: (1, "after the step", "raise") for seat in (2, 3, 4)}
        workers = self.pair(wanted, ends=ends)
        for other in [self.started(wanted, ends=ends) for _ in ends]:
            self.assertEqual(other.wait(), 1, other)
            self.assertIn("ValueError: no more pictures", other.output, other)
        self.are_equal([*workers, self.started(wanted, ends=ends)], wanted)

    def test_nobody_joins_a_script_without_state(self):
        wanted = (0, 1, 2)
        workers = self.pair(wanted, state="none")
        other = self.started(wanted, state="none")
        self.assertEqual(other.wait(), 3, other)
        self.assertRegex(other.output, r"refused: .*without state=\[\.\.\.\]", other)
        for worker in workers:
            worker.kill()


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
