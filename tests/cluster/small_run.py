# tests/cluster/small_run.py - a data set and a net small enough to train in a second, for tests with real processes.
import random
import re
import struct
import unittest

import cluster

NET = """
name: "small"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
layer {{ name: "conv1" type: "Convolution" bottom: "data" top: "conv1" param {{ lr_mult: 1 }} param {{ lr_mult: 2 }}
  convolution_param {{ num_output: 8 kernel_size: 5 weight_filler {{ type: "xavier" }} }} }}
{norm}
layer {{ name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param {{ pool: MAX kernel_size: 2 stride: 2 }} }}
layer {{ name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1" inner_product_param {{ num_output: {hidden}
  weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }}
layer {{ name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" dropout_param {{ dropout_ratio: 0.4 }} }}
layer {{ name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param {{ num_output: {classes}
  weight_filler {{ type: "xavier" }} }} }}
{head}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }}
"""

# Three branches with one set of weights: the parts of their gradients come in any order.
BRANCH = """
layer {{ name: "pool@" type: "Pooling" bottom: "data" top: "pool@" pooling_param {{ pool: MAX kernel_size: @ stride: 2 }} }}
layer {{ name: "conv@" type: "Convolution" bottom: "pool@" top: "conv@" param {{ name: "w" }} param {{ name: "b" lr_mult: 2 }}
  convolution_param {{ num_output: 8 kernel_size: 5 stride: 3 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "flat@" type: "Flatten" bottom: "conv@" top: "flat@" }}
"""
SHARED_NET = """
name: "shared"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
""" + "".join(BRANCH.replace("@", i) for i in "234") + """
layer {{ name: "both" type: "Concat" bottom: "flat2" bottom: "flat3" bottom: "flat4" top: "both" }}
layer {{ name: "drop" type: "Dropout" bottom: "both" top: "both" }}
layer {{ name: "ip1" type: "InnerProduct" bottom: "both" top: "ip1" inner_product_param {{ num_output: {hidden}
  weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param {{ num_output: {classes}
  weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }}
"""


NORM = """
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" batch_norm_param { moving_average_fraction: 0.9 } }
layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
layer { name: "relu0" type: "ReLU" bottom: "conv1" top: "conv1" }
"""


# A learned blob as a top, and its use: the scores of one class are moved for all images.
PARAMETER = """
layer { name: "offset" type: "Parameter" top: "offset" parameter_param { shape { dim: 10 } } }
layer { name: "moved" type: "Bias" bottom: "ip2" bottom: "offset" top: "ip2" }
"""


# One InnerProduct and nothing else whose gradients travel.
ONE_LAYER = """
name: "one layer"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
layer {{ name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1" inner_product_param {{ num_output: {hidden}
  weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip1" bottom: "label" top: "loss" }}
"""


def made_up(batch=8, more="", loss=""):
    """A net that needs no data set, of 6 x 4 + 4 parameters. `more`: layers in front of the loss; `loss`: fields of the loss."""
    return f"""
name: "small"
layer {{ name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param {{ shape {{ dim: {batch} dim: 6 }} shape {{ dim: {batch} }} }} }}
layer {{ name: "scores" type: "InnerProduct" bottom: "data" top: "scores"
        inner_product_param {{ num_output: 4 weight_filler {{ type: "xavier" }} }} }}
{more}layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" {loss}}}
"""


ACCURACY = 'layer { name: "accuracy" type: "Accuracy" bottom: "scores" bottom: "label" top: "accuracy" include { phase: TEST } }\n'


def images(folder, count=192, side=28):
    """An IDX pair of random images; returns the path of the images."""
    numbers = random.Random(3)
    path = folder / "made-images-idx3-ubyte"
    path.write_bytes(struct.pack(">IIII", 0x803, count, side, side) + numbers.randbytes(count * side * side))
    labels = bytes(numbers.randrange(10) for _ in range(count))
    (folder / "made-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
    return path


def solver(folder, name, iterations=8, iter_size=1, batch=16, hidden=64, classes=10, lr=0.005, norm=False, parameter=False,
           more="", text=NET, rule='lr_policy: "fixed" momentum: 0.9', prefix=None):
    """Writes a net and a solver; returns the solver's path. Snapshots go to folder/name_iter_N, or prefix_iter_N.
    The learning rate is one at which also an endless run never diverges: at 0.05, 3.5 % of all seeds did within 250 iterations on one
    node, and what several nodes train after a loss depends on when it came."""
    source = folder / "made-images-idx3-ubyte"
    net = folder / f"{name}.net.prototxt"
    net.write_text(text.format(images=source if source.exists() else images(folder), batch=batch, hidden=hidden, classes=classes,
                               norm=NORM if norm else "", head=PARAMETER if parameter else ""))
    path = folder / f"{name}.prototxt"
    path.write_text(f'net: "{net}" base_lr: {lr} {rule} weight_decay: 0.0005 '
                    f'max_iter: {iterations} iter_size: {iter_size} display: 1 random_seed: 5 '
                    f'snapshot_prefix: "{prefix or folder / name}" {more}\n')
    return path


def snapshot_of(folder, name, iteration):
    return folder / f"{name}_iter_{iteration}.caffemodel"


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def deviations(one, other, least):
    """By blob of two snapshots: the largest difference of its values over its largest value, or over `least` where that is more."""
    a, b = cluster.weights(one), cluster.weights(other)
    assert a.keys() == b.keys() and a, (one, other)
    values = {name: (floats(a[name]), floats(b[name])) for name in a}
    return {name: max(abs(p - q) for p, q in zip(x, y)) / max(max(map(abs, x)), least) for name, (x, y) in values.items()}


class MadeUp(unittest.TestCase):
    """A folder of its own, with a net that needs no data set."""
    NET = made_up()

    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.cluster.__enter__()
        self.folder = self.cluster.folder
        self.net = self.folder / "net.prototxt"
        self.net.write_text(self.NET)
        self.solver = self.folder / "solver.prototxt"


class Trained(unittest.TestCase):
    """Trains small nets to their ends, each in processes of its own."""

    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.runs = 0

    def assert_survivors_keep_what_was_trained(self, routes, reached, **of_solver):
        """Three nodes, one of which is killed when the first one has said `reached`."""
        path = solver(self.cluster.folder, "lost", iterations=cluster.ENDLESS, **of_solver)
        first = self.cluster.node("--solver", path, "--listen", "127.0.0.1:0", "--nodes", 3, "--devices", "cpu:1",
                                  "--routes", routes, "--survive", 0)
        address = first.wait_for(cluster.LISTENING)[1]
        others = [self.cluster.node("--join", address, "--devices", "cpu:1") for _ in range(2)]
        first.wait_for(reached)
        others[1].kill()
        self.assertEqual(first.wait(), 3, first.output)
        self.assertEqual(others[0].wait(), 3, others[0].output)
        self.assertTrue(list(self.cluster.folder.glob("lost_iter_*.caffemodel")), first.output)

    def run_to_end(self, nodes, of_several, devices="cpu:1", snapshot=None, options=(), **of_solver):
        """`of_several`: options of the first of several nodes. Returns the last snapshot, and the nodes as self.last."""
        self.runs += 1
        name = f"run{self.runs}"
        path = solver(self.cluster.folder, name, **of_solver)
        words = ["--devices", devices, *options]
        if snapshot:
            words += ["--snapshot", snapshot]
        if nodes > 1:
            words += ["--listen", "127.0.0.1:0", "--nodes", nodes, *of_several]
        self.last = [self.cluster.node("--solver", path, *words)]
        if nodes > 1:
            address = self.last[0].wait_for(cluster.LISTENING)[1]
            self.last += [self.cluster.node("--join", address, "--devices", devices, *options) for _ in range(nodes - 1)]
        for node in self.last:
            self.assertEqual(node.wait(), 0, node)
        return snapshot_of(self.cluster.folder, name, of_solver["iterations"])

    def socket_bytes(self, node):
        """Out of this node, over all its links."""
        found = re.findall(r"link to worker \d+ \([^)]*\): ([\d.]+) MB in", node.output)
        self.assertTrue(found, node.output)
        return sum(float(x) for x in found) * 1e6
