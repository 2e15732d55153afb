# tests/cluster/hdf5_plugin_test.py - HDF5's library comes into a process with the first HDF5 file, and what is missing then is said.
import os
import re
import shutil
import subprocess
import sys

import cluster
import small_run

PLUGIN = cluster.BIN.parent / "lib/libposeidon_hdf5.so"
# A plug-in of another build: another version, another table.
OTHER = """
struct { const char* version; unsigned long long bytes; } table = {"0.0.9", 16};
const void* poseidon_hdf5_plugin(void) { return &table; }
"""
MAPPED = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
print("mapped:", *{line.rpartition("/")[2].strip() for line in open("/proc/self/maps") if ".so" in line})
"""


def libraries(record):
    """Whose code the dynamic linker has begun, from what it writes with LD_DEBUG=libs."""
    return {os.path.basename(path) for path in re.findall(r"calling init: (\S+)", record)}


class Hdf5Plugin(small_run.MadeUp):
    def train(self, program=None, snapshots="HDF5"):
        self.solver.write_text(f'net: "{self.net}" base_lr: 0.01 lr_policy: "fixed" max_iter: 2 display: 1 snapshot_prefix: "{self.folder}/s" '
                               f"snapshot_format: {snapshots}\n")
        return subprocess.run([program or cluster.BIN / "poseidon-node", "--solver", self.solver, "--devices", "cpu:1"], capture_output=True, text=True,
                              env={**os.environ, "LD_DEBUG": "libs"}, timeout=cluster.DEADLINE_S)

    def test_it_is_loaded_for_a_file_of_hdf5_and_for_no_other(self):
        plain, hdf5 = self.train(snapshots="BINARYPROTO"), self.train()
        self.assertEqual((plain.returncode, hdf5.returncode), (0, 0), plain.stdout + hdf5.stdout)
        self.assertGreater(len(libraries(plain.stderr)), 5)
        self.assertFalse({name for name in libraries(plain.stderr) if re.match("lib(poseidon_)?(hdf5|curl)", name)})
        self.assertIn(PLUGIN.name, libraries(hdf5.stderr))
        self.assertLess(len(libraries(plain.stderr)), len(libraries(hdf5.stderr)))
        for file in "s_iter_2.caffemodel", "s_iter_2.caffemodel.h5":
            read = cluster.run("poseidon-data", "info", self.folder / file)
            self.assertRegex(read.stdout, "28 (values|weights|parameters)|scores", file)

    def test_the_library_for_other_programs_brings_none(self):
        library = cluster.BIN.parent / "lib/libposeidon.so"
        if not library.exists() or "POSEIDON_TEST_SLACK" in os.environ and cluster.SLACK > 1:
            self.skipTest("the library has not been built, or only for programs with a sanitizer")
        said = subprocess.run([sys.executable, "-c", MAPPED, library], capture_output=True, text=True, check=True).stdout
        self.assertIn("libposeidon.so", said)
        self.assertNotRegex(said, "hdf5|curl")

    def refused(self, *says):
        """A program in bin/, and what is beside it in lib/, refuses snapshots in HDF5 before it trains."""
        done = self.train(self.program)
        said = [line for line in done.stderr.splitlines() if not re.match(r"\s*\d+:", line)]
        self.assertEqual((done.returncode, len(said)), (1, 1), said)
        self.assertNotIn("iteration", done.stdout)
        for word in (f"{self.solver}: snapshot_format: HDF5: HDF5 files need the plug-in ", *says):
            self.assertIn(word, said[0])

    def test_a_plug_in_that_is_missing_or_of_another_build_is_named_before_training(self):
        for name in "bin", "lib":
            (self.folder / name).mkdir()
        self.program, plugin = self.folder / "bin/poseidon-node", self.folder / "lib" / PLUGIN.name
        shutil.copy(cluster.BIN / "poseidon-node", self.program)
        with self.subTest("missing"):
            self.refused(f"{PLUGIN.name}, which is not there: looked for {self.folder}/bin/{PLUGIN.name}, {plugin}, ", "install this one again, whole.")
        with self.subTest("no library"):
            plugin.write_text("no library")
            self.refused(f"{plugin}, which does not load: ", "Is a library missing that comes with HDF5")
        with self.subTest("something else"):
            shutil.copy(cluster.BIN / "libposeidon_gpu_simulated.so", plugin)
            self.refused(f"{plugin}, which has no symbol poseidon_hdf5_plugin. ")
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("a plug-in of another build needs a compiler of C")
        (self.folder / "other.c").write_text(OTHER)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", plugin, self.folder / "other.c"], check=True)
        with self.subTest("another build"):
            self.refused(f"{plugin}, which is of Poseidon 0.0.9 with a table of 16 bytes; this program is of ", "install this one again, whole.")


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-data", "libposeidon_gpu_simulated.so")
    cluster.main()
