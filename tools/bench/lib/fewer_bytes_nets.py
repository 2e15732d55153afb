# tools/bench/lib/fewer_bytes_nets.py - LeNet, CIFAR-10 quick and a ResNet-20 as files of Caffe, and their data, for "tools/bench/convergence fewer-bytes".
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/lib/zoo"))
import net as zoo  # noqa: E402  (the path comes first)
from cluster import BIN  # noqa: E402  (the tool has put its folder into the path)
from text import Word  # noqa: E402

IMAGES = pathlib.Path("/usr/share/datasets/fashion-mnist")  # of Debian's package dataset-fashion-mnist

BATCH = 32  # of one node
RATES = {"lenet": (0.02, 5e-4), "cifar10_quick": (1e-3, 4e-3), "resnet20": (0.1, 1e-4)}  # base_lr, which falls in a straight line to 0; weight_decay
QUICK = {"batch_norm_param": {"moving_average_fraction": 0.9}}  # Caffe's 0.999 would average over more iterations than the run has


def lenet():
    """The zoo's LeNet with this batch."""
    return re.sub("batch_size: 64", f"batch_size: {BATCH}", (ROOT / "models/zoo/lenet/train_val.prototxt").read_text())


def cifar10_quick():
    """The zoo's, with this batch, on the grey images of Fashion-MNIST."""
    net = (ROOT / "models/zoo/cifar10_quick/train_val.prototxt").read_text()
    net = net.replace('mean_file: "data/sets/cifar10/mean.binaryproto"', "mean_value: 73").replace("sets/cifar10", "sets/fashion-mnist")
    return net.replace("batch_size: 100", f"batch_size: {BATCH}", 1)


def resnet20():
    """He et al., arXiv:1512.03385, section 4.2, n = 3, with a stem of stride 2 (images of 28 x 28 become 14 x 14, a fourth of the work) and, where the width changes,
    shortcuts of 1 x 1 convolutions."""
    net = zoo.Net("ResNet-20", True)
    for phase, part, batch in (("TRAIN", "train", BATCH), ("TEST", "test", 100)):
        net.layer("data", "Data", [], ["data", "label"], include={"phase": Word(phase)}, transform_param={"mean_value": 73, "scale": 0.0111},
                  data_param={"source": f"data/sets/fashion-mnist/{part}_lmdb", "batch_size": batch, "backend": Word("LMDB")})

    def convolution(name, bottom, outputs, kernel, stride):
        x = net.convolution(name, bottom, outputs, kernel, zoo.MSRA, stride, pad=kernel // 2, bias=None)
        net.layer(f"bn_{name}", "BatchNorm", x, x, **QUICK)
        return net.layer(f"scale_{name}", "Scale", x, x, scale_param={"bias_term": True})

    x, width_before = net.relu(convolution("conv1", "data", 16, 3, 2), "conv1_relu"), 16
    for stage, width in enumerate((16, 32, 64), 2):
        for block in "abc":
            name, stride = f"res{stage}{block}", 1 if width == width_before else 2
            y = net.relu(convolution(f"{name}_1", x, width, 3, stride), f"{name}_1_relu")
            y = convolution(f"{name}_2", y, width, 3, 1)
            shortcut = x if stride == 1 else convolution(f"{name}_shortcut", x, width, 1, stride)
            x = net.relu(net.layer(name, "Eltwise", [shortcut, y]), f"{name}_relu")
            width_before = width
    x = net.pool("pool", x, "AVE", 4)
    net.loss(net.inner_product("fc", x, 10, zoo.XAVIER))
    return net.text(["ResNet-20 on Fashion-MNIST."])


def convert(folder):
    """Fashion-MNIST as the databases that nets name, for --data-root."""
    sets = folder / "data/sets/fashion-mnist"
    sets.mkdir(parents=True)
    for part, name in (("train", "train"), ("test", "t10k")):
        subprocess.run([BIN / "poseidon-data", "convert", "mnist", "--images", IMAGES / f"{name}-images-idx3-ubyte.gz",
                        "--labels", IMAGES / f"{name}-labels-idx1-ubyte.gz", "--out", sets / f"{part}_lmdb"], check=True, stdout=subprocess.DEVNULL)


NETS = {"lenet": lenet, "cifar10_quick": cifar10_quick, "resnet20": resnet20}


def write(folder, task, iterations):
    """Net and solver; returns the solver's path."""
    (folder / "net.prototxt").write_text(NETS[task]())
    rate, decay = RATES[task]
    (folder / "solver.prototxt").write_text(
        f'net: "{folder}/net.prototxt"\nbase_lr: {rate} lr_policy: "poly" power: 1 momentum: 0.9 weight_decay: {decay}\n'
        f"max_iter: {iterations} test_iter: 100 test_interval: {iterations} test_initialization: false display: {max(1, iterations // 10)}\n"
        f'snapshot_after_train: false snapshot_prefix: "{folder}/{task}"\n')
    return folder / "solver.prototxt"
