# tools/lib/zoo/net.py - one net, layer by layer: what the families of the zoo have in common.
"""Every call appends a layer and returns its top, so that nets read from the data to the loss.

A net is written twice: for training (data, fillers, rates, losses, accuracies) and for use (`deploy`: one image in,
probabilities out). The same code writes both, so that they cannot differ where they must not.
"""
from text import Word, lines

XAVIER = {"type": "xavier"}
MSRA = {"type": "msra"}
WEIGHT = {"lr_mult": 1, "decay_mult": 1}
BIAS = {"lr_mult": 2, "decay_mult": 0}  # Caffe's habit: twice the rate, no decay
TEST_ONLY = {"phase": Word("TEST")}


def gaussian(std):
    return {"type": "gaussian", "std": std}


def per_axis(name, value):
    """kernel_size: 3, or kernel_h: 1 kernel_w: 7."""
    if not isinstance(value, tuple):
        return {"kernel_size" if name == "kernel" else name: value}
    return {f"{name}_h": value[0], f"{name}_w": value[1]}


class Net:
    def __init__(self, name, training):
        self.name = name
        self.training = training
        self.lines = lines("name", name)

    def layer(self, name, kind, bottoms, top=None, **more):
        """The plainest call; `bottoms` is one name or a list, `top` is the layer's name unless given."""
        top = top or name
        self.lines += lines("layer", {"name": name, "type": kind, "bottom": bottoms, "top": top, **more})
        return top

    # Data

    def data(self, source, size, transform, batches):
        """Images of `size` x `size`, in TRAIN mirrored at random: crops from the LMDBs of folder `source`, or the one
        image of a deploy net. `transform` holds means and scale, `batches` the images per node in TRAIN and in TEST."""
        if not self.training:
            shape = {"dim": [1, 3, size, size]}
            return self.layer("data", "Input", [], input_param={"shape": shape})
        for phase, part, batch in (("TRAIN", "train", batches[0]), ("TEST", "val", batches[1])):
            flip = {"mirror": True} if phase == "TRAIN" else {}
            self.layer("data", "Data", [], ["data", "label"], include={"phase": Word(phase)},
                       transform_param={**flip, "crop_size": size, **transform},
                       data_param={"source": f"data/sets/{source}/{part}_lmdb", "batch_size": batch,
                                   "backend": Word("LMDB")})
        return "data"

    # Layers that learn

    def learned(self, filler, bias):
        """What only training needs: rates and decays, fillers. `bias` is its initial value; None: there is none."""
        if not self.training:
            return {}, {}
        rates = {"param": [WEIGHT] if bias is None else [WEIGHT, BIAS]}
        fillers = {"weight_filler": filler}
        if bias:
            fillers["bias_filler"] = {"type": "constant", "value": bias}
        return rates, fillers

    def convolution(self, name, bottom, outputs, kernel, filler, stride=1, pad=0, bias=0):
        rates, fillers = self.learned(filler, bias)
        window = {"num_output": outputs, **({"bias_term": False} if bias is None else {}),
                  **(per_axis("pad", pad) if pad else {}), **per_axis("kernel", kernel),
                  **({"stride": stride} if stride != 1 else {})}
        return self.layer(name, "Convolution", bottom, **rates, convolution_param={**window, **fillers})

    def inner_product(self, name, bottom, outputs, filler, bias=0):
        rates, fillers = self.learned(filler, bias)
        return self.layer(name, "InnerProduct", bottom, **rates,
                          inner_product_param={"num_output": outputs, **fillers})

    def batch_norm(self, blob, norm_name, scale_name, eps=None):
        """In place: BatchNorm normalises, Scale learns gamma and beta. Each phase has its own kind of statistics, so
        use_global_stats is left to the phase."""
        more = {"batch_norm_param": {"eps": eps}} if eps else {}
        self.layer(norm_name, "BatchNorm", blob, blob, **more)
        return self.layer(scale_name, "Scale", blob, blob, scale_param={"bias_term": True})

    # Layers that do not

    def relu(self, blob, name):
        return self.layer(name, "ReLU", blob, blob)

    def dropout(self, blob, name, ratio):
        return self.layer(name, "Dropout", blob, blob, dropout_param={"dropout_ratio": ratio})

    def pool(self, name, bottom, how, kernel, stride=1, pad=0):
        window = {"pool": Word(how), **({"pad": pad} if pad else {}), "kernel_size": kernel}
        return self.layer(name, "Pooling", bottom, pooling_param={**window, "stride": stride})

    # The end

    def loss(self, scores, name="loss", top=None, weight=None, top1="accuracy", top5="accuracy_top5"):
        """In TEST two accuracies, in both phases a loss."""
        self.layer(top1, "Accuracy", [scores, "label"], include=TEST_ONLY)
        self.layer(top5, "Accuracy", [scores, "label"], include=TEST_ONLY, accuracy_param={"top_k": 5})
        weighted = {"loss_weight": weight} if weight is not None else {}
        self.layer(name, "SoftmaxWithLoss", [scores, "label"], top, **weighted)

    def end(self, scores, **names):
        """The loss in training, the probabilities in use."""
        if self.training:
            self.loss(scores, **names)
        else:
            self.layer("prob", "Softmax", scores)

    def text(self, about):
        """The file; `about` is the comment that it begins with."""
        comment = [f"# {line}" for line in about]
        return "\n".join([*comment, *self.lines]) + "\n"
