# tests/cluster/caffe_words_test.py - command lines and logs as Caffe's users and their scripts know them.
import datetime
import functools
import re

import cluster
import small_run

ONLY_AT_A_STAGE = 'layer { name: "only" type: "Silence" bottom: "scores" include { stage: "extra" min_level: 3 } }\n'
SOLVER = """net: "{0}/net.prototxt"
base_lr: 0.1
lr_policy: "fixed"
max_iter: 5
display: 2
test_iter: 1
test_interval: 2
snapshot_prefix: "{0}/small"
"""
SIMULATED = cluster.BIN / "libposeidon_gpu_simulated.so"
PREFIX = re.compile(r"^([IWE])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) +\d+ \w+\.cpp:\d+\] (.*)$")


node = functools.partial(cluster.run, "poseidon-node")


def read_log(text):
    """What Caffe's parse_log.py finds: rows of train and test outputs by iteration, and the seconds since "Solving"."""
    start, iteration, rate, rows = None, None, None, {"Train": {}, "Test": {}}
    for line in text.splitlines():
        found = PREFIX.match(line)
        if not found:
            raise AssertionError("a line without glog's prefix: " + line)
        when = datetime.datetime(2024, *map(int, found.groups()[1:7]))
        if start is None and "Solving" in line:
            start = when
        if match := re.search(r"Iteration (\d+)", line):
            iteration = int(match[1])
        if match := re.search(r"lr = ([-+]?[0-9]*\.?[0-9]+([eE]?[-+]?[0-9]+)?)", line):
            rate = float(match[1])
        for phase in rows:
            if match := re.search(phase + r" net output #(\d+): (\S+) = ([\.\deE+-]+)", line):
                assert start is not None and when >= start
                rows[phase].setdefault(iteration, {})[match[2]] = float(match[3])
    return rows["Train"], rows["Test"], rate


class CaffeWords(small_run.MadeUp):
    NET = small_run.made_up(12, ONLY_AT_A_STAGE + small_run.ACCURACY, "loss_weight: 2 ")

    def setUp(self):
        super().setUp()
        self.solver.write_text(SOLVER.format(self.folder))

    def check_log(self, text):
        train, test, rate = read_log(text)
        self.assertEqual(rate, 0.1)
        self.assertLessEqual({0, 2, 4}, set(train))
        self.assertLessEqual({0, 2, 4}, set(test))
        self.assertEqual(set(test[2]), {"accuracy", "loss"})
        # what parse_log.sh takes by awk's columns
        losses = [line.split()[8] for line in text.splitlines() if ", loss = " in line]
        self.assertAlmostEqual(float(losses[0]), 2 * train[0]["loss"], places=4)
        self.assertRegex(text, r"(?m)\]     Train net output #0: loss = [\d.]+ \(\* 2 = [\d.]+ loss\)$")
        self.assertRegex(text, r"(?m)\] Iteration 2, Testing net \(#0\)$")
        self.assertRegex(text, r"(?m)\] Snapshotting to binary proto file .*small_iter_5\.caffemodel$")
        self.assertRegex(text, r"(?m)\] Solving small$")
        self.assertRegex(text, r"(?m)\] Optimization Done\.$")

    def test_caffes_scripts_read_the_log(self):
        done = node("train", "-solver", self.solver, "--log-format", "caffe")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        self.check_log(done.stderr)

    def test_log_dir_keeps_a_file_as_glog_names_it(self):
        logs = self.folder / "logs"
        missing = node("train", f"-solver={self.solver}", "--log_dir", logs)
        self.assertEqual(missing.returncode, 2)
        self.assertRegex(missing.stderr, r"--log-dir .*logs: .* cannot be written there: .* Create the folder")
        logs.mkdir()
        done = node("train", f"-solver={self.solver}", "-log_dir", logs, "-alsologtostderr=1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("test iteration 2: accuracy", done.stdout)
        names = sorted(path.name for path in logs.iterdir())
        self.assertEqual(names[0], "poseidon-node.INFO")
        self.assertRegex(names[1], r"^poseidon-node\..+\.log\.INFO\.\d{8}-\d{6}\.\d+$")
        text = (logs / "poseidon-node.INFO").read_text()
        header, lines = text.split("] msg\n", 1)
        self.assertTrue(header.startswith("Log file created at: "))
        self.check_log(lines)

    def test_verbs_take_caffes_options(self):
        done = node("train", "-solver", self.solver, "-sighup_effect=stop", "--sigint_effect", "snapshot", "--iterations=7")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--iterations has no effect here, as in Caffe: training ends after the solver's max_iter", done.stderr)
        weights = self.folder / "small_iter_5.caffemodel"
        done = node("test", "-model", self.folder / "net.prototxt", "-weights", weights, "-iterations=2", "-phase", "TEST")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^Batch 1, accuracy = ")
        done = node("time", "-model", self.folder / "net.prototxt", "-iterations", 1, "-phase", "TEST")
        self.assertEqual(done.returncode, 0, done.stderr)
        wrong = node("train", "-solver", self.solver, "-sighup_effect", "stopp")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn('--sighup-effect stopp: it can be stop, snapshot, none. Did you mean "stop"?', wrong.stderr)

    def test_level_and_stage_choose_layers_of_the_train_net(self):
        graph = self.folder / "graph.json"
        for words, there in ((), False), (("-stage", "extra"), False), (("-stage", "more,extra", "-level", 3), True):
            done = node("train", "-solver", self.solver, *words, "--graph", graph)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("layer only " in graph.read_text(), there, words)

    def test_gpu_is_caffes_word_for_devices(self):
        both = node("train", "-solver", self.solver, "-gpu", 0, "--devices", "cpu")
        self.assertEqual(both.returncode, 2)
        self.assertIn("--gpu 0 does not go with --devices cpu: both name devices", both.stderr)
        wrong = node("train", "-solver", self.solver, "-gpu", "first")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--gpu first: expected all, or GPUs by number", wrong.stderr)
        if not SIMULATED.exists():
            self.skipTest("no simulated GPU in this build")
        for gpu in "all", "0":
            done = node("train", "-solver", self.solver, f"-gpu={gpu}", "--gpu-plugin", SIMULATED)
            self.assertEqual(done.returncode, 0, done.stderr)
        listed = node("device_query", "-gpu", "all", "--gpu-plugin", SIMULATED)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        missing = node("device_query", "-gpu", "7", "--gpu-plugin", SIMULATED)
        self.assertIn("--gpu 7: there is no GPU 7", missing.stderr)


if __name__ == "__main__":
    cluster.main()
