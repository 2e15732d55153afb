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
        workers = self.pair(4)
        for _ in range(2):
            workers.append(self.started(4))
            workers[-1].wait_for("^trains")
        self.are_equal(workers)
        self.assertRegex("\n".join(workers[0].errors), r"poseidon: worker \d+ joined: 3 workers go on, from step \d+ on")
        self.assertRegex(workers[0].output, r"(?m)^change \(\d+, 0, 3, 2, \(\), \(\d+,\)\) in step")

    def test_three_join_at_once(self):
        self.are_equal([*self.pair(5), *(self.started(5) for _ in range(3))])

    def test_one_joins_a_run_that_begins_with_one_worker(self):
        first = self.started(2, first=1)
        first.wait_for("^trains")
        self.are_equal([first, self.started(2)])

    def test_distributed_data_parallel(self):
        options = {"ddp": True}
        self.are_equal([*self.pair(3, options=options), self.started(3, options=options)])

    def test_the_first_worker_dies_and_another_one_comes(self):
        more = {"without": (0,), "ends": {0: (3, "after the step", KILL)}}
        first, second = self.started(2, first=2, **more), self.started(2, **more)
        self.assertEqual(first.wait(), -KILL, first)
        second.wait_for("^trains")
        at = re.search(r"this worker listens on (\S+)", "\n".join(second.errors))[1]
        self.are_equal([second, self.started(2, env={"POSEIDON_JOIN": f"{self.address},{at}"}, without=(0,))])

    def test_one_that_joined_dies(self):
        workers = self.pair(3)
        gone = self.started(3, ends={"me": (4, "after the step", KILL)})
        self.assertEqual(gone.wait(), -KILL, gone)
        self.are_equal([*workers, self.started(3)])

    def test_what_is_refused(self):
        refusals = {"less": r"StepLR.*on worker 0.*Progress", "none": r"state=\[\.\.\.\], and this one with no state"}
        workers = self.pair(3)
        for state, text in refusals.items():
            with self.subTest(state=state):
                other = self.started(3, state=state)
                self.assertEqual(other.wait(), 3, other)
                self.assertRegex(other.output, "refused: .*" + text, other)
        self.are_equal([*workers, self.started(3)])

    def test_newcomers_that_fail_end_nobody_else(self):
        workers = self.pair(3)
        for other in [self.started(3, ends={"me": (1, "after the step", "raise")}) for _ in range(3)]:
            self.assertEqual(other.wait(), 1, other)
            self.assertIn("ValueError: no more pictures", other.output, other)
        self.are_equal([*workers, self.started(3)])

    def test_nobody_joins_a_script_without_state(self):
        workers = self.pair(3, state="none")
        other = self.started(3, state="none")
        self.assertEqual(other.wait(), 3, other)
        self.assertRegex(other.output, r"refused: .*without state=\[\.\.\.\]", other)
        for worker in workers:
            worker.kill()


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
