# tests/cluster/global_batch_test.py - --global-batch keep: nodes join and leave, and an iteration keeps its samples.
import json
import math
import signal
import struct
import unittest

import cluster
import small_run

LISTENING = r"listening on (127.0.0.1:\d+)"  # also in an event

# The weight of pixel i moves by the rate over the samples of an iteration for each time that image i is trained on, and by nothing
# else: image i is white in pixel i alone.
COUNTING_NET = """
name: "counting"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00392156862745 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
layer {{ name: "none" type: "Silence" bottom: "label" }}
layer {{ name: "count" type: "InnerProduct" bottom: "data" top: "count"
  inner_product_param {{ num_output: 1 bias_term: false weight_filler {{ type: "constant" value: 0 }} }} }}
layer {{ name: "mean" type: "Reduction" bottom: "count" top: "mean" loss_weight: 1 reduction_param {{ operation: MEAN axis: 0 }} }}
"""


def counting_solver(folder, name, batch, iterations, samples, iter_size=1):
    """Writes data of one epoch, a net and a solver. Returns the solver's path."""
    images = folder / f"{name}-images-idx3-ubyte"
    pixels = bytearray(samples * samples)
    pixels[:: samples + 1] = b"\xff" * samples
    images.write_bytes(struct.pack(">IIII", 0x803, samples, 1, samples) + pixels)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, samples) + bytes(samples))
    net = folder / f"{name}.net.prototxt"
    net.write_text(COUNTING_NET.format(images=images, batch=batch))
    solver = folder / f"{name}.prototxt"
    solver.write_text(f'net: "{net}" base_lr: 1 lr_policy: "fixed" max_iter: {iterations} iter_size: {iter_size} display: 1 '
                      f'random_seed: 5 snapshot_prefix: "{folder / name}"\n')
    return solver


def values(snapshot):
    blobs = cluster.weights(snapshot)
    return [v for name in sorted(blobs) for v in small_run.floats(blobs[name])]


class GlobalBatch(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder

    def train(self, solver, views="0 1", *options, others=0, nodes=1, devices="cpu:1"):
        """Trains in these views to the end. Returns the view events of the first node; all nodes are in self.last."""
        schedule = self.folder / "views"
        schedule.write_text(views.replace(", ", "\n") + "\n")
        first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", nodes, "--views", schedule, "--json",
                                  "--global-batch", "keep", "--devices", devices, *options)
        address = first.wait_for(LISTENING)[1]
        self.last = [first]
        for seat in range(1, others + 1):
            if seat == nodes:
                first.wait_for('"event": ?"view"')
            self.last.append(self.cluster.node("--join", address, "--devices", devices))
        for node in self.last:
            self.assertEqual(node.wait(), 0, node)
        return self.events(first, "view")

    def alone(self, name, iter_size=1, **of_solver):
        """The snapshot of one process that trains the same samples, which is self.one."""
        solver = small_run.solver(self.folder, name, iter_size=iter_size, **of_solver)
        node = self.one = self.cluster.node("--solver", solver, "--devices", "cpu:1", "--json")
        self.assertEqual(node.wait(), 0, node)
        return small_run.snapshot_of(self.folder, name, of_solver["iterations"])

    @staticmethod
    def events(node, event):
        events = [json.loads(line) for line in node.lines if line.startswith("{")]
        return [e for e in events if e["event"] == event]

    def losses(self, node, event):
        return [e["outputs"]["loss"] for e in self.events(node, event)]

    def assert_equal_up_to_rounding(self, one, other, most=2e-6):
        a, b = values(one), values(other)
        self.assertEqual(len(a), len(b))
        self.assertLess(math.dist(a, b) / math.hypot(*a), most)

    def each_sample_is_trained_on_once(self, batch, nodes, views, total, others=0, iterations=12, iter_size=1, devices="cpu:1"):
        solver = counting_solver(self.folder, "count", batch, iterations, total * iterations, iter_size)
        events = self.train(solver, views, "--routes", "ps", nodes=nodes, others=others, devices=devices)
        self.assertEqual([e["samples"] for e in events], [total] * len(events))
        self.assertEqual([e["first_sample"] for e in events], [total * e["first_clock"] for e in events])
        shown = self.events(self.last[0], "progress")
        self.assertEqual([e["images"] for e in shown], [total * (clock + 1) for clock in range(iterations)])
        for i, weight in enumerate(values(small_run.snapshot_of(self.folder, "count", iterations))):
            self.assertAlmostEqual(-weight * total, 1, delta=1e-5, msg=f"sample {i}")

    def test_each_sample_is_trained_on_once_as_1_2_3_and_2_nodes_share_a_batch(self):
        self.each_sample_is_trained_on_once(16, 1, "0 1, 3 2, 6 3, 9 2", total=16, others=2)

    def test_each_sample_is_trained_on_once_as_3_nodes_become_fewer(self):
        # 21 samples on 2 nodes are 3 passes of 3 samples and 2 passes of 6; on one node 3 passes of 7.
        self.each_sample_is_trained_on_once(7, 3, "0 3, 3 2, 6 1, 9 2", total=21, others=3)

    def test_each_sample_is_trained_on_once_with_a_batch_of_one_and_with_micro_batches(self):
        self.each_sample_is_trained_on_once(1, 3, "0 3, 3 2, 6 1, 9 3", total=3, others=4)
        self.each_sample_is_trained_on_once(5, 1, "0 1, 3 2, 6 3", total=15, others=2, iter_size=3)
        self.each_sample_is_trained_on_once(10, 1, "0 1, 3 2, 6 3", total=10, others=2, devices="cpu:2")

    def test_what_is_trained_is_what_one_process_trains_and_the_same_bits_again(self):
        views = "0 1, 4 2, 9 3, 14 2"
        of_solver = {"iterations": 20, "lr": 0.01}
        one = self.alone("one", **of_solver)
        for routes in ("ps", "sfb"):
            snapshots = []
            for name in (f"a-{routes}", f"b-{routes}"):
                events = self.train(small_run.solver(self.folder, name, **of_solver), views, "--routes", routes, others=2)
                self.assertEqual([len(e["members"]) for e in events], [1, 2, 3, 2])
                self.assertRegex(events[2]["text"], r"; 3 nodes train from iteration 9 on, 16 samples an iteration, after a pause")
                snapshots.append(small_run.snapshot_of(self.folder, name, 20))
            self.assert_equal_up_to_rounding(one, snapshots[0])
            cluster.assert_same_weights(*snapshots)
            cluster.assert_same_state(*(s.with_suffix(".solverstate") for s in snapshots))

    def test_clipped_gradients_tests_and_micro_batches_are_those_of_one_process(self):
        of_solver = {"iterations": 12, "lr": 0.01, "more": "clip_gradients: 0.5 test_iter: 3 test_interval: 4"}
        one = self.alone("one", iter_size=4, **of_solver)
        self.train(small_run.solver(self.folder, "s", iter_size=2, **of_solver), "0 2, 3 3, 7 1", "--routes", "ps", nodes=2, others=2)
        self.assert_equal_up_to_rounding(one, small_run.snapshot_of(self.folder, "s", 12))
        for event, least in (("test", 4), ("progress", 12)):
            of_one, of_all = self.losses(self.one, event), self.losses(self.last[0], event)
            self.assertGreaterEqual(len(of_one), least)
            self.assertEqual(len(of_one), len(of_all))
            for a, b in zip(of_one, of_all):
                self.assertAlmostEqual(a, b, delta=1e-4)

    def test_nodes_that_come_and_go_as_they_like(self):
        path = small_run.solver(self.folder, "s", iterations=cluster.ENDLESS, lr=0.002)
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--global-batch", "keep", "--devices", "cpu:1", "--json")
        address = first.wait_for(LISTENING)[1]
        first.wait_for('"event": ?"progress"')
        joiner = self.cluster.node("--join", address, "--devices", "cpu:1", "--global-batch", "keep")
        joiner.wait_for(r"^view 2: 2 nodes train from iteration \d+ on, 16 samples an iteration$")
        joiner.signal(signal.SIGTERM)
        self.assertEqual(joiner.wait(), 143, joiner)
        last = first.wait_for(r'"event": ?"view".*"epoch": ?3,.*"first_clock": ?(\d+)')
        first.wait_for(f'"clock": ?{int(last[1]) + 2},')
        first.stop()
        newest = max(self.folder.glob("s_iter_*.caffemodel"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
        end = int(newest.stem.rsplit("_", 1)[1])
        self.assert_equal_up_to_rounding(self.alone("one", iterations=end, lr=0.002), newest)

    def test_a_resumed_run_keeps_the_samples_of_the_first_one_or_says_that_it_does_not(self):
        of_solver = {"iterations": 12, "lr": 0.01}
        one = self.alone("one", iter_size=3, **of_solver)
        self.train(small_run.solver(self.folder, "first", iterations=6, lr=0.01), "0 3", "--routes", "ps", nodes=3, others=2)
        state = self.folder / "first_iter_6.solverstate"
        for nodes in (2, 1):
            name = f"kept{nodes}"
            self.train(small_run.solver(self.folder, name, **of_solver), f"6 {nodes}", "--routes", "ps", "--snapshot", state,
                       nodes=nodes, others=nodes - 1)
            self.assertIn("batch: 48 samples an iteration", self.last[0].output)
            self.assert_equal_up_to_rounding(one, small_run.snapshot_of(self.folder, name, 12))
        node = self.cluster.node("--solver", small_run.solver(self.folder, "scaled", **of_solver), "--snapshot", state, "--devices", "cpu:1")
        self.assertEqual(node.wait(), 0, node)
        self.assertIn("kept 48 samples an iteration (--global-batch keep), and this one has 16. --global-batch keep goes on with 48", node.output)
        said = cluster.run("poseidon-data", "info", state).stdout
        self.assertRegex(said, r"samples of an iteration\s+48")

    def test_staleness_statistics_of_the_batch_and_reduced_formats_go_on(self):
        self.train(small_run.solver(self.folder, "stale", iterations=20, lr=0.002, norm=True, rule='lr_policy: "fixed"'),
                   "0 2, 5 3, 10 1", "--staleness", "1", nodes=2, others=2)
        self.assertIn('layer \\"bn1\\" (BatchNorm) normalises with the samples of one pass', self.last[0].output)
        for wire in "bfloat16", "int8", "int4":
            self.train(small_run.solver(self.folder, wire, iterations=12, lr=0.002), "0 2, 5 3", "--wire", wire, nodes=2, others=2)

    def test_simulated_gpus_share_a_batch_that_stays(self):
        plugin = cluster.BIN / "libposeidon_gpu_simulated.so"
        if not plugin.exists():
            self.skipTest(f"{plugin} has not been built")
        gpu = ["--gpu-plugin", plugin, "--math", "fp32", "--devices", "0"]
        one = self.alone("one", iter_size=2, iterations=9, lr=0.01)
        schedule = self.folder / "views"
        schedule.write_text("0 2\n3 3\n6 1\n")
        path = small_run.solver(self.folder, "s", iterations=9, lr=0.01)
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--views", schedule, "--global-batch", "keep",
                                  "--routes", "ps", *gpu)
        address = first.wait_for(cluster.LISTENING)[1]
        for node in [first] + [self.cluster.node("--join", address, *gpu) for _ in range(2)]:
            self.assertEqual(node.wait(), 0, node)
        self.assert_equal_up_to_rounding(one, small_run.snapshot_of(self.folder, "s", 9), most=1e-5)

    def refused(self, *options, code=2, **of_solver):
        node = self.cluster.node("--solver", small_run.solver(self.folder, "refused", **of_solver), "--listen", "127.0.0.1:0",
                                 "--global-batch", "keep", "--devices", "cpu:1", *options)
        self.assertEqual(node.wait(), code, node)
        return node.output

    def test_what_does_not_go_with_it_is_refused_at_the_start(self):
        self.assertIn("--global-batch keep does not go with --batch-share 3,1", self.refused("--nodes", 2, "--batch-share", "3,1"))
        self.assertIn("--global-batch keep does not go with --own-data", self.refused("--own-data"))
        schedule = self.folder / "views"
        schedule.write_text("0 1\n9 3\n")
        self.assertIn("it is 2 samples, and 3 nodes with 1 replica each need", self.refused("--views", schedule, batch=2))
        net = small_run.NET.replace('top: "loss" }}', 'top: "loss" loss_param {{ normalization: NONE }} }}')
        self.assertRegex(self.refused(text=net), r'refused\.net\.prototxt:\d+: .*Leave out --batch-share and --global-batch keep')

    def test_a_joiner_with_another_rule_or_with_data_of_its_own_is_refused_and_the_run_goes_on(self):
        path = small_run.solver(self.folder, "s", iterations=cluster.ENDLESS, lr=0.002)
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--global-batch", "keep", "--devices", "cpu:1")
        address = first.wait_for(cluster.LISTENING)[1]
        for words, says in ((["--global-batch", "scale"], "given --global-batch scale, and the run that it joins has --global-batch keep"),
                            (["--own-data"], "given --own-data, and the run that it joins has --global-batch keep")):
            joiner = self.cluster.node("--join", address, "--devices", "cpu:1", *words)
            self.assertEqual(joiner.wait(), 2, joiner)
            self.assertIn(says, joiner.output)
        first.wait_for("^iteration ")
        first.stop()


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
