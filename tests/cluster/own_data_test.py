# tests/cluster/own_data_test.py - nodes each of which has only its own part of the data: poseidon-data partition, --own-data.
import subprocess
import unittest

import cluster
import small_run

NODES, BATCH, ITER_SIZE, ITERATIONS = 2, 16, 2, 6  # 192 images: an epoch is three clocks, so each image is used twice


class OwnData(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder
        small_run.images(self.folder)
        self.data("convert", "mnist", "--images", self.folder / "made-images-idx3-ubyte",
                  "--labels", self.folder / "made-labels-idx1-ubyte", "--out", self.folder / "whole/train")

    def data(self, *words):
        subprocess.run([cluster.BIN / "poseidon-data", *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    def parts(self, *how):
        """Node k has its part as node<k>/train."""
        self.data("partition", self.folder / "whole/train", "--parts", NODES, "--out", self.folder / "part", "--force", *how)
        for k in range(NODES):
            (self.folder / f"node{k}").mkdir(exist_ok=True)
            target = self.folder / f"node{k}/train"
            if target.exists():
                subprocess.run(["rm", "-r", target], check=True)
            (self.folder / f"part_{k}").rename(target)

    def train(self, name, roots, *options, mirror=""):
        path = small_run.solver(self.folder, name, iterations=ITERATIONS, iter_size=ITER_SIZE, batch=BATCH)
        net = self.folder / f"{name}.net.prototxt"
        net.write_text(net.read_text().replace(str(self.folder / "made-images-idx3-ubyte"), "train")
                       .replace("scale: 0.00390625", "scale: 0.00390625 " + mirror))
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", NODES, "--devices", "cpu:1",
                                  "--routes", "ps", "--data-root", roots[0], *options)
        address = first.wait_for(cluster.LISTENING)[1]
        second = self.cluster.node("--join", address, "--devices", "cpu:1", "--data-root", roots[1], *options)
        for node in (first, second):
            self.assertEqual(node.wait(), 0, node.output)
        return small_run.snapshot_of(self.folder, name, ITERATIONS)

    def test_parts_in_blocks_of_a_clock_train_what_the_whole_trains_bit_for_bit(self):
        whole = [self.folder / "whole"] * NODES
        own = [self.folder / f"node{k}" for k in range(NODES)]
        self.parts("--block", BATCH * ITER_SIZE)
        for name, mirror in (("plain", ""), ("mirrored", "mirror: true")):
            cluster.assert_same_weights(self.train(f"{name}-whole", whole, mirror=mirror),
                                        self.train(f"{name}-own", own, "--own-data", mirror=mirror))
        # Without the option a node takes what would be its share of a whole: other images, some of them never.
        with self.assertRaises(AssertionError):
            cluster.assert_same_weights(small_run.snapshot_of(self.folder, "plain-own", ITERATIONS),
                                        self.train("shared", own))


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-data")
    cluster.main()
