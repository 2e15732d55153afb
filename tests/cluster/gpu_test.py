# tests/cluster/gpu_test.py - nodes with GPUs, simulated ones: the whole plug-in but the vendor's libraries. With
# POSEIDON_GPU_PLUGIN=FILE in the environment on that plug-in's GPU 0, as tools/gpu-check does.
import os
import pathlib
import re
import subprocess
import unittest

import cluster
import small_run

ITERATIONS = 8
SIMULATED = cluster.BIN / "libposeidon_gpu_simulated.so"
PLUGIN = pathlib.Path(os.environ.get("POSEIDON_GPU_PLUGIN", SIMULATED))
with_simulated_machine = unittest.skipUnless(PLUGIN.name == SIMULATED.name, "the simulated machine has 6 GPUs, some of them broken")
TEST_NET = """
layer {{ name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include {{ phase: TEST }} }}
"""


def gpu(devices="0", logical=None, math="fp32"):
    words = ["--devices", devices, "--math", math, "--gpu-plugin", PLUGIN]
    return words + ["--logical-devices", logical] if logical else words


def two_gpus(devices):
    """These, or two logical devices where there is one GPU."""
    return gpu(devices) if PLUGIN.name == SIMULATED.name else gpu(logical=2)


class Gpu(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def train(self, name, *devices, routes="ps", first=(), **solver):
        """A node for each of `devices`; returns the last snapshot."""
        path = small_run.solver(self.cluster.folder, name, iterations=ITERATIONS, **solver)
        nodes = [self.cluster.node("--solver", path, *devices[0], *first,
                                   *(["--listen", "127.0.0.1:0", "--nodes", len(devices), "--routes", routes]
                                     if len(devices) > 1 else []))]
        if len(devices) > 1:
            address = nodes[0].wait_for(cluster.LISTENING)[1]
            nodes += [self.cluster.node("--join", address, *words) for words in devices[1:]]
        for node in nodes:
            self.assertEqual(node.wait(), 0, node.output)
        self.last = nodes[0]
        return small_run.snapshot_of(self.cluster.folder, name, ITERATIONS)

    def losses(self):
        return [float(x) for x in re.findall(r"^clock \d+/\d+: loss (\S+)", self.last.output, re.M)]

    def assert_close(self, one, other, most=1e-4):
        # Blobs below 1e-2 count as noise: a bias in front of a BatchNorm has no gradient but rounding.
        worst = small_run.deviations(one, other, 1e-2)
        self.assertLess(max(worst.values()), most, worst)

    def test_a_gpu_trains_what_the_cpu_trains(self):
        for kind in ({}, {"norm": True}, {"text": small_run.SHARED_NET}, {"iter_size": 3}):
            with self.subTest(**kind):
                cpu = self.train("cpu", ["--devices", "cpu:1"], **kind)
                losses = self.losses()
                self.assert_close(cpu, self.train("gpu", gpu(), **kind))
                self.assertEqual(len(losses), ITERATIONS)
                for ours, theirs in zip(self.losses(), losses):
                    self.assertAlmostEqual(ours, theirs, delta=2e-3)

    def test_two_runs_on_a_gpu_give_the_same_bits(self):
        cluster.assert_same_weights(self.train("one", gpu(), norm=True), self.train("again", gpu(), norm=True))

    def test_two_logical_devices_equal_two_nodes(self):
        two = self.train("logical", gpu(logical=2), batch=32)
        cluster.assert_same_weights(two, self.train("nodes", gpu(), gpu(), batch=16))
        cluster.assert_same_weights(two, self.train("devices", two_gpus("1,3"), batch=32))

    def test_several_micro_batches_on_several_devices_equal_as_many_nodes(self):
        cluster.assert_same_weights(self.train("both", two_gpus("0,1"), batch=32, iter_size=2, text=small_run.SHARED_NET),
                                    self.train("nodes", gpu(), gpu(), batch=16, iter_size=2, text=small_run.SHARED_NET))

    def test_a_cpu_and_a_gpu_train_together(self):
        cpu = self.train("cpu", ["--devices", "cpu:1"], ["--devices", "cpu:1"])
        self.assert_close(cpu, self.train("mixed", ["--devices", "cpu:1"], gpu()))
        self.assert_close(cpu, self.train("other", gpu(), ["--devices", "cpu:1"]))

    def test_factors_of_a_gpu_are_those_of_the_cpu(self):
        cpu = self.train("cpu", ["--devices", "cpu:1"], ["--devices", "cpu:1"], routes="sfb")
        self.assert_close(cpu, self.train("gpu", gpu(), gpu(), routes="sfb"))
        self.assert_close(self.train("cpus", ["--devices", "cpu:2"], ["--devices", "cpu:2"], routes="sfb", batch=32,
                                     iter_size=2),
                          self.train("gpus", two_gpus("0,1"), two_gpus("0,1"), routes="sfb", batch=32, iter_size=2))

    def test_with_staleness_every_pass_computes_with_one_version(self):
        snapshot = self.train("stale", gpu(), gpu(), first=["--staleness", "2"])
        self.assertTrue(cluster.weights(snapshot))
        self.assertTrue(all(loss < 10 for loss in self.losses()), self.last.output)

    def test_a_test_net_shares_the_devices_parameters(self):
        more = "test_iter: 4 test_interval: 4"
        text = small_run.NET.replace('layer {{ name: "loss"', TEST_NET + 'layer {{ name: "loss"')
        self.train("cpu", ["--devices", "cpu:1"], more=more, text=text)
        cpu = re.findall(r"accuracy[^\d]*([\d.]+)", self.last.output)
        self.train("gpu", two_gpus("0,1"), more=more, text=text)
        self.assertTrue(cpu, self.last.output)
        self.assertEqual(cpu, re.findall(r"accuracy[^\d]*([\d.]+)", self.last.output))

    def test_debug_info_says_the_same_as_on_the_cpu(self):
        self.train("cpu", ["--devices", "cpu:1"], more="debug_info: true")
        cpu = sorted(line for line in self.last.output.splitlines() if "diff" in line or "data" in line)
        self.train("gpu", gpu(), more="debug_info: true")
        ours = sorted(line for line in self.last.output.splitlines() if "diff" in line or "data" in line)
        self.assertGreater(len(cpu), 50)
        self.assertEqual([line.rpartition(":")[0] for line in cpu], [line.rpartition(":")[0] for line in ours])

    @with_simulated_machine
    def test_what_is_missing_is_said(self):
        path = small_run.solver(self.cluster.folder, "none", iterations=1)

        def refused(words, code, *texts):
            node = self.cluster.node("--solver", path, *words)
            self.assertEqual(node.wait(), code, node.output)
            for text in texts:
                self.assertIn(text, node.output)

        refused(gpu("7"), 1, "--devices 7: there is no GPU 7: this machine has 6 (0 to 5)", "device-query")
        refused(gpu("0,0"), 2, "GPU 0 is named twice", "--logical-devices")
        refused(gpu("0,"), 2, "the numbers of GPUs with commas between them")
        refused(["--devices", "cpu:1", "--math", "tf32"], 2, "--math belongs to GPUs")
        refused(gpu("0,1", logical=1), 2, "--logical-devices 1 are fewer than the 2 GPUs")
        no_plugin = self.cluster.folder / "libother.so"
        no_plugin.write_text("no library\n")
        refused(["--devices", "0", "--gpu-plugin", no_plugin], 1, "does not load", "Or train with --devices cpu")

    @with_simulated_machine
    def test_a_net_that_does_not_fit_says_what_to_try(self):
        path = small_run.solver(self.cluster.folder, "big", iterations=1, batch=32)
        node = self.cluster.node("--solver", path, *gpu("4"))
        self.assertEqual(node.wait(), 1, node.output)
        self.assertRegex(node.output, r"GPU 4 \(simulated\): [\d.]+ MiB are wanted for the blobs of net \"small\", the "
                                      r"largest of which is .* are free\. Try a smaller batch_size")

    @with_simulated_machine
    def test_a_lost_gpu_ends_its_node_with_the_reason_and_the_others_with_a_snapshot(self):
        path = small_run.solver(self.cluster.folder, "lost", iterations=100000)
        alone = self.cluster.node("--solver", path, *gpu("5"))
        self.assertEqual(alone.wait(), 1, alone.output)
        self.assertRegex(alone.output, r"simulated GPU 5: .*illegal memory access")
        first = self.cluster.node("--solver", path, "--devices", "cpu:1", "--listen", "127.0.0.1:0", "--nodes", 2)
        other = self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], *gpu("5"))
        self.assertEqual(other.wait(), 1, other.output)
        self.assertEqual(first.wait(), 3, first.output)
        self.assertTrue(list(self.cluster.folder.glob("lost_iter_*.caffemodel")), first.output)

    @with_simulated_machine
    def test_device_query_lists_gpus_and_what_is_missing(self):
        program = cluster.BIN / "poseidon-node"
        listed = subprocess.run([program, "device-query", "--gpu-plugin", PLUGIN], capture_output=True, text=True)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertEqual(len(re.findall(r"^GPU \d: simulated, 16.0 GiB", listed.stdout, re.M)), 5, listed.stdout)

    def test_the_trace_shows_gradients_leaving(self):
        trace = self.cluster.folder / "trace.json"
        self.train("traced", gpu(), first=["--trace", trace])
        self.assertIn("bring home", trace.read_text())


if __name__ == "__main__":
    cluster.main()
