# tests/cluster/batch_share_test.py - --batch-share: nodes that take different parts of the global batch train what equal ones train.
import json
import math
import re
import subprocess
import unittest

import cluster
import small_run

ITERATIONS, BATCH = 20, 16
SHARE = r"^batch: (this node|worker \d[^']*)'s share (\d+) of (\d+) \((\d+) %\)"


def shares_of(node):
    """(samples, of all) as the node has said, the first node's of all workers."""
    return [(int(m[2]), int(m[3])) for m in (re.search(SHARE, line) for line in node.lines) if m]


class BatchShare(small_run.Trained):
    def train_shared(self, name, shares, *options, nodes=2, others=None, devices=None, resume=None, **of_solver):
        """The last snapshot of nodes with these shares; `devices` by worker."""
        of_solver = {"iterations": ITERATIONS, "batch": BATCH, "lr": 0.01, **of_solver}
        path = small_run.solver(self.cluster.folder, name, **of_solver)
        devices = devices or ["cpu:1"] * nodes
        words = ["--snapshot", resume] if resume else []
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", nodes, "--batch-share", shares,
                                  "--devices", devices[0], *options, *words)
        address = first.wait_for(cluster.LISTENING)[1]
        self.last = [first]
        for device in devices[1:]:
            self.last.append(self.cluster.node("--join", address, "--devices", device, *(others or [])))
            first.wait_for(f"^worker {len(self.last) - 1} joined")
        for node in self.last:
            self.assertEqual(node.wait(), 0, node.output)
        return small_run.snapshot_of(self.cluster.folder, name, of_solver["iterations"])

    def losses(self):
        return [float(m[1]) for m in (re.search(r"^iteration \d+/\d+: loss (\S+)", line) for line in self.last[0].lines) if m]

    def assert_alike(self, one, other, most=1e-6):
        """All parameters together within `most` of their norm, and none further off than the sums over 13824 places that the
        gradient of a convolution's bias is, in float32."""
        a, b = ([v for blob in sorted(w) for v in small_run.floats(w[blob])] for w in map(cluster.weights, (one, other)))
        apart = math.dist(a, b) / math.hypot(*a)
        self.assertLess(apart, most)
        worst = small_run.deviations(one, other, 0.1)
        self.assertLess(max(worst.values()), 5 * most, worst)

    def test_three_to_one_trains_what_equal_shares_train_on_both_routes_dropout_included(self):
        for routes in ("ps", "sfb"):
            equal = self.train_shared(f"equal-{routes}", "equal", "--routes", routes)
            losses = self.losses()
            shared = self.train_shared(f"shared-{routes}", "3,1", "--routes", routes)
            self.assertEqual(shares_of(self.last[0]), [(24, 32), (8, 32)])
            self.assertEqual(shares_of(self.last[1]), [(8, 32)])
            self.assert_alike(equal, shared)
            self.assertEqual(len(losses), ITERATIONS)
            for a, b in zip(losses, self.losses()):
                self.assertAlmostEqual(a, b, delta=1e-5 * a)

    def test_weights_that_are_equal_train_the_bits_of_equal_shares(self):
        equal = self.train_shared("even-equal", "equal", "--routes", "ps", iterations=5)
        cluster.assert_same_weights(equal, self.train_shared("even-weights", "2,2", "--routes", "ps", iterations=5))

    def test_micro_batches_and_replicas_that_differ_from_node_to_node(self):
        # 3 nodes of batch 16 and 2 micro-batches: 30 samples over 2 replicas, 11 over 3, which do not divide, and 7.
        equal = self.train_shared("mixed-equal", "equal", "--routes", "ps", nodes=3, iter_size=2, iterations=8)
        for routes in ("ps", "sfb"):
            shared = self.train_shared(f"mixed-{routes}", "30,11,7", "--routes", routes, nodes=3, iter_size=2, iterations=8,
                                       devices=["cpu:2", "cpu:3", "cpu:1"])
            self.assertEqual(shares_of(self.last[0]), [(60, 96), (22, 96), (14, 96)])
            self.assert_alike(equal, shared)

    def test_routes_change_while_shares_stay(self):
        routes = self.cluster.folder / "routes"
        routes.write_text("ip1 ps\n@4 ip1 sfb\n@8 ip1 ps\n")
        equal = self.train_shared("kept", "equal", "--routes", "ps", iterations=12)
        changed = self.train_shared("changed", "3,1", "--routes", routes, iterations=12)
        self.assertEqual(len(re.findall(r"^view \d+: routes changed", self.last[0].output, re.M)), 2)
        self.assert_alike(equal, changed)

    def test_clipped_gradients_have_the_norm_of_equal_shares(self):
        equal = self.train_shared("clip-equal", "equal", "--routes", "ps", iterations=8, more="clip_gradients: 0.5")
        free = self.train_shared("free-equal", "equal", "--routes", "ps", iterations=8)
        shared = self.train_shared("clip-shared", "3,1", "--routes", "ps", iterations=8, more="clip_gradients: 0.5",
                                   devices=["cpu:2", "cpu:1"])
        self.assert_alike(equal, shared)
        with self.assertRaises(AssertionError):
            self.assert_alike(free, shared)

    def test_a_snapshot_made_with_other_shares_goes_on_where_it_stopped(self):
        whole = self.train_shared("whole", "3,1", "--routes", "ps", iterations=12)
        first = self.train_shared("first", "3,1", "--routes", "ps", iterations=6)
        state = first.with_suffix(".solverstate")
        same = self.train_shared("same", "3,1", "--routes", "ps", iterations=12, resume=state)
        cluster.assert_same_weights(whole, same)
        other = self.train_shared("other", "1,3", "--routes", "ps", iterations=12, resume=state)
        self.assertEqual(shares_of(self.last[0]), [(8, 32), (24, 32)])
        self.assert_alike(whole, other)

    def test_staleness_and_half_the_bytes_train_to_the_end_on_all_nodes(self):
        self.train_shared("stale", "3,1", "--staleness", 2, rule='lr_policy: "fixed"')
        self.assertLess(self.losses()[-1], 10)
        half = self.train_shared("half", "3,1", "--wire", "float16", "--routes", "ps")
        self.assert_alike(half, self.train_shared("half-equal", "equal", "--wire", "float16", "--routes", "ps"), most=2e-2)

    def test_auto_measures_every_node_and_trains_what_equal_shares_train(self):
        equal = self.train_shared("auto-equal", "equal", "--routes", "ps", iterations=8)
        shared = self.train_shared("auto", "auto", "--routes", "ps", iterations=8)
        said = shares_of(self.last[0])
        self.assertEqual(sum(s for s, _ in said), 32)
        self.assertGreaterEqual(min(s for s, _ in said), 1)
        for worker in (0, 1):
            self.assertRegex(self.last[0].output, rf"batch: worker {worker}.* trains \d+ samples/s alone")
        self.assert_alike(equal, shared)

    def test_a_node_with_gpus_and_one_with_cores_share_a_batch(self):
        plugin = cluster.BIN / "libposeidon_gpu_simulated.so"
        if not plugin.exists():
            self.skipTest(f"{plugin} has not been built")
        equal = self.train_shared("cores", "equal", "--routes", "ps", iterations=8)
        for shares in ("21,11", "auto"):
            shared = self.train_shared("gpus-" + shares, shares, "--routes", "ps", iterations=8, devices=["cpu:1", "0"],
                                       others=["--gpu-plugin", plugin, "--math", "fp32", "--logical-devices", 2])
            self.assertEqual(sum(s for s, _ in shares_of(self.last[0])), 32)
            self.assertIn("on 2 replicas", self.last[1].output)
            self.assert_alike(equal, shared, most=1e-5)

    def test_batch_norm_learns_with_shares(self):
        self.train_shared("norm", "3,1", "--routes", "ps", norm=True, devices=["cpu:1", "cpu:2"])
        self.assertLess(self.losses()[-1], 10)

    # -- refusals ---------------------------------------------------------------------------------------------------

    def refused(self, *options, solver=None, join=None):
        path = solver or small_run.solver(self.cluster.folder, "refused")
        words = join or ["--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2]
        node = self.cluster.node(*words, *options)
        self.assertEqual(node.wait(), 2, node.output)
        return node.output

    def test_words_that_make_no_sense_are_refused_with_what_to_do(self):
        for words, text in ((["3,1,1"], "there are 3 weights for --nodes 2. Give one for each node"),
                            (["3,0"], "worker 1 has the weight 0, it has to be above 0"),
                            (["fast"], "\"fast\" is no number. Give equal, auto, or a weight for each node"),
                            (["auto", "--own-data"], "--own-data does not go with --batch-share"),
                            (["auto", "--explain-routes"], "Leave out --batch-share")):
            self.assertIn(text, self.refused("--batch-share", *words))
        self.assertIn("that belongs to the first node", self.refused("--batch-share", "auto", join=["--join", "127.0.0.1:1"]))

    def test_a_loss_that_is_no_mean_is_refused(self):
        path = small_run.solver(self.cluster.folder, "sum",
                                text=small_run.NET.replace('top: "loss" }}', 'top: "loss" loss_param {{ normalization: NONE }} }}'))
        said = self.refused("--batch-share", "auto", solver=path)
        self.assertRegex(said, r'sum\.net\.prototxt:\d+: layer "loss" \(SoftmaxWithLoss\): normalization is NONE')

    def test_a_batch_too_small_for_the_replicas_is_refused_on_all_nodes(self):
        path = small_run.solver(self.cluster.folder, "tiny", batch=2)
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--batch-share", "3,1", "--devices", "cpu:2")
        second = self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], "--devices", "cpu:3")
        self.assertEqual(second.wait(), 2)
        self.assertIn("the net's batch of 2 is too small for the 3 replicas of this node", second.output)
        self.assertNotEqual(first.wait(), 0)

    def test_a_joiner_with_its_own_data_is_refused(self):
        path = small_run.solver(self.cluster.folder, "own")
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--batch-share", "3,1")
        second = self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], "--own-data")
        self.assertEqual(second.wait(), 2)
        self.assertIn("--own-data does not go with --batch-share", second.output)
        self.assertNotEqual(first.wait(), 0)

    def test_equal_shares_with_other_numbers_of_replicas_are_refused_and_auto_takes_them(self):
        path = small_run.solver(self.cluster.folder, "replicas")
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:1")
        second = self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], "--devices", "cpu:2")
        self.assertEqual(second.wait(), 2)
        self.assertIn("it splits its batch over 2 replicas (its --devices), the run has 1 on each node", second.errors[-1])
        first.wait_for("^refused .*2 replicas")  # and it waits on, for another
        first.stop()
        # Without a number of replicas a joiner takes the first node's, however many cores it has.
        said = ["--log-level", "debug", "--devices", "cpu"]
        first = self.cluster.node("--solver", small_run.solver(self.cluster.folder, "as_the_first", batch=48, iterations=2),
                                  "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:3")
        second = self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], *said)
        self.assertEqual([first.wait(), second.wait()], [0, 0], first.output + second.output)
        self.assertIn("batch: split over 3 replicas, as on the first node", second.output)
        equal = self.train_shared("one", "equal", "--routes", "ps", iterations=4)
        self.assert_alike(equal, self.train_shared("two", "1,1", "--routes", "ps", iterations=4, devices=["cpu:1", "cpu:2"]))


NET = """
name: "two"
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { crop_size: 20 force_gray: true }
  data_param { source: "nowhere" batch_size: 32 } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1" inner_product_param { num_output: 50 } }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param { num_output: 10 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
"""
PROFILE = """
net: "two" measured: "made up" batch: 32 gflop_s: 10
layer { name: "ip1" forward_ms: 50 backward_ms: 100 }
layer { name: "ip2" forward_ms: 50 backward_ms: 100 }
"""


class Devices(unittest.TestCase):
    """A profile says how fast a node is. A pass is so long that late wake-ups on a busy machine move no sample."""

    def setUp(self):
        self.c = cluster.Cluster()
        self.c.__enter__()
        self.addCleanup(self.c.__exit__, None, None, None)
        (self.c.folder / "net.prototxt").write_text(NET)
        for name, factor in (("fast", 1), ("slow", 3)):
            (self.c.folder / f"{name}.profile").write_text(re.sub(r"_ms: (\d+)", lambda m: f"_ms: {factor * int(m[1])}", PROFILE))
        self.solver = self.c.folder / "solver.prototxt"
        self.solver.write_text(f'net: "{self.c.folder}/net.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: {cluster.ENDLESS} display: 1\n')

    def start(self, *options, devices=("fast", "slow")):
        profiles = [f"replay:{self.c.folder}/{d}.profile" for d in devices]
        first = self.c.node("--solver", self.solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", profiles[0], *options)
        return first, self.c.node("--join", first.wait_for(cluster.LISTENING)[1], "--devices", profiles[1])

    def test_a_node_a_third_as_fast_takes_a_quarter_and_the_page_and_the_status_say_so(self):
        first, second = self.start("--batch-share", "auto", "--web", "127.0.0.1:0")
        page = first.wait_for(r"^page at http://(\S+)/")[1]
        self.assertEqual(second.wait_for(SHARE)[0], "batch: this node's share 16 of 64 (25 %)")
        first.wait_for(r"^iteration 1/")
        self.assertEqual(shares_of(first), [(48, 64), (16, 64)])

        def status(*words):
            return subprocess.run([cluster.BIN / "poseidon-node", "status", "--attach", page, *words], check=True,
                                  capture_output=True, text=True).stdout
        cluster.wait_until(lambda: len(re.findall(r"share \d+", status())) == 2, "the status says both shares")
        self.assertIn("share 48 of 64 (75 %)", status())
        self.assertIn("share 16 of 64 (25 %)", status())
        self.assertEqual([w["share"] for w in json.loads(status("--json").splitlines()[0])["run"]["workers"]], [48, 16])
        first.stop()
        self.assertEqual(second.wait(), 0, second.output)

    def test_devices_alike_have_equal_shares_and_factors_go_with_uneven_ones(self):
        self.solver.write_text(self.solver.read_text().replace(f"max_iter: {cluster.ENDLESS}", "max_iter: 3"))
        first, second = self.start("--batch-share", "auto", devices=("fast", "fast"))
        self.assertEqual((first.wait(), second.wait()), (0, 0), first.output)
        self.assertEqual(shares_of(first), [(32, 64), (32, 64)])
        first, second = self.start("--batch-share", "auto", "--routes", "sfb")
        self.assertEqual((first.wait(), second.wait()), (0, 0), first.output)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
