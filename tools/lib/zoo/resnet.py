# tools/lib/zoo/resnet.py - He et al., arXiv:1512.03385, table 1, with the layer names of the authors' weights.
"""Four stages of bottlenecks: 1 x 1, 3 x 3, 1 x 1, added to a shortcut. The first block of a stage changes width
and, but for stage 2, halves the image: in its first 1 x 1 and its shortcut, as in the paper (later nets: its 3 x 3)."""
from net import MSRA, XAVIER

BLOCKS = {50: (3, 4, 6, 3), 152: (3, 8, 36, 3)}  # of stages 2 to 5
WIDTHS = (64, 128, 256, 512)  # inside a block; outside it is four times as much
MEANS = {"mean_value": [104, 117, 123]}  # blue, green, red


def convolution(net, name, bottom, outputs, kernel, stride=1):
    """res2a_branch2a with bn2a_branch2a and scale2a_branch2a."""
    place = name.removeprefix("res")
    x = net.convolution(name, bottom, outputs, kernel, MSRA, stride, pad=kernel // 2, bias=None)
    return net.batch_norm(x, f"bn{place}", f"scale{place}")


def bottleneck(net, name, x, width, stride, widens):
    shortcut = convolution(net, f"{name}_branch1", x, 4 * width, 1, stride) if widens else x
    y = convolution(net, f"{name}_branch2a", x, width, 1, stride)
    y = net.relu(y, f"{y}_relu")
    y = convolution(net, f"{name}_branch2b", y, width, 3)
    y = net.relu(y, f"{y}_relu")
    y = convolution(net, f"{name}_branch2c", y, 4 * width, 1)
    y = net.layer(name, "Eltwise", [shortcut, y])
    return net.relu(y, f"{name}_relu")


def block_name(stage, block, blocks):
    """res3a, res3b, ...; res3a, res3b1, res3b2, ... in a stage of more than six blocks."""
    return f"res{stage}" + ("abcdef"[block] if blocks <= 6 or block == 0 else f"b{block}")


def write(net, depth):
    x = net.data("ilsvrc12", 224, MEANS, batches=(32, 25))
    x = net.convolution("conv1", x, 64, 7, MSRA, stride=2, pad=3, bias=None)
    x = net.batch_norm(x, "bn_conv1", "scale_conv1")
    x = net.relu(x, "conv1_relu")
    x = net.pool("pool1", x, "MAX", 3, stride=2)
    for stage, (blocks, width) in enumerate(zip(BLOCKS[depth], WIDTHS), 2):
        for block in range(blocks):
            first = block == 0
            x = bottleneck(net, block_name(stage, block, blocks), x, width, stride=2 if first and stage > 2 else 1,
                           widens=first)
    x = net.pool("pool5", x, "AVE", 7)
    net.end(net.inner_product("fc1000", x, 1000, XAVIER))
