# tools/caffe_cases/solvers.py - random small nets over the oracle's Fashion-MNIST, and random ways to train them.
"""net(random) and solver(random) give the texts of net.prototxt and solver.prototxt."""

ITERATIONS = 12
RULES = {"SGD": 0.02, "Nesterov": 0.02, "AdaGrad": 0.01, "RMSProp": 0.001, "AdaDelta": 1, "Adam": 0.002}  # with a rate that trains
POLICIES = {"fixed": "", "step": "gamma: 0.5 stepsize: {step}", "exp": "gamma: 0.9", "inv": "gamma: 0.1 power: 0.75",
            "multistep": "gamma: 0.3 stepvalue: 3 stepvalue: 7", "poly": "power: {power}", "sigmoid": "gamma: 0.5 stepsize: 6"}


def maybe(r, share, text):
    return text if r.random() < share else ""


class net_text:
    """Layers one after the other, over images of 28x28."""

    def __init__(self, r, batch):
        self.r, self.blob, self.side, self.channels, self.count = r, "data", 28, 1, 0
        self.lines = [f'name: "random"\nlayer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00390625 }} '
                      f'data_param {{ source: "../../data/fashion_train_lmdb" batch_size: {batch} backend: LMDB }} }}']

    def add(self, kind, words="", in_place=False):
        name = f"{kind.lower()}{self.count}"
        self.count += 1
        top = self.blob if in_place else name
        self.lines.append(f'layer {{ name: "{name}" type: "{kind}" bottom: "{self.blob}" top: "{top}" {words} }}')
        self.blob = top

    def multipliers(self, parameters):
        if self.r.random() < 0.5:
            return ""
        return " ".join(f"param {{ lr_mult: {self.r.choice([0, 0.5, 1, 1, 2])} decay_mult: {self.r.choice([0, 1, 1, 2])} }}" for _ in range(parameters))

    def activation(self):
        kind = self.r.choice(["ReLU", "ReLU", "ELU", "Sigmoid", "TanH", "PReLU", None])
        if kind is not None:
            self.add(kind, maybe(self.r, 0.3, "relu_param { negative_slope: 0.1 }") if kind == "ReLU" else "", True)

    def convolution(self):
        r, kernel = self.r, self.r.choice([1, 3, 3, 5])
        if self.side < kernel + 2:
            return
        out, stride, pad, normalized = r.choice([4, 6, 8, 12]), r.choice([1, 1, 2]), r.choice([0, 1, 2]) if kernel > 1 else 0, r.random() < 0.25
        group = 2 if self.channels % 2 == 0 and r.random() < 0.2 else 1
        # A bias before BatchNorm has a gradient of rounding alone, which Adam and its like make a step of.
        bias = "bias_term: false" if normalized else maybe(r, 0.2, "bias_term: false")
        self.add("Convolution", f'{self.multipliers(1)} convolution_param {{ num_output: {out} kernel_size: {kernel} stride: {stride} pad: {pad} group: {group} '
                 f'{bias} weight_filler {{ type: "xavier" }} bias_filler {{ type: "constant" value: 0.1 }} }}')
        self.side, self.channels = (self.side + 2 * pad - kernel) // stride + 1, out
        if normalized:
            self.add("BatchNorm", in_place=r.random() < 0.5)
            self.add("Scale", "scale_param { bias_term: true }", r.random() < 0.5)
        self.activation()
        if r.random() < 0.5 and self.side >= 4:
            self.add("Pooling", f"pooling_param {{ pool: {r.choice(['MAX', 'AVE'])} kernel_size: {r.choice([2, 3])} stride: 2 }}")
            self.side = -(-(self.side - 2) // 2) + 1
        if r.random() < 0.15:
            self.add("LRN", "lrn_param { local_size: 3 alpha: 0.1 }")

    def inner_product(self, out, words=None):
        self.add("InnerProduct", f'{self.multipliers(2) if words is None else words} inner_product_param {{ num_output: {out} '
                 f'weight_filler {{ type: "{self.r.choice(["xavier", "msra"])}" }} }}')


def net(r):
    n = net_text(r, r.choice([4, 8, 10]))
    for _ in range(r.randint(1, 3)):
        n.convolution()
    if r.random() < 0.5:
        n.inner_product(r.choice([16, 20, 33]))
        n.activation()
    if r.random() < 0.15:  # two layers that share a bias
        for name in ("first", ""):
            n.inner_product(20, f'param {{ name: "{name}" }} param {{ name: "bias" lr_mult: 2 }}')
            n.add("TanH", in_place=True)
    n.inner_product(10)
    n.lines.append(f'layer {{ name: "loss" type: "{r.choice(["SoftmaxWithLoss"] * 3 + ["HingeLoss"])}" bottom: "{n.blob}" bottom: "label" top: "loss" '
                   f'{maybe(r, 0.2, "loss_weight: 0.5")} }}')
    return "\n".join(n.lines) + "\n"


def solver(r):
    """(text, rule, policy)"""
    rule, policy = r.choice(list(RULES)), r.choice(list(POLICIES))
    lines = ['net: "net.prototxt"', f'type: "{rule}"', f"base_lr: {RULES[rule] * r.choice([0.5, 1])}", f"max_iter: {ITERATIONS}", "display: 0",
             "snapshot_after_train: false", "solver_mode: CPU", f"random_seed: {r.randint(1, 9999)}", "test_initialization: false",
             f'lr_policy: "{policy}"', POLICIES[policy].format(step=r.randint(2, 6), power=r.choice([0.5, 1, 2]))]
    if rule in ("SGD", "Nesterov"):
        lines.append(f"momentum: {r.choice([0, 0.5, 0.9, 0.95])}")
    else:
        lines.append(f"delta: {r.choice([1e-3, 1e-4])}")  # smaller ones make steps of rounding
    lines += {"AdaDelta": [f"momentum: {r.choice([0.9, 0.95])}"], "Adam": ["momentum: 0.9", "momentum2: 0.999"],
              "RMSProp": [f"rms_decay: {r.choice([0.9, 0.98])}"]}.get(rule, [])
    lines += [maybe(r, 0.6, f"weight_decay: {r.choice([0.0005, 0.01])}"), maybe(r, 0.3, f'regularization_type: "{r.choice(["L1", "L2"])}"'),
              maybe(r, 0.3, f"clip_gradients: {r.choice([0.1, 1, 10])}"), maybe(r, 0.3, f"iter_size: {r.randint(2, 3)}")]
    return "\n".join(line for line in lines if line) + "\n", rule, policy
