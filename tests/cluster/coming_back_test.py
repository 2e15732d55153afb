# tests/cluster/coming_back_test.py - a node that died comes back with the command that had started it, the first one too.
import re
import signal
import unittest

import cluster
import small_run


class ComingBack(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.solver = small_run.solver(self.cluster.folder, "s", iterations=cluster.ENDLESS)
        self.at = [self.enterContext(cluster.reserved_address()) for _ in range(3)]

    def first(self, *words):
        """The command of the node that begins the run."""
        return self.cluster.node("--solver", self.solver, "--listen", self.at[0], "--nodes", 3, "--survive", 1, "--routes", "ps",
                                 "--join", ",".join(self.at[1:]), "--devices", "cpu:1", *words)

    def other(self, number):
        return self.cluster.node("--join", ",".join(a for i, a in reversed(list(enumerate(self.at))) if i != number),
                                 "--listen", self.at[number], "--devices", "cpu:1")

    def run_of_three(self):
        first = self.first()
        first.wait_for("^no node at --join is in a run: this node begins it")
        first.wait_for("^listening on")
        others = [self.other(1), self.other(2)]
        first.wait_for("^iteration 3/")
        return first, *others

    def test_the_first_node_joins_those_that_have_gone_on_without_it(self):
        first, one, two = self.run_of_three()
        first.kill()
        one.wait_for("^view 2: worker 0 .* lost; 2 nodes train")
        again = self.first()
        again.wait_for("^the node at .* is in a run: this node joins it")
        again.wait_for(f"^joined: worker 3 of 3, .* listens on {self.at[0]}$")
        one.wait_for(r"^view \d+: worker 3 .* joined; 3 nodes train")
        # From now on it is a node like the others: another one that dies comes back at it.
        seat = two.wait_for(r"^joined: worker (\d) of 3")[1]  # the two may have come in any order
        two.kill()
        one.wait_for(rf"^view \d+: worker {seat} .* lost; 2 nodes train")
        self.other(2).wait_for(f"^joined: worker 4 of 3, .* listens on {self.at[2]}$")

    def test_where_all_have_died_it_begins_again_from_the_newest_snapshot(self):
        nodes = self.run_of_three()
        nodes[0].signal(signal.SIGHUP)
        nodes[0].wait_for("^snapshot ")
        for node in nodes:
            node.kill()
        again = self.first("--resume", "auto")
        again.wait_for("^no node at --join is in a run: this node begins it")
        again.wait_for(r"^resuming from .*_iter_\d+\.solverstate")
        again.wait_for("^listening on")
        self.other(1), self.other(2)
        again.wait_for("^view 1: 3 nodes train")

    def test_a_joiner_listens_where_it_is_told_to(self):
        _, one, two = self.run_of_three()
        one.wait_for(f"^joined: worker [12] of 3; this node listens on {self.at[1]}$")
        two.wait_for(f"^joined: worker [12] of 3; this node listens on {self.at[2]}$")

    def test_what_does_not_go_together_is_refused(self):
        node = self.cluster.node("--solver", self.solver, "--join", self.at[1])
        self.assertEqual(node.wait(), 2)
        self.assertRegex(node.output, "--join and --solver together need --listen HOST:PORT: ")

    def test_a_run_with_another_token_is_an_error_and_not_a_reason_to_begin_one(self):
        token = self.cluster.token_file()
        other = self.cluster.folder / "other"
        other.write_text("f" * 64 + "\n")
        run = self.cluster.node("--solver", self.solver, "--listen", self.at[1], "--nodes", 1, "--token-file", token)
        run.wait_for("^iteration 2/")
        node = self.cluster.node("--solver", self.solver, "--listen", self.at[0], "--join", self.at[1], "--token-file", other)
        self.assertEqual(node.wait(), 2, node.output)
        self.assertIn("token", node.output)
        self.assertFalse(re.search("begins it", node.output))


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
