# tests/cluster/replay_test.py - --devices replay: kernels sleep, everything else is real: actors, links, shards, bytes.
import math
import re
import unittest

import cluster

ITERATIONS = 5
INPUTS, HIDDEN, CLASSES = 400, 500, 1000
# ip2 is the larger; the label layer's shapes need no data.
NET = f"""
name: "two"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ crop_size: 20 force_gray: true }}
  data_param {{ source: "nowhere" batch_size: 8 }} }}
layer {{ name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1" inner_product_param {{ num_output: {HIDDEN} }} }}
layer {{ name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }}
layer {{ name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param {{ num_output: {CLASSES} }} }}
layer {{ name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include {{ phase: TEST }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }}
"""
PARAMETERS = [INPUTS * HIDDEN, HIDDEN, HIDDEN * CLASSES, CLASSES]
PROFILE = """
net: "two" measured: "made up" batch: 4 gflop_s: 10
layer { name: "ip1" forward_ms: 1 backward_ms: 2 }
layer { name: "ip2" forward_ms: 2 backward_ms: 4 }
"""


class Replay(unittest.TestCase):
    def setUp(self):
        self.c = cluster.Cluster()
        self.c.__enter__()
        self.addCleanup(self.c.__exit__, None, None, None)
        (self.c.folder / "net.prototxt").write_text(NET)
        self.profile = self.c.folder / "two.profile"
        self.profile.write_text(PROFILE)
        self.solver = self.c.folder / "solver.prototxt"
        self.solver.write_text(f'net: "{self.c.folder}/net.prototxt" base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 '
                               f'max_iter: {ITERATIONS} display: 1 test_iter: 3 test_interval: 2 snapshot: 1 '
                               f'snapshot_prefix: "{self.c.folder}/replay"\n')

    def start(self, first_options, joiner_options, trace=None):
        first = self.c.node("--solver", self.solver, "--listen", "127.0.0.1:0", "--nodes", 2, *first_options,
                            *(["--trace", trace] if trace else []))
        address = first.wait_for(cluster.LISTENING)[1]
        return first, self.c.node("--join", address, *joiner_options)

    def test_two_nodes_train_to_the_end_and_move_the_scaled_bytes_layer_by_layer(self):
        scale = 0.1
        trace_file = self.c.folder / "trace.json"
        replay = ["--devices", f"replay:{self.profile}"]
        first, second = self.start(["--devices", f"{replay[1]},bytes={scale}"], replay, trace_file)
        self.assertEqual([first.wait(), second.wait()], [0, 0], first)
        self.assertIn(f"iteration {ITERATIONS - 1}/{ITERATIONS}: loss 1", first.output)
        self.assertNotIn("test iteration", first.output)
        self.assertFalse(list(self.c.folder.glob("replay*model")))

        trace = cluster.Trace(trace_file)
        floats = sum(max(1, math.floor(scale * p + 0.5)) for p in PARAMETERS)
        for clock in range(ITERATIONS):
            # A value's gradient is sent where the other node owns the value, and received where this one does.
            def moved(lane, phase, number):
                return sum(e["args"]["bytes"] for e in trace.find(cat=phase, lane=lane, clock=number))
            out = moved("network_link 1 out", "push", clock)
            into = moved("network_link 1 in", "receive", clock)
            self.assertEqual(out + into, 4 * floats)
            self.assertEqual(moved("network_link 1 in", "pull", clock + 1), out)
            self.assertEqual(moved("network_link 1 out", "send", clock + 1), into)
            kernels = [(e["name"], e["cat"]) for e in trace.find(lane="^stream", clock=clock)
                       if e["name"] in ("ip1", "ip2") and e["cat"] != "stall"]
            self.assertEqual(kernels, [("ip1", "forward"), ("ip2", "forward"), ("ip2", "backward"), ("ip1", "backward")])

    def waits_of_first_layer(self, words=""):
        """By clock: how long the first layer began after all parameters of the clock before had arrived, in microseconds."""
        trace_file = self.c.folder / "trace.json"
        replay = ["--devices", f"replay:{self.profile}"]
        first, second = self.start(["--devices", f"{replay[1]},bytes=0.1{words}", "--routes", "ps", "--link-mbit", 2], replay, trace_file)
        self.assertEqual([first.wait(), second.wait()], [0, 0], first)
        trace = cluster.Trace(trace_file)
        waits = []
        for clock in range(1, ITERATIONS):
            came = max(e["ts"] + e["dur"] for e in trace.find(cat="exchange", clock=clock - 1))
            waits.append(trace.find("ip1", "forward", clock=clock)[0]["ts"] - came)
        return waits

    def test_the_first_layer_begins_before_the_last_parameters_come_unless_there_is_a_barrier(self):
        early, late = self.waits_of_first_layer(), self.waits_of_first_layer(",fifo")
        # The first layer has hundreds of milliseconds; a busy machine may miss them once.
        self.assertGreaterEqual(sum(wait < 0 for wait in early), len(early) - 1, early)
        self.assertTrue(all(wait >= 0 for wait in late), late)

    def test_a_slow_device_is_named(self):
        slow = self.c.folder / "slow.profile"
        slow.write_text(re.sub(r"_ms: (\d+)", lambda m: f"_ms: {20 * int(m[1])}", PROFILE))
        self.profile.write_text(re.sub(r"_ms: (\d+)", lambda m: f"_ms: {5 * int(m[1])}", PROFILE))  # late wake-ups weigh little
        self.solver.write_text(self.solver.read_text().replace(f"max_iter: {ITERATIONS}", f"max_iter: {cluster.ENDLESS}"))
        first, second = self.start(["--devices", f"replay:{self.profile}", "--web", "127.0.0.1:0"], ["--devices", f"replay:{slow}"])
        said = first.wait_for(r"^straggler: worker (\d) is slow: its kernels take ([\d.]+) ms an iteration, the median of all workers is ([\d.]+) ms")
        self.assertEqual(said[1], "1")
        self.assertGreater(float(said[2]), 1.5 * float(said[3]))
        first.stop()
        self.assertEqual(second.wait(), 0, second.output)

    def test_factors_are_as_many_bytes_as_scaled_and_their_gradients_take_the_time_of_the_product(self):
        scale, batch = 0.1, 8
        trace_file = self.c.folder / "trace.json"
        replay = ["--devices", f"replay:{self.profile}"]
        first, second = self.start(["--devices", f"{replay[1]},bytes={scale}", "--routes", "sfb"], replay, trace_file)
        self.assertEqual([first.wait(), second.wait()], [0, 0], first)
        self.assertIn("routes: factor_broadcast for ip1, ip2", first.lines)
        trace = cluster.Trace(trace_file)
        for layer, inputs, outputs in (("ip1", INPUTS, HIDDEN), ("ip2", HIDDEN, CLASSES)):
            bytes_of_node = 4 * batch * (round(scale * inputs) + round(scale * outputs))
            product_us = 2 * 2 * batch * inputs * outputs / 10e9 * 1e6
            for clock in range(ITERATIONS):
                for phase, lane in (("broadcast", "out$"), ("collect", "in$")):
                    spans = trace.find(layer, phase, lane=lane, clock=clock)
                    self.assertEqual(sum(s["args"]["bytes"] for s in spans), bytes_of_node, (layer, phase))
                self.assertGreaterEqual(trace.find(layer, "reconstruct", clock=clock)[0]["dur"], product_us - 2)

    def test_a_profile_without_the_rate_of_products_leaves_everything_on_the_server(self):
        self.profile.write_text(PROFILE.replace("gflop_s: 10", ""))
        replay = ["--devices", f"replay:{self.profile}"]
        first, second = self.start([*replay, "--routes", "auto:1"], replay)
        self.assertEqual([first.wait(), second.wait()], [0, 0], first)
        self.assertEqual([line for line in first.lines if line.startswith("routes: factor")], [])
        first, second = self.start([*replay, "--routes", "sfb"], replay)
        self.assertEqual(first.wait(), 2)
        self.assertIn("gflop_s", first.output)

    def test_nodes_that_sleep_and_nodes_that_compute_do_not_train_together(self):
        first, second = self.start(["--devices", f"replay:{self.profile}"], [])
        self.assertEqual(second.wait(), 2)
        self.assertIn("this run replays a profile, and this node's --devices is \"cpu: ", second.output)
        self.assertIn("Give --devices replay:PROFILE on every node.", second.output)
        self.assertNotEqual(first.wait(), 0)

    def test_a_profile_of_another_net_is_refused_with_line_and_nearest_name(self):
        self.profile.write_text(PROFILE.replace("ip2", "ipp2"))
        node = self.c.node("--solver", self.solver, "--devices", f"replay:{self.profile}")
        self.assertEqual(node.wait(), 2)
        self.assertIn(f'{self.profile}:4: layer "ipp2" has times, but the net "two" has no layer of that name. '
                      'Did you mean "ip2"?', node.output)

    def test_mistakes_on_the_command_line_say_what_to_do(self):
        replay = ["--devices", f"replay:{self.profile}"]
        for options, text in [
                (["--solver", self.solver, "--devices", "replay"], "--devices replay: which profile?"),
                (["--solver", self.solver, "--devices", f"{replay[1]},bytes=2"],
                 f"--devices {replay[1]},bytes=2: bytes=2 is no share of the values that is kept, a number from 0.000001 to 1."),
                (["--solver", self.solver, "--devices", f"{replay[1]},time=0"], "time=0 is no factor by which layers take longer"),
                (["--solver", self.solver, "--devices", f"{replay[1]},time=nan"], "time=nan is no factor by which layers take longer"),
                (["--solver", self.solver, "--devices", f"{replay[1]},time=2x"], "time=2x is no factor by which layers take longer"),
                (["--solver", self.solver, "--devices", f"{replay[1]},byte=0.1"],
                 'there may be time=X, bytes=S and fifo, with commas, and "byte=0.1" is none of them. Did you mean "bytes"?'),
                (["--solver", self.solver, "--devices", f"{replay[1]},"], 'and "" is none of them.'),
                (["--solver", self.solver, "--devices", "replay:,fifo"], "which profile?"),
                (["--solver", self.solver, "--routes", "auto:"], '--routes auto:: "" is no rate. Give the Mbit/s that a node can send, as in auto:1000'),
                (["--solver", self.solver, "--routes", "auto:0"], '--routes auto:0: "0" is no rate.'),
                (["--solver", self.solver, "--routes", "auto:inf"], '--routes auto:inf: "inf" is no rate.'),
                (["--solver", self.solver, *replay, "--weights", "w"], "sleeping layers train no model"),
                (["--join", "127.0.0.1:1", "--devices", f"{replay[1]},time=2"], "the first node's words time, bytes and fifo hold for all"),
                (["--solver", self.solver, "--devices", "replay:nowhere"], "nowhere: there is no such file")]:
            node = self.c.node(*options)
            self.assertEqual(node.wait(), 2, options)
            self.assertIn(text, node.output)


    def test_a_newcomer_takes_its_part_of_the_batch_by_its_speed(self):
        slow = self.c.folder / "slow.profile"  # twice the times
        slow.write_text(re.sub(r"(ward_ms: )(\d)", lambda m: m[1] + str(2 * int(m[2])), PROFILE))
        self.solver.write_text(self.solver.read_text().replace(f"max_iter: {ITERATIONS}", f"max_iter: {cluster.ENDLESS}"))
        replay = ["--devices", f"replay:{self.profile}"]
        first, second = self.start([*replay, "--batch-share", "auto"], replay)
        address = first.wait_for(cluster.LISTENING)[1]
        first.wait_for("^view 1: ")
        newcomer = self.c.node("--join", address, "--devices", f"replay:{slow}")
        first.wait_for(r"^view 2: worker 2 .* joined; 3 nodes train")
        speeds = [float(first.wait_for(rf"^batch: worker {w} .*trains (\d+) samples/s alone")[1]) for w in range(3)]
        self.assertAlmostEqual(speeds[0], speeds[1], delta=1)
        self.assertAlmostEqual(speeds[0], 2 * speeds[2], delta=2)
        # 24 samples by 2, 2 and 1: each at least its part rounded down.
        said = newcomer.wait_for(r"^batch: this node's share (\d+) of (\d+) ")
        self.assertEqual([int(n) for n in said.groups()], [5, 24])
        first.stop()
        self.assertEqual([second.wait(), newcomer.wait()], [0, 0], first)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
