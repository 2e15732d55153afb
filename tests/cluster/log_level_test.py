# tests/cluster/log_level_test.py - what --log-level quiet, info and debug say.
import re
import unittest

import cluster
import small_run

# The lines needed to find a fault in a cluster; {other} is the other worker's number.
DEBUG = [r"handshake with 127\.0\.0\.1:\d+: got hello: protocol version \d+, build [\d.]+, no token",
         r"handshake with 127\.0\.0\.1:\d+: its proof is right",
         r"view 1: worker 0 \(127\.0\.0\.1:\d+\)",
         r"view 1: worker 1 \(127\.0\.0\.1:\d+\)",
         r"data_source data: 192 samples of \S+made-images-idx3-ubyte, each 1x28x28 and one value",
         r"route ip1/0: 64x1152, parameter_server, \d+ chunks, by worker: [1-9]\d* [1-9]\d*$",
         r"server_shard of worker 1: \d+ chunks of \d+, [\d.]+ kB",
         r"membership: .*training begins",
         r"link to worker {other} \(127\.0\.0\.1:\d+\): [\d.]+ [kM]B in \d+ frames out, [\d.]+ [kM]B in \d+ frames in"]
FIRST = [r"membership: 2 of 2 nodes are in", r"membership: worker 1 \(127\.0\.0\.1:\d+\) is ready",
         r"checkpointer: waiting for \d+ pieces of solver state", r"checkpointer: wrote \S+_iter_4\.solverstate, \d+ bytes"]
JOINER = [r"dial 127\.0\.0\.1:\d+: connected"]


class LogLevel(unittest.TestCase):
    def outputs(self, level):
        """The lines of the first node and of the joiner."""
        with cluster.Cluster() as c:
            solver = small_run.solver(c.folder, "s", iterations=4)
            nodes = c.first_and_others(solver, 2, "--devices", "cpu:1", "--log-level", level, first=["--routes", "ps"])
            self.assertEqual(c.wait_all(), [0, 0], nodes[0])
            return [node.lines for node in nodes]

    def test_debug_shows_how_a_cluster_forms_and_what_its_links_carried_and_info_does_not(self):
        debug, info = self.outputs("debug"), self.outputs("info")
        for worker, more in ((0, FIRST), (1, JOINER)):
            for pattern in DEBUG + more:
                line = re.compile(r"^debug \d\d:\d\d:\d\d\.\d{3} " + pattern.format(other=1 - worker))
                self.assertTrue(any(map(line.search, debug[worker])), f"{line.pattern} in\n" + "\n".join(debug[worker]))
            self.assertEqual([line for line in info[worker] if "debug" in line or "handshake" in line], [])
            # debug adds lines, it takes none away.
            plain = [line for line in debug[worker] if not line.startswith("debug ")]
            self.assertEqual(len(plain), len(info[worker]), f"{plain}\n{info[worker]}")

    def test_quiet_says_nothing_but_results(self):
        with cluster.Cluster() as c:
            solver = small_run.solver(c.folder, "s", iterations=4)
            node = c.node("--solver", solver, "--devices", "cpu:1", "--log-level", "quiet")
            self.assertEqual(node.wait(), 0, node)
            self.assertRegex("\n".join(node.lines), r"^snapshot \S+$")


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
