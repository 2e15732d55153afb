# tests/cluster/survive_test.py - copies of solver state change nothing of what is trained, and send nothing more.
import cluster
import small_run

ITERATIONS = 12
MOMENTUM = 'lr_policy: "inv" gamma: 0.1 power: 0.75 momentum: 0.9'
ADAM = 'type: "Adam" lr_policy: "fixed" momentum: 0.9'


class Survive(small_run.Trained):
    def train(self, nodes, survive, *words, **options):
        return self.run_to_end(nodes, ["--routes", "ps", "--survive", survive, *words], **{"iterations": ITERATIONS, "lr": 0.002, **options})

    def assert_same(self, one, other):
        cluster.assert_same_weights(one, other)
        cluster.assert_same_state(one.with_suffix(".solverstate"), other.with_suffix(".solverstate"))

    def test_nodes_with_copies_train_what_one_process_trains(self):
        for nodes in (2, 3):
            for rule in (MOMENTUM, ADAM):
                alone = self.train(1, 0, rule=rule, norm=True, iter_size=nodes)
                for survive in (0, 1, 2):
                    with self.subTest(nodes=nodes, rule=rule, survive=survive):
                        self.assert_same(alone, self.train(nodes, survive, rule=rule, norm=True))

    def test_copies_change_nothing_where_values_travel_rounded(self):
        for nodes in (2, 3):
            for form in ("bfloat16", "float16"):
                with self.subTest(nodes=nodes, form=form):
                    runs = [self.train(nodes, survive, "--wire", form, rule=ADAM, norm=True) for survive in (0, 1, 2)]
                    for one in runs[1:]:
                        self.assert_same(runs[0], one)

    def test_a_resumed_run_gives_its_state_to_keepers_too(self):
        whole = self.train(3, 1, rule=ADAM, more="snapshot: 4")
        state = str(whole).replace(f"_iter_{ITERATIONS}.caffemodel", "_iter_4.solverstate")
        for nodes in (3, 2):
            with self.subTest(nodes=nodes):
                resumed = [self.train(nodes, survive, rule=ADAM, snapshot=state) for survive in (0, 1)]
                self.assert_same(*resumed)
        self.assert_same(whole, self.train(3, 2, rule=ADAM, snapshot=state))

    def test_state_that_moves_between_the_routes_reaches_keepers(self):
        routes = self.cluster.folder / "routes"
        routes.write_text("ip1 ps\n@3 ip1 sfb\n@5 ip1 ps\n@6 ip1 sfb\n@6 ip2 sfb\n@9 ip1 ps\n@9 ip2 ps\n")
        for nodes in (2, 3):
            with self.subTest(nodes=nodes):
                self.assert_same(*[self.run_to_end(nodes, ["--routes", routes, "--survive", survive], iterations=ITERATIONS, rule=ADAM, lr=0.002)
                                   for survive in (0, 1)])

    def test_copies_send_no_more_bytes(self):
        for nodes in (2, 3):
            sent = []
            for survive in (0, 1, 2):
                self.run_to_end(nodes, ["--routes", "ps", "--survive", survive], options=["--log-level", "debug"],
                                iterations=30, lr=0.002, hidden=512)
                sent.append(sum(self.socket_bytes(node) for node in self.last))
            # Copies of the solver state would be half as much again. Heartbeats are more of the bytes the longer a run lasts.
            self.assertLess(max(sent[1:]), 1.2 * sent[0], sent)

    def test_runs_that_keep_no_copies_say_so(self):
        self.run_to_end(1, [], options=["--survive", 1], iterations=2)
        self.last[0].wait_for("^--survive has no effect: this node trains alone")
        self.run_to_end(2, ["--lost-state", "zero", "--wire", "bfloat16"], iterations=2)
        self.last[0].wait_for("^--lost-state zero with --survive 0 has no effect: a lost node ends the run")
        self.run_to_end(2, ["--lost-state", "zero", "--survive", 0], iterations=2)
        self.last[0].wait_for("^--lost-state zero with --survive 0 has no effect: a lost node ends the run")

    def test_whoever_is_not_asked_for_copies_hears_that_a_lost_node_ends_the_run(self):
        for words, said in (([], False), (["--wire", "bfloat16"], True), (["--wire", "bfloat16", "--survive", 1], False),
                            (["--wire", "bfloat16", "--survive", 0], False), (["--wire", "int4"], True)):
            with self.subTest(words):
                self.run_to_end(2, words, iterations=2)
                self.assertEqual("losses: a lost node ends this run; with --survive 1 the others would go on" in self.last[0].output, said)

    def test_what_cannot_be_is_refused(self):
        for words, said in ((["--solver", "s", "--survive", "3"], "--survive"),
                            (["--solver", "s", "--lost-state", "nothing"], "--lost-state"),
                            (["--join", "127.0.0.1:1", "--lost-state", "zero"], "first node"),
                            (["--join", "127.0.0.1:1", "--survive", "1"], "first node")):
            done = cluster.run("poseidon-node", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
