# tests/cluster/routes_test.py - factor_broadcast trains what the parameter server trains, with the bytes of its theory.
import json
import re

import cluster
import loss_run
import small_run

LENET = """
name: "lenet"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
layer {{ name: "conv1" type: "Convolution" bottom: "data" top: "conv1" param {{ lr_mult: 1 }} param {{ lr_mult: 2 }}
  convolution_param {{ num_output: 20 kernel_size: 5 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param {{ pool: MAX kernel_size: 2 stride: 2 }} }}
layer {{ name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2" param {{ lr_mult: 1 }} param {{ lr_mult: 2 }}
  convolution_param {{ num_output: 50 kernel_size: 5 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2" pooling_param {{ pool: MAX kernel_size: 2 stride: 2 }} }}
layer {{ name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1" param {{ lr_mult: 1 }} param {{ lr_mult: 2 }}
  inner_product_param {{ num_output: 500 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }}
layer {{ name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" param {{ lr_mult: 1 }} param {{ lr_mult: 2 }}
  inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }}
"""

# As in LeCun et al. (1998): averages and tanh. Nothing in it jumps, so roundings stay roundings for as long as it trains;
# behind a maximum or a ReLU two values can come so close that a last bit decides which of them has a gradient.
LENET5 = LENET.replace("pool: MAX", "pool: AVE").replace('"ReLU"', '"TanH"')

# AlexNet's kinds of layers. fc6 lies transposed, fc7 has no bias, and fc6's bottom has another reader.
ALEXNET = """
name: "little alexnet"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
layer {{ name: "conv1" type: "Convolution" bottom: "data" top: "conv1" param {{ lr_mult: 1 }} param {{ lr_mult: 2 decay_mult: 0 }}
  convolution_param {{ num_output: 16 kernel_size: 5 stride: 2 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }}
layer {{ name: "norm1" type: "LRN" bottom: "conv1" top: "norm1" lrn_param {{ local_size: 5 alpha: 0.0001 beta: 0.75 }} }}
layer {{ name: "pool1" type: "Pooling" bottom: "norm1" top: "pool1" pooling_param {{ pool: MAX kernel_size: 3 stride: 2 }} }}
layer {{ name: "fc6" type: "InnerProduct" bottom: "pool1" top: "fc6" param {{ lr_mult: 1 }} param {{ lr_mult: 2 decay_mult: 0 }}
  inner_product_param {{ num_output: 96 transpose: true weight_filler {{ type: "xavier" }} bias_filler {{ type: "constant" value: 0.1 }} }} }}
layer {{ name: "relu6" type: "ReLU" bottom: "fc6" top: "fc6" }}
layer {{ name: "drop6" type: "Dropout" bottom: "fc6" top: "fc6" dropout_param {{ dropout_ratio: 0.5 }} }}
layer {{ name: "fc7" type: "InnerProduct" bottom: "fc6" top: "fc7"
  inner_product_param {{ num_output: 64 bias_term: false weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "relu7" type: "ReLU" bottom: "fc7" top: "fc7" }}
layer {{ name: "drop7" type: "Dropout" bottom: "fc7" top: "fc7" dropout_param {{ dropout_ratio: 0.5 }} }}
layer {{ name: "fc8" type: "InnerProduct" bottom: "fc7" top: "fc8" param {{ lr_mult: 1 }} param {{ lr_mult: 0 }}
  inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "side" type: "InnerProduct" bottom: "pool1" top: "side" inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "sum" type: "Eltwise" bottom: "fc8" bottom: "side" top: "sum" }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "sum" bottom: "label" top: "loss" }}
"""

# LeNet's own solver.
RULE = 'lr_policy: "inv" gamma: 0.0001 power: 0.75 momentum: 0.9'
ITERATIONS = 50
TOLERANCE = 1e-5


class Routes(small_run.Trained):
    def train(self, nodes, routes, seed=5, **options):
        solver = {"iterations": ITERATIONS, "rule": RULE, "lr": 0.01}
        return self.run_to_end(nodes, ["--routes", routes, "--seed", seed], **{**solver, **options})

    def close(self, one, other, tolerance=TOLERANCE):
        apart = small_run.deviations(one, other, 1e-30)
        worst = max(apart, key=apart.get)
        self.assertLess(apart[worst], tolerance, worst)

    def close_from_two_of_three_seeds(self, nodes, **options):
        """Where a ReLU's input or a pool's best two lie within rounding of each other, sums in another order take the other
        side, and the runs part by a unit's gradient. That happens to a run in ten or so, of each kind of processor another."""
        def train(seed):
            return [self.train(nodes, routes, seed, **options) for routes in ("ps", "sfb")]
        first = train(5)
        try:
            self.close(*first)
        except AssertionError as apart:
            print(f"{nodes} nodes, seed 5: {apart}; so seeds 6 and 7", flush=True)
            self.close(*first, 0.01)
            for seed in (6, 7):
                self.close(*train(seed))

    def test_factors_train_what_the_server_trains_on_two_three_and_four_nodes(self):
        """Each net on one number of nodes; with cluster.ALL on each."""
        nets = ("lenet-5", LENET5, 50), ("lenet", LENET, 20), ("alexnet", ALEXNET, 50)
        for (net, text, iterations), nodes in loss_run.crossed(self.id(), nets, (2, 3, 4)):
            with self.subTest(net, nodes=nodes):
                self.close_from_two_of_three_seeds(nodes, text=text, iterations=iterations, batch=8)

    def test_two_runs_with_factors_give_the_same_bits(self):
        one = self.train(3, "sfb", text=ALEXNET)
        self.assertIn("routes: factor_broadcast for fc6, fc7, fc8, side", self.last[0].lines)
        cluster.assert_same_weights(one, self.train(3, "sfb", text=ALEXNET))

    def test_replicas_and_micro_batches_pack_their_own_rows(self):
        server = self.train(2, "ps", batch=16, iter_size=2, text=ALEXNET)
        for devices, batch, iter_size in (("cpu:2", 32, 1), ("cpu:1", 16, 2)):
            with self.subTest(devices):
                self.close(server, self.train(2, "sfb", devices=devices, batch=batch, iter_size=iter_size, text=ALEXNET))
        self.close(self.train(2, "ps", devices="cpu:2", batch=32, iter_size=2, text=LENET5),
                   self.train(2, "sfb", devices="cpu:2", batch=32, iter_size=2, text=LENET5))

    def test_factors_of_several_frames_arrive_whole(self):
        options = {"batch": 64, "iter_size": 12, "iterations": 3, "text": small_run.ONE_LAYER}  # v: 2.4 MB
        self.close(self.train(2, "ps", **options), self.train(2, "sfb", **options))

    def test_every_solver_keeps_its_state_where_the_update_is_made(self):
        for rule in ('type: "Nesterov" lr_policy: "fixed" momentum: 0.9', 'type: "Adam" lr_policy: "fixed" momentum: 0.9'):
            with self.subTest(rule):
                options = {"rule": rule, "lr": 0.001, "iterations": 20}
                self.close(self.train(2, "ps", **options), self.train(2, "sfb", **options))

    def test_a_file_routes_layer_by_layer(self):
        routes = self.cluster.folder / "routes"
        routes.write_text("# measured\nip1 sfb\nip2 ps\n")
        mixed = self.train(2, routes, text=LENET5)
        self.assertIn("routes: factor_broadcast for ip1", self.last[0].lines)
        self.close(self.train(2, "ps", text=LENET5), mixed)

    def test_a_resumed_run_goes_on_with_the_state_of_every_route(self):
        options = {"iterations": 8, "more": "snapshot: 3", "batch": 16}
        whole = self.train(2, "sfb", **options)
        state = str(whole).replace("_iter_8.caffemodel", "_iter_3.solverstate")
        cluster.assert_same_weights(whole, self.train(2, "sfb", snapshot=state, **options))
        # On other numbers of nodes, and on the other route.
        self.close(whole, self.train(2, "ps", snapshot=state, **options))
        self.close(whole, self.train(4, "sfb", snapshot=state, **{**options, "batch": 8}))
        self.close(whole, self.train(1, "ps", snapshot=state, iter_size=2, **options))

    def test_a_state_of_one_node_resumes_with_factors(self):
        options = {"iterations": 8, "more": "snapshot: 3"}
        whole = self.train(1, "ps", batch=16, iter_size=3, **options)
        state = str(whole).replace("_iter_8.caffemodel", "_iter_3.solverstate")
        self.close(whole, self.train(3, "sfb", snapshot=state, batch=16, **options))

    def test_the_bytes_on_the_sockets_are_those_of_the_theory(self):
        nodes, batch, outputs, inputs, clocks = 3, 64, 256, 28 * 28, 100
        sent = []
        for iterations in (10, 10 + clocks):  # the difference is without the first values
            self.train(nodes, "sfb", iterations=iterations, batch=batch, hidden=outputs, text=small_run.ONE_LAYER,
                       options=["--log-level", "debug"])
            sent.append([self.socket_bytes(node) for node in self.last])
        theory = 4 * batch * (outputs + inputs) * (nodes - 1)
        for before, after in zip(*sent):
            self.assertAlmostEqual((after - before) / clocks / theory, 1, delta=0.02)

    def test_more_replicas_in_a_node_put_no_more_bytes_on_the_wire(self):
        for routes in ("ps", "sfb"):
            sent = {}
            for devices in ("cpu:1", "cpu:2", "cpu:4"):
                self.train(2, routes, devices=devices, iterations=40, batch=32, hidden=256, options=["--log-level", "debug"])
                sent[devices] = [self.socket_bytes(node) for node in self.last]
            for one, two, four in zip(*sent.values()):
                self.assertGreater(one, 1e6)
                # Twice the values would be 2. Heartbeats and reports are more of the bytes the longer a run lasts.
                self.assertLess(two / one, 1.5, routes)
                self.assertLess(four / one, 1.5, routes)

    def test_the_trace_has_every_value_of_a_layer_once_for_each_peer(self):
        trace = self.cluster.folder / "trace.json"
        self.runs += 1
        path = small_run.solver(self.cluster.folder, "traced", iterations=5, text=LENET)
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 3, "--devices", "cpu:1",
                                  "--routes", "sfb", "--trace", trace)
        address = first.wait_for(cluster.LISTENING)[1]
        others = [self.cluster.node("--join", address, "--devices", "cpu:1") for _ in range(2)]
        self.assertEqual([n.wait() for n in [first, *others]], [0, 0, 0])
        t = cluster.Trace(trace)
        for layer, values in (("ip1", 16 * (500 + 800)), ("ip2", 16 * (10 + 500))):
            for clock in range(5):
                for phase, lane in (("broadcast", "out$"), ("collect", "in$")):
                    spans = t.find(layer, phase, lane=lane, clock=clock)
                    self.assertEqual(sum(s["args"]["bytes"] for s in spans), 2 * 4 * values, (layer, clock, phase))
        self.assertEqual(t.find("ip1", "push"), [])

    def refused(self, text, *says, more=""):
        routes = self.cluster.folder / "routes"
        routes.write_text(text)
        path = small_run.solver(self.cluster.folder, "s", more=more)
        node = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--routes", routes)
        self.assertEqual(node.wait(), 2, node.output)
        self.assertEqual(len(node.errors), 1, node.errors)
        for word in says:
            self.assertIn(word, node.errors[0])

    def test_routes_that_cannot_be_are_refused_before_a_node_joins(self):
        self.refused("ip1 sfb\nip3 sfb\n", "routes:2", '"ip3"', 'Did you mean "ip1"?')
        self.refused("conv1 sfb\n", "routes:1", "conv1", "InnerProduct")
        self.refused("ip1 udp\n", "routes:1", "ip1 udp")
        self.refused("ip1 sfb\n", "routes:1", "clip_gradients", more="clip_gradients: 1")

    def test_a_solver_that_needs_all_gradients_says_so_and_stays_on_the_server(self):
        self.train(2, "sfb", iterations=3, more="clip_gradients: 1")
        said = [line for line in self.last[0].lines if line.startswith("routes:")]
        self.assertEqual(len(said), 1)
        self.assertIn("clip_gradients", said[0])

    def test_the_costs_of_routes_are_explained_without_training(self):
        path = small_run.solver(self.cluster.folder, "explained", hidden=256)
        words = ["--solver", path, "--nodes", 8]
        table = self.cluster.node(*words, "--routes", "auto:100", "--explain-routes")
        self.assertEqual(table.wait(), 0, table)
        for word in ("100 Mbit/s", "256 x 1152", "16x8", "ip1", "factor_broadcast", "ip2"):
            self.assertIn(word, table.output)
        node = self.cluster.node(*words, "--routes", "auto:100", "--explain-routes=json")
        self.assertEqual(node.wait(), 0, node)
        said = json.loads(node.output)
        self.assertEqual((said["nodes"], [r["layer"] for r in said["routes"]]), (8, ["ip1", "ip2"]))
        ip1 = said["routes"][0]
        self.assertEqual(ip1["factor_broadcast"]["bytes"], 4 * 16 * (256 + 1152) * 7)
        self.assertAlmostEqual(ip1["parameter_server"]["bytes"], 8 * (256 * 1152 + 256) * 7 / 8)
        self.assertEqual(ip1["choice"], "factor_broadcast")  # 630 kB for 2 MB, at 100 Mbit/s
        fixed = self.cluster.node(*words, "--routes", "ps", "--explain-routes=json")
        self.assertEqual(fixed.wait(), 0, fixed)
        self.assertEqual({r["choice"] for r in json.loads(fixed.output)["routes"]}, {"parameter_server"})

    def test_auto_broadcasts_where_that_is_faster_and_all_nodes_agree(self):
        path = small_run.solver(self.cluster.folder, "auto", hidden=512, iterations=3)
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:1",
                                  "--routes", "auto:1")
        address = first.wait_for(cluster.LISTENING)[1]
        other = self.cluster.node("--join", address, "--devices", "cpu:1", "--log-level", "debug")
        self.assertEqual([first.wait(), other.wait()], [0, 0], first)
        self.assertIn("routes: factor_broadcast for ip1", first.lines)  # at 1 Mbit/s bytes decide; ip2 has few
        self.assertRegex(other.output, r"route ip1/0: 512x1152, factor_broadcast")
        self.assertRegex(other.output, r"route ip2/0: 10x512, parameter_server")
        for node in (first, other):
            self.assertIn("results: equal to one node with iter_size 2 up to rounding: ip1 broadcasts factors; "
                          "--routes ps keeps the bits", node.lines)
        # The choice is kept, and repeats the run.
        kept = self.cluster.folder / "auto.routes"
        self.assertIn(f"routes: --routes {kept} repeats this choice", first.lines)
        self.assertEqual([line for line in kept.read_text().splitlines() if not line.startswith("#")], ["ip1 sfb", "ip2 ps"])
        repeated = self.run_to_end(2, ["--routes", kept], hidden=512, iterations=3)
        cluster.assert_same_weights(small_run.snapshot_of(self.cluster.folder, "auto", 3), repeated)

    def test_the_first_lines_say_what_the_results_equal(self):
        for routes, options, promise in (
                ("ps", {"iter_size": 3}, "results: bit-equal to one node with iter_size 6"),
                ("sfb", {}, "results: equal to one node with iter_size 2 up to rounding: ip1, ip2 broadcast factors; "
                            "--routes ps keeps the bits"),
                ("ps", {"more": "poseidon { staleness: 1 }"},
                 "results: not those of one node with iter_size 2: parameters may be 1 iteration old (staleness)")):
            with self.subTest(routes, **options):
                self.train(2, routes, iterations=2, **options)
                for node in self.last:
                    self.assertIn(promise, node.lines)

    def test_links_are_timed_when_there_is_a_choice_and_no_option_says_their_rate(self):
        path = small_run.solver(self.cluster.folder, "timed", hidden=512, iterations=3)
        for words, timed in (([], True), (["--routes", "auto:100"], False), (["--routes", "ps"], False)):
            first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 3, "--devices", "cpu:1", *words)
            address = first.wait_for(cluster.LISTENING)[1]
            others = [self.cluster.node("--join", address, "--devices", "cpu:1") for _ in range(2)]
            self.assertEqual([n.wait() for n in (first, *others)], [0, 0, 0], first)
            rates = [int(found[1]) for line in first.lines
                     if (found := re.match(r"routes: this node's links carry (\d+) Mbit/s together, as measured$", line))]
            self.assertEqual(len(rates), timed, first.output)
            self.assertTrue(all(rate > 0 for rate in rates), rates)

    def test_survivors_of_a_lost_node_keep_what_was_trained(self):
        self.assert_survivors_keep_what_was_trained("sfb", r"^iteration 20/", more="snapshot: 0")


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
