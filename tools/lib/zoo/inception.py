# tools/lib/zoo/inception.py - Inception-V3: Szegedy et al., arXiv:1512.00567, table 1 and figures 5 to 7 and 10.
"""The paper's table leaves the widths inside the modules open; these are those of the authors' published model, and so
are the layer names. Every convolution is followed by BatchNorm, Scale (gamma and beta) and ReLU."""
from net import MSRA, XAVIER, gaussian

TRANSFORM = {"mean_value": 127.5, "scale": 1 / 127.5}  # pixels to [-1, 1]


def convolution(net, name, bottom, outputs, kernel=1, stride=1, same=True, filler=MSRA):
    """`same`: padded so that the image keeps its size."""
    sides = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    pad = tuple(side // 2 for side in sides) if same else (0, 0)
    pad = pad[0] if pad[0] == pad[1] else pad
    x = net.convolution(name, bottom, outputs, kernel, filler, stride, pad, bias=None)
    x = net.batch_norm(x, f"{name}/bn", f"{name}/scale", eps=0.001)
    return net.relu(x, f"{name}/relu")


def chain(net, prefix, x, *links):
    """One convolution after the other: (outputs, kernel) each, named prefix_1, prefix_2, ..."""
    for i, (outputs, kernel) in enumerate(links, 1):
        x = convolution(net, f"{prefix}_{i}", x, outputs, kernel)
    return x


def pooled_branch(net, name, x, outputs):
    x = net.pool(f"{name}/pool", x, "AVE", 3, stride=1, pad=1)
    return convolution(net, f"{name}/branch_pool", x, outputs)


def module_35(net, name, x, pool_outputs):
    """35 x 35: the 5 x 5 branch, and another made of two 3 x 3 (figure 5)."""
    one = convolution(net, f"{name}/branch1x1", x, 64)
    five = chain(net, f"{name}/branch5x5", x, (48, 1), (64, 5))
    double = chain(net, f"{name}/branch3x3dbl", x, (64, 1), (96, 3), (96, 3))
    return net.layer(name, "Concat", [one, five, double, pooled_branch(net, name, x, pool_outputs)])


def reduction_17(net, name, x):
    """35 x 35 to 17 x 17: stride 2 in two branches and in the pooling (figure 10)."""
    three = convolution(net, f"{name}/branch3x3", x, 384, 3, stride=2, same=False)
    double = chain(net, f"{name}/branch3x3dbl", x, (64, 1), (96, 3))
    double = convolution(net, f"{name}/branch3x3dbl_3", double, 96, 3, stride=2, same=False)
    pooled = net.pool(f"{name}/pool", x, "MAX", 3, stride=2)
    return net.layer(name, "Concat", [three, double, pooled])


def module_17(net, name, x, width):
    """17 x 17: 7 x 7 factorised into 1 x 7 and 7 x 1 (figure 6); `width` is that of the inner layers."""
    one = convolution(net, f"{name}/branch1x1", x, 192)
    seven = chain(net, f"{name}/branch7x7", x, (width, 1), (width, (1, 7)), (192, (7, 1)))
    double = chain(net, f"{name}/branch7x7dbl", x, (width, 1), (width, (7, 1)), (width, (1, 7)), (width, (7, 1)),
                   (192, (1, 7)))
    return net.layer(name, "Concat", [one, seven, double, pooled_branch(net, name, x, 192)])


def reduction_8(net, name, x):
    """17 x 17 to 8 x 8."""
    three = convolution(net, f"{name}/branch3x3_1", x, 192)
    three = convolution(net, f"{name}/branch3x3_2", three, 320, 3, stride=2, same=False)
    seven = chain(net, f"{name}/branch7x7x3", x, (192, 1), (192, (1, 7)), (192, (7, 1)))
    seven = convolution(net, f"{name}/branch7x7x3_4", seven, 192, 3, stride=2, same=False)
    pooled = net.pool(f"{name}/pool", x, "MAX", 3, stride=2)
    return net.layer(name, "Concat", [three, seven, pooled])


def fork(net, prefix, x):
    """1 x 3 and 3 x 1 beside each other instead of one after the other."""
    return [convolution(net, f"{prefix}a", x, 384, (1, 3)), convolution(net, f"{prefix}b", x, 384, (3, 1))]


def module_8(net, name, x):
    """8 x 8: widened at the ends of its branches (figure 7)."""
    one = convolution(net, f"{name}/branch1x1", x, 320)
    three = fork(net, f"{name}/branch3x3_2", convolution(net, f"{name}/branch3x3_1", x, 384))
    double = fork(net, f"{name}/branch3x3dbl_3", chain(net, f"{name}/branch3x3dbl", x, (448, 1), (384, 3)))
    return net.layer(name, "Concat", [one, *three, *double, pooled_branch(net, name, x, 192)])


def auxiliary_head(net, x):
    x = net.pool("AuxLogits/pool", x, "AVE", 5, stride=3)
    x = convolution(net, "AuxLogits/conv0", x, 128)
    x = convolution(net, "AuxLogits/conv1", x, 768, 5, same=False, filler=gaussian(0.01))
    scores = net.inner_product("AuxLogits/fc", x, 1000, gaussian(0.001))
    net.loss(scores, "AuxLogits/loss", weight=0.4, top1="AuxLogits/accuracy", top5="AuxLogits/accuracy_top5")


def write(net):
    x = net.data("ilsvrc12_342", 299, TRANSFORM, batches=(32, 25))
    x = convolution(net, "Conv2d_1a_3x3", x, 32, 3, stride=2, same=False)
    x = convolution(net, "Conv2d_2a_3x3", x, 32, 3, same=False)
    x = convolution(net, "Conv2d_2b_3x3", x, 64, 3)
    x = net.pool("MaxPool_3a_3x3", x, "MAX", 3, stride=2)
    x = convolution(net, "Conv2d_3b_1x1", x, 80)
    x = convolution(net, "Conv2d_4a_3x3", x, 192, 3, same=False)
    x = net.pool("MaxPool_5a_3x3", x, "MAX", 3, stride=2)
    for name, pool_outputs in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        x = module_35(net, name, x, pool_outputs)
    x = reduction_17(net, "Mixed_6a", x)
    for name, width in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        x = module_17(net, name, x, width)
    if net.training:
        auxiliary_head(net, x)
    x = reduction_8(net, "Mixed_7a", x)
    for name in ("Mixed_7b", "Mixed_7c"):
        x = module_8(net, name, x)
    x = net.pool("AvgPool", x, "AVE", 8)
    x = net.dropout(x, "Dropout", 0.2)
    net.end(net.inner_product("fc", x, 1000, XAVIER))
