# tests/cluster/zoo_test.py - every net of models/zoo trains one iteration and is tested once, on random images.
import math
import pathlib
import re
import unittest

import cluster

ZOO = cluster.ROOT / "models/zoo"
BATCH = 2  # batch normalisation of one value per channel would be all zeros
SHAPES = {"lenet": "1x28x28", "cifar10_quick": "3x32x32", "cifar10_full": "3x32x32"}  # others say it by their crop
# Nets most of whose values are weights of the first fully connected layer: on smaller images it has few, and all else is the same. With cluster.ALL
# they train on images of their own size, too; tests/models/net/zoo_test.cpp has their shapes.
SMALLER_CROP = {"alexnet": 67, "caffenet": 67, "vgg16": 64, "vgg19": 64, "vgg19_22k": 64}
MEMORY_GIB = {"resnet152": 4, "vgg16": 5, "vgg19": 5, "vgg19_22k": 8}  # as measured, rounded up; the others: 2


def available_gib():
    """What the kernel would give to a new process without swapping."""
    found = re.search(r"MemAvailable:\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text())
    return int(found[1]) / 2**20


def small_copy(folder, net, crop=None):
    """The net with small batches, and with images of another size where there is a `crop`, and a solver for one iteration and one test batch; returns
    the solver's path."""
    text, batches = re.subn(r"\bbatch_size: \d+", f"batch_size: {BATCH}", (ZOO / net / "train_val.prototxt").read_text())
    assert batches == 2, f"{net} has {batches} batch sizes, one each for TRAIN and TEST were expected"
    if crop:
        text, crops = re.subn(r"\bcrop_size: \d+", f"crop_size: {crop}", text)
        assert crops == 2, f"{net} has {crops} crops, one each for TRAIN and TEST were expected"
    copy = folder / f"{net}.prototxt"
    copy.write_text(text)
    replaced = "net|base_lr|iter_size|max_iter|display|snapshot|snapshot_prefix|test_iter|test_interval"
    fields = re.sub(rf"(?m)^({replaced}):.*\n", "", (ZOO / net / "solver.prototxt").read_text())
    solver = folder / f"{net}.solver.prototxt"
    solver.write_text(f'{fields}net: "{copy}"\nmax_iter: 1\ndisplay: 1\ntest_iter: 1\ntest_interval: 1\n'
                      'test_initialization: false\nsnapshot_after_train: false\nbase_lr: 0\n'
                      f'poseidon {{ synthetic: "{SHAPES.get(net, "")}" }}\n')  # --synthetic tests nothing
    return solver


class Zoo(unittest.TestCase):
    def one_iteration(self, net, crop=None):
        needed, available = 2 if crop else MEMORY_GIB.get(net, 2), available_gib()
        if available < needed:
            self.skipTest(f"{net} needs {needed} GiB of memory, {available:.1f} GiB are free")
        with cluster.Cluster() as c:
            node = c.node("--solver", small_copy(c.folder, net, crop))
            self.assertEqual(node.wait(600), 0, node.output)
            loss = float(node.wait_for(r"^iteration 0/1: loss (\S+) ")[1])
            self.assertTrue(math.isfinite(loss) and loss > 0, loss)
            tested = node.wait_for(r"^test iteration 1: (.*)")[1].split()
            values = dict(zip(tested[::2], map(float, tested[1::2])))
            self.assertTrue(all(map(math.isfinite, values.values())), values)
            self.assertTrue(any("loss" in name for name in values), values)
            scores = [value for name, value in values.items() if "loss" not in name.rsplit("/", 1)[-1]]
            self.assertTrue(scores and all(0 <= score <= 1 for score in scores), values)


def add_tests():
    for folder in sorted(ZOO.iterdir()):
        if folder.is_dir():
            net, smaller = folder.name, SMALLER_CROP.get(folder.name)
            setattr(Zoo, f"test_{net}", lambda self, net=net, crop=smaller: self.one_iteration(net, crop))
            if smaller and cluster.ALL:
                setattr(Zoo, f"test_{net}_on_images_of_its_size", lambda self, net=net: self.one_iteration(net))


add_tests()
if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
