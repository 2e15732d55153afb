# tests/cluster/staleness_test.py - bounded staleness with real processes: it trains, ends in order, and 0 changes nothing.
import pathlib
import re
import time
import unittest

import cluster
import small_run

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
LENET = cluster.ROOT / "models/zoo/lenet/train_val.prototxt"
ITERATIONS = 12
# Large momentum and late gradients amplify each other, and a run that diverges ends before its test does.
CALM = {"lr": 0.005, "rule": 'lr_policy: "fixed"'}


class Staleness(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.runs = 0

    def train(self, nodes, *options, joiners=(), first=(), **solver):
        """Trains to the end; returns the last snapshot, and the nodes as self.last. `options` are the first node's."""
        self.runs += 1
        name = f"run{self.runs}"
        solver = {"iterations": ITERATIONS, **CALM, **solver}
        path = small_run.solver(self.cluster.folder, name, **solver)
        words = ["--solver", path, "--devices", "cpu:1", *options]
        if nodes > 1:
            words += ["--listen", "127.0.0.1:0", "--nodes", nodes]
        self.last = [self.cluster.node(*words)]
        if nodes > 1:
            address = self.last[0].wait_for(cluster.LISTENING)[1]
            self.last += [self.cluster.node("--join", address, "--devices", "cpu:1", *joiners) for _ in range(nodes - 1)]
        for node in self.last:
            self.assertEqual(node.wait(), 0, node)
        return small_run.snapshot_of(self.cluster.folder, name, solver["iterations"])

    def clocks_shown(self):
        return [int(found[1]) for line in self.last[0].lines if (found := re.match(r"iteration (\d+)/", line))]

    def test_stale_nodes_train_every_clock_and_agree(self):
        for routes in ("ps", "sfb"):
            with self.subTest(routes):
                self.assertTrue(self.train(3, "--staleness", 2, "--routes", routes).exists())
                self.assertEqual(self.clocks_shown(), list(range(ITERATIONS)))
                first, *others = self.last
                self.assertEqual([n.errors for n in self.last], [[], [], []])

    def test_zero_is_the_default_to_the_bit(self):
        cluster.assert_same_weights(self.train(2, "--staleness", 0, "--routes", "ps"), self.train(1, iter_size=2))

    def test_a_node_that_is_alone_has_nothing_to_be_behind(self):
        cluster.assert_same_weights(self.train(1, "--staleness", 3), self.train(1))

    def test_a_node_on_a_slow_link_is_waited_for_no_longer_than_it_must(self):
        # 800 kB of gradients a clock at 100 Mbit/s: computing would be done long before.
        trace = self.cluster.folder / "trace.json"
        self.train(2, "--routes", "ps", "--trace", trace, joiners=("--link-mbit", 100), hidden=256, iterations=8,
                   more="poseidon { staleness: 2 }")
        t = cluster.Trace(trace)
        self.assertEqual(t.partial_overlaps(), [])
        ahead = 0
        for clock in range(8):
            begin = t.find("ip1", "forward", lane="^stream", clock=clock)[0]["ts"]
            arrived = {c: max(e["ts"] + e["dur"] for e in t.find("ip1", "pull", lane="in$", clock=c))
                       for c in range(1, 9)}
            behind = sum(arrived[c] > begin for c in range(1, clock + 1))  # versions that this pass has not seen
            self.assertLessEqual(behind, 2, clock)
            ahead += behind
        self.assertGreater(ahead, 0)

    def test_a_budget_is_kept_and_changes_nothing_at_staleness_0(self):
        began = time.monotonic()
        budget = ["--bandwidth-budget", 40, "--log-level", "debug"]
        kept = self.train(2, "--routes", "ps", *budget, joiners=budget, hidden=256, iterations=6)
        seconds = time.monotonic() - began
        for node in self.last:
            sent = sum(float(mb) for mb in re.findall(r"link to worker \d+ \([^)]*\): ([\d.]+) MB in \d+ frames out", node.output))
            self.assertGreater(sent, 2, node.output)
            # A few hundredths of the bytes are no gradients or parameters.
            self.assertGreater(seconds, sent * 8 / 40 * 0.95)
        cluster.assert_same_weights(kept, self.train(2, "--routes", "ps", hidden=256, iterations=6))

    def test_a_budget_with_staleness_trains_every_clock(self):
        budget = ["--bandwidth-budget", 40]
        for routes in ("ps", "sfb"):
            with self.subTest(routes):
                self.assertTrue(self.train(3, "--routes", routes, "--staleness", 2, *budget, joiners=budget, hidden=128).exists())
                self.assertEqual(self.clocks_shown(), list(range(ITERATIONS)))

    def test_snapshots_and_tests_are_those_of_their_clock(self):
        test = "test_iter: 2 test_interval: 4 snapshot: 4"
        path = self.train(2, "--staleness", 3, "--routes", "ps", more=test)
        for clock in (4, 8):
            self.assertTrue(pathlib.Path(str(path).replace(f"_iter_{ITERATIONS}", f"_iter_{clock}")).exists())
        tested = [int(found[1]) for line in self.last[0].lines if (found := re.match(r"test iteration (\d+):", line))]
        self.assertEqual(tested, [0, 4, 8, 12])
        # The values that are written are those that are tested: a resumed run's first test is the last one's.
        def accuracy(node, clock):
            return re.search(rf"test iteration {clock}: (.*)", node.output)[1]
        before = self.last[0]
        state = str(path).replace(f"_iter_{ITERATIONS}.caffemodel", "_iter_8.solverstate")
        again = self.train(2, "--snapshot", state, "--routes", "ps", more=test)
        self.assertTrue(again.exists())
        self.assertEqual(accuracy(before, 8).split(", ")[0], accuracy(self.last[0], 8).split(", ")[0])

    def test_a_run_that_is_stopped_ends_at_one_clock_for_all(self):
        path = small_run.solver(self.cluster.folder, "stopped", iterations=cluster.ENDLESS, more="snapshot: 0", **CALM)
        nodes = self.cluster.first_and_others(path, 3, "--devices", "cpu:1", first=["--staleness", 3, "--routes", "ps"])
        nodes[0].wait_for(r"^iteration 20/")
        nodes[1].signal(2)
        self.assertEqual(nodes[0].wait(), 0, nodes[0].output)
        self.assertEqual(nodes[1].wait(), 130, nodes[1].output)
        self.assertEqual(nodes[2].wait(), 0, nodes[2].output)
        self.assertEqual(len(list(self.cluster.folder.glob("stopped_iter_*.caffemodel"))), 1)

    def test_nodes_that_fail_with_passes_under_way_say_so_and_end(self):
        # Diverging ends every node while its stream has kernels to run, of data that must still be there.
        for nodes in (2, 3):
            path = small_run.solver(self.cluster.folder, f"wild{nodes}", iterations=cluster.ENDLESS, lr=10000, batch=64, hidden=512)
            run = self.cluster.first_and_others(path, nodes, "--devices", "cpu:1", "--link-mbit", 200,
                                                first=["--staleness", 3, "--routes", "ps"])
            for code, node in zip([n.wait() for n in run], run):
                self.assertIn(code, (3, 4), node.output)
                errors = [line for line in node.errors if "may diverge" not in line]  # the first node warns of it
                self.assertEqual(len(errors), 1, node.output)

    def test_a_number_that_cannot_be_is_refused(self):
        path = small_run.solver(self.cluster.folder, "far", more="poseidon { staleness: 200 }")
        for words, says in [(["--solver", path], ["far.prototxt:1", "staleness is 200", "0 to 100"]),
                            (["--solver", path, "--staleness", "-1"], ["--staleness", "0", "100"]),
                            (["--join", "127.0.0.1:1", "--staleness", "2"], ["--join", "--staleness", "first node"])]:
            node = self.cluster.node(*words)
            self.assertEqual(node.wait(), 2, node.output)
            for word in says:
                self.assertIn(word, node.output)

    @unittest.skipUnless(FASHION.exists(), "Debian's dataset-fashion-mnist is not installed")
    def test_lenet_learns_with_staleness(self):
        train, test = (self.cluster.folder / part for part in ("train_lmdb", "test_lmdb"))
        for part, out in (("train", train), ("t10k", test)):
            made = self.cluster.start(cluster.BIN / "poseidon-data", "convert", "mnist", "--images",
                                      FASHION / f"{part}-images-idx3-ubyte.gz", "--labels",
                                      FASHION / f"{part}-labels-idx1-ubyte.gz", "--out", out)
            self.assertEqual(made.wait(), 0, made.output)
        net = self.cluster.folder / "lenet.prototxt"
        text = LENET.read_text()
        for part, out in (("train", train), ("test", test)):
            text = re.sub(rf'source: "[^"]*{part}_lmdb"', f'source: "{out}"', text)
        net.write_text(text)
        solver = self.cluster.folder / "solver.prototxt"
        solver.write_text(f'net: "{net}" base_lr: 0.03 lr_policy: "inv" gamma: 0.0001 power: 0.75 '
                          'weight_decay: 0.0005 max_iter: 300 display: 100 random_seed: 5 test_iter: 20 test_interval: 300 '
                          f'snapshot_after_train: false poseidon {{ staleness: 2 }}')
        nodes = self.cluster.first_and_others(solver, 2, "--devices", "cpu:1", first=["--routes", "ps"])
        self.assertEqual([n.wait(600) for n in nodes], [0, 0], nodes[0].output)
        accuracy = {int(c): float(a) for c, a in re.findall(r"test iteration (\d+): accuracy ([\d.]+)", nodes[0].output)}
        self.assertGreater(accuracy[300], 0.7, nodes[0].output)  # ten classes; without staleness about 0.79


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
