# tests/cluster/math_test.py - --math bf16 on processors: the same bits from run to run and on several nodes, refused where a processor has no such products.
import subprocess
import unittest

import cluster
import small_run

ITERATIONS = 8
NODE = cluster.BIN / "poseidon-node"
BF16 = ("--math", "bf16")
MULTIPLIES = "avx512_bf16" in open("/proc/cpuinfo").read()


class Math(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def train(self, name, *options, nodes=1, **solver):
        """Trains to the end; returns the last snapshot."""
        path = small_run.solver(self.cluster.folder, name, iterations=ITERATIONS, **solver)
        before = len(self.cluster.nodes)
        if nodes == 1:
            self.cluster.node("--solver", path, "--devices", "cpu:1", *options)
        else:
            self.cluster.first_and_others(path, nodes, "--devices", "cpu:1", *options, first=["--routes", "ps"])
        for node in self.cluster.nodes[before:]:
            self.assertEqual(node.wait(), 0, node)
        return small_run.snapshot_of(self.cluster.folder, name, ITERATIONS)

    @unittest.skipUnless(MULTIPLIES, "this processor does not multiply bfloat16")
    def test_bits_are_those_of_every_run_and_of_one_node(self):
        for norm in False, True:
            with self.subTest(norm=norm):
                one = self.train(f"one{norm}", *BF16, iter_size=2, norm=norm)
                cluster.assert_same_weights(one, self.train(f"again{norm}", *BF16, iter_size=2, norm=norm))
                cluster.assert_same_weights(one, self.train(f"two{norm}", *BF16, nodes=2, norm=norm))
                self.assertIn("results: bit-equal to one node with iter_size 2 and --math bf16", self.cluster.nodes[-2].output)
                with self.assertRaises(AssertionError):  # something was rounded
                    cluster.assert_same_weights(one, self.train(f"float{norm}", iter_size=2, norm=norm))

    @unittest.skipUnless(MULTIPLIES, "this processor does not multiply bfloat16")
    def test_nodes_that_multiply_otherwise_say_so(self):
        path = small_run.solver(self.cluster.folder, "mixed", iterations=ITERATIONS)
        first = self.cluster.node("--solver", path, "--devices", "cpu:1", "--listen", "127.0.0.1:0", "--nodes", "2", "--routes", "ps", *BF16)
        self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], "--devices", "cpu:1")
        for node in self.cluster.nodes:
            self.assertEqual(node.wait(), 0, node)
            self.assertRegex(node.output, r"products are bfloat16 on worker 0, float32 on worker 1; the same --math on every node keeps the bits")

    def refused(self, *words):
        run = subprocess.run([NODE, *words], capture_output=True, text=True, timeout=60)
        return run.returncode, run.stdout + run.stderr

    def test_what_a_processor_does_not_have_is_refused(self):
        path = small_run.solver(self.cluster.folder, "refused", iterations=ITERATIONS)
        code, said = self.refused("--solver", path, "--devices", "cpu:1", "--math", "tf32")
        self.assertEqual((code, "--math tf32 belongs to GPUs, as in --devices 0." in said), (2, True), said)
        code, said = self.refused("time", "--model", path, "--devices", "cpu:1", "--math", "tf32")
        self.assertEqual((code, "--math tf32 belongs to GPUs, as in --devices 0." in said), (2, True), said)
        code, said = self.refused("--solver", path, "--devices", "replay:p", *BF16)
        self.assertEqual((code, "--devices replay:p does not go with --math bf16" in said), (2, True), said)

    def test_a_processor_without_these_products_refuses_them(self):
        path = small_run.solver(self.cluster.folder, "old", iterations=ITERATIONS)
        self.cluster.env["ONEDNN_MAX_CPU_ISA"] = "AVX2"
        node = self.cluster.node("--solver", path, "--devices", "cpu:1", *BF16)
        self.assertNotEqual(node.wait(), 0, node)
        self.assertRegex(node.output, r"--math bf16: this processor has no instructions that multiply bfloat16 .*ONEDNN_MAX_CPU_ISA.*Leave --math out")


if __name__ == "__main__":
    cluster.main()
