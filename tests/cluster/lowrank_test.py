# tests/cluster/lowrank_test.py - gradients of low rank: the same bits in every run, few bytes, and nodes that come, go and are lost.
import json
import math
import re
import signal

import cluster
import routes_test
import small_run

ITERATIONS = 12
LOSS = re.compile(r"^iteration (\d+)\D.*?loss (\S+?)[,;]?(?:\s|$)", re.M)


class Lowrank(small_run.Trained):
    def train(self, nodes, *words, **options):
        return self.run_to_end(nodes, words or ["--routes", "lowrank"],
                               **{"iterations": ITERATIONS, "text": routes_test.LENET, "lr": 0.01, "rule": routes_test.RULE, **options})

    def test_two_runs_give_the_same_bits_on_two_and_three_nodes(self):
        for nodes in (2, 3):
            for words in (["--routes", "lowrank"], ["--routes", "lowrank", "--rank", 8]):
                with self.subTest(nodes=nodes, words=words):
                    cluster.assert_same_weights(self.train(nodes, *words), self.train(nodes, *words))

    def test_the_first_lines_say_which_layers_and_what_the_results_are(self):
        self.train(2, iterations=2)
        for node in self.last:
            self.assertIn("results: near those of one node with iter_size 2: by low rank, conv1, conv2, ip1, ip2 send a part of each gradient "
                          "and the rest later; --routes ps keeps the bits", node.lines)
        self.assertIn("routes: lowrank_4 for conv1, conv2, ip1, ip2", self.last[0].lines)

    def test_with_a_format_P_and_Q_are_rounded_and_nodes_have_the_same_bits_again(self):
        for nodes, wire, rounded in ((2, "bfloat16", "conv1, conv2, ip1, ip2"), (3, "int4", "conv2, ip1, ip2")):
            with self.subTest(wire=wire):
                runs = [self.train(nodes, "--routes", "lowrank", "--wire", wire) for _ in range(2)]
                self.assertIn(f"routes: lowrank_4_bfloat16 for {rounded}", self.last[0].lines)
                cluster.assert_same_weights(*runs)
        self.train(2, "--routes", "lowrank", "--wire", "bfloat16")
        kept = max(self.cluster.folder.glob("run*.routes"), key=lambda file: file.stat().st_mtime)
        self.assertIn("ip1 lowrank_4_bfloat16", kept.read_text())
        cluster.assert_same_weights(self.train(2, "--routes", kept), self.train(2, "--routes", kept, "--wire", "bfloat16"))

    def losses(self, *words):
        self.train(2, *words, iterations=60, text=small_run.ONE_LAYER, hidden=10, rule='lr_policy: "fixed" momentum: 0.9')
        return [float(loss) for _, loss in LOSS.findall(self.last[0].output)]

    def test_it_learns_as_the_server_does(self):
        server = self.losses("--routes", "ps")
        for words in (), ("--wire", "bfloat16"):
            lowrank = self.losses("--routes", "lowrank", *words)
            self.assertEqual(server[0], lowrank[0])
            fall = [sum(losses[:3]) - sum(losses[-3:]) for losses in (server, lowrank)]
            self.assertGreater(fall[0], 0)
            self.assertGreater(fall[1], 0.6 * fall[0], (server, lowrank))

    def test_replicas_micro_batches_and_other_solvers_train_the_same_bits_again(self):
        for options in ({"devices": "cpu:2", "iter_size": 2}, {"rule": 'type: "Adam" lr_policy: "fixed" momentum: 0.9', "lr": 0.001}):
            with self.subTest(**options):
                runs = [self.train(2, iterations=6, **options) for _ in range(2)]
                cluster.assert_same_weights(*runs)

    def test_with_staleness_it_trains_to_the_end(self):
        self.train(3, more="poseidon { staleness: 2 }")

    def test_a_file_of_routes_mixes_all_three_and_the_kept_one_repeats_it(self):
        routes = self.cluster.folder / "mixed"
        routes.write_text("conv2 lowrank_8\nip1 lowrank\nip2 sfb\n")
        mixed = self.train(3, "--routes", routes)
        kept = self.cluster.folder / "run1.routes"
        self.assertEqual([line for line in kept.read_text().splitlines() if not line.startswith("#")], ["conv2 lowrank_8", "ip1 lowrank_4", "ip2 sfb"])
        cluster.assert_same_weights(mixed, self.train(3, "--routes", kept))
        self.train(2, "--routes", routes, "--wire", "int8")

    def bytes_out(self, node):
        found = re.findall(r"link to worker \d+ \([^)]*\): ([\d.]+) (kB|MB) in", node.output)
        self.assertTrue(found, node.output)
        return sum(float(number) * {"kB": 1e3, "MB": 1e6}[unit] for number, unit in found)

    def test_the_bytes_on_the_sockets_are_those_of_the_theory(self):
        nodes, outputs, inputs, clocks = 3, 256, 28 * 28, 100
        for rank, wire, value in ((4, "float32", 4), (8, "float32", 4), (8, "bfloat16", 2), (4, "int4", 2)):
            sent = []
            for iterations in (10, 10 + clocks):  # the difference is without the first values
                self.train(nodes, "--routes", "lowrank", "--rank", rank, "--wire", wire, iterations=iterations, batch=16, hidden=outputs,
                           text=small_run.ONE_LAYER, options=["--log-level", "debug"])
                sent.append(sum(self.bytes_out(node) for node in self.last))
            # One node owns the layer: two send it their parts, and it sends each of them the sums. The bias goes beside P, as float32.
            theory = (value * rank * (outputs + inputs) + 4 * outputs) * 2 * (nodes - 1)
            self.assertAlmostEqual((sent[1] - sent[0]) / clocks / theory, 1, delta=0.2 / value)  # heads of frames count twice where values are halves

    def test_a_snapshot_resumes_on_other_nodes_and_routes(self):
        whole = self.train(2, more="snapshot: 6")
        state = str(whole).replace(f"_iter_{ITERATIONS}.caffemodel", "_iter_6.solverstate")
        for nodes, words in ((2, ["--routes", "lowrank"]), (3, ["--routes", "lowrank"]), (2, ["--routes", "ps"])):
            again = [self.train(nodes, *words, snapshot=state) for _ in range(2)]
            cluster.assert_same_weights(*again)

    # -- nodes come and go ----------------------------------------------------------------------------------------

    def begin(self, nodes, *options, routes="lowrank", **of_solver):
        path = small_run.solver(self.cluster.folder, "s", **{"iterations": cluster.ENDLESS, "text": routes_test.LENET, "lr": 0.002, **of_solver})
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", nodes, "--routes", routes, "--devices", "cpu:1", *options)
        self.address = first.wait_for(cluster.LISTENING)[1]
        others = []
        for worker in range(1, nodes):
            others.append(self.cluster.node("--join", self.address, "--devices", "cpu:1"))
            first.wait_for(f"worker {worker} joined from")
        return [first, *others]

    def test_the_same_views_from_a_file_train_the_same_bits_again(self):
        schedule = self.cluster.folder / "views"
        schedule.write_text("0 2\n5 3\n9 2\n14 3\n")
        trained = []
        for name in ("one", "two"):
            path = small_run.solver(self.cluster.folder, name, iterations=20, text=routes_test.LENET, lr=0.002)
            first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--views", schedule, "--nodes", 2, "--routes", "lowrank", "--devices", "cpu:1")
            address = first.wait_for(cluster.LISTENING)[1]
            for _ in range(3):
                self.cluster.node("--join", address, "--devices", "cpu:1")
            self.assertEqual(first.wait(), 0, first)
            for clock in (5, 9, 14):
                self.assertRegex(first.output, rf"train from iteration {clock} on")
            trained.append(small_run.snapshot_of(self.cluster.folder, name, 20))
        cluster.assert_same_weights(*trained)

    def test_a_node_joins_one_leaves_and_one_is_killed_and_the_others_train_on(self):
        first, one, two = self.begin(3)
        first.wait_for("^iteration 2")
        newcomer = self.cluster.node("--join", self.address, "--devices", "cpu:1")
        newcomer.wait_for("^joined: worker 3 of 4")
        first.wait_for("^view 2: .* 4 nodes train")
        two.signal(signal.SIGTERM)
        self.assertEqual(two.wait(), 143, two)
        first.wait_for(r"^view 3: worker 2 .* left, with what it had not sent of 4 layers; 3 nodes train")
        one.kill()
        first.wait_for(r"^view 4: worker 1 .* is lost, with what it had not sent of 4 layers; 2 nodes train")
        first.wait_for(r"^iteration \d+")
        first.stop()
        self.assertEqual(newcomer.wait(), 0, newcomer)
        losses = [float(loss) for _, loss in LOSS.findall(first.output)]
        self.assertTrue(losses and all(map(math.isfinite, losses)), first.output)

    def test_what_lossy_has_chosen_holds_when_nodes_come_and_go(self):
        first, one = self.begin(2, "--lossy", "lowrank", "--survive", 1, "--log-level", "debug", routes="auto:1")
        chosen = first.wait_for(r"^routes: lowrank_8_bfloat16 for (.*)")[1].split(", ")
        self.assertIn("ip1", chosen)
        first.wait_for("^lossy: up to lowrank was allowed. An iteration takes")
        first.wait_for("^iteration 1/")
        newcomer = self.cluster.node("--join", self.address, "--devices", "cpu:1", "--log-level", "debug")
        first.wait_for("^view 2: .* 3 nodes train")
        one.kill()
        first.wait_for(rf"^view 3: worker 1 .* is lost, with what it had not sent of {len(chosen)} layers; 2 nodes train")
        first.wait_for(r"^iteration \d+.*loss")
        first.stop()
        self.assertEqual(newcomer.wait(), 0, newcomer)
        ways = []
        for node in first, newcomer:
            routes = set(re.findall(r" route (\w+)/0: .*?, (lowrank_\d|parameter_server(?:, int\d)?)", node.output))
            self.assertEqual(len(routes), 4, node.output)  # one of each layer, in all views
            self.assertEqual({layer for layer, route in routes if route == "lowrank_8"}, set(chosen))
            ways.append(routes)
            self.assertNotIn("routes: from iteration", node.output)
        self.assertEqual(*ways)
        losses = [float(loss) for _, loss in LOSS.findall(first.output)]
        self.assertTrue(losses and all(map(math.isfinite, losses)), first.output)

    def test_of_two_one_goes_on_alone_and_another_one_joins_it(self):
        first, one = self.begin(2, "--survive", 1)
        first.wait_for("^iteration 3/")
        one.kill()
        first.wait_for(r"^view 2: worker 1 .* is lost, with what it had not sent of 4 layers; 1 node trains")
        newcomer = self.cluster.node("--join", self.address, "--devices", "cpu:1")
        newcomer.wait_for("^joined: worker 2 of 2")
        first.wait_for("^view 3: .* 2 nodes train")
        first.wait_for(r"^iteration \d+.*loss")
        first.stop()
        self.assertEqual(newcomer.wait(), 0, newcomer)

    def test_the_first_node_is_killed_and_the_others_train_on(self):
        first, one, two = self.begin(3)
        first.wait_for("^iteration 3")
        first.kill()
        leader = one if "worker 1 of" in one.output else two
        leader.wait_for("^this node leads from now on")
        leader.wait_for("^iteration .*loss")
        leader.stop()
        self.assertEqual((two if leader is one else one).wait(), 0)

    def test_survivors_of_a_lost_node_keep_what_was_trained(self):
        self.assert_survivors_keep_what_was_trained("lowrank", r"^iteration 20/", more="snapshot: 0", text=routes_test.LENET)

    # -- choosing -------------------------------------------------------------------------------------------------

    def test_the_costs_of_low_rank_are_explained_without_training(self):
        path = small_run.solver(self.cluster.folder, "explained", text=routes_test.LENET)
        words = ["--solver", path, "--nodes", 8, "--routes", "auto:10"]
        plain = self.cluster.node(*words, "--explain-routes")
        self.assertEqual(plain.wait(), 0, plain)
        self.assertNotIn("lowrank", plain.output)
        table = self.cluster.node(*words, "--rank", 8, "--explain-routes")
        self.assertEqual(table.wait(), 0, table)
        for word in ("lowrank MB", "50 x 500", "lowrank_8", "20 x 25 matrix would save less than half of its values"):
            self.assertIn(word, table.output)
        said = self.cluster.node(*words, "--rank", 8, "--explain-routes=json")
        self.assertEqual(said.wait(), 0, said)
        routes = {r["layer"]: r for r in json.loads(said.output)["routes"]}
        self.assertEqual(routes["conv2"]["choice"], "lowrank_8")
        self.assertAlmostEqual(routes["conv2"]["lowrank"]["bytes"], 8 * (8 * (50 + 500) + 50) * 7 / 8)

    def test_where_no_layer_can_the_true_reason_is_said(self):
        lenet = {"text": routes_test.LENET}
        for name, of_solver, reason in (("clipped", {**lenet, "more": "clip_gradients: 35"}, "clip_gradients needs the norm of all gradients"),
                                        ("debugged", {**lenet, "more": "debug_info: true"}, "debug_info prints gradients"),
                                        ("narrow", {"hidden": 4}, "no layer of this net would save half of its values at rank 8")):
            with self.subTest(name):
                path = small_run.solver(self.cluster.folder, name, **of_solver)
                said = self.cluster.node("--solver", path, "--nodes", 4, "--routes", "lowrank", "--rank", 8, "--explain-routes")
                self.assertEqual(said.wait(), 0, said)
                said.wait_for(f"^--routes lowrank has no effect: {reason}")

    def test_on_the_ladder_low_rank_is_the_last_rung_whatever_the_rank(self):
        path = small_run.solver(self.cluster.folder, "ladder", text=routes_test.LENET)
        rungs = {}
        for rank in (), ("--rank", 4):
            said = self.cluster.node("--solver", path, "--nodes", 4, "--routes", "auto:1", "--lossy", "lowrank", *rank, "--explain-routes=json")
            self.assertEqual(said.wait(), 0, said)
            rungs[rank] = [(rung["lossy"], rung["bytes"]) for rung in json.loads(said.output)["ladder"]["rungs"]]
        self.assertEqual([name for name, _ in rungs[()]], ["none", "bfloat16", "int8", "int4", "lowrank"])
        *milder, lowrank = rungs[()]
        *milder_of_4, lowrank_of_4 = rungs["--rank", 4]
        self.assertEqual(milder, milder_of_4)
        self.assertLess(lowrank_of_4[1], lowrank[1])

    def test_auto_takes_low_rank_only_with_a_rank(self):
        for words, taken in ((["--routes", "auto:1"], False), (["--routes", "auto:1", "--rank", 4], True)):
            self.train(2, *words, iterations=2)
            self.assertEqual("routes: lowrank_4 for" in self.last[0].output, taken, self.last[0].output)

    def refused(self, *says, routes=None, words=(), more=""):
        if routes:
            (self.cluster.folder / "routes").write_text(routes)
            words = [*words, "--routes", self.cluster.folder / "routes"]
        path = small_run.solver(self.cluster.folder, "refused", text=routes_test.LENET, more=more)
        node = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, *words)
        self.assertEqual(node.wait(), 2, node.output)
        for word in says:
            self.assertIn(word, node.errors[0])

    def test_what_cannot_be_is_refused_in_one_line(self):
        self.refused("--rank", "--routes", words=["--rank", 8, "--routes", "ps"])
        self.refused("--rank 8: --routes", "puts no layer on lowrank", routes="ip1 sfb\n", words=["--rank", 8])
        self.refused("routes:1", '"conv1"', "20 x 25 matrix would save less than half", routes="conv1 lowrank_8\n")
        self.refused("routes:2", "what low rank has kept back would be lost", routes="ip1 lowrank\n@5 ip2 sfb\n")
        self.refused("routes:1", "clip_gradients", routes="ip1 lowrank\n", more="clip_gradients: 1")
        self.refused("--rank", words=["--rank", 3, "--routes", "lowrank"])


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
