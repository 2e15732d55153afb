# tests/cluster/link_faults_test.py - what nodes do when the wire between them is cut, silent, slow, flapping or wrong.
import pathlib
import re

import cluster
import small_run
from faulty_wire import FROM_FIRST, FaultyWire



def peak_mb(node):
    status = pathlib.Path(f"/proc/{node.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


SILENCE = r"no word from .* for ([2-9]|\d\d+)\.\d s"  # a busy machine looks later, never earlier


class LinkFaults(small_run.Trained):
    def start(self, iterations, *options, fault=lambda wire: None, **of_solver):
        """Two nodes, the second behind a faulty wire, which has `fault` from the beginning."""
        solver = small_run.solver(self.cluster.folder, "s", iterations=iterations, **of_solver)
        first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:1", "--routes", "ps",
                                  "--survive", 0, *cluster.HASTY, *options)
        wire = FaultyWire(first.wait_for(cluster.LISTENING)[1])
        self.addCleanup(wire.cut)
        fault(wire)
        second = self.cluster.node("--join", wire.address, "--devices", "cpu:1", *cluster.HASTY, *options)
        first.wait_for(r"^iteration 3/")
        return wire, first, second

    def assert_both_end_with_a_snapshot(self, first, second, *reasons):
        for node in (first, second):
            self.assertEqual(node.wait(), 3, node)
            self.assertRegex("\n".join(node.errors), "|".join(reasons))
            self.assertRegex("\n".join(node.errors), r"worker [01] \(127.0.0.1:\d+\)")
        # Each node sees itself as the only survivor, so each leaves a snapshot; two of one clock are one file.
        written = list(self.cluster.folder.glob("s_iter_*.caffemodel"))
        self.assertIn(len(written), (1, 2), first)
        for snapshot in written:
            self.assertTrue(cluster.weights(snapshot), snapshot)

    def test_a_cut_wire_ends_both_nodes_at_once_and_leaves_a_snapshot(self):
        wire, first, second = self.start(cluster.ENDLESS)
        wire.cut()
        self.assert_both_end_with_a_snapshot(first, second, "reset", "closed")

    def test_a_silent_wire_is_noticed_by_both(self):
        wire, first, second = self.start(cluster.ENDLESS)
        wire.hold()
        self.assert_both_end_with_a_snapshot(first, second, SILENCE)

    def test_a_wire_that_carries_one_direction_only_is_noticed_by_who_hears_nothing(self):
        wire, first, second = self.start(cluster.ENDLESS)
        wire.hold(FROM_FIRST)
        self.assertEqual(second.wait(), 3, second)
        self.assertRegex("\n".join(second.errors), SILENCE.replace(".*", "worker 0 .*"))
        self.assertEqual(first.wait(), 3, first)

    def test_one_wrong_bit_is_no_gradient(self):
        wire, first, second = self.start(cluster.ENDLESS)
        wire.flip()
        for node in (first, second):
            self.assertEqual(node.wait(), 3, node)
        said = first.errors + second.errors
        self.assertRegex("\n".join(said), r"sent a bad frame: \w+: payload checksum is [0-9a-f]{8}, expected [0-9a-f]{8}")
        self.assertRegex("\n".join(said), r"closed the connection .*or gave the link up")

    def test_a_slow_wire_changes_when_not_what(self):
        wire, first, second = self.start(30, fault=lambda wire: wire.pace(2e6))
        self.assert_trained_as_without_the_wire(wire, first, second, 30)

    def test_a_flapping_wire_changes_when_not_what(self):
        # Each pause is a small part of the two seconds for which a link may be silent.
        wire, first, second = self.start(50, fault=lambda wire: wire.flap(4e6, 0.3))
        self.assert_trained_as_without_the_wire(wire, first, second, 50)
        self.assertGreaterEqual(wire.flaps, 3)

    def assert_trained_as_without_the_wire(self, wire, first, second, iterations):
        for node in (first, second):
            self.assertEqual(node.wait(), 0, node)
        self.assertGreater(min(wire.carried), 1e6, "training did not take this wire")
        cluster.assert_same_weights(small_run.snapshot_of(self.cluster.folder, "s", iterations),
                                    self.run_to_end(2, ["--routes", "ps"], iterations=iterations))

    def test_what_waits_for_a_slow_wire_does_not_grow(self):
        """A wire ten times slower than the nodes: a node that is ahead waits, and queues no more gradients."""
        wire, first, second = self.start(cluster.ENDLESS, hidden=1024)
        before = [peak_mb(n) for n in (first, second)]
        parameters_mb = 8 * 12 * 12 * 1024 * 4 / 2**20
        wire.pace(20e6)
        at = int(first.wait_for(r"^iteration (\d+)/", since=len(first.lines) - 1)[1])
        first.wait_for(rf"^iteration {at + 20}/")
        for node, was in zip((first, second), before):
            self.assertLess(peak_mb(node) - was, 2 * parameters_mb, node)
        first.stop()


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
