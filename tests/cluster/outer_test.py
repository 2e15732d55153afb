# tests/cluster/outer_test.py - nets with outer steps: against ordinary runs of one process each, bit for bit, as nodes come, go and are lost.
import json
import re

import cluster
import loss_run
import programs
import small_run

if __name__ == "__main__":
    programs.run_where("numpy")

import outer_oracle  # noqa: E402

AVERAGES = ("bn1/0", "bn1/1", "bn1/2")
FEW, MANY = "poseidon {{ outer_steps: {} }}", "poseidon {{ outer_steps: {} outer_rate: 0.7 outer_momentum: 0.5 }}"
RULES = {"SGD": 'lr_policy: "step" gamma: 0.5 stepsize: 5 momentum: 0.9', "Adam": 'type: "Adam" lr_policy: "fixed" momentum: 0.9'}


class OuterRun(loss_run.LossRun):
    """A run begins with weights, so that the oracle begins with the same ones."""

    def first_weights(self, **of_solver):
        """A .caffemodel, and history blobs of zeros. Of a run whose first iteration has changed nothing but running statistics."""
        path = small_run.solver(self.cluster.folder, "begin", **{**of_solver, "iterations": 1, "lr": 0, "more": ""})
        node = self.cluster.node("--solver", path, "--devices", "cpu:1")
        self.assertEqual(node.wait(), 0, node)
        weights = small_run.snapshot_of(self.cluster.folder, "begin", 1)
        return weights, outer_oracle.zeros_of(weights.with_suffix(".solverstate"))

    def oracle(self, every, rate=1, momentum=0, nesterov=True, **of_solver):
        """Its workers begin with zeros, which new_worker() gives."""
        self.weights, self.zeros = self.first_weights(**of_solver)
        path = small_run.solver(self.cluster.folder, "of_oracle", **of_solver)
        return outer_oracle.Outer(self.cluster, path, self.weights, every, rate, momentum, nesterov, AVERAGES)

    def new_worker(self):
        return outer_oracle.Worker(list(self.zeros))

    def train(self, nodes, *words, name="run", first=(), devices="cpu:1", **of_solver):
        """To the end. Returns the last snapshot."""
        path = small_run.solver(self.cluster.folder, name, **of_solver)
        options = ("--devices", devices, *self.OPTIONS)
        words = ["--solver", path, *words, *options]
        if nodes > 1:
            words += ["--listen", "127.0.0.1:0", "--nodes", nodes, *first]
        self.nodes = [self.cluster.node(*words)]
        if nodes > 1:
            address = self.nodes[0].wait_for(cluster.LISTENING)[1]
            self.nodes += [self.cluster.node("--join", address, *options) for _ in range(nodes - 1)]
        for node in self.nodes:
            self.assertEqual(node.wait(), 0, node)
        return small_run.snapshot_of(self.cluster.folder, name, of_solver["iterations"])

    def views(self, node):
        """(first clock, seats) of each view."""
        events = [json.loads(line) for line in node.lines if line.startswith("{")]
        views = [(e["first_clock"], e["members"]) for e in events if e["event"] == "view"]
        self.assertTrue(all(first % self.every == 0 for first, _ in views), views)
        return [(first // self.every, seats) for first, seats in views]

    def check_views(self, oracle, node):
        """The newest snapshot is what the oracle makes of the views of a node: who comes begins with zeros, who stays goes on."""
        snapshot = self.newest()
        end = int(re.search(r"_iter_(\d+)\.", snapshot.name)[1]) // self.every
        workers, views = {}, self.views(node)
        for (first, seats), last in zip(views, [v[0] for v in views[1:]] + [end]):
            self.assertEqual(oracle.clock, first)
            workers = {seat: workers.get(seat) or self.new_worker() for seat in seats}
            for _ in range(first, last):
                oracle.step([workers[seat] for seat in seats])
        oracle.check(snapshot)


class Exactness(OuterRun):
    def test_nodes_train_what_ordinary_runs_train(self):
        for nodes, rule, every, of_outer, text in ((2, "SGD", 2, {}, FEW), (3, "Adam", 3, {"rate": 0.7, "momentum": 0.5}, MANY)):
            with self.subTest(nodes=nodes, rule=rule), cluster.Cluster() as self.cluster:
                of_solver = {"iterations": 3 * every, "rule": RULES[rule], "lr": 0.002, "norm": True, "iter_size": nodes - 1}
                oracle = self.oracle(every, **of_outer, **of_solver)
                last = self.train(nodes, "--weights", self.weights, more=text.format(every), **of_solver)
                workers = [self.new_worker() for _ in range(nodes)]
                for _ in range(3):
                    oracle.step(workers)
                oracle.check(last)

    def test_the_first_line_says_that_it_is_another_algorithm(self):
        self.train(2, more=FEW.format(2), iterations=4)
        for node in self.nodes:
            node.wait_for("^results: not those of one machine: each of 2 nodes makes 2 iterations by itself, then all go on with the same parameters")

    def test_tests_snapshots_and_display_count_iterations(self):
        more = FEW.format(4) + " snapshot: 8 test_iter: 2 test_interval: 8"
        self.train(2, iterations=16, more=more)
        for clock in (0, 8, 16):
            self.nodes[0].wait_for(rf"^test iteration {clock}:")
        self.assertEqual(sorted(p.name for p in self.cluster.folder.glob("run_iter_*")),
                         sorted(f"run_iter_{n}.{kind}" for n in (8, 16) for kind in ("caffemodel", "solverstate")))
        told = re.findall(r"^iteration (\d+)/16", self.nodes[0].output, re.MULTILINE)
        self.assertEqual(told, ["0", "4", "8", "12"])

    def test_a_resumed_run_goes_on_with_the_outer_momentum_and_without_that_of_its_nodes(self):
        of_solver = {"rule": RULES["SGD"], "lr": 0.002, "iterations": 6}
        oracle = self.oracle(2, 0.7, 0.5, **of_solver)
        more = MANY.format(2)
        self.train(2, "--weights", self.weights, more=more, **{**of_solver, "iterations": 4})
        state = self.cluster.folder / "run_iter_4.solverstate"
        last = self.train(2, "--snapshot", state, more=more, name="resumed", **of_solver)
        for steps in (2, 1):
            workers = [self.new_worker() for _ in range(2)]
            for _ in range(steps):
                oracle.step(workers)
        oracle.check(last)

    def test_every_wire_format_goes_with_it(self):
        of_solver = {"iterations": 12, "lr": 0.005, "hidden": 64, "more": FEW.format(4)}
        exact = self.train(2, **of_solver)
        for wire, tolerance in (("bfloat16", 2e-3), ("int8", 5e-3), ("int4", 5e-2)):
            with self.subTest(wire):
                one, again = (self.train(2, first=("--wire", wire), name=f"{wire}{n}", **of_solver) for n in range(2))
                cluster.assert_same_weights(one, again)
                distance = max(small_run.deviations(exact, one, 1e-2).values())
                self.assertGreater(distance, 0)
                self.assertLess(distance, tolerance)

    def test_an_outer_step_of_each_iteration_is_nearly_an_ordinary_run(self):
        of_solver = {"iterations": 8, "lr": 0.005, "rule": 'lr_policy: "fixed"'}
        outer = self.train(2, more=FEW.format(1), name="outer", **of_solver)
        plain = self.train(2, first=("--routes", "ps"), name="plain", **of_solver)
        self.assertLess(max(small_run.deviations(outer, plain, 1e-2).values()), 1e-4)

    def test_fewer_bytes_travel(self):
        sent = []
        for more in ("", FEW.format(8)):
            self.train(2, "--log-level", "debug", first=("--routes", "ps", "--survive", 0), iterations=64, lr=0.002, hidden=512, more=more)
            found = re.findall(r"link to worker \d+ \([^)]*\): ([\d.]+) MB in", self.nodes[0].output)
            sent.append(sum(float(x) for x in found))
        self.assertLess(sent[1], sent[0] / 6)


class Changes(OuterRun):
    """Iterations take long, so that the oracle has few of them to make."""
    EVERY = 2
    OF_SOLVER = {"rule": RULES["SGD"], "norm": True, "lr": 0.002, "iter_size": 100, "iterations": cluster.ENDLESS // EVERY * EVERY}

    def run_of(self, nodes):
        self.every = self.EVERY
        oracle = self.oracle(self.EVERY, 0.7, 0.5, **self.OF_SOLVER)
        return oracle, self.begin(nodes, "--weights", self.weights, more=MANY.format(self.EVERY), **self.OF_SOLVER)

    def test_a_node_that_is_killed_loses_its_own_and_the_others_go_on(self):
        oracle, nodes = self.run_of(3)
        self.others_go_on(nodes, loss_run.KILLED, 1, check=lambda leader: self.check_views(oracle, leader))

    def test_the_first_node_can_be_killed_too(self):
        oracle, nodes = self.run_of(3)
        self.trained(nodes[0], self.EVERY)
        self.others_go_on(nodes, loss_run.KILLED, 0, check=lambda leader: self.check_views(oracle, nodes[1]))

    def test_a_node_that_joins_begins_with_the_parameters_of_all(self):
        oracle, nodes = self.run_of(1)
        self.join(self.address)
        self.trained(nodes[0], self.view(nodes[0], [0, 1])["first_clock"] + self.EVERY)
        nodes[0].stop()
        self.check_views(oracle, nodes[0])

    def test_a_node_that_leaves(self):
        oracle, nodes = self.run_of(3)
        nodes[2].signal(15)
        self.assertEqual(nodes[2].wait(), 143, nodes[2])
        self.trained(nodes[0], self.view(nodes[0], [0, 1])["first_clock"] + self.EVERY)
        nodes[0].stop()
        self.check_views(oracle, nodes[0])


class Refusals(small_run.MadeUp):
    BASE = 'net: "{}" base_lr: 0.01 lr_policy: "fixed" max_iter: 8 snapshot_prefix: "{}" '

    def said(self, more, *words, code=2):
        self.solver.write_text(self.BASE.format(self.net, self.folder / "s") + more)
        done = cluster.run("poseidon-node", *(words or ("check", self.solver)))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_what_does_not_fall_on_an_outer_step_is_refused_with_both_values(self):
        for more, said in (("poseidon { outer_steps: 3 }", "max_iter is 8, which is no multiple of outer_steps, 3"),
                           ("snapshot: 6 poseidon { outer_steps: 4 }", "snapshot is 6, which is no multiple of outer_steps, 4"),
                           ("clip_gradients: 1 poseidon { outer_steps: 4 }", "does not go with clip_gradients, which is 1"),
                           ("poseidon { outer_steps: 4 staleness: 1 }", "does not go with staleness, which is 1"),
                           ("poseidon { outer_momentum: 0.5 }", "outer_momentum is given without outer_steps")):
            with self.subTest(more):
                self.assertIn(said, self.said(more))

    def test_options_that_do_not_go_with_it_are_refused(self):
        for words, said in ((("--staleness", "1"), "does not go with staleness, which is 1"),
                            (("--batch-share", "auto", "--nodes", "2", "--listen", "127.0.0.1:0"), "--batch-share auto does not go with"),
                            (("--global-batch", "keep", "--nodes", "2", "--listen", "127.0.0.1:0"), "--global-batch keep does not go with")):
            with self.subTest(words):
                self.assertIn(said, self.said("poseidon { outer_steps: 4 }", "--solver", self.solver, *words))

    def test_check_says_how_much_travels_and_how_often(self):
        said = self.said("poseidon { outer_steps: 4 }", "check", self.solver, "--nodes", "2", code=0)
        self.assertIn("every 4 iterations (outer_steps)", said)

    def test_a_state_of_a_run_of_the_other_kind_is_refused(self):
        for wrote, more in (("", "poseidon { outer_steps: 4 }"), ("poseidon { outer_steps: 4 }", "")):
            self.said(wrote, "--solver", self.solver, code=0)
            state = self.folder / "s_iter_8.solverstate"
            self.assertIn("wrote this state, and this run is one with", self.said(more + " ", "--solver", self.solver, "--snapshot", state))


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
