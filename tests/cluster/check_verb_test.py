# tests/cluster/check_verb_test.py - poseidon-node check: what training would find, without training.
import functools
import json
import subprocess

import cluster
import small_run

NET = small_run.made_up()
PARAMETERS = 6 * 4 + 4
node = functools.partial(cluster.run, "poseidon-node")


class Check(small_run.MadeUp):
    def setUp(self):
        super().setUp()
        self.write()

    def write(self, *lines, net="net.prototxt", prefix="small"):
        self.solver.write_text(f'net: "{self.folder}/{net}"\nbase_lr: 0.1\nlr_policy: "step"\ngamma: 0.1\nstepsize: 3\nmax_iter: 5\n'
                               f'snapshot: 2\niter_size: 3\nsnapshot_prefix: "{self.folder}/{prefix}"\n' + "\n".join(lines) + "\n")

    def check(self, *words):
        return node("check", self.solver, *words)

    def test_a_good_solver_ends_with_0_and_its_figures(self):
        for words in ([self.solver], ["--solver", self.solver]):
            done = node("check", *words, "--devices", "cpu:2")
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertIn(f'net "small": 3 layers, {PARAMETERS} parameters', done.stdout)
            self.assertIn("iteration: 24 samples on 1 node with 2 replicas", done.stdout)  # 8 x iter_size 3
            self.assertIn('policy "step", first 0.1, last 0.01', done.stdout)
            self.assertNotIn("training data", done.stdout)  # DummyData has no end, so there are no epochs
            self.assertEqual(done.stdout.splitlines()[-1], "check: 0 errors, 0 warnings")

    def test_json_is_one_object_with_the_same_figures(self):
        done = self.check("--json", "--nodes", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["errors"], found["warnings"]), ([], []))
        self.assertEqual(found["sent_bytes"], 4 * PARAMETERS)  # half of the gradients, and half of the parameters
        self.assertGreater(found["memory_bytes"], 2 * 4 * PARAMETERS)
        self.assertEqual((found["parameters"], found["parameter_bytes"], found["samples_per_iteration"]), (PARAMETERS, 4 * PARAMETERS, 48))
        self.assertEqual(found["snapshots"], 3)  # after 2 and 4 iterations, and at the end
        # What rounding has taken of each value, the rounded ones, and the exact ones of the half that the node owns. Nothing is large enough for blocks.
        self.assertEqual(found["more_memory_bytes"], {"sixteen_bits": 6 * PARAMETERS + 2 * PARAMETERS, "int8": 0, "int4": 0, "lowrank": 0})

    def test_what_fewer_bytes_take_of_memory_is_said_where_nodes_send(self):
        large = 300 * 200
        (self.folder / "large.prototxt").write_text(f"""
            layer {{ name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {{ shape {{ dim: 4 dim: 300 }} shape {{ dim: 4 }} }} }}
            layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param {{ num_output: 200 }} }}
            layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}""")
        for rule, arrays in (("SGD", 1), ("Adam", 2)):
            self.write(f'type: "{rule}"', net="large.prototxt")
            found = json.loads(self.check("--json", "--nodes", 4).stdout)["more_memory_bytes"]
            blocks = -(-large // 256)  # the bias is small
            self.assertEqual(found["int8"], 5 * large + 2 * blocks + large)
            self.assertEqual(found["int4"], 5 * large + 2 * blocks + large // 2)
            self.assertEqual(found["sixteen_bits"], (5 + 2) * (large + 200))
            self.assertEqual(found["lowrank"], 4 * (2 * large + large * arrays * 3 // 4))  # each node has the whole state
        self.assertIn("where fewer bytes are sent a node needs more memory: 421.4 kB with --wire float16 or bfloat16", self.check("--nodes", 4).stdout)
        self.assertNotIn("fewer bytes", self.check().stdout)

    def test_nothing_is_written(self):
        self.write(prefix="new/deep/small")
        before = sorted(self.folder.rglob("*"))
        self.assertEqual(self.check().returncode, 0)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_errors_of_several_steps_are_said_at_once(self):
        (self.folder / "bad.prototxt").write_text(NET.replace('bottom: "data"', 'bottom: "date"'))
        self.write(net="bad.prototxt", prefix="net.prototxt/small")
        done = self.check("--weights", self.folder / "none.caffemodel")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn('"date"', done.stderr)
        self.assertIn("no snapshot can be written", done.stderr)
        self.assertIn("none.caffemodel", done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "check: 3 errors, 0 warnings")

    def test_a_warning_of_training_is_a_warning_here_and_no_error(self):
        self.write("momentum: 1")
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stderr.startswith(f"{self.solver}:10: momentum is 1: at 1 or above"), done.stderr)
        self.assertIn("check: 0 errors, 1 warning\n", done.stdout)

    def pictures(self, tests):
        """Five pictures to train with, 2 per iteration; test phases of `tests` batches of 2."""
        for n in range(5):
            (self.folder / f"{n}.pgm").write_bytes(b"P5 2 3 255\n" + bytes(6))
        (self.folder / "list").write_text("".join(f"{self.folder}/{n}.pgm 0\n" for n in range(5)))
        start = NET.index("layer"), NET.index('layer { name: "scores"')
        data = ('layer { name: "data" type: "ImageData" top: "data" top: "label" image_data_param '
                f'{{ source: "{self.folder}/list" batch_size: 2 is_color: false }} }}\n')
        (self.folder / "pictures.prototxt").write_text(NET[:start[0]] + data + NET[start[1]:])
        self.write(f"test_iter: {tests}", "test_interval: 2", net="pictures.prototxt")

    def test_a_test_phase_that_covers_less_or_more_than_its_data_gets_a_warning(self):
        for tests, tested, text in ((2, 4, "leaves samples out"), (3, 6, "reads some samples more than once")):
            self.pictures(tests)
            done = self.check()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, rf"test net 0: test_iter {tests} x batch 2 = {tested} of 5 samples: .*{text}")
            self.assertIn("check: 0 errors, 1 warning\n", done.stdout)
            # 2 x iter_size 3 = 6 samples per iteration, 5 iterations
            self.assertIn("training data: 5 samples, 0.8333 iterations per epoch, 6 epochs in max_iter 5", done.stdout)

    def test_a_first_sample_that_cannot_be_decoded_is_an_error(self):
        self.pictures(2)
        (self.folder / "0.pgm").write_bytes(b"P5 2 3 255\n")
        done = self.check()
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("0.pgm", done.stderr)

    def test_labels_that_are_no_class_are_errors_wherever_in_the_data_they_are(self):
        images = small_run.images(self.folder)
        for classes, ends_with in ((10, 0), (9, 2)):
            solver = small_run.solver(self.folder, f"classes{classes}", classes=classes)
            done = node("check", solver)
            self.assertEqual(done.returncode, ends_with, done.stderr)
            if classes == 9:
                self.assertIn('layer "loss" (SoftmaxWithLoss): a label is 9.000000, the prediction has 9 classes (0 to 8)', done.stderr)
                self.assertRegex(done.stderr, r"classes9.net.prototxt:\d+: .* It is sample \d+ of layer \"data\"")
        labels = self.folder / "made-labels-idx1-ubyte"
        good = bytearray(labels.read_bytes())
        for at, label, ends_with in ((len(good) - 1, 10, 2), (8, 200, 2), (100, 9, 0)):
            with self.subTest(at=at, label=label):
                labels.write_bytes(good[:at] + bytes([label]) + good[at + 1:])
                self.assertEqual(node("check", self.folder / "classes10.prototxt").returncode, ends_with)
        self.assertTrue(images.exists())

    def test_a_file_that_is_no_solver_ends_with_2(self):
        for path in (self.folder / "nothing", self.folder, self.folder / "net.prototxt"):
            with self.subTest(path):
                done = node("check", path)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(str(path), done.stderr)

    def test_output_that_cannot_be_written_ends_with_2(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([cluster.BIN / "poseidon-node", "check", str(self.solver)], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=cluster.DEADLINE_S)
        self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
