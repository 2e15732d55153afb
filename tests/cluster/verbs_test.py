# tests/cluster/verbs_test.py - poseidon-node's verbs besides training: test, time, device-query.
import functools
import os
import re
import signal
import subprocess

import cluster
import small_run

SOLVER = 'net: "{0}/net.prototxt"\nbase_lr: 0.1\nlr_policy: "fixed"\nmax_iter: 1\nsnapshot_prefix: "{0}/small"\n'


node = functools.partial(cluster.run, "poseidon-node")


class Verbs(small_run.MadeUp):
    NET = small_run.made_up(more=small_run.ACCURACY)

    def test_output_that_cannot_be_written_ends_every_program_and_verb_with_2(self):
        folder = self.cluster.folder
        (folder / "solver").write_text(SOLVER.format(folder))
        (folder / "list").write_text(f"{folder}/p.pgm 0\n")
        (folder / "p.pgm").write_bytes(b"P5 2 2 255\n" + bytes(4))
        self.assertEqual(node("--solver", folder / "solver").returncode, 0)
        weights = folder / "small_iter_1.caffemodel"
        cases = folder / "cases"
        cases.mkdir()
        (cases / "MANIFEST.json").write_text("{}")
        lines = [["poseidon-node", "--solver", folder / "solver"], ["poseidon-node", "--solver", folder / "solver", "--json"],
                 ["poseidon-node", "--solver", folder / "solver", "--explain-routes", "--nodes", 2],
                 ["poseidon-node", "device-query"], ["poseidon-node", "test", "--model", self.net, "--weights", weights, "--iterations", 1],
                 ["poseidon-node", "time", "--model", self.net, "--iterations", 1], ["poseidon-data", "convert", "list", folder / "list", "--out",
                 folder / "database"], ["poseidon-data", "info", self.net], ["poseidon-graph", self.net],
                 ["poseidon-graph", "--types"], ["poseidon-oracle", cases]]
        lines += [[program, word] for program in ("poseidon-node", "poseidon-data", "poseidon-graph", "poseidon-oracle") for word in ("--help", "--version")]
        for words in lines:
            with self.subTest(" ".join(map(str, words))), open("/dev/full", "w") as full:
                done = subprocess.run([cluster.BIN / words[0], *map(str, words[1:])], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=cluster.DEADLINE_S)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("standard output: cannot write to it", done.stderr)

    def test_a_reader_that_has_seen_enough_is_no_full_disk(self):
        folder = self.cluster.folder
        (folder / "solver").write_text(SOLVER.format(folder).replace("max_iter: 1", "max_iter: 300 display: 1"))
        for words in (["poseidon-node", "--solver", folder / "solver"], ["poseidon-node", "--help"], ["poseidon-graph", "--types"]):
            with self.subTest(words[1]):
                reader, writer = os.pipe()
                os.close(reader)
                done = subprocess.run([cluster.BIN / words[0], *map(str, words[1:])], stdout=writer, stderr=subprocess.PIPE, text=True,
                                      timeout=cluster.DEADLINE_S)
                os.close(writer)
                self.assertIn(done.returncode, (0, -signal.SIGPIPE), done.stderr)  # training goes on, others may end as they like
                self.assertNotIn("disk", done.stderr)

    def test_a_run_that_is_resumed_where_it_ends_says_that_nothing_is_left(self):
        folder = self.cluster.folder
        (folder / "solver").write_text(SOLVER.format(folder))
        self.assertEqual(node("--solver", folder / "solver").returncode, 0)
        state = folder / "small_iter_1.solverstate"
        for words in (["--snapshot", state], ["--resume", "auto"]):
            done = node("--solver", folder / "solver", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("small_iter_1.solverstate has trained 1 iteration already, and the solver's max_iter is 1: nothing is left", done.stderr)
        (folder / "solver").write_text(SOLVER.format(folder).replace("max_iter: 1", "max_iter: 2"))
        self.assertNotIn("nothing is left", node("--solver", folder / "solver", "--resume", "auto").stderr)

    def test_words_of_caffe_get_a_hint(self):
        for words, hint in ((["poseidon-node", "train", "solver.prototxt"], "Did you mean --solver solver.prototxt?"),
                            (["poseidon-node", "test", "net.prototxt"], "Did you mean --model net.prototxt?"),
                            (["poseidon-node", "my_solver.prototxt"], "poseidon-node train --solver my_solver.prototxt"),
                            (["poseidon-node", "convert_imageset"], "convert_imageset does, poseidon-data convert list does"),
                            (["poseidon-data", "convert_imageset", "a", "b"], "poseidon-data convert list does"),
                            (["poseidon-data", "compute_image_mean"], "poseidon-data mean does"),
                            (["poseidon-node", "extract_features.bin"], "poseidon-data extract does"),
                            (["poseidon-data", "upgrade_net_proto_text"], "Nothing has to be upgraded")):
            with self.subTest(words):
                done = cluster.run(*words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(hint, done.stderr)

    def test_help_lists_every_verb(self):
        said = node("--help").stdout
        for verb in re.search(r"There are (.*?)\. ", node("no-such-verb").stderr)[1].split(", "):
            self.assertRegex(said, rf"(?m)^  {verb} ")

    def test_time_names_every_layer_with_its_speed_and_the_peak_of_memory(self):
        for phase, backward in ("TRAIN", True), ("TEST", False):
            done = node("time", "--model", self.net, "--iterations", 3, "--phase", phase)
            self.assertEqual(done.returncode, 0, done.stderr)
            for layer in ("data", "scores", "loss", "all layers"):
                self.assertRegex(done.stdout, rf"(?m)^{layer} .* [\d.]+ %$")
            self.assertEqual("\nupdate " in done.stdout, backward, done.stdout)
            self.assertRegex(done.stdout, r"(?m)^reorders: \d+ copies .* per iteration, [\d.]+ MB$")
            self.assertRegex(done.stdout, r"images/s, 0\.000 GFLOP per image; 28 parameters; peak memory \d+ MB")

    def test_time_feeds_random_images_where_there_is_no_data(self):
        lenet = cluster.ROOT / "models/zoo/lenet"
        missing = node("time", "--model", f"{lenet}/train_val.prototxt", "--iterations", 1)
        self.assertEqual(missing.returncode, 2, missing.stderr)
        self.assertIn("--data-root changes that", missing.stderr)
        train = node("time", "--model", f"{lenet}/train_val.prototxt", "--iterations", 1, "--synthetic", "1x28x28")
        self.assertRegex(train.stdout, r"(?m)^conv2 +Convolution", train.stderr)
        deploy = node("time", "--model", f"{lenet}/deploy.prototxt", "--iterations", 1, "--phase", "TEST")
        self.assertRegex(deploy.stdout, r"(?m)^prob +Softmax", deploy.stderr)

    def test_synthetic_images_are_trained_and_nothing_is_tested_or_kept(self):
        solver = self.cluster.folder / "solver.prototxt"
        solver.write_text(f'net: "{cluster.ROOT}/models/zoo/lenet/train_val.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 4 '
                          f'test_iter: 1000000 test_interval: 2 snapshot: 2 display: 1 snapshot_prefix: "{self.cluster.folder}/s"\n')
        done = node("--solver", solver, "--synthetic", "1x28x28")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("iteration 3/4", done.stdout)
        self.assertNotIn("test iteration", done.stdout)
        self.assertEqual(list(self.cluster.folder.glob("s*_iter_*")), [])

    def test_time_writes_a_profile_measured_or_from_a_throughput(self):
        measured, assumed = self.cluster.folder / "measured", self.cluster.folder / "assumed"
        done = node("time", "--model", self.net, "--iterations", 2, "--devices", "cpu:1", "--profile-out", measured)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = measured.read_text()
        self.assertIn("\nbatch: 8\n", text)
        self.assertRegex(text, r'(?m)^layer \{ name: "scores" forward_ms: [\d.e-]+ backward_ms: [\d.e-]+ \}$')
        done = node("time", "--model", self.net, "--images-s", 4, "--profile-out", assumed)
        self.assertEqual(done.returncode, 0, done.stderr)
        # The only layer with products; its input wants no diff, so backward is as long as forward.
        self.assertIn('layer { name: "scores" forward_ms: 1000 backward_ms: 1000 }', assumed.read_text())
        alone = node("time", "--model", self.net, "--images-s", 4)
        self.assertEqual(alone.returncode, 2)
        self.assertIn("Give --profile-out FILE", alone.stderr)

    def test_test_averages_the_outputs_of_a_trained_model(self):
        solver = self.cluster.folder / "solver.prototxt"
        solver.write_text(SOLVER.format(self.cluster.folder))
        self.assertEqual(node("train", "--solver", solver).returncode, 0)
        weights = self.cluster.folder / "small_iter_1.caffemodel"
        one = node("test", "--model", self.net, "--weights", weights, "--iterations", 3, "--devices", "cpu:1")
        self.assertEqual(one.returncode, 0, one.stderr)
        batches = [float(v) for v in re.findall(r"Batch \d, accuracy = ([\d.]+)", one.stdout)]
        mean = float(re.search(r"(?m)^accuracy = ([\d.]+)$", one.stdout)[1])
        self.assertEqual(len(batches), 3)
        self.assertAlmostEqual(mean, sum(batches) / 3, places=5)
        self.assertRegex(one.stdout, r"(?m)^loss = [\d.]+ \(\* 1 = [\d.]+ loss\)$")
        two = node("test", "--model", self.net, "--weights", weights, "--iterations", 3, "--devices", "cpu:2")
        self.assertAlmostEqual(float(re.search(r"(?m)^accuracy = ([\d.]+)$", two.stdout)[1]), mean, places=5)

    def test_mistakes_say_what_to_do(self):
        for words, text in [(("tset",), 'Did you mean "test"?'), (("test", "--model", self.net), "--weights is required"),
                            (("test", "--model", self.net, "--weights", "nowhere"), "nowhere: there is no such file"),
                            (("time", "--model", self.net, "--devices", "gpu"), "expected cpu, cpu:R"),
                            (("time", "--model", self.net, "--phase", "BOTH"), "--phase")]:
            done = node(*words)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(text, done.stderr)

    def test_resume_auto_begins_anew_and_then_goes_on_from_the_newest_state(self):
        solver = self.cluster.folder / "solver.prototxt"
        text = SOLVER.format(self.cluster.folder).replace("max_iter: 1", "max_iter: {} snapshot: 2 display: 1")
        solver.write_text(text.format(4))
        words = ("--solver", solver, "--devices", "cpu:1", "--resume", "auto")
        begun = node(*words)
        self.assertEqual(begun.returncode, 0, begun.stderr)
        self.assertIn("small_iter_: training begins anew", begun.stdout)
        (self.cluster.folder / "small_iter_4.solverstate").write_bytes(b"\x08\xff")
        solver.write_text(text.format(6))
        resumed = node(*words)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertRegex(resumed.stderr, r"--resume auto passes over .*small_iter_4\.solverstate: ")
        self.assertRegex(resumed.stdout, r"resuming from .*small_iter_2\.solverstate")
        self.assertNotRegex(resumed.stdout, r"iteration 1/")
        self.assertTrue((self.cluster.folder / "small_iter_6.solverstate").exists())

    def test_device_query_says_what_there_is(self):
        done = node("device-query")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^cpu: \d+ cores, AVX")


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
