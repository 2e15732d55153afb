# tests/cluster/quickstart_test.py - tools/quickstart with programs that only pretend: its steps, ends and last line.
import hashlib
import pathlib
import re
import signal
import subprocess
import unittest

import cluster

DATA = """#!/bin/bash
while (($# > 0)); do [[ $1 == --out ]] && out=$2; shift; done
mkdir -p "$out"; echo x > "$out/data.mdb"; echo "$out" >> "${0%/*}/converted"
"""
GRAPH = """#!/bin/bash
while (($# > 0)); do [[ $1 == -o ]] && echo '<svg/>' > "$2"; shift; done
"""
# The first node waits for a joiner, and trains until the file `go` exists.
NODE = """#!/usr/bin/env python3
import os, pathlib, signal, sys, time
here = pathlib.Path(sys.argv[0]).parent
joins = "--join" in sys.argv
def snapshot():
    prefix = [l.split('"')[1] for l in open(sys.argv[sys.argv.index("--solver") + 1]) if l.startswith("snapshot_prefix")][0]
    pathlib.Path(prefix + "_iter_3.caffemodel").write_text("weights")
    print("snapshot", prefix + "_iter_3.caffemodel", flush=True)
def stop(*_):
    (here / ("stopped1" if joins else "stopped0")).touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
if joins:
    assert sys.argv[sys.argv.index("--join") + 1] == "127.0.0.1:4711", sys.argv
    (here / "joined").touch()
else:
    assert len(open(sys.argv[sys.argv.index("--token-file") + 1]).readline().strip()) == 64
    print("listening on 127.0.0.1:4711; waiting for 1 node", flush=True)
    while not (here / "joined").exists(): time.sleep(0.01)
    print("iteration 100/2300: loss 0.51 lr 0.01 images/s 3000 left 40s", flush=True)
    print("test iteration 500: accuracy 0.85 loss 0.4", flush=True)
while not (here / "go").exists(): time.sleep(0.01)
if joins and (here / "fail").exists():
    print("conv1: NaN at iteration 7", file=sys.stderr, flush=True)
    sys.exit(4)
if joins: sys.exit(0)
while (here / "fail").exists(): signal.pause()
print("test iteration 2300: accuracy 0.8973 loss 0.29", flush=True)
snapshot()
"""


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.bin = self.cluster.folder / "bin"
        self.bin.mkdir()
        for name, text in (("data", DATA), ("graph", GRAPH), ("node", NODE)):
            program = self.bin / f"poseidon-{name}"
            program.write_text(text)
            program.chmod(0o755)
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def quickstart(self):
        folder = self.cluster.folder
        return self.cluster.start(cluster.ROOT / "tools/quickstart", "--bin", self.bin, "--work", folder / "work",
                                  "--data-root", folder)

    def assert_nothing_left(self):
        self.assertEqual(cluster.processes_of(self.bin), [])

    def test_the_last_line_has_what_programs_read_and_the_files_are_there(self):
        (self.bin / "go").touch()
        q = self.quickstart()
        self.assertEqual(q.wait(), 0, q.output)
        sha256 = hashlib.sha256(b"weights").hexdigest()
        found = re.fullmatch(rf"quickstart: accuracy=0\.8973 nodes=2 seconds=\d+ sha256={sha256} snapshot=(\S+) graph=(\S+)", q.lines[-1])
        self.assertTrue(found, q.lines[-1])
        self.assertTrue(pathlib.Path(found[1]).is_file())
        self.assertTrue(pathlib.Path(found[2]).is_file())
        self.assertTrue(any(line.startswith("  iteration 100/2300: loss 0.51") for line in q.lines), q.output)
        self.assert_nothing_left()

    def test_a_second_run_converts_nothing(self):
        (self.bin / "go").touch()
        for _ in range(2):
            self.assertEqual(self.quickstart().wait(), 0)
        self.assertEqual(len((self.bin / "converted").read_text().splitlines()), 2)  # train and test, once

    def test_a_node_that_fails_ends_everything_with_its_code_and_one_line(self):
        (self.bin / "go").touch()
        (self.bin / "fail").touch()
        q = self.quickstart()
        self.assertEqual(q.wait(), 4)
        self.assertEqual(len(q.errors), 1, q.errors)
        self.assertIn("node 1 ended with code 4: conv1: NaN at iteration 7", q.errors[0])
        self.assertTrue((self.bin / "stopped0").exists())
        self.assert_nothing_left()

    def test_ctrl_c_stops_the_nodes_in_order_and_says_so(self):
        q = self.quickstart()
        q.wait_for("iteration 100")
        q.signal(signal.SIGINT)
        self.assertEqual(q.wait(), 130)
        self.assertEqual(q.errors, [f"quickstart: stopped by SIGINT; the logs lie in {self.cluster.folder}/work"])
        self.assertTrue((self.bin / "stopped0").exists() and (self.bin / "stopped1").exists())
        self.assert_nothing_left()

    def test_nodes_do_not_outlive_a_quickstart_that_is_killed_outright(self):
        q = self.quickstart()
        q.wait_for("iteration 100")
        q.kill()
        cluster.wait_until(lambda: cluster.processes_of(self.bin) == [], "all nodes have ended")

    def test_a_conversion_that_fails_starts_no_training(self):
        (self.bin / "poseidon-data").write_text("#!/bin/bash\nexit 2\n")
        q = self.quickstart()
        self.assertEqual(q.wait(), 2)
        self.assertIn("could not be converted", q.errors[-1])
        self.assertFalse((self.bin / "joined").exists())

    def test_help_and_wrong_use(self):
        tool = cluster.ROOT / "tools/quickstart"
        self.assertEqual(subprocess.run([tool, "--help"], capture_output=True, check=False).returncode, 0)
        self.assertEqual(subprocess.run([tool, "--nonsense"], capture_output=True, check=False).returncode, 2)


if __name__ == "__main__":
    cluster.main()
