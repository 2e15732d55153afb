# tests/cluster/torch_witness_test.py - a witness in a run of PyTorch scripts: one of two workers goes on where it hears the witness and not the other one.
import signal
import unittest

import cluster
import programs
from elastic_run import Elastic

LIMIT_S = 6  # of silence: a busy machine is not to be taken for a frozen worker


class Witness(Elastic):
    def witness(self, *options):
        """Until the workers know that a former one has gone, they refuse another one."""
        while True:
            witness = self.c.node("--witness", "--join", self.address, *options)
            if witness.wait_for("and this witness votes|is there already")[0] == "and this witness votes":
                return witness
            self.assertEqual(witness.wait(), 2, witness)

    def ended(self, witness):
        self.assertEqual(witness.wait(), 0, witness)
        self.assertIn("the run has ended", witness.output, witness)

    def test_either_of_two_workers_goes_on_without_one_that_is_frozen(self):
        for frozen in 0, 1:
            with self.subTest(frozen=frozen):
                workers = [self.started(1, without=(frozen,), first=first, env={"POSEIDON_SILENCE_LIMIT": LIMIT_S}) for first in (2, 0)]
                workers.sort(key=lambda worker: int(worker.wait_for(r"^seat (\d+)")[1]))
                witness = self.witness("--silence-limit", LIMIT_S)
                workers[frozen].signal(signal.SIGSTOP)
                self.are_equal([workers[1 - frozen]])
                self.ended(witness)
                workers[frozen].kill()
                self.address = self.enterContext(cluster.reserved_address())

    def test_others_join_and_leave_while_it_votes(self):
        workers = self.pair(3, env={"POSEIDON_WEB": "127.0.0.1:0"})
        witness = self.witness()
        page = workers[0].wait_for(r"page at http://(\S+)/")[1]
        listed = ""
        while "1 witness" not in listed:  # who votes may know its view before worker 0's page does
            listed = cluster.run("poseidon-node", "members", "--attach", page).stdout
        self.assertRegex(listed, r"2 nodes and 1 witness, worker 0 leads\nworker 0 .*\nworker 1 .*\nwitness 2 .* votes")
        refused = cluster.run("poseidon-node", "leave", "--at", self.address)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("this node is part of a program, which leaves by itself: a script by poseidon.leave(others_go_on=True)", refused.stderr)
        gone = self.started(3, ends={"me": (2, "after the step", "leave for good")})
        self.assertEqual(gone.wait(), 0, gone)
        workers.append(self.started(3))
        self.are_equal(workers)
        self.ended(witness)

    def test_one_that_dies_or_leaves_costs_nobody_anything(self):
        workers = self.pair(3)
        killed = self.witness()
        killed.kill()
        killed.wait()
        other = self.witness()
        other.signal(signal.SIGTERM)
        self.assertEqual(other.wait(), 143, other)
        self.are_equal([*workers, self.started(3)])

    def test_it_comes_before_the_workers(self):
        first = self.started(3, first=2)
        first.wait_for("listening on")
        witness = self.c.node("--witness", "--join", self.address)
        witness.wait_for("joined as witness|waiting")
        self.are_equal([first, self.started(3), self.started(3)])
        self.ended(witness)

    def test_a_run_that_ends_with_any_loss_has_none(self):
        workers = [self.started(3, state="none", options={"on_loss": "end"}, first=first) for first in (2, 0)]
        for worker in workers:
            worker.wait_for("^trains")
        witness = self.c.node("--witness", "--join", self.address)
        self.assertEqual(witness.wait(), 2, witness)
        self.assertIn("this run has on_loss=end, with which the loss of any worker ends it", witness.output.replace("on-loss", "on_loss"))
        for worker in workers:
            worker.kill()


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
