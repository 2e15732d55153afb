# tools/lib/zoo/googlenet.py - Szegedy et al., arXiv:1409.4842, table 1, with the layer names of BVLC's weights.
"""Nine inception modules; training adds two auxiliary heads, behind 4a and 4d, at 0.3 of the loss."""
from net import XAVIER

# Outputs of each module: 1x1; 3x3 reduce, 3x3; 5x5 reduce, 5x5; pool projection.
MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
BIAS = 0.2  # initial, of every layer but the classifiers
NORM = {"local_size": 5, "alpha": 0.0001, "beta": 0.75}
MEANS = {"mean_value": [104, 117, 123]}  # blue, green, red


def convolution(net, group, name, bottom, outputs, kernel, stride=1):
    """A convolution that keeps the size (but for its stride) and its ReLU: group/name and group/relu_name."""
    x = net.convolution(f"{group}/{name}", bottom, outputs, kernel, XAVIER, stride, pad=kernel // 2, bias=BIAS)
    return net.relu(x, f"{group}/relu_{name}")


def inception(net, number, x):
    group = f"inception_{number}"
    n1, reduce3, n3, reduce5, n5, projection = MODULES[number]
    one = convolution(net, group, "1x1", x, n1, 1)
    three = convolution(net, group, "3x3", convolution(net, group, "3x3_reduce", x, reduce3, 1), n3, 3)
    five = convolution(net, group, "5x5", convolution(net, group, "5x5_reduce", x, reduce5, 1), n5, 5)
    pooled = net.pool(f"{group}/pool", x, "MAX", 3, stride=1, pad=1)
    projected = convolution(net, group, "pool_proj", pooled, projection, 1)
    return net.layer(f"{group}/output", "Concat", [one, three, five, projected])


def auxiliary_head(net, number, x):
    head = f"loss{number}"
    x = net.pool(f"{head}/ave_pool", x, "AVE", 5, stride=3)
    x = convolution(net, head, "conv", x, 128, 1)
    x = net.inner_product(f"{head}/fc", x, 1024, XAVIER, bias=BIAS)
    x = net.relu(x, f"{head}/relu_fc")
    x = net.dropout(x, f"{head}/drop_fc", 0.7)
    scores = net.inner_product(f"{head}/classifier", x, 1000, XAVIER)
    net.loss(scores, f"{head}/loss", top=f"{head}/loss1", weight=0.3, top1=f"{head}/top-1", top5=f"{head}/top-5")


def write(net):
    x = net.data("ilsvrc12", 224, MEANS, batches=(32, 50))
    x = convolution(net, "conv1", "7x7_s2", x, 64, 7, stride=2)
    x = net.pool("pool1/3x3_s2", x, "MAX", 3, stride=2)
    x = net.layer("pool1/norm1", "LRN", x, lrn_param=NORM)
    x = convolution(net, "conv2", "3x3_reduce", x, 64, 1)
    x = convolution(net, "conv2", "3x3", x, 192, 3)
    x = net.layer("conv2/norm2", "LRN", x, lrn_param=NORM)
    x = net.pool("pool2/3x3_s2", x, "MAX", 3, stride=2)
    for number in MODULES:
        x = inception(net, number, x)
        if net.training and number in ("4a", "4d"):
            auxiliary_head(net, 1 if number == "4a" else 2, x)
        if number in ("3b", "4e"):
            x = net.pool(f"pool{number[0]}/3x3_s2", x, "MAX", 3, stride=2)
    x = net.pool("pool5/7x7_s1", x, "AVE", 7)
    x = net.dropout(x, "pool5/drop_7x7_s1", 0.4)
    scores = net.inner_product("loss3/classifier", x, 1000, XAVIER)
    net.end(scores, name="loss3/loss3", weight=1, top1="loss3/top-1", top5="loss3/top-5")
