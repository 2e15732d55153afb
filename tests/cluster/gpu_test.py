# tests/cluster/gpu_test.py - nodes with GPUs, simulated ones: the whole plug-in but the vendor's libraries. With
# POSEIDON_GPU_PLUGIN=FILE in the environment on that plug-in's GPU 0, as tools/gpu-check does.
import json
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


NHWC = ["--layout", "nhwc"]  # which --math fp32 has not by itself


def two_gpus(devices):
    """These, or two logical devices where there is one GPU."""
    return gpu(devices) if PLUGIN.name == SIMULATED.name else gpu(logical=2)


def four_replicas(devices):
    return gpu(devices if PLUGIN.name == SIMULATED.name else "0", logical=4)


class Gpu(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def train(self, name, *devices, routes="ps", first=(), iterations=ITERATIONS, **solver):
        """A node for each of `devices`; returns the last snapshot."""
        path = small_run.solver(self.cluster.folder, name, iterations=iterations, **solver)
        nodes = [self.cluster.node("--solver", path, *devices[0], *first,
                                   *(["--listen", "127.0.0.1:0", "--nodes", len(devices), "--routes", routes]
                                     if len(devices) > 1 else []))]
        if len(devices) > 1:
            address = nodes[0].wait_for(cluster.LISTENING)[1]
            nodes += [self.cluster.node("--join", address, *words) for words in devices[1:]]
        for node in nodes:
            self.assertEqual(node.wait(), 0, node.output)
        self.last = nodes[0]
        return small_run.snapshot_of(self.cluster.folder, name, iterations)

    def losses(self):
        return [float(x) for x in re.findall(r"^iteration \d+/\d+: loss (\S+)", self.last.output, re.M)]

    def assert_close(self, one, other, most=1e-4):
        # Blobs below 1e-2 count as noise: a bias in front of a BatchNorm has no gradient but rounding.
        worst = small_run.deviations(one, other, 1e-2)
        self.assertLess(max(worst.values()), most, worst)

    def test_a_gpu_trains_what_the_cpu_trains(self):
        for kind in ({}, {"norm": True}, {"text": small_run.SHARED_NET}, {"iter_size": 3}):
            with self.subTest(**kind):
                cpu = self.train("cpu", ["--devices", "cpu:1"], **kind)
                losses = self.losses()
                self.assertEqual(len(losses), ITERATIONS)
                for layout in [], NHWC:
                    self.assert_close(cpu, self.train("gpu", gpu() + layout, **kind))
                    for ours, theirs in zip(self.losses(), losses):
                        self.assertAlmostEqual(ours, theirs, delta=2e-3)

    def test_in_bfloat16_it_learns_the_same(self):
        for kind in ({}, {"norm": True}):
            with self.subTest(**kind):
                self.train("cpu", ["--devices", "cpu:1"], lr=0.005, **kind)  # calm: steps far apart would part further
                losses = self.losses()
                self.train("gpu", gpu(math="bf16"), lr=0.005, **kind)
                rounded = self.losses()
                self.assertEqual(len(rounded), ITERATIONS)
                self.assertNotEqual(rounded, losses)  # or nothing was
                for ours, theirs in zip(rounded, losses):
                    self.assertAlmostEqual(ours / theirs, 1, delta=0.03)

    def test_a_model_is_tested_on_gpus_as_on_the_cpu(self):
        weights = self.train("trained", ["--devices", "cpu:1"])
        net = self.cluster.folder / "trained.net.prototxt"
        net.write_text(net.read_text() + TEST_NET.replace("{{", "{").replace("}}", "}"))
        words = ["test", "--model", net, "--weights", weights, "--iterations", 3]
        said = {}
        for name, devices in (("cpu", ["--devices", "cpu:1"]), ("gpu", gpu()), ("two", gpu(logical=2))):
            node = self.cluster.node(*words, *devices)
            self.assertEqual(node.wait(), 0, node.output)
            said[name] = {key: float(value) for key, value in re.findall(r"^(Loss|accuracy)\W+([\d.e+-]+)", node.output, re.M)}
        self.assertEqual(set(said["cpu"]), {"Loss", "accuracy"})
        for name in ("gpu", "two"):
            for key, value in said["cpu"].items():
                self.assertAlmostEqual(said[name][key], value, delta=1e-4, msg=(name, key))

    def test_layers_are_timed_on_a_gpu(self):
        net = small_run.solver(self.cluster.folder, "timed").with_suffix("").with_suffix(".net.prototxt")
        profile = self.cluster.folder / "profile"

        for devices in gpu(), gpu(logical=2):
            for phase in "TEST", "TRAIN":
                node = self.cluster.node("time", "--model", net, "--synthetic", "1x28x28", "--iterations", 2, "--phase", phase,
                                         *devices, *(["--profile-out", profile] if phase == "TRAIN" else []))
                self.assertEqual(node.wait(), 0, node.output)
                self.assertRegex(node.output, r"(?m)^conv1 +Convolution +[\d.]+")
                self.assertIn("products in fp32, images in NCHW", node.output)
                self.assertEqual(bool(re.search("(?m)^update ", node.output)), phase == "TRAIN", node.output)
                with_waits = re.search(r"each layer with a wait for the device behind it: ([\d.]+) ms an iteration", node.output)
                without = re.search(r"(?m)^iteration ([\d.]+) ms", node.output)
                self.assertTrue(with_waits and without, node.output)
                if phase == "TRAIN":  # a profile has the layers' times as they are in training
                    text = profile.read_text()
                    self.assertRegex(text, r"(?m)^measured: .* replicas, time of the first over 2 iterations, less the waits")
                    layers = sum(float(ms) for pair in re.findall(r"forward_ms: (\S+) backward_ms: (\S+)", text) for ms in pair)
                    update = float(re.search(r"(?m)^update +\S+ +(\S+)", node.output)[1])
                    if float(without[1]) > update:
                        self.assertAlmostEqual(layers, float(without[1]) - update, delta=0.01 * layers)

    def test_a_layer_without_kernel_runs_on_the_cpu_and_the_user_hears_of_it_once(self):
        out = self.cluster.folder / "scores.h5"
        layer = f'layer {{{{ name: "out" type: "HDF5Output" bottom: "ip2" bottom: "label" hdf5_output_param {{{{ file_name: "{out}" }}}} }}}}\n'
        text = small_run.NET.replace('layer {{ name: "loss"', layer + 'layer {{ name: "loss"')
        cpu = self.train("cpu", ["--devices", "cpu:1"], text=text)
        self.assertNotIn("no kernel", self.last.output)
        size = out.stat().st_size
        out.unlink()
        self.assert_close(cpu, self.train("gpu", gpu(), text=text))
        self.assertEqual(self.last.output.count('layer "out" (HDF5Output) has no kernel on the GPU: it runs on the CPU, and each '
                                                'pass waits for its values'), 1, self.last.output)
        self.assertEqual(out.stat().st_size, size)
        path = small_run.solver(self.cluster.folder, "twice", iterations=1, text=text)
        node = self.cluster.node("--solver", path, *gpu(logical=2))
        self.assertEqual(node.wait(), 2, node.output)
        self.assertIn('layer "out" (HDF5Output) writes one file', node.output)

    def test_autotune_says_what_it_gained_and_is_refused_where_bits_are_promised(self):
        self.train("tuned", gpu(math="tf32") + ["--autotune"])
        self.assertRegex(self.last.output, r"autotune on GPU 0: \d+ products of convolutions tried, \d+ of them computed in another")
        self.train("untuned", gpu(math="tf32"))
        self.assertNotIn("autotune", self.last.output)
        path = small_run.solver(self.cluster.folder, "strict", iterations=1)
        for words, text in ((gpu() + ["--autotune"], "--autotune does not go with --math fp32"),
                            (["--devices", "cpu:1", "--autotune"], "--autotune belongs to GPUs")):
            node = self.cluster.node("--solver", path, *words)
            self.assertEqual(node.wait(), 2, node.output)
            self.assertIn(text, node.output)

    def test_two_runs_on_a_gpu_give_the_same_bits(self):
        cluster.assert_same_weights(self.train("one", gpu(), norm=True), self.train("again", gpu(), norm=True))

    def test_two_logical_devices_equal_two_nodes(self):
        two = self.train("logical", gpu(logical=2), batch=32)
        cluster.assert_same_weights(two, self.train("nodes", gpu(), gpu(), batch=16))
        cluster.assert_same_weights(two, self.train("devices", two_gpus("1,3"), batch=32))

    def test_several_micro_batches_on_several_devices_equal_as_many_nodes(self):
        cluster.assert_same_weights(self.train("both", two_gpus("0,1"), batch=32, iter_size=2, text=small_run.SHARED_NET),
                                    self.train("nodes", gpu(), gpu(), batch=16, iter_size=2, text=small_run.SHARED_NET))

    def test_four_devices_equal_four_nodes(self):
        for kind in ({}, {"norm": True}, {"text": small_run.SHARED_NET}):
            with self.subTest(**kind):
                nodes = self.train("nodes", *[gpu()] * 4, batch=8, **kind)
                for devices in ("0,1,2", "0", "2,1"):
                    cluster.assert_same_weights(nodes, self.train("four", four_replicas(devices), batch=32, **kind))

    @with_simulated_machine
    def test_gradients_are_added_on_devices_that_are_peers_and_else_on_the_host(self):
        """GPU 3 has no peers: of 0, 1, 3 and 0 the host adds the last two."""
        for kind in ({}, {"iter_size": 2, "text": small_run.SHARED_NET}):
            runs = {}
            for devices, added in (("3,0,1", 0), ("0,1,2", 4), ("0,1,3", 2)):
                runs[devices] = self.train(f"on {devices}", four_replicas(devices), batch=32, first=["--log-level", "debug"],
                                           **kind)
                said = re.findall(r"the first (\d) of 4 replicas add their gradients", self.last.output)
                self.assertEqual(said, [str(added)] if added else [])
                cluster.assert_same_weights(runs["3,0,1"], runs[devices])

    def test_gradients_of_several_passes_stay_on_a_gpu_that_trains_alone(self):
        def homecomings(name, *words, **solver):
            path = self.cluster.folder / f"{name}.trace.json"
            self.train(name, gpu(*words), first=["--trace", path], iter_size=3, **solver)
            events = json.loads(path.read_text())["traceEvents"]
            phases = [e["cat"] for e in events if e.get("ph") == "X" and e["name"] != "loss"]  # whose value each pass brings
            return {p: phases.count(p) for p in ("gradient ready", "copy to host")}

        layers = 3
        self.assertEqual(homecomings("alone"), {"gradient ready": layers * ITERATIONS, "copy to host": 0})
        self.assertEqual(homecomings("clipped", more="clip_gradients: 1000"), {"gradient ready": 0, "copy to host": layers * ITERATIONS})

    def test_a_cpu_and_a_gpu_train_together(self):
        cpu = self.train("cpu", ["--devices", "cpu:1"], ["--devices", "cpu:1"])
        self.assert_close(cpu, self.train("mixed", ["--devices", "cpu:1"], gpu()))
        self.assert_close(cpu, self.train("other", gpu(), ["--devices", "cpu:1"]))

    def test_factors_of_a_gpu_are_those_of_the_cpu(self):
        cpu = self.train("cpu", ["--devices", "cpu:1"], ["--devices", "cpu:1"], routes="sfb")
        self.assert_close(cpu, self.train("gpu", gpu(), gpu() + NHWC, routes="sfb"))
        self.assert_close(self.train("cpus", ["--devices", "cpu:2"], ["--devices", "cpu:2"], routes="sfb", batch=32,
                                     iter_size=2),
                          self.train("gpus", two_gpus("0,1"), two_gpus("0,1"), routes="sfb", batch=32, iter_size=2))

    def test_with_staleness_every_pass_computes_with_one_version(self):
        snapshot = self.train("stale", gpu(), gpu(), first=["--staleness", "2"])
        self.assertTrue(cluster.weights(snapshot))
        self.assertTrue(all(loss < 10 for loss in self.losses()), self.last.output)
        self.train("devices", two_gpus("0,1"), two_gpus("1,0"), first=["--staleness", "2"])
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
        refused(["--devices", "cpu:1", "--math", "tf32"], 2, "--math tf32 belongs to GPUs")
        refused(["--devices", "cpu:1", *NHWC], 2, "--layout belongs to GPUs")
        refused(gpu() + ["--layout", "chw"], 2, "--layout", "auto,nchw,nhwc")
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
        path = small_run.solver(self.cluster.folder, "lost", iterations=cluster.ENDLESS)
        alone = self.cluster.node("--solver", path, *gpu("5"))
        self.assertEqual(alone.wait(), 1, alone.output)
        self.assertRegex(alone.output, r"simulated GPU 5: .*illegal memory access")
        first = self.cluster.node("--solver", path, "--devices", "cpu:1", "--listen", "127.0.0.1:0", "--nodes", 2, "--survive", 0)
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
        self.train("traced", two_gpus("0,1"), first=["--trace", trace])
        events = json.loads(trace.read_text())["traceEvents"]
        lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        phases = {(lanes[e["tid"]], e["cat"]) for e in events if e["ph"] == "X" and e["name"] == "ip1"}
        self.assertIn(("copy_out [0]", "sum"), phases)
        self.assertIn(("copy_out [1]", "sum"), phases)
        self.assertFalse([p for p in phases if "copy to host" in p], phases)

    def test_updates_on_the_device_are_those_of_the_host(self):
        """A GPU that has no peers, or gradients that the host adds over micro-batches, are updated there."""
        for kind in ({"rule": 'type: "Adam" lr_policy: "fixed" momentum: 0.9', "lr": 0.001}, {"norm": True},
                     {"text": small_run.SHARED_NET}):
            with self.subTest(**kind):
                here = self.train("device", two_gpus("0,1"), batch=32, **kind)
                there = self.train("nodes", gpu(), gpu(), batch=16, **kind)
                cluster.assert_same_weights(here, there)

    def test_a_run_on_a_gpu_is_resumed_with_its_solver_state(self):
        more = f"snapshot: {ITERATIONS // 2}"
        for kind in ({}, {"rule": 'type: "Adam" lr_policy: "fixed" momentum: 0.9', "lr": 0.001}):
            with self.subTest(**kind):
                whole = self.train("whole", gpu(), more=more, **kind)
                state = self.cluster.folder / f"whole_iter_{ITERATIONS // 2}.solverstate"
                cluster.assert_same_weights(whole, self.train("resumed", gpu(), first=["--snapshot", state], **kind))
                # Neither knows of the other's device.
                self.assert_close(whole, self.train("on cpu", ["--devices", "cpu:1"], first=["--snapshot", state], **kind))

    def test_routes_change_while_a_gpu_has_the_values(self):
        changes = self.cluster.folder / "routes"
        changes.write_text("ip1 sfb\n@3 ip1 ps\n@6 ip1 sfb\n")
        wanted = self.train("ps", gpu(), gpu())
        self.assert_close(wanted, self.train("changed", gpu(), gpu(), routes=changes))
        self.assertIn("from iteration 6 on: ip1 to factor_broadcast", self.last.output)

    @with_simulated_machine
    def test_a_node_that_loses_its_peer_writes_what_its_gpu_has(self):
        path = small_run.solver(self.cluster.folder, "left", iterations=cluster.ENDLESS)
        first = self.cluster.node("--solver", path, *gpu(), "--listen", "127.0.0.1:0", "--nodes", 2, "--routes", "sfb")
        other = self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], *gpu("5"))
        self.assertEqual(other.wait(), 1, other.output)
        self.assertEqual(first.wait(), 3, first.output)
        written, = self.cluster.folder.glob("left_iter_*.caffemodel")
        iteration = int(written.stem.rpartition("_")[2])
        self.assertGreater(iteration, 0)
        cluster.assert_same_weights(written, self.train("whole", gpu(), gpu(), routes="sfb", iterations=iteration))


if __name__ == "__main__":
    cluster.main()
