# tests/cluster/wait_free_test.py - DWBP is real: on a slow link the trace shows gradients leaving during backward.
import unittest

import cluster
import small_run


class WaitFree(unittest.TestCase):
    def test_communication_runs_under_backward_and_the_next_forward_starts_before_it_ends(self):
        with cluster.Cluster() as c:
            # 1.2 million parameters in ip1 over 200 Mbit/s: some 50 ms of wire each way and clock.
            solver = small_run.solver(c.folder, "s", iterations=6, hidden=1024)
            trace_file = c.folder / "trace.json"
            first = c.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:1",
                           "--link-mbit", 200, "--trace", trace_file)
            address = first.wait_for(cluster.LISTENING)[1]
            second = c.node("--join", address, "--devices", "cpu:1", "--link-mbit", 200)
            self.assertEqual([first.wait(), second.wait()], [0, 0], first)
            trace = cluster.Trace(trace_file)
            self.assertEqual(trace.partial_overlaps(), [])

            def begin(layer, phase, clock):
                return trace.find(layer, phase, lane="^stream", clock=clock)[0]["ts"]

            early_pushes = early_forwards = 0
            for clock in range(1, 5):
                sent = trace.find("push_gradient", "send", clock=clock)
                self.assertTrue(sent)
                early_pushes += sent[0]["ts"] < begin("conv1", "backward", clock)
                # Layer 0 computes clock c+1 before the last layers' parameters of clock c have arrived.
                fresh = [e["ts"] + e["dur"] for e in trace.find("fresh_parameters", "receive", clock=clock + 1)]
                self.assertTrue(fresh)
                early_forwards += begin("data", "forward", clock + 1) < max(fresh)
                early_forwards += begin("conv1", "forward", clock + 1) < max(fresh)
            self.assertGreaterEqual(early_pushes, 3)
            self.assertGreaterEqual(early_forwards, 6)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
