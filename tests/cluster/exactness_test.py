# tests/cluster/exactness_test.py - N nodes train what one node trains, to the last bit, dropout included.
import struct
import unittest

import cluster
import small_run

ITERATIONS = 8


class Exactness(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def train(self, name, nodes=1, devices="cpu:1", options=(), **solver):
        """Trains to the end; returns the last snapshot."""
        path = small_run.solver(self.cluster.folder, name, iterations=ITERATIONS, **solver)
        before = len(self.cluster.nodes)
        if nodes == 1:
            self.cluster.node("--solver", path, "--devices", devices, *options)
        else:
            self.cluster.first_and_others(path, nodes, "--devices", devices, first=["--routes", "ps"])
        for node in self.cluster.nodes[before:]:
            self.assertEqual(node.wait(), 0, node)
        return small_run.snapshot_of(self.cluster.folder, name, ITERATIONS)

    def test_two_runs_with_one_seed_give_the_same_bits(self):
        cluster.assert_same_weights(self.train("one"), self.train("again"))

    def test_several_threads_read_what_one_reads(self):
        several = self.train("several", options=["--readers", "3", "--log-level", "debug"])
        cluster.assert_same_weights(several, self.train("one"))
        self.assertIn("each 1x28x28 and one value, read by 3 threads", self.cluster.nodes[0].output)
        self.assertNotIn("read by", self.cluster.nodes[1].output)

    def test_two_nodes_equal_one_with_two_micro_batches(self):
        cluster.assert_same_weights(self.train("two", nodes=2), self.train("one", iter_size=2))

    def test_four_nodes_equal_one_with_four_micro_batches(self):
        cluster.assert_same_weights(self.train("four", nodes=4), self.train("one", iter_size=4))

    def test_two_replicas_in_a_node_equal_two_nodes(self):
        cluster.assert_same_weights(self.train("replicas", devices="cpu:2", batch=32),
                                    self.train("nodes", nodes=2, batch=16))

    def test_running_statistics_are_those_of_one_node(self):
        one = self.train("one", iter_size=4, norm=True)
        cluster.assert_same_weights(self.train("four", nodes=4, norm=True), one)
        cluster.assert_same_weights(self.train("both", nodes=2, devices="cpu:2", batch=32, norm=True),
                                    self.train("nodes", nodes=2, iter_size=2, batch=16, norm=True))
        (factor,) = struct.unpack("<f", cluster.weights(one)["bn1/2"])  # f = 0.9 f + 1 in every pass
        self.assertAlmostEqual(factor, (1 - 0.9 ** (4 * ITERATIONS)) / (1 - 0.9), places=4)

    def test_a_parameter_layer_is_trained_like_any_other(self):
        one = self.train("one", iter_size=2, parameter=True)
        cluster.assert_same_weights(self.train("two", nodes=2, parameter=True), one)
        self.assertTrue(any(cluster.weights(one)["offset/0"]), "it stayed at its first value, zero")

    def test_replicas_and_micro_batches_together_are_the_same_twice(self):
        cluster.assert_same_weights(self.train("one", devices="cpu:2", iter_size=3, batch=32),
                                    self.train("again", devices="cpu:2", iter_size=3, batch=32))

    def test_layers_that_share_parameters_train_alike_on_nodes_replicas_and_micro_batches(self):
        shared = {"text": small_run.SHARED_NET}
        one = self.train("one", iter_size=2, batch=16, **shared)
        cluster.assert_same_weights(one, self.train("again", iter_size=2, batch=16, **shared))
        cluster.assert_same_weights(one, self.train("nodes", nodes=2, batch=16, **shared))
        cluster.assert_same_weights(one, self.train("replicas", devices="cpu:2", batch=32, **shared))
        weights = cluster.weights(one)
        self.assertEqual(weights["conv2/0"], weights["conv4/0"])
        cluster.assert_same_weights(self.train("both", devices="cpu:2", iter_size=2, batch=32, **shared),
                                    self.train("four", nodes=2, iter_size=2, batch=16, **shared))

    def test_clipped_gradients_are_the_same_on_nodes_and_micro_batches(self):
        clip = {"batch": 16, "more": "clip_gradients: 1.5"}
        four = self.train("one", iter_size=4, **clip)
        cluster.assert_same_weights(four, self.train("nodes", nodes=4, **clip))
        with self.assertRaises(AssertionError):  # it did clip
            cluster.assert_same_weights(four, self.train("free", iter_size=4, batch=16))

    def test_a_limit_means_the_same_on_one_replica_and_on_two(self):
        # Two replicas of half a batch: the norm is that of the whole batch. Two nodes: that of the sum.
        cluster.assert_same_weights(
            self.train("replicas", devices="cpu:2", batch=32, more="clip_gradients: 0.5"),
            self.train("nodes", nodes=2, batch=16, more="clip_gradients: 1"))

    def test_another_seed_gives_other_weights(self):  # or the tests above would prove nothing
        one = self.train("one")
        path = small_run.solver(self.cluster.folder, "other", iterations=ITERATIONS)
        self.assertEqual(self.cluster.node("--solver", path, "--devices", "cpu:1", "--seed", "6").wait(), 0)
        with self.assertRaises(AssertionError):
            cluster.assert_same_weights(one, small_run.snapshot_of(self.cluster.folder, "other", ITERATIONS))

    def resumed(self, whole, name, nodes=1, devices="cpu:1", **solver):
        """From clock 3 of `whole` to the end, in another process or several."""
        state = self.cluster.folder / f"{whole}_iter_3.solverstate"
        path = small_run.solver(self.cluster.folder, name, iterations=ITERATIONS, **solver)
        before = len(self.cluster.nodes)
        if nodes == 1:
            self.cluster.node("--solver", path, "--devices", devices, "--snapshot", state)
        else:
            first = self.cluster.node("--solver", path, "--devices", devices, "--snapshot", state,
                                      "--listen", "127.0.0.1:0", "--nodes", nodes, "--routes", "ps")
            address = first.wait_for(cluster.LISTENING)[1]
            for _ in range(nodes - 1):
                self.cluster.node("--join", address, "--devices", devices)
        for node in self.cluster.nodes[before:]:
            self.assertEqual(node.wait(), 0, node)
        return small_run.snapshot_of(self.cluster.folder, name, ITERATIONS)

    def test_a_resumed_run_equals_one_that_was_never_stopped(self):
        # Clock 3 is in the middle of an epoch, and dropout is keyed by sample: both continue from there.
        fixed = 'lr_policy: "fixed" momentum: 0.9'
        steps = 'lr_policy: "multistep" stepvalue: 2 stepvalue: 6 gamma: 0.5 momentum: 0.9'
        ours = fixed + ' poseidon { lr_policy: "cosine" lr_min: 0.001 warmup_iter: 5 }'
        for name, rule in [("sgd", fixed), ("adam", fixed + ' type: "Adam"'), ("steps", steps), ("cosine", ours)]:
            with self.subTest(name):
                options = {"batch": 40, "rule": rule, "more": "snapshot: 3"}
                whole = self.train(name, **options)
                cluster.assert_same_weights(whole, self.resumed(name, name + "_resumed", **options))

    def test_a_run_resumes_on_another_number_of_nodes(self):
        whole = self.train("one", iter_size=4, batch=16, more="snapshot: 3")
        cluster.assert_same_weights(whole, self.resumed("one", "four", nodes=4, batch=16))
        whole = self.train("nodes", nodes=2, batch=16, more="snapshot: 3")
        cluster.assert_same_weights(whole, self.resumed("nodes", "micro", iter_size=2, batch=16))
        cluster.assert_same_weights(whole, self.resumed("nodes", "replicas", devices="cpu:2", batch=32))

    def test_only_the_newest_snapshots_stay_where_the_user_says_so(self):
        path = small_run.solver(self.cluster.folder, "few", iterations=ITERATIONS, more="snapshot: 2")
        node = self.cluster.node("--solver", path, "--devices", "cpu:1", "--keep-snapshots", "2")
        self.assertEqual(node.wait(), 0, node)
        left = sorted(p.name for p in self.cluster.folder.glob("few_iter_*"))
        self.assertEqual(left, [f"few_iter_{n}.{kind}" for n in (6, 8) for kind in ("caffemodel", "solverstate")])


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
