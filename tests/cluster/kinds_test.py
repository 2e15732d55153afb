# tests/cluster/kinds_test.py - the first line of a run is true: nodes of different kinds say in what they differ, and what keeps the bits.
import json
import pathlib
import signal

import cluster
import small_run

ITERATIONS = 6
# Windows of 3x3, for which the kernels of AVX2 and AVX-512 add in another order.
NET = """
name: "three"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
layer {{ name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param {{ num_output: 32 kernel_size: 3 pad: 1 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }}
layer {{ name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2"
  convolution_param {{ num_output: 32 kernel_size: 3 pad: 1 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "tanh2" type: "TanH" bottom: "conv2" top: "conv2" }}
layer {{ name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2" pooling_param {{ pool: AVE kernel_size: 4 stride: 4 }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "pool2" top: "ip" inner_product_param {{ num_output: {classes} weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""
WIDE = "avx512bw" in pathlib.Path("/proc/cpuinfo").read_text()
LIMIT = "ONEDNN_MAX_CPU_ISA"
LESS = "AVX2" if WIDE else "SSE41"  # than this machine has
UP_TO_ROUNDING = "results: equal to one node with iter_size 2 up to rounding: kernels use "
REMEDY = f"; {LIMIT}={LESS} in the environment of every node keeps the bits"


class Kinds(small_run.MadeUp):
    def begin(self, *limits):
        """A node for each, the first one first; `limits`: what oneDNN may use there at most, or None."""
        path = small_run.solver(self.folder, f"run{len(self.cluster.nodes)}", iterations=ITERATIONS, text=NET, iter_size=1)
        nodes = []
        for limit in limits:
            to = ["--join", nodes[0].wait_for(r"listening on (127.0.0.1:\d+)")[1]] if nodes else \
                ["--solver", path, "--listen", "127.0.0.1:0", "--nodes", len(limits), "--routes", "ps"]
            nodes.append(self.node(limit, *to, "--json"))
        for node in nodes:
            self.assertEqual(node.wait(), 0, node)
        return nodes, small_run.snapshot_of(self.folder, path.stem, ITERATIONS)

    def node(self, limit, *words):
        self.cluster.env.pop(LIMIT, None)
        if limit is not None:
            self.cluster.env[LIMIT] = limit
        return self.cluster.node(*words, "--devices", "cpu:1")

    def one_node(self, limit):
        path = small_run.solver(self.folder, f"one{limit}", iterations=ITERATIONS, text=NET, iter_size=2)
        self.assertEqual(self.node(limit, "--solver", path).wait(), 0)
        return small_run.snapshot_of(self.folder, path.stem, ITERATIONS)

    def results(self, node):
        return [event for event in map(json.loads, node.lines) if event["event"] == "results"]

    def test_two_kinds_of_kernels_are_named_and_have_the_bits_of_neither(self):
        nodes, trained = self.begin(None, LESS)
        for node in nodes:
            (said,) = self.results(node)
            self.assertTrue(said["text"].startswith(UP_TO_ROUNDING), said)
            self.assertTrue(said["text"].endswith(REMEDY), said)
            self.assertNotIn("bit-equal", said["text"])
            self.assertFalse(said["bit_equal"])
            (difference,) = said["differences"]
            self.assertEqual(difference["what"], "instructions")
            self.assertEqual([who["workers"] for who in difference["who"]], [[0], [1]])
            self.assertIn(f"{LESS[:3]}", difference["who"][1]["value"])
        weights = cluster.weights(trained)
        for limit in (None, LESS):
            self.assertNotEqual(cluster.weights(self.one_node(limit)), weights)

    def test_what_the_line_advises_keeps_the_bits(self):
        nodes, trained = self.begin(LESS, LESS)
        for node in nodes:
            (said,) = self.results(node)
            self.assertEqual((said["text"], said["bit_equal"], said["differences"]),
                             ("results: bit-equal to one node with iter_size 2", True, []))
        cluster.assert_same_weights(trained, self.one_node(LESS))

    def test_a_newcomer_of_another_kind_changes_the_line_for_good(self):
        path = small_run.solver(self.folder, "grows", iterations=cluster.ENDLESS, text=NET, lr=0.0001)
        first = self.node(None, "--solver", path, "--listen", "127.0.0.1:0", "--nodes", 2, "--routes", "ps", "--json")
        address = first.wait_for(r"listening on (127.0.0.1:\d+)")[1]
        second = self.node(None, "--join", address, "--json")
        first.wait_for('"event":"progress"')
        self.assertEqual([said["bit_equal"] for said in self.results(first)], [True])
        other = self.node(LESS, "--join", address)
        first.wait_for(r'"event":"view".*"members":\[0,1,2\]')
        self.assertEqual([said["bit_equal"] for said in self.results(first)], [True, False])
        other.wait_for(UP_TO_ROUNDING.replace("size 2", "size 3"))
        other.signal(signal.SIGTERM)  # it leaves
        first.wait_for(r'"event":"view".*"members":\[0,1\].*"changed":"worker 2')
        # What it has computed is in the parameters: whoever comes now hears so, too.
        last = self.node(None, "--join", address)
        last.wait_for(UP_TO_ROUNDING.replace("size 2", "size 3"))
        self.assertEqual([said["bit_equal"] for said in self.results(first)], [True, False])
        self.assertEqual(len(self.results(second)), 2)
        first.stop()


if __name__ == "__main__":
    cluster.main()
