# tests/cluster/formats_test.py - the sources and snapshots of Caffe's users, through whole runs of real processes.
import random
import subprocess
import unittest

import cluster
import small_run

SOURCES = {
    "IDX": ("Data", "data_param {{ source: \"{idx}\" batch_size: {batch} }}"),
    "list": ("ImageData", "image_data_param {{ source: \"{list}\" batch_size: {batch} is_color: false {more} }}"),
    "LevelDB": ("Data", "data_param {{ source: \"{leveldb}\" batch_size: {batch} }}"),
    "packed": ("Data", "data_param {{ source: \"{packed}\" batch_size: {batch} backend: LMDB }}"),
}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def without_field(message, number):
    """A protobuf message whose outermost fields are numbers and texts, without one of them."""
    out, at = b"", 0
    while at < len(message):
        begin = at
        tag, at = varint(message, at)
        value, at = varint(message, at)
        if tag & 7 == 2:
            at += value
        if tag >> 3 != number:
            out += message[begin:at]
    return out


class Formats(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder

    def sources(self):
        """The same 192 images as IDX files, as PGM files in a list, in a LevelDB, and packed as PNG in an LMDB."""
        idx = small_run.images(self.folder)
        pixels, labels = idx.read_bytes()[16:], (self.folder / "made-labels-idx1-ubyte").read_bytes()[8:]
        lines = []
        for n, label in enumerate(labels):
            (self.folder / f"{n:03}.pgm").write_bytes(b"P5 28 28 255\n" + pixels[784 * n:784 * (n + 1)])
            lines.append(f"{self.folder}/{n:03}.pgm {label}\n")
        paths = {"idx": idx, "list": self.folder / "list.txt",
                 "leveldb": self.folder / "leveldb", "packed": self.folder / "packed"}
        paths["list"].write_text("".join(lines))
        data = [cluster.BIN / "poseidon-data", "convert"]
        subprocess.run([*data, "images", paths["list"], "--gray", "--backend", "leveldb", "--out", paths["leveldb"]],
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*data, "db", paths["leveldb"], "--encode-type", "png", "--out", paths["packed"]],
                       check=True, stdout=subprocess.DEVNULL)
        return paths

    def train(self, name, kind, paths, nodes=1, iter_size=1, more="", solver="", resume=None):
        layer, options = SOURCES[kind]
        path = small_run.solver(self.folder, name, iter_size=iter_size, more=solver)
        net = self.folder / f"{name}.net.prototxt"
        text = net.read_text()
        begin, end = text.index("type: \"Data\""), text.index("layer {", text.index("type: \"Data\""))
        net.write_text(text[:begin] + f"type: \"{layer}\" top: \"data\" top: \"label\" "
                       "transform_param { scale: 0.00390625 } " + options.format(**paths, batch=16, more=more) + " }\n"
                       + text[end:])
        before = len(self.cluster.nodes)
        options = ["--devices", "cpu:1"] + (["--snapshot", resume] if resume else [])
        if nodes == 1:
            self.cluster.node("--solver", path, *options)
        else:
            self.cluster.first_and_others(path, nodes, *options, first=["--routes", "ps"])
        for node in self.cluster.nodes[before:]:
            self.assertEqual(node.wait(), 0, node.output)
        return small_run.snapshot_of(self.folder, name, 8)

    def test_one_set_of_images_trains_the_same_weights_from_every_kind_of_source(self):
        paths = self.sources()
        first = self.train("idx", "IDX", paths)
        for kind in ("list", "LevelDB", "packed"):
            cluster.assert_same_weights(first, self.train(f"run-{kind}", kind, paths))

    def test_two_nodes_with_one_leveldb_or_one_shuffled_list_equal_one_node(self):
        paths = self.sources()
        for kind, more in (("LevelDB", ""), ("list", "shuffle: true rand_skip: 9")):
            cluster.assert_same_weights(self.train(f"{kind}-two", kind, paths, nodes=2, more=more),
                                        self.train(f"{kind}-one", kind, paths, iter_size=2, more=more))
        with self.assertRaises(AssertionError):  # the shuffle does something
            cluster.assert_same_weights(self.train("plain", "list", paths, iter_size=2),
                                        self.train("mixed", "list", paths, iter_size=2, more="shuffle: true"))

    def test_hdf5_snapshots_resume_to_what_binary_ones_resume_to(self):
        paths = self.sources()
        self.train("hdf5", "IDX", paths, solver="snapshot: 4 snapshot_format: HDF5")
        self.train("binary", "IDX", paths, solver="snapshot: 4")
        for suffix in (".caffemodel.h5", ".solverstate.h5"):
            self.assertTrue((self.folder / f"hdf5_iter_8{suffix}").exists())
        one = self.train("a", "IDX", paths, resume=self.folder / "hdf5_iter_4.solverstate.h5")
        two = self.train("b", "IDX", paths, resume=self.folder / "binary_iter_4.solverstate")
        cluster.assert_same_weights(one, two)

    def test_a_state_of_another_rule_is_refused_with_both_names_and_in_a_state_of_caffes_by_its_values(self):
        paths = self.sources()
        self.train("wrote", "IDX", paths, solver="snapshot: 4")
        state = self.folder / "wrote_iter_4.solverstate"
        of_caffe = self.folder / "caffe_iter_4.solverstate"
        of_caffe.write_bytes(without_field(state.read_bytes(), 10001))
        self.train("nesterov", "IDX", paths, resume=state, solver="type: \"Nesterov\"")
        for rule in ("RMSProp", "AdaGrad"):
            for file, says in ((state, f"a solver of type: \"SGD\" wrote this state, and type: \"{rule}\" cannot go on with it"),
                               (of_caffe, "layer \"conv1\", parameter \"conv1/0\": its state has the value -")):
                path = small_run.solver(self.folder, rule, rule=f'lr_policy: "fixed" type: "{rule}"')
                node = self.cluster.node("--solver", path, "--devices", "cpu:1", "--snapshot", file)
                self.assertEqual(node.wait(), 2, node.output)
                self.assertIn(says, node.errors[-1])
                self.assertIn("--weights ", node.errors[-1])

    def test_a_picture_cut_short_in_the_middle_of_training_ends_it_with_list_line_and_file(self):
        paths = self.sources()
        victim = self.folder / "100.pgm"
        victim.write_bytes(victim.read_bytes()[:random.Random(1).randrange(20, 700)])
        layer, options = SOURCES["list"]
        path = small_run.solver(self.folder, "cut")
        net = self.folder / "cut.net.prototxt"
        net.write_text(net.read_text().replace(
            f"data_param {{ source: \"{paths['idx']}\" batch_size: 16 }}",
            options.format(**paths, batch=16, more="")).replace("type: \"Data\"", f"type: \"{layer}\""))
        node = self.cluster.node("--solver", path, "--devices", "cpu:1")
        self.assertEqual(node.wait(), 2, node.output)
        self.assertIn("list.txt:101: ", node.errors[-1])
        self.assertIn("100.pgm\" is cut short: it has ", node.errors[-1])


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-data")
    cluster.main()
