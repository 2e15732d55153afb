# tools/caffe_cases/layers.py - random single layers: what they may be asked in a .prototxt, at small sizes.
"""draw(random) gives a `case`: the layer's type, bottoms, tops and parameters. One function a type, or a family."""
import dataclasses

MAKERS = {}


@dataclasses.dataclass
class case:
    bottoms: list       # (extents, kind, gets a gradient, two numbers of the kind), see reference.cpp
    parameters: str = ""
    tops: tuple = ("top",)
    phase: str = "TEST"
    backward: bool = True


def maker(*types):
    def keep(function):
        for name in types:
            MAKERS[name] = lambda random, name=name: function(random, name)
        return function
    return keep


def draw(random, types=None):
    name = random.choice(types or list(MAKERS))
    return name, MAKERS[name](random)


def normal(extents, diff=True, mean=0, deviation=1):
    return (extents, "normal", diff, mean, deviation)


def uniform(extents, least, most, diff=True):
    return (extents, "uniform", diff, least, most)


def integers(extents, least, most, diff=False):
    return (extents, "integer", diff, least, most)


def image(r):
    return [r.randint(1, 4), r.choice([1, 2, 3, 4, 5, 6, 8, 9, 16, 17, 24, 32, 40, 64]), r.randint(1, 14), r.randint(1, 14)]


def blob(r, least=1, most=5):
    return [r.randint(1, 6) for _ in range(r.randint(least, most))]


def maybe(r, share, text):
    return text if r.random() < share else ""


def axis_of(r, extents, least=0):
    axis = r.randint(least, len(extents) - 1)
    return axis, r.choice([axis, axis - len(extents)])


def placed(r, own="in0"):
    """The top: another blob, or the bottom itself."""
    return (r.choice(["top", own]),)


def window(r):
    """(extents of the bottom, channels out, kernel, stride, pad, dilation and groups as words)"""
    if r.random() < 0.3:  # large enough for fast kernels
        extents, out, group = [r.randint(1, 3), r.choice([32, 40, 64]), r.randint(6, 20), r.randint(6, 20)], r.choice([32, 33, 48]), 1
    else:
        group = r.choice([1, 1, 1, 2, 3, 4])
        extents = image(r)
        extents[1] = group * r.choice([1, 2, 3, 4, 8, 16, 32] if group < 3 else [1, 2, 8])
        out = group * r.choice([1, 2, 3, 4, 5, 8, 16, 32, 40])
    words = " ".join([
        r.choice([f"kernel_size: {r.choice([1, 2, 3, 3, 3, 5, 5, 7])}", f"kernel_h: {r.randint(1, 5)} kernel_w: {r.randint(1, 5)}",
                  f"kernel_size: {r.randint(1, 4)} kernel_size: {r.randint(1, 4)}"]),
        r.choice(["", "", "stride: 2", "stride: 3", f"stride_h: {r.randint(1, 3)} stride_w: {r.randint(1, 3)}",
                  f"stride: {r.randint(1, 2)} stride: {r.randint(1, 3)}"]),
        r.choice(["", "pad: 1", "pad: 2", f"pad: {r.randint(0, 3)}", f"pad_h: {r.randint(0, 2)} pad_w: {r.randint(0, 2)}",
                  f"pad: {r.randint(0, 2)} pad: {r.randint(0, 2)}"]),
        r.choice(["", "", "", "dilation: 2", f"dilation: {r.randint(1, 2)} dilation: {r.randint(1, 3)}"])])
    return extents, out, group, words


@maker("Convolution", "Deconvolution")
def convolution(r, name):
    extents, out, group, words = window(r)
    if name == "Deconvolution":
        extents[2:] = [min(e, 8) for e in extents[2:]]
    pairs = 2 if r.random() < 0.1 else 1
    return case([normal(extents)] * pairs, f"convolution_param {{ num_output: {out} group: {group} {words} {maybe(r, 0.25, 'bias_term: false')} }}",
                tuple(f"top{i}" for i in range(pairs)))


@maker("Im2col")
def im2col(r, _):
    extents, _, _, words = window(r)
    return case([normal([min(e, 6) for e in extents])], f"convolution_param {{ {words} }}")


@maker("Pooling")
def pooling(r, _):
    extents, how = image(r), r.choice(["MAX", "AVE"])
    if r.random() < 0.1:
        return case([normal(extents)], f"pooling_param {{ pool: {how} global_pooling: true }}")
    words = " ".join([
        r.choice([f"kernel_size: {r.randint(1, 5)}", f"kernel_h: {r.randint(1, 4)} kernel_w: {r.randint(1, 4)}"]),
        r.choice(["", f"stride: {r.randint(1, 4)}", f"stride_h: {r.randint(1, 4)} stride_w: {r.randint(1, 4)}"]),
        r.choice(["", "", f"pad: {r.randint(0, 2)}", f"pad_h: {r.randint(0, 2)} pad_w: {r.randint(0, 2)}"]),
        maybe(r, 0.25, "round_mode: FLOOR")])
    bottom = r.choice([normal(extents), normal(extents, mean=-3), integers(extents, -2, 2, True)])
    mask = how == "MAX" and r.random() < 0.15
    return case([bottom], f"pooling_param {{ pool: {how} {words} }}", ("top", "mask") if mask else ("top",), backward=not mask)


@maker("SPP")
def pyramid(r, _):
    extents = image(r)
    extents[2:] = [r.randint(4, 14), r.randint(4, 14)]
    return case([normal(extents)], f"spp_param {{ pyramid_height: {r.randint(1, 3)} pool: {r.choice(['MAX', 'AVE'])} }}")


@maker("LRN")
def lrn(r, _):
    return case([normal(image(r))], f"lrn_param {{ local_size: {r.choice([1, 3, 5, 7, 9])} alpha: {r.choice([1e-4, 0.1, 1, 5])} "
                f"beta: {r.choice([0.5, 0.75, 1])} {maybe(r, 0.4, 'k: 2')} {maybe(r, 0.5, 'norm_region: WITHIN_CHANNEL')} }}")


@maker("InnerProduct")
def inner_product(r, _):
    extents = blob(r, 2)
    return case([normal(extents)], f"inner_product_param {{ num_output: {r.choice([1, 2, 3, 5, 8, 10, 33])} axis: {axis_of(r, extents, 1)[1]} "
                f"{maybe(r, 0.3, 'transpose: true')} {maybe(r, 0.3, 'bias_term: false')} }}")


@maker("ReLU", "ELU", "Sigmoid", "TanH")
def activation(r, name):
    words = {"ReLU": f"relu_param {{ negative_slope: {r.choice([0, 0.1, 0.5, -0.3, 1])} }}",
             "ELU": f"elu_param {{ alpha: {r.choice([0.1, 0.5, 1, 2])} }}"}
    return case([normal(blob(r), deviation=2)], words.get(name, ""), placed(r))


@maker("AbsVal", "BNLL", "Threshold", "Power", "Exp", "Log")
def function(r, name):
    """Not in place: there Caffe takes a derivative at the wrong place, or refuses."""
    power = r.choice([0, 1, 2, 3, 0.5, -1, 1.5])
    words = {"Threshold": f"threshold_param {{ threshold: {r.choice([0, 0.5, -1])} }}",
             "Power": f"power_param {{ power: {power} scale: {r.choice([1, 2, 0.5])} shift: {r.choice([0.1, 1, 2])} }}",
             "Exp": f"exp_param {{ base: {r.choice([-1, 2, 10, 0.5])} scale: {r.choice([1, 0.5, -1])} shift: {r.choice([0, 1, -0.5])} }}",
             "Log": f"log_param {{ base: {r.choice([-1, 2, 10])} scale: {r.choice([1, 0.5, 2])} shift: {r.choice([0.1, 1])} }}"}
    extents = blob(r)
    bottom = uniform(extents, 0.3, 2) if name in ("Power", "Log") else normal(extents, deviation=30 if name == "BNLL" and r.random() < 0.5 else 1)
    return case([bottom], words.get(name, ""), backward=name != "Threshold")


@maker("PReLU")
def prelu(r, _):
    return case([normal(blob(r, 2))], maybe(r, 0.4, "prelu_param { channel_shared: true }"), placed(r))


@maker("Dropout")
def dropout(r, _):
    return case([normal(blob(r))], "dropout_param { dropout_ratio: 0.3 }", placed(r))  # in TEST: random masks are each library's own


@maker("Softmax")
def softmax(r, _):
    extents = blob(r)
    return case([normal(extents, deviation=r.choice([1, 20]))], f"softmax_param {{ axis: {axis_of(r, extents)[1]} }}", placed(r))


def normalizations(r, labels):
    return maybe(r, 0.4, f"ignore_label: {r.randint(0, labels - 1)} ") + r.choice(
        ["", "normalization: FULL", "normalization: VALID", "normalization: BATCH_SIZE", "normalization: NONE"])


@maker("SoftmaxWithLoss")
def softmax_loss(r, _):
    extents = blob(r, 2, 4)
    axis, said = axis_of(r, extents, 1)
    extents[axis] = r.randint(2, 9)
    labels = extents[:axis] + ([1] if r.random() < 0.3 else []) + extents[axis + 1:]
    tops = ("loss", "probabilities") if r.random() < 0.2 else ("loss",)
    weight = maybe(r, 0.3, f"loss_weight: {r.choice([0.5, 2, 3])}") if len(tops) == 1 else ""
    return case([normal(extents, deviation=r.choice([1, 5])), integers(labels, 0, extents[axis] - 1)],
                f"{weight} softmax_param {{ axis: {said} }} loss_param {{ {normalizations(r, extents[axis])} }}", tops)


@maker("EuclideanLoss")
def euclidean_loss(r, _):
    extents = blob(r, 1, 4)
    return case([normal(extents), normal(extents, r.random() < 0.5)], maybe(r, 0.3, "loss_weight: 0.3"), ("loss",))


@maker("SigmoidCrossEntropyLoss")
def cross_entropy_loss(r, _):
    extents, words = blob(r, 1, 4), normalizations(r, 2)
    soft = "ignore_label" not in words and r.random() < 0.5
    return case([normal(extents, deviation=r.choice([1, 10])), uniform(extents, 0, 1, False) if soft else integers(extents, 0, 1)],
                f"loss_param {{ {words} }}", ("loss",))


@maker("HingeLoss", "MultinomialLogisticLoss", "InfogainLoss")
def class_loss(r, name):
    images, classes = r.randint(1, 6), r.randint(2, 9)
    extents = [images, classes] + ([r.randint(1, 3), r.randint(1, 3)] if name == "InfogainLoss" and r.random() < 0.4 else [])
    scores = normal(extents) if name != "MultinomialLogisticLoss" else (extents, "probability", True, 0, 0)
    bottoms = [scores, integers([images] + extents[2:], 0, classes - 1)]
    words = {"HingeLoss": maybe(r, 0.5, "hinge_loss_param { norm: L2 }") + maybe(r, 0.2, " loss_weight: 2"),
             "InfogainLoss": f"loss_param {{ {normalizations(r, classes)} }}"}
    if name == "InfogainLoss":
        bottoms.append(uniform([1, 1, classes, classes], 0, 1, False))
    return case(bottoms, words.get(name, ""), ("loss",))


@maker("ContrastiveLoss")
def contrastive_loss(r, _):
    extents = [r.randint(1, 8), r.randint(1, 6), 1, 1]
    return case([normal(extents), normal(extents), integers(extents[:1], 0, 1)],
                f"contrastive_loss_param {{ margin: {r.choice([0.5, 1, 3])} {maybe(r, 0.4, 'legacy_version: true')} }}", ("loss",))


@maker("Accuracy")
def accuracy(r, _):
    extents = blob(r, 2, 4)
    axis, said = axis_of(r, extents, 1)
    extents[axis] = r.randint(2, 9)
    scores = r.choice([normal(extents, False), integers(extents, -2, 2)])
    return case([scores, integers(extents[:axis] + extents[axis + 1:], 0, extents[axis] - 1)],
                f"accuracy_param {{ axis: {said} {maybe(r, 0.4, f'top_k: {r.randint(1, extents[axis])}')} "
                f"{maybe(r, 0.3, f'ignore_label: {r.randint(0, extents[axis] - 1)}')} }}",
                ("top", "by_class") if r.random() < 0.3 else ("top",), backward=False)


@maker("Concat")
def concat(r, _):
    extents, bottoms = blob(r), []
    axis, said = axis_of(r, extents)
    parts = r.randint(1, 4)
    for _ in range(parts):
        own = list(extents)
        own[axis] = r.randint(1, 5)
        bottoms.append(normal(own, parts == 1 or r.random() < 0.8))
    return case(bottoms, f"concat_param {{ axis: {said} }}")


@maker("Slice")
def cut(r, _):
    extents, parts, points = blob(r), r.randint(1, 4), ""
    axis, said = axis_of(r, extents)
    if parts > 1 and r.random() < 0.5:
        extents[axis] = parts + r.randint(0, 6)
        points = " ".join(f"slice_point: {p}" for p in sorted(r.sample(range(1, extents[axis]), parts - 1)))
    else:
        extents[axis] = parts * r.randint(1, 3)
    return case([normal(extents)], f"slice_param {{ axis: {said} {points} }}", tuple(f"top{i}" for i in range(parts)))


@maker("Split")
def split(r, _):
    return case([normal(blob(r))], "", tuple(f"top{i}" for i in range(r.randint(1, 4))))


@maker("Eltwise")
def eltwise(r, _):
    extents, bottoms, how = blob(r), r.randint(2, 4), r.choice(["SUM", "SUM", "PROD", "MAX"])
    words = maybe(r, 0.5, " ".join(f"coeff: {r.choice([1, -1, 0.5, 2])}" for _ in range(bottoms))) if how == "SUM" else ""
    ties = how == "MAX" and r.random() < 0.3
    return case([integers(extents, -2, 2, True) if ties else normal(extents) for _ in range(bottoms)],
                f"eltwise_param {{ operation: {how} {words} {maybe(r, 0.4, 'stable_prod_grad: false') if how == 'PROD' else ''} }}")


@maker("Flatten")
def flatten(r, _):
    extents = blob(r, 2)
    first, said = axis_of(r, extents)
    last = r.randint(first, len(extents) - 1)
    return case([normal(extents)], f"flatten_param {{ axis: {said} end_axis: {r.choice([last, last - len(extents)])} }}")


@maker("Reshape")
def reshape(r, _):
    extents = blob(r, 1, 4)
    dims = [0 if i < len(extents) and r.random() < 0.4 else 1 for i in range(r.randint(1, 5))]
    dims[r.randint(0, len(dims) - 1)] = -1
    return case([normal(extents)], f"reshape_param {{ shape {{ {' '.join(f'dim: {d}' for d in dims)} }} "
                f"{maybe(r, 0.3, f'axis: {r.randint(0, len(extents))}')} {maybe(r, 0.2, f'num_axes: {r.randint(0, len(extents))}')} }}")


@maker("Tile", "Reduction")
def along_axis(r, name):
    extents = blob(r)
    said = axis_of(r, extents)[1]
    words = {"Tile": f"tile_param {{ axis: {said} tiles: {r.randint(1, 4)} }}",
             "Reduction": f"reduction_param {{ operation: {r.choice(['SUM', 'ASUM', 'SUMSQ', 'MEAN'])} axis: {said} coeff: {r.choice([1, 2, -0.5])} }}"}
    return case([normal(extents)], words[name])


@maker("Crop")
def crop(r, _):
    extents = [r.randint(1, 4), r.randint(1, 4), r.randint(2, 9), r.randint(2, 9)]
    axis, said = axis_of(r, extents)
    inner = [r.randint(1, e) if i >= axis else e for i, e in enumerate(extents)]
    offsets = " ".join(f"offset: {r.randint(0, extents[i] - inner[i])}" for i in range(axis, 4))
    return case([normal(extents), normal(inner, False)], f"crop_param {{ axis: {said} {maybe(r, 0.7, offsets)} }}")


@maker("Embed")
def embed(r, _):
    words = r.randint(2, 9)
    return case([integers(blob(r, 1, 3), 0, words - 1)],
                f"embed_param {{ num_output: {r.randint(1, 7)} input_dim: {words} {maybe(r, 0.4, 'bias_term: false')} }}")


@maker("BatchReindex")
def reindex(r, _):
    extents = blob(r, 1, 4)
    return case([normal(extents), integers([r.randint(1, 8)], 0, extents[0] - 1)])


@maker("Filter")
def keep_some(r, _):
    images = r.randint(2, 7)
    return case([normal([images] + blob(r, 0, 3), False), normal([images] + blob(r, 0, 2), False), integers([images], 0, 1)],
                tops=("top0", "top1"), backward=False)


@maker("Scale", "Bias")
def factors(r, name):
    extents, bias = blob(r), maybe(r, 0.5, "bias_term: true") if name == "Scale" else ""
    axis, said = axis_of(r, extents)
    own = f"{name.lower()}_param"
    if r.random() < 0.6:
        return case([normal(extents)], f"{own} {{ axis: {said} num_axes: {r.choice([-1, r.randint(0, len(extents) - axis)])} {bias} }}", placed(r))
    end = r.randint(axis + 1, len(extents))
    return case([normal(extents), normal(extents[axis:end])], f"{own} {{ axis: {axis} {bias} }}", placed(r))


@maker("BatchNorm")
def batch_norm(r, _):
    extents = r.choice([blob(r, 2, 4), image(r)])
    extents[0] = max(2, extents[0])
    return case([normal(extents, mean=r.choice([0, 1]), deviation=r.choice([1, 2]))],
                f"batch_norm_param {{ {maybe(r, 0.2, 'use_global_stats: true')} {maybe(r, 0.3, 'moving_average_fraction: 0.9')} {maybe(r, 0.3, 'eps: 1e-3')} }}",
                placed(r), r.choice(["TRAIN", "TEST"]))


@maker("MVN")
def mvn(r, _):
    extents = [r.randint(1, 4), r.randint(1, 9), r.randint(2, 14), r.randint(2, 14)]
    return case([normal(extents)], f"mvn_param {{ {maybe(r, 0.4, 'normalize_variance: false')} {maybe(r, 0.4, 'across_channels: true')} {maybe(r, 0.3, 'eps: 0.01')} }}")


@maker("ArgMax")
def argmax(r, _):
    extents = blob(r, 2, 4)
    axis, said = axis_of(r, extents)
    inner = 1
    for e in extents[1:]:
        inner *= e
    where = f"axis: {said} top_k: {r.randint(1, extents[axis])}" if r.random() < 0.5 else f"top_k: {r.randint(1, inner)}"
    return case([normal(extents, False)], f"argmax_param {{ {maybe(r, 0.5, 'out_max_val: true')} {where} }}", backward=False)
