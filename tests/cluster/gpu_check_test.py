# tests/cluster/gpu_check_test.py - tools/gpu-check and tools/bundle keep their promises, on the simulated plug-in and in an unpacked bundle.
import json
import os
import subprocess
import sys
import unittest

import cluster

STEPS = ["libraries", "device-query", "layers", "oracle layers", "oracle solvers", "cluster", "sanitizer", "overlap",
         "lenet poseidon tf32", "lenet layers", "cifar10_quick poseidon tf32", "cifar10_quick layers"]


LONG_ENOUGH = ("--minutes", 90)  # ten times the limits that a GPU needs


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def check(self, tool, *words, **environment):
        """Exit code, output and the report."""
        out = self.cluster.folder / "out"
        done = subprocess.run([sys.executable, "-B", tool, "--out", out, *map(str, words)], capture_output=True, text=True,
                              env={**os.environ, **environment})
        return done.returncode, done.stdout + done.stderr, json.loads((out / "gpu-check.json").read_text())

    def test_every_step_is_made_in_an_unpacked_bundle_and_reported(self):
        bundle = self.cluster.folder / "any where" / "poseidon"
        subprocess.run([sys.executable, "-B", cluster.ROOT / "tools/bundle", "--folder", bundle, "--tests", "--build",
                        cluster.BIN.parent], check=True)
        for name in ("libposeidon_gpu.so", "libposeidon_gpu_simulated.so"):  # they name no folder of the machine that built them
            if (bundle / "bin" / name).exists():
                found = subprocess.run(["readelf", "-d", bundle / "bin" / name], capture_output=True, text=True, check=True).stdout
                self.assertRegex(found, r"(RPATH|RUNPATH).*\[\$ORIGIN/\.\./lib\]")
        # No library of the programs comes from outside the bundle.
        subprocess.run([sys.executable, "-B", cluster.ROOT / "tools/bundle", "--check", bundle], check=True)
        code, output, report = self.check(bundle / "tools/gpu-check", *LONG_ENOUGH, "--simulated", "--no-torch", "--oracle",
                                          cluster.ROOT.parent / "shared/oracle", POSEIDON_BIN="")
        self.assertEqual(code, 0, output)
        self.assertEqual([s["step"] for s in report["steps"]], STEPS)
        for step in report["steps"]:
            may_miss = step["step"] == "sanitizer" or step["step"].startswith("oracle")
            self.assertIn(step["result"], ["passed", "skipped"] if may_miss else ["passed"], step)
        rates = [s["images_per_s"] for s in report["steps"] if "images_per_s" in s]
        self.assertEqual(len(rates), 2)
        self.assertTrue(all(rate > 0 for rate in rates), rates)

    def test_settings_are_measured_as_asked_for_and_others_refused(self):
        tool, common = cluster.ROOT / "tools/gpu-check", ("--simulated", "--no-torch", "--bin", cluster.BIN, *LONG_ENOUGH)
        code, output, report = self.check(tool, *common, "--only", "fast", "--nets", "lenet", "--settings",
                                          "tf32 autotune,bf16 nchw")
        self.assertEqual(code, 0, output)
        self.assertEqual([s["setting"] for s in report["steps"] if "images_per_s" in s], ["tf32 autotune", "bf16 nchw"])
        log = (self.cluster.folder / "out/gpu-check.log").read_text()
        self.assertRegex(log, r"--math tf32 --autotune --gpu-plugin")
        self.assertRegex(log, r"--math bf16 --layout nchw --gpu-plugin")
        self.assertRegex(output, r"(?m)^lenet +4  tf32 autotune ")
        done = subprocess.run([sys.executable, "-B", tool, *map(str, common), "--settings", "fp8"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--settings: fp8; a setting is tf32 or bf16", done.stderr)

    def test_without_time_steps_are_left_out_and_named(self):
        code, output, report = self.check(cluster.ROOT / "tools/gpu-check", "--simulated", "--no-torch", "--bin", cluster.BIN,
                                          "--minutes", 0.001, POSEIDON_REQUIRE_GPU="")
        self.assertEqual(code, 77, output)
        self.assertIn("no time was left", report["steps"][0]["text"])

    def test_a_step_that_fails_is_named_and_the_others_are_made(self):
        programs = self.cluster.folder / "bin"
        programs.mkdir()
        for name in ("poseidon-node", "poseidon-oracle", "libposeidon_gpu_simulated.so"):
            (programs / name).symlink_to(cluster.BIN / name)
        broken = programs / "test_gpu_plugin"
        broken.write_text("#!/bin/sh\necho 'TEST CASE:  gpu: a layer'\nexit 1\n")
        broken.chmod(0o755)
        code, output, report = self.check(cluster.ROOT / "tools/gpu-check", "--simulated", "--no-torch", "--bin", programs, *LONG_ENOUGH)
        results = {s["step"]: s for s in report["steps"]}
        self.assertEqual(code, 1, output)
        self.assertEqual(results["layers"]["result"], "failed")
        self.assertIn("gpu: a layer", results["layers"]["text"])
        self.assertEqual(list(results), STEPS)
        self.assertEqual([n for n, s in results.items() if s["result"] == "failed"], ["layers"], output)

    def test_without_a_gpu_it_says_what_is_missing(self):
        empty = self.cluster.folder / "empty"
        empty.mkdir()
        code, output, report = self.check(cluster.ROOT / "tools/gpu-check", "--bin", empty, POSEIDON_REQUIRE_GPU="")
        self.assertEqual(code, 77, output)
        self.assertIn("libposeidon_gpu.so has not been built", report["steps"][0]["text"])
        self.assertEqual(self.check(cluster.ROOT / "tools/gpu-check", "--bin", empty, POSEIDON_REQUIRE_GPU="1")[0], 1)


if __name__ == "__main__":
    cluster.need("poseidon-node", "test_gpu_plugin", "libposeidon_gpu_simulated.so")
    cluster.main()
