# tests/cluster/wait_free_test.py - DWBP is real: on a slow link the trace shows gradients leaving during backward.
import re
import unittest

import cluster
import small_run

ITERATIONS = 12


class WaitFree(unittest.TestCase):
    def test_communication_runs_under_backward_and_the_next_forward_starts_before_it_ends(self):
        with cluster.Cluster() as c:
            # A million parameters each in ip1 and ip2 over 2 Gbit/s: some 16 ms of wire each way and clock.
            solver = small_run.solver(c.folder, "s", iterations=ITERATIONS, hidden=1024, classes=1000, batch=64)
            trace_file = c.folder / "trace.json"
            first = c.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:1",
                           "--link-mbit", 2000, "--routes", "ps", "--trace", trace_file)
            address = first.wait_for(cluster.LISTENING)[1]
            second = c.node("--join", address, "--devices", "cpu:1", "--link-mbit", 2000)
            self.assertEqual([first.wait(), second.wait()], [0, 0], first)
            trace = cluster.Trace(trace_file)
            # On links too: an urgent frame that goes between the pieces of a big one lies within it.
            self.assertEqual(trace.partial_overlaps(), [])

            def begin(layer, phase, clock):
                return trace.find(layer, phase, lane="^stream", clock=clock)[0]["ts"]

            # Counted over the clocks, not asserted for each: a busy machine may hold a thread back for longer than
            # a layer computes. Sending after backward, or a barrier between iterations, would leave them at zero.
            pushed_early = forward_early = 0
            for clock in range(1, ITERATIONS - 1):
                # The top layer's first chunk has left before the bottom layer's backward began.
                top = trace.find("ip2", "push", lane="network_link 1 out", clock=clock)
                pushed_early += top[0]["ts"] < begin("conv1", "backward", clock)
                # Layer 0 computes clock c+1 before the last layer's parameters of clock c have arrived.
                fresh = trace.find("ip2", "pull", lane="network_link 1 in", clock=clock + 1)
                arrived = max(e["ts"] + e["dur"] for e in fresh)
                forward_early += begin("conv1", "forward", clock + 1) < arrived
            self.assertGreater(pushed_early, 0)
            self.assertGreater(forward_early, 0)
            self.check_what_was_exposed(trace, first)

    def check_what_was_exposed(self, trace, first):
        layers = {c["layer"]: c for c in trace.communication}
        self.assertEqual(set(layers), {"conv1", "ip1", "ip2"})
        for name, c in layers.items():
            self.assertEqual(c["clocks"], ITERATIONS, name)
            stood_still = sum(e["dur"] for e in trace.find(name, "stall", lane="^stream")) / 1e3
            self.assertAlmostEqual(c["exposed_ms"], stood_still, delta=0.002 * ITERATIONS, msg=name)
            self.assertAlmostEqual(c["hidden_ms"], max(0, c["exchange_ms"] - c["exposed_ms"]), delta=0.002, msg=name)
        # 32 ms of wire in a clock that computes for less: some of it cannot hide.
        self.assertGreater(layers["ip1"]["exposed_ms"] + layers["ip2"]["exposed_ms"], 0)
        shares = [int(found[1]) for line in first.lines if (found := re.search(r" hidden (\d+)%", line))]
        self.assertGreaterEqual(len(shares), ITERATIONS // 2)
        self.assertTrue(all(0 <= share <= 100 for share in shares) and min(shares) < 100, shares)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
