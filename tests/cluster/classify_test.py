# tests/cluster/classify_test.py - a net that was trained here says what is in pictures: poseidon-node classify, extract of a deploy net.
import json
import re
import unittest

import cluster

COLOURS = {"blue": (0, 0, 200), "green": (0, 200, 0), "red": (200, 0, 0)}
BODY = """
layer { name: "scores" type: "InnerProduct" bottom: "data" top: "scores"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""
TRAIN = """name: "colours"
layer { name: "data" type: "ImageData" top: "data" top: "label" transform_param { scale: 0.00390625 mean_value: 50 }
        image_data_param { source: "%s/list" batch_size: 3 } }
""" + BODY + 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }\n'
DEPLOY = """name: "colours"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 3 dim: 6 dim: 6 } } }
""" + BODY
SOFTMAX = 'layer { name: "prob" type: "Softmax" bottom: "scores" top: "prob" }\n'
PREPARE = ("--scale", "0.00390625", "--mean-value", "50")


class Classify(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.cluster.__enter__()
        self.folder = self.cluster.folder
        self.pictures = self.folder / "pictures"
        self.pictures.mkdir()
        lines = []
        for label, (name, pixel) in enumerate(COLOURS.items()):
            (self.pictures / f"{name}.ppm").write_bytes(b"P6 6 6 255\n" + bytes(pixel) * 36)
            lines.append(f"{self.pictures}/{name}.ppm {label}\n")
        self.write("list", "".join(lines))
        self.write("train.prototxt", TRAIN % self.folder)
        self.write("deploy.prototxt", DEPLOY + SOFTMAX)
        self.write("labels", "".join(f"the colour {name}\n" for name in COLOURS))
        self.write("solver.prototxt", f'net: "{self.folder}/train.prototxt"\nbase_lr: 0.1\nlr_policy: "fixed"\nmax_iter: 200\n'
                                      f'snapshot_prefix: "{self.folder}/colours"\n')
        self.run_done("poseidon-node", "--solver", self.folder / "solver.prototxt", "--devices", "cpu:1")
        self.weights = self.folder / "colours_iter_200.caffemodel"

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def run_done(self, program, *words):
        done = cluster.run(program, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def classify(self, *words):
        return cluster.run("poseidon-node", "classify", "--model", self.folder / "deploy.prototxt", "--weights", self.weights,
                                *PREPARE, *words)

    def test_pictures_and_folders_are_classified_with_labels(self):
        done = self.classify("--labels", self.folder / "labels", "--top", 2, self.pictures / "red.ppm", self.pictures)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("pictures are resized to 6x6, minus a mean for each channel\n", done.stdout)
        found = re.findall(r"(?m)^(\S+\.ppm)\n  (\d\.\d{4})  (.*)\n  (\d\.\d{4})  (.*)$", done.stdout)
        self.assertEqual([f"{self.pictures}/{name}.ppm" for name in ("red", "blue", "green", "red")], [f[0] for f in found])
        for path, first, label, second, _ in found:
            self.assertTrue(path.endswith(label.split()[-1] + ".ppm"), found)
            self.assertGreater(float(first), 0.9)
            self.assertGreater(float(first), float(second))

    def test_ten_crops_of_a_plain_picture_give_what_one_crop_gives(self):
        def probabilities(*words):
            done = self.classify("--json", "--resize", "9x8", *words, self.pictures)
            self.assertEqual(done.returncode, 0, done.stderr)
            events = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(events[-1]["event"], "end")
            return [(e["picture"], [(t["class"], round(t["probability"], 5)) for t in e["top"]])
                    for e in events if e["event"] == "classified"]
        ten, one = probabilities(), probabilities("--center-only")
        self.assertEqual(len(ten), 3)
        self.assertEqual(ten, one)
        self.assertEqual([p[1][0][0] for p in ten], [0, 1, 2])

    def test_a_picture_that_cannot_be_read_is_left_out_with_exit_code_1(self):
        (self.pictures / "broken.png").write_bytes(b"no picture")
        done = self.classify(self.pictures)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"left out: \S+broken\.png: ")
        self.assertIn("1 of 4 pictures could not be read and are left out", done.stderr)
        self.assertEqual(done.stdout.count("  0.9"), 3)

    def test_what_does_not_fit_is_said(self):
        self.write("labels", "one\n")
        done = self.classify("--labels", self.folder / "labels", self.pictures)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r'labels has 1 label, but the net\'s blob "prob" has 3 classes')
        self.assertEqual(self.classify(self.folder / "none").returncode, 2)
        done = self.classify(self.folder / "none")
        self.assertRegex(done.stderr, "none: there is no such picture or folder")
        done = cluster.run("poseidon-node", "classify", "--model", self.folder / "train.prototxt", "--weights", self.weights, self.pictures)
        self.assertRegex(done.stderr, "has no Input layer for pictures: it reads data of its own. Give the deploy net")
        self.write("deploy.prototxt", DEPLOY)
        self.assertIn('the values of blob "scores" add up to', self.classify(self.pictures).stderr)

    def test_options_that_cannot_be_meant_are_errors_of_code_2_that_name_them(self):
        self.write("empty", "\n\n")
        for words, said in ((("--scale", "nan"), "--scale nan: expected a finite number"),
                            (("--scale", "inf"), "--scale inf: expected a finite number"),
                            (("--mean-value", "1,nan,2"), "--mean-value 1,nan,2: expected numbers"),
                            (("--top", "0"), "--top: 0 is no number above 0"), (("--top", "-3"), "--top: -3 is no number above 0"),
                            (("--labels", self.pictures), "pictures: this is a folder"),
                            (("--labels", self.folder / "empty"), "empty: there is no label in it"),
                            (("--mean", self.folder / "wrong"), "--mean "), (("--mean", self.pictures), "is a folder, not a mean image"),
                            (("--mean", self.weights), "--mean ")):
            with self.subTest(words):
                prepare = () if words[0].startswith("--mean") or words[0] == "--scale" else PREPARE
                done = cluster.run("poseidon-node", "classify", "--model", self.folder / "deploy.prototxt", "--weights", self.weights,
                                   *prepare, *words, self.pictures)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertLess(len(done.stderr), 300)

    def test_extract_writes_the_features_of_pictures_for_a_deploy_net(self):
        words = ("extract", "--model", self.folder / "deploy.prototxt", "--weights", self.weights, "--blobs", "prob,scores", "--format", "csv",
                 "--out", f"{self.folder}/prob.csv,{self.folder}/scores.csv")
        done = cluster.run("poseidon-data", *words)
        self.assertEqual(done.returncode, 2)
        self.assertIn("reads no data. Give pictures with --images", done.stderr)
        self.run_done("poseidon-data", *words, "--images", self.pictures, *PREPARE)
        rows = [line.split(",")[-3:] for line in (self.folder / "prob.csv").read_text().splitlines() if line[0].isdigit()]
        self.assertEqual(len(rows), 3)
        for label, row in enumerate(rows):
            self.assertGreater(float(row[label]), 0.9)


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-data")
    cluster.main()
