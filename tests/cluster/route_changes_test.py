# tests/cluster/route_changes_test.py - routes change during a run, and no training is lost.
import re
import signal
import subprocess

import cluster
import faulty_wire
import loss_run
import small_run

CHANGED = re.compile(r"routes: from iteration (\d+) on: (.*)")
ITERATIONS = 12
# Two layers on nodes that compute as slowly as CPUs: factors are worth it on a slow wire only.
PERCEPTRON = """
name: "perceptron"
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { crop_size: 28 }
  data_param { source: "none" batch_size: 512 backend: LMDB } }
layer { name: "fc1" type: "InnerProduct" bottom: "data" top: "fc1" inner_product_param { num_output: 2048 weight_filler { type: "xavier" } } }
layer { name: "fc2" type: "InnerProduct" bottom: "fc1" top: "fc2" inner_product_param { num_output: 2048 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc2" bottom: "label" top: "loss" }
"""
SLOW_BYTES_S, FAST_BYTES_S = 2.5e5, 2.5e6  # so that a rate is measured over longer than a busy machine lets a process wait
# Nothing in it jumps, so that a last bit stays one (routes_test.py).
SMOOTH = small_run.NET.replace("pool: MAX", "pool: AVE").replace('"ReLU"', '"TanH"')


class RouteChanges(small_run.Trained):
    def train(self, nodes, routes, **options):
        if "\n" in routes:
            path = self.cluster.folder / f"routes{self.runs}"
            path.write_text(routes)
            routes = path
        return self.run_to_end(nodes, ["--routes", routes], **{"iterations": ITERATIONS, **options})

    def changes(self, node):
        return [(int(m[1]), m[2]) for line in node.lines if (m := CHANGED.match(line))]

    def state_of(self, snapshot, iteration):
        return str(snapshot).replace(f"_iter_{ITERATIONS}.caffemodel", f"_iter_{iteration}.solverstate")

    def test_a_change_goes_on_with_the_values_and_the_state_of_a_resumed_run_bit_for_bit(self):
        # The resumed run has its state from a file and the new routes from its first clock on.
        there, back = "@4 ip1 sfb\n", "ip1 sfb\nip2 sfb\n@4 ip1 ps\n@4 ip2 ps\n"
        rules = 'lr_policy: "fixed" momentum: 0.9', 'type: "Adam" lr_policy: "fixed" momentum: 0.9'
        for nodes, routes, rule in loss_run.crossed(self.id(), (2, 3), (there, back), rules):
            with self.subTest(routes, nodes=nodes, rule=rule):
                options = {"more": "snapshot: 4", "rule": rule, "lr": 0.002, "norm": True}
                changed = self.train(nodes, routes, **options)
                for node in self.last:
                    self.assertEqual([clock for clock, _ in self.changes(node)], [4], node.output)
                    promises = [line for line in node.lines if line.startswith("results: ")]
                    self.assertEqual(["broadcast" in line for line in promises], [routes == back, routes == there],
                                     node.output)
                resumed = self.train(nodes, routes, snapshot=self.state_of(changed, 4), **options)
                self.assertEqual(self.changes(self.last[0]), [])
                cluster.assert_same_weights(changed, resumed)
                cluster.assert_same_state(self.state_of(changed, ITERATIONS), self.state_of(resumed, ITERATIONS))

    def test_a_run_that_changes_there_and_back_trains_what_one_that_never_does_trains(self):
        routes = "ip1 ps\n@3 ip1 sfb\n@5 ip1 ps\n@6 ip1 sfb\n@6 ip2 sfb\n@9 ip1 ps\n@9 ip2 ps\n"
        for nodes in (2, 3):
            for more in ({}, {"devices": "cpu:2", "batch": 32}, {"iter_size": 2}):
                more["text"] = SMOOTH
                with self.subTest(nodes=nodes, more=more.keys()):
                    changed = self.train(nodes, routes, **more)
                    self.assertEqual(self.changes(self.last[-1]), [
                        (3, "ip1 to factor_broadcast"), (5, "ip1 to parameter_server"),
                        (6, "ip1 to factor_broadcast, ip2 to factor_broadcast"),
                        (9, "ip1 to parameter_server, ip2 to parameter_server")])
                    apart = small_run.deviations(self.train(nodes, "ps", **more), changed, 1e-30)
                    self.assertLess(max(apart.values()), 1e-5, apart)

    def test_what_is_shown_goes_on_as_if_nothing_had_been(self):
        tests = "test_iter: 3 test_interval: 4"
        shown = []
        for routes in ("ps", "@3 ip2 sfb\n@4 ip2 ps\n@8 ip2 sfb\n"):
            self.train(2, routes, more=tests)
            shown.append([re.sub(r" *(\d+ ms|[\d.]+ images/s).*", "", line) for line in self.last[0].lines
                          if re.match(r"(iteration|test)", line)])
        self.assertEqual(len(shown[0]), len(shown[1]))
        for before, after in zip(*shown):
            numbers = [[float(x) for x in re.findall(r"\d+\.?\d*(?:e-?\d+)?", line)] for line in (before, after)]
            self.assertEqual(len(numbers[0]), len(numbers[1]), (before, after))
            for one, other in zip(*numbers):
                self.assertAlmostEqual(one, other, delta=1e-3, msg=(before, after))

    def test_a_run_that_is_stopped_around_a_change_ends_whole(self):
        for at in (1, 4, 5):
            with self.subTest(clock=at):
                path = small_run.solver(self.cluster.folder, f"stopped{at}", iterations=cluster.ENDLESS)
                routes = self.cluster.folder / "many"
                routes.write_text("".join(f"@{clock} ip1 {'sfb' if clock % 2 else 'ps'}\n" for clock in range(1, 200)))
                first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:1",
                                          "--routes", routes)
                address = first.wait_for(cluster.LISTENING)[1]
                other = self.cluster.node("--join", address, "--devices", "cpu:1")
                for node in (first, other):  # a node that has not begun yet would leave without a snapshot
                    node.wait_for(rf"^routes: from iteration {at} on")
                (first if at == 4 else other).signal(signal.SIGINT)
                self.assertEqual([first.wait() in (0, 130), other.wait() in (0, 130)], [True, True], first.output + other.output)
                snapshots = list(self.cluster.folder.glob(f"stopped{at}_iter_*.solverstate"))
                self.assertEqual(len(snapshots), 1, first.output)

    def test_survivors_of_a_node_that_is_lost_among_changes_keep_what_was_trained(self):
        routes = self.cluster.folder / "many"
        routes.write_text("".join(f"@{clock} ip1 {'sfb' if clock % 2 else 'ps'}\n" for clock in range(1, 5000)))
        self.assert_survivors_keep_what_was_trained(routes, r"^routes: from iteration 8 on")

    def test_stale_parameters_are_waited_for_before_a_change(self):
        trained = self.train(2, "@5 ip1 sfb\n@8 ip1 ps\n", options=["--log-level", "debug"], more="poseidon { staleness: 2 }")
        self.assertEqual([clock for clock, _ in self.changes(self.last[0])], [5, 8])
        self.assertTrue(trained.exists())

    def test_routes_move_back_when_a_slow_wire_becomes_fast_although_training_leaves_it_idle(self):
        folder = self.cluster.folder
        (folder / "net").write_text(PERCEPTRON)
        (folder / "solver").write_text(f'net: "{folder}/net" base_lr: 0.001 lr_policy: "fixed" max_iter: {cluster.ENDLESS} display: 1 '
                                       f'snapshot_prefix: "{folder}/none" snapshot_after_train: false\n')
        subprocess.run([cluster.BIN / "poseidon-node", "time", "--model", folder / "net", "--synthetic", "--images-s", "500",
                        "--profile-out", folder / "profile"], check=True, stdout=subprocess.DEVNULL)
        replay = ["--devices", f"replay:{folder}/profile"]
        first = self.cluster.node("--solver", folder / "solver", "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", f"{replay[1]},bytes=0.04")
        with faulty_wire.FaultyWire(first.wait_for(cluster.LISTENING)[1]) as wire:
            wire.pace(SLOW_BYTES_S)
            second = self.cluster.node("--join", wire.address, *replay)
            first.wait_for(r"^routes: factor_broadcast for fc1, fc2")
            first.wait_for(r"^iteration 2/")
            wire.pace(FAST_BYTES_S)
            first.wait_for(r"^routes: a node's links carry \d+ Mbit/s together now, and carried \d+ when routes were chosen: "
                           r"fc1 to parameter_server, fc2 to parameter_server is to save \d+ %")
            for node in (first, second):
                node.wait_for(r"^view \d+: routes changed")
            first.stop()
            self.assertEqual(second.wait(), 0, second.output)

    def test_a_change_that_cannot_be_is_refused_before_a_node_joins(self):
        routes = self.cluster.folder / "routes"
        for text, words, says in (("@5 conv1 sfb\n", [], "conv1"), ("@x ip1 sfb\n", [], "@x"),
                                  ("@5 ip1 sfb\n", ["--wire", "float16"], "--wire")):
            with self.subTest(text):
                routes.write_text(text)
                path = small_run.solver(self.cluster.folder, "refused")
                node = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--routes", routes, *words)
                self.assertEqual(node.wait(), 2, node.output)
                self.assertEqual(len(node.errors), 1, node.errors)
                self.assertIn(says, node.errors[0])


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
