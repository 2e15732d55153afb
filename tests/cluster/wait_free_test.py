# tests/cluster/wait_free_test.py - DWBP is real: on a slow link the trace shows gradients leaving during backward.
import re
import unittest

import cluster
import small_run

ITERATIONS = 12
ENOUGH = 8  # out of the ten clocks in the middle: a busy machine may wake a thread late
# Kernels sleep, so what computes when is known: 60 ms forward, 120 ms backward. The 8.7 MB that each node sends in a clock take
# 350 ms, and those of the top layer, the least urgent, come last.
LINK_MBIT = 200
PROFILE = 'net: "small" measured: "made up" batch: 16 gflop_s: 10\n' + "".join(
    f'layer {{ name: "{layer}" forward_ms: 20 backward_ms: 40 }}\n' for layer in ("conv1", "ip1", "ip2"))


class WaitFree(unittest.TestCase):
    def traced(self, words=""):
        """The trace of a run of two nodes, and the first node; `words` of its replay."""
        c = self.enterContext(cluster.Cluster())
        solver = small_run.solver(c.folder, "s", iterations=ITERATIONS, hidden=1024, classes=1000)
        profile, trace_file = c.folder / "profile", c.folder / "trace.json"
        profile.write_text(PROFILE)
        replay, link = f"replay:{profile}", ["--link-mbit", LINK_MBIT]
        first = c.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", replay + words, *link,
                       "--routes", "ps", "--trace", trace_file)
        second = c.node("--join", first.wait_for(cluster.LISTENING)[1], "--devices", replay, *link)
        self.assertEqual([first.wait(), second.wait()], [0, 0], first)
        return cluster.Trace(trace_file), first

    def early(self, trace):
        """In how many clocks a gradient left during backward, and in how many the next forward began before all had arrived."""
        def begin(layer, phase, clock):
            return trace.find(layer, phase, lane="^stream", clock=clock)[0]["ts"]
        pushed = forward = 0
        for clock in range(1, ITERATIONS - 1):
            # The top layer's first chunk left before the bottom layer's backward began.
            top = trace.find("ip2", "push", lane="network_link 1 out", clock=clock)
            pushed += top[0]["ts"] < begin("conv1", "backward", clock)
            # Layer 0 computed clock c + 1 before the last layer's parameters of clock c had arrived.
            fresh = trace.find("ip2", "pull", lane="network_link 1 in", clock=clock + 1)
            forward += begin("conv1", "forward", clock + 1) < max(e["ts"] + e["dur"] for e in fresh)
        return pushed, forward

    def test_communication_runs_under_backward_and_the_next_forward_starts_before_it_ends(self):
        trace, first = self.traced()
        # On links too: an urgent frame that goes between the pieces of a big one lies within it.
        self.assertEqual(trace.partial_overlaps(), [])
        pushed, forward = self.early(trace)
        self.assertGreaterEqual(pushed, ENOUGH)
        self.assertGreaterEqual(forward, ENOUGH)
        self.check_what_was_exposed(trace, first)

    def test_with_a_barrier_no_forward_starts_early(self):  # or the test above would prove nothing
        trace, _ = self.traced(",fifo")
        self.assertEqual(self.early(trace)[1], 0)

    def check_what_was_exposed(self, trace, first):
        layers = {c["layer"]: c for c in trace.communication}
        self.assertEqual(set(layers), {"conv1", "ip1", "ip2"})
        for name, c in layers.items():
            self.assertEqual(c["clocks"], ITERATIONS, name)
            stalled = sum(e["dur"] for e in trace.find(name, "stall", lane="^stream")) / 1e3
            self.assertAlmostEqual(c["exposed_ms"], stalled, delta=0.002 * ITERATIONS, msg=name)
            self.assertAlmostEqual(c["hidden_ms"], max(0, c["exchange_ms"] - c["exposed_ms"]), delta=0.002, msg=name)
        # 350 ms of wire in a clock that computes for 180 ms: some of it cannot hide.
        self.assertGreater(layers["ip1"]["exposed_ms"] + layers["ip2"]["exposed_ms"], 0)
        shares = [int(found[1]) for line in first.lines if (found := re.search(r" hidden (\d+)%", line))]
        self.assertGreaterEqual(len(shares), ITERATIONS // 2)
        self.assertTrue(all(0 <= share <= 100 for share in shares) and min(shares) < 100, shares)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
