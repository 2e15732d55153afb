# tests/cluster/fewer_bytes_test.py - tools/bench/convergence fewer-bytes: what it runs, that it goes on where it stopped, and its table.
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import cluster
import programs

sys.path.insert(0, str(cluster.ROOT / "tools/bench/lib"))
import fewer_bytes  # noqa: E402  (the path comes first)
import fewer_bytes_nets  # noqa: E402

TOOL = cluster.ROOT / "tools/bench/convergence"


def made_up(rung, seed, score, iterations=600, sent=4e6, task="lenet"):
    return {"task": task, "rung": rung, "seed": seed, "iterations": iterations, "score": score, "loss": 1.0, "sent": sent, "seconds": 1.0, "commit": "abc", "at": ""}


class FewerBytes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.file = self.folder / "results.jsonl"

    def fewer_bytes(self, *words):
        return subprocess.run([sys.executable, "-B", TOOL, "fewer-bytes", "--results", self.file, *words], capture_output=True, text=True,
                              timeout=1500 * cluster.SLACK)

    def lines(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def test_short_runs_send_what_their_rung_says_and_are_not_made_again(self):
        if not fewer_bytes_nets.IMAGES.exists():
            self.skipTest("Debian's dataset-fashion-mnist is not installed")
        words = ("--iterations", "10", "--seeds", "5", "--only", "lenet net float32,lenet net int4,lenet script float32,lenet outer 5 int4")
        done = self.fewer_bytes(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = {r["rung"]: r for r in self.lines()}
        self.assertEqual(set(found), {"net float32", "net int4", "script float32", "outer 5 int4"})
        for r in found.values():
            self.assertTrue(5 < r["score"] <= 100 and r["loss"] > 0, r)
        whole = 2 * 3 / 4 * 4 * 431080 * 10  # gradients and what comes back, of the three fourths of the values that other workers own, in ten iterations
        # Worker 0 counts its bytes when it has an exchange's values, and may still have to send them to others: that is half of an exchange. Nine are counted, of outer
        # steps one.
        for rung, part, apart in (("net float32", 1, 0.2), ("script float32", 1, 0.2), ("net int4", 1 / 7.8, 0.2), ("outer 5 int4", 1 / 39, 0.6)):
            self.assertAlmostEqual(found[rung]["sent"] / (whole * part), 1, delta=apart, msg=rung)
        self.file.write_text(self.file.read_text() + '{"task": "lenet", "rung": "ne')  # its writer was killed
        again = self.fewer_bytes(*words)
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertNotIn("MB sent, ", again.stdout)  # the line of a run
        self.assertEqual(re.findall(r"^\|.*", again.stdout, re.M), re.findall(r"^\|.*", done.stdout, re.M))

    def test_what_a_stopped_file_lacks_is_made_after_a_torn_line(self):
        self.file.write_text('{"task": "lenet", "rung": "ne')
        results = fewer_bytes.Results(self.file)
        results.add(made_up("net int4", 1, 88.0))
        self.assertEqual(list(fewer_bytes.Results(self.file).of), [("lenet", "net int4", 1, 600)])

    def test_a_resnet_20_trains_as_a_net(self):
        if not fewer_bytes_nets.IMAGES.exists():
            self.skipTest("Debian's dataset-fashion-mnist is not installed")
        done = self.fewer_bytes("--iterations", "3", "--seeds", "1", "--only", "resnet20 net int8")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(self.lines()[0]["score"], 5)

    @unittest.skipUnless(shutil.which("bible"), "Debian's bible-kjv is not installed")
    def test_a_gpt_trains_in_mode_shards(self):
        done = self.fewer_bytes("--iterations", "4", "--seeds", "1", "--only", "gpt shards int4")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(1 < self.lines()[0]["score"] < 12, self.lines())

    def test_scripts_and_nets_are_the_same_models(self):
        count = ("import fewer_bytes_worker as w\n"
                 "for made in w.lenet, w.resnet20, w.Gpt: print(sum(p.numel() for p in made().parameters()))")
        path = f"{cluster.ROOT}/tools/bench/lib:{programs.PACKAGE}"
        said = subprocess.run([programs.PYTHON, "-B", "-c", count], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": path, "POSEIDON_LIBRARY": str(programs.LIBRARY)}).stdout.split()
        for task, number in zip(("lenet", "resnet20"), said):
            (self.folder / task).mkdir()
            fewer_bytes_nets.write(self.folder / task, task, 10)
            drawn = self.folder / f"{task}.json"
            subprocess.run([cluster.BIN / "poseidon-graph", self.folder / task / "net.prototxt", "--input", "1x28x28", "--nodes", "2", "-o", drawn], check=True, capture_output=True)
            pushed = [n["params"] for n in json.loads(drawn.read_text())["nodes"] if n["kind"] == "gradient_push" and " bn_" not in n["name"]]  # not statistics
            self.assertEqual(sum(pushed), int(number), task)
        for task, number in zip(("lenet", "resnet20", "gpt"), said):
            told = int(re.search(r"([\d,]+) parameters", fewer_bytes.TITLES[task])[1].replace(",", ""))
            self.assertAlmostEqual(told, int(number), delta=500, msg=task)

    def test_the_table_compares_a_row_with_the_exact_run_of_the_same_seed_alone(self):
        results = fewer_bytes.Results(self.file)
        for r in (made_up("net float32", 1, 88.0), made_up("net float32", 2, 90.0), made_up("net int4", 1, 88.5, sent=5e5), made_up("net int4", 2, 89.7, sent=5e5),
                  made_up("net int4", 3, 10.0), made_up("net float32", 3, 99.0, iterations=10), made_up("outer 5", 1, 80.0, iterations=400)):
            results.add(r)
        plan = fewer_bytes.planned("lenet", [1, 2, 3], None)
        rows = dict(re.match(r"\| ([^|]*) \|(.*) \|$", line).groups() for line in fewer_bytes.table(plan, results, "command").splitlines()
                    if line.startswith("| ") and "---" not in line)
        self.assertEqual(rows["net int4"], " 0.5 | 62.73 ± 45.67 | 88.50, 89.70, 10.00 | **+0.10** (+0.50, -0.30) to net float32")
        self.assertEqual(rows["net float32"], " 4.0 | 89.00 ± 1.41 | 88.00, 90.00 | ")
        self.assertEqual(rows["outer 5"], " 4.0 | 80.00 | 80.00 | ")  # what it is compared with has not been made
        self.assertIn("not run", rows["net rank 4"])

    def test_each_row_is_compared_with_one_that_is_in_the_plan(self):
        for task, rungs in fewer_bytes.RUNGS.items():
            names = [r.name for r in rungs]
            self.assertEqual(len(names), len(set(names)), task)
            for r in rungs:
                self.assertIn(r.exact, ["", *names], f"{task} {r.name}")

    def test_wrong_use_is_refused_and_the_list_says_what_is_made(self):
        done = self.fewer_bytes("--only", "nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn('no run has "nonsense" in its name', done.stderr)
        fewer_bytes.Results(self.file).add(made_up("net int4", 2, 88.0))
        listed = self.fewer_bytes("--list", "--only", "lenet net int", "--seeds", "1,2").stdout.splitlines()
        self.assertEqual(listed[:4], ["lenet net int8, seed 1: not made", "lenet net int4, seed 1: not made", "lenet net int8, seed 2: not made",
                                      "lenet net int4, seed 2: made"])


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-data", "poseidon-graph")
    programs.need("torch")
    cluster.main()
