# tests/cluster/churn_test.py - the short form of tools/bench/churn: nodes are lost and come back for 40 seconds, and no bit is lost.
import os
import subprocess
import sys
import unittest

import cluster

sys.path.insert(0, str(cluster.ROOT / "tools/bench/lib"))

import churn_figures  # noqa: E402

CHURN = cluster.ROOT / "tools/bench/churn"


class Churn(unittest.TestCase):
    def churn(self, *words):
        return subprocess.run([sys.executable, "-B", CHURN, *words], capture_output=True, text=True, timeout=700 * cluster.SLACK)

    def test_forty_seconds_of_faults_end_with_the_bits_of_the_chain_of_views(self):
        cables = ["--kinds", "kill,freeze,cut,silence,leave"] if os.geteuid() == 0 else ["--kinds", "kill,freeze,leave", "--loopback"]
        words = ["--nodes", "4", "--minutes", "0.67", "--every", "6", "--seed", "3", "--link-mbit", "20"]
        done = self.churn(*words, *cables)
        if done.returncode == 2 and cables[-1] != "--loopback":  # root, and yet no namespaces
            done = self.churn(*words, "--kinds", "kill,freeze,leave", "--loopback")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"the same bits as the chain of \d+ views")

    def test_what_a_loss_costs_is_what_passes_between_the_iterations_that_count(self):
        class Told:
            views = {1: (0.0, 0, [0, 1, 2]), 2: (6.5, 5, [0, 1])}
            steps = [(1.0, 0), (2.0, 1), (3.0, 2), (4.0, 3), (5.0, 4), (6.0, 5), (7.5, 5), (8.5, 6)]
        self.assertEqual(churn_figures.iteration_seconds(Told.steps), 1.0)
        self.assertEqual(churn_figures.lost_seconds(Told, 2, 1.0), 1.5)  # iteration 5 ends at 7.5, where 6 would be in time
        self.assertEqual(churn_figures.thrown_away(Told, 2), 2)  # iteration 5, which the leader had told, and the one under way

    def test_wrong_use_is_refused(self):
        for words, said in ((["--kinds", "flood"], "there is no fault flood"), (["--loopback"], "no cables"), (["--nodes", "3"], "--nodes")):
            done = self.churn(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
