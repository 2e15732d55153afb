# tests/cluster/wire_test.py - reduced wire formats: fewer bytes, nearly the same training, the same bits in every run.
import re

import cluster
import small_run

# Nothing in it jumps, so that what is rounded shows as much as it is rounded (routes_test.py says more).
SMOOTH = """
name: "smooth"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
layer {{ name: "conv1" type: "Convolution" bottom: "data" top: "conv1" param {{ lr_mult: 1 }} param {{ lr_mult: 2 }}
  convolution_param {{ num_output: 8 kernel_size: 5 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param {{ pool: AVE kernel_size: 2 stride: 2 }} }}
layer {{ name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1" inner_product_param {{ num_output: {hidden}
  weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "tanh1" type: "TanH" bottom: "ip1" top: "ip1" }}
layer {{ name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param {{ num_output: 10
  weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }}
"""


def deviation(one, other):
    """A bias before a BatchNorm has no gradient but roundings, so what is small counts as 1e-3."""
    return max(small_run.deviations(one, other, 1e-3).values())


def bytes_of(wire, values):
    if wire in ("int8", "int4") and values >= 4096:
        return 2 * -(-values // 256) + (values if wire == "int8" else (values + 1) // 2)
    return values * {"float16": 2, "bfloat16": 2}.get(wire, 4)


class Wire(small_run.Trained):
    def train(self, wire, nodes=2, routes="ps", **options):
        solver = {"iterations": 50, "lr": 0.01, "text": SMOOTH}
        return self.run_to_end(nodes, ["--routes", routes, "--wire", wire], **{**solver, **options})

    def test_float32_is_exact_still(self):
        cluster.assert_same_weights(self.train("float32", batch=16), self.train("float32", nodes=1, batch=16, iter_size=2))

    def test_fewer_bits_train_nearly_the_same_and_every_run_the_same(self):
        exact = self.train("float32", nodes=3)
        for wire, tolerance in (("float16", 2e-4), ("bfloat16", 1e-3), ("int8", 2e-3), ("int4", 0.03)):
            with self.subTest(wire):
                one = self.train(wire, nodes=3)
                of = "ip1" if wire.startswith("int") else "conv1, ip1, ip2"  # the others have few values
                self.assertIn(f"wire: {wire} for {of}", self.last[0].lines)
                distance = deviation(exact, one)
                self.assertGreater(distance, 0)
                self.assertLess(distance, tolerance)
                cluster.assert_same_weights(one, self.train(wire, nodes=3))

    def test_lossy_takes_a_format_by_the_links_rate(self):
        def with_lossy(*words, hidden=64):
            return self.run_to_end(2, words, iterations=8, lr=0.01, text=SMOOTH, hidden=hidden)

        def said():
            return self.last[0].wait_for("^lossy: up to int4 was allowed. (.*)")[1]

        fast, slowly = ("--routes", "auto:1000000"), ("--routes", "ps", "--link-mbit", 4)
        exact = with_lossy(*fast)
        cluster.assert_same_weights(with_lossy(*fast, "--lossy", "int4"), exact)
        self.assertIn("Nothing is rounded", said())
        slow = with_lossy(*slowly, "--lossy", "int4")
        self.assertIn("wire: int4 for ip1", self.last[0].lines)
        self.assertRegex(said(), r"^An iteration takes [\d.]+ s instead of [\d.]+ s as predicted, and the result is no longer that of one machine$")
        cluster.assert_same_weights(slow, with_lossy(*slowly, "--wire", "int4"))
        at_1_mbit = ("--routes", "auto:1", "--link-mbit", 8, "--lossy", "lowrank")
        lowrank = with_lossy(*at_1_mbit, hidden=256)  # so that P and Q are fewer bytes than int4
        self.last[0].wait_for("^routes: lowrank_8_bfloat16 for .*ip1")
        self.last[0].wait_for("^lossy: up to lowrank was allowed. An iteration takes")
        cluster.assert_same_weights(lowrank, with_lossy(*at_1_mbit, hidden=256))

    def test_lossy_beside_what_chooses_for_it_is_refused(self):
        for words, why in ((["--lossy", "int8", "--wire", "int4"], "Leave out one of the two"),
                           (["--lossy", "lowrank", "--routes", "ps"], "--lossy lowrank chooses which layers go by low rank, and --routes ps chooses for it"),
                           (["--lossy", "float16"], "none of none, bfloat16, int8, int4 and lowrank")):
            with self.subTest(words):
                refused = cluster.run("poseidon-node", "--solver", small_run.solver(self.cluster.folder, "refused"), "--listen", "127.0.0.1:0", "--nodes", 2, *words)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn(why, refused.stderr)

    def test_replicas_and_micro_batches_are_rounded_once_a_clock(self):
        for wire in "float16", "int8", "int4":
            cluster.assert_same_weights(self.train(wire, devices="cpu:2", batch=32, iter_size=1),
                                        self.train(wire, devices="cpu:1", batch=16, iter_size=2))

    def test_all_nets_and_rules_take_it(self):
        # Adam's first steps are as long for a small gradient as for a large one, so roundings show more.
        adam = {"rule": 'type: "Adam" lr_policy: "fixed" momentum: 0.9', "lr": 0.001}
        for more, tolerance in (({"norm": True, "parameter": True, "text": small_run.NET}, 0.01),
                                ({"text": small_run.SHARED_NET}, 0.01), ({"more": "clip_gradients: 0.5"}, 0.01), (adam, 0.1)):
            options = {"iterations": 12, **more}
            exact = self.train("float32", **options)
            for wire, factor in (("bfloat16", 1), ("int8", 4), ("int4", 20)):
                with self.subTest(wire, more=list(more)):
                    self.assertLess(deviation(exact, self.train(wire, **options)), factor * tolerance)

    def test_clocks_that_overlap_are_rounded_in_their_order(self):
        # Two runs with staleness differ, so all there is to compare is where they end.
        options = {"rule": 'lr_policy: "fixed"', "lr": 0.001}  # so that age matters little
        exact = self.train("float32", **options)
        for wire, more in (("bfloat16", []), ("bfloat16", ["--bandwidth-budget", 200]), ("int8", []), ("int4", ["--bandwidth-budget", 200])):
            with self.subTest(wire, more=more):
                path = small_run.solver(self.cluster.folder, "late", iterations=50, lr=0.001, text=SMOOTH, rule='lr_policy: "fixed"')
                words = ["--devices", "cpu:1", *more]
                first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--routes", "ps",
                                          "--wire", wire, "--staleness", 2, *words)
                other = self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], *words)
                self.assertEqual([first.wait(), other.wait()], [0, 0], first.output)
                self.assertLess(deviation(exact, small_run.snapshot_of(self.cluster.folder, "late", 50)), 0.1)

    def test_the_bytes_on_the_sockets_are_those_of_the_format(self):
        nodes, hidden, clocks = 2, 256, 100
        for wire in "float32", "float16", "bfloat16", "int8", "int4":
            with self.subTest(wire):
                sent = []
                for iterations in (10, 10 + clocks):  # the difference is without the first values
                    self.train(wire, nodes, iterations=iterations, hidden=hidden, text=small_run.ONE_LAYER, options=["--log-level", "debug"])
                    sent.append([self.socket_bytes(node) for node in self.last])
                # Gradients to the other's shard, updates from the own.
                theory = 2 * (bytes_of(wire, hidden * 28 * 28) + bytes_of(wire, hidden)) * (nodes - 1) / nodes
                for before, after in zip(*sent):
                    self.assertAlmostEqual((after - before) / clocks / theory, 1, delta=0.02 if theory > 1e5 else 0.05)

    def test_a_file_names_layers_and_joiners_are_told(self):
        file = self.cluster.folder / "wire"
        file.write_text("# measured\nip1 float16\nconv1 bfloat16\n")
        self.train(file, iterations=3, options=["--log-level", "debug"])
        for node in self.last:
            self.assertRegex(node.output, r"route conv1/0: \S+, parameter_server, bfloat16, ")
            self.assertRegex(node.output, r"route ip1/0: \S+, parameter_server, float16, ")
            self.assertRegex(node.output, r"route ip2/0: \S+, parameter_server, \d")
        file.write_text("ip1 int4\nip2 bfloat16\n")
        self.train(file, iterations=3, options=["--log-level", "debug"])
        for node in self.last:
            self.assertRegex(node.output, r"route conv1/0: \S+, parameter_server, \d")
            self.assertRegex(node.output, r"route ip1/0: \S+, parameter_server, int4, ")
            self.assertRegex(node.output, r"route ip1/1: \S+, parameter_server, \d")
            self.assertRegex(node.output, r"route ip2/0: \S+, parameter_server, bfloat16, ")
        # What goes by factors has one format.
        self.train("float16", routes="sfb", iterations=3)
        self.assertIn("wire: float16 for conv1", self.last[0].lines)

    def test_a_resumed_run_goes_on(self):
        options = {"iterations": 8, "more": "snapshot: 3"}
        for wire, tolerance in (("float16", 1e-3), ("int8", 2e-3), ("int4", 0.03)):
            with self.subTest(wire):
                whole = self.train(wire, **options)
                state = str(whole).replace("_iter_8.caffemodel", "_iter_3.solverstate")
                self.assertLess(deviation(whole, self.train(wire, snapshot=state, **options)), tolerance)

    def test_the_choice_of_routes_knows_the_bytes(self):
        path = small_run.solver(self.cluster.folder, "explained", hidden=256)
        said = {}
        for wire in ("float32", "float16", "int8", "int4"):
            node = self.cluster.node("--solver", path, "--nodes", 8, "--routes", "auto:100", "--wire", wire, "--explain-routes=json")
            self.assertEqual(node.wait(), 0, node)
            said[wire] = [float(x) for x in re.findall(r'"parameter_server":{"bytes":([\d.e+]+)', node.output)]
        self.assertEqual(len(said["float32"]), 2)
        for exact, half in zip(said["float32"], said["float16"]):
            self.assertAlmostEqual(half / exact, 0.5, delta=1e-6)
        for wire in "int8", "int4":  # of ip2 all is small
            self.assertAlmostEqual(said[wire][0] / said["float32"][0], bytes_of(wire, 1152 * 256) / (4 * 1152 * 256), delta=0.002)
            self.assertEqual(said[wire][1], said["float32"][1])

    def refused(self, wire, *says):
        path = small_run.solver(self.cluster.folder, "s")
        node = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--wire", wire)
        self.assertEqual(node.wait(), 2, node.output)
        self.assertEqual(len(node.errors), 1, node.errors)
        for word in says:
            self.assertIn(word, node.errors[0])

    def test_formats_that_cannot_be_are_refused_before_a_node_joins(self):
        self.refused("fp16", "--wire fp16", "none of float32, float16, bfloat16, int8 and int4")
        file = self.cluster.folder / "wire"
        file.write_text("ip1 float16\nip3 float16\n")
        self.refused(file, "wire:2", '"ip3"', 'Did you mean "ip1"?')
        file.write_text("ip1 int4\nip2 int8\n")
        self.refused(file, "wire:2", 'layer "ip2" has no parameter of 4096 values or more')
        file.write_text("pool1 float16\n")
        self.refused(file, "wire:1", "pool1", "learns nothing")
        node = self.cluster.node("--join", "127.0.0.1:1", "--wire", "float16")
        self.assertEqual(node.wait(), 2, node.output)
        self.assertIn("--wire", node.errors[0])


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
