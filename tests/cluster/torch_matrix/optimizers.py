# tests/cluster/torch_matrix/optimizers.py - torch.optim's, with the options that choose another arithmetic.
import itertools

import torch
from torch import nn, optim

from pieces import LATE, piece

RATES = {"LBFGS": .1, "Adadelta": 1., "Adagrad": .05, "SGD": .02}
# The options that a case gives one or two of; "lr" is one in a tensor.
WORDS = {
    "foreach": {"foreach": True}, "one by one": {"foreach": False}, "fused": {"fused": True}, "amsgrad": {"amsgrad": True},
    "maximize": {"maximize": True}, "capturable": {"capturable": True}, "differentiable": {"differentiable": True},
    "decay": {"weight_decay": .1}, "nesterov": {"momentum": .9, "nesterov": True},
    "momentum": {"momentum": .9}, "dampening": {"momentum": .9, "dampening": .3}, "centered": {"centered": True},
    "tensor rate": {"lr": torch.tensor(.01)}, "decoupled": {"decoupled_weight_decay": True, "weight_decay": .1},
}
NAMES = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD", "Adafactor", "Muon")


def made(name, words, parameters):
    options = {"lr": RATES.get(name, .01)}
    for word in words:
        options.update({k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in WORDS[word].items()})
    return getattr(optim, name)(parameters, **options)


def works(name, words):
    """Whether this PyTorch has it, and makes a step on a CPU."""
    p = nn.Parameter(torch.ones(2, 2))
    p.grad = torch.ones(2, 2)
    try:
        made(name, words, [p]).step()
    except (TypeError, ValueError, RuntimeError, AssertionError, AttributeError):
        return False
    return True


def declare(name, words):
    def make(loop):
        parameters = [p for p in loop.net.parameters() if name != "Muon" or p.dim() == 2]
        return made(name, words, parameters)
    refused = {"refused": ("shards",)}
    if name == "Muon" or "differentiable" in words:
        refused = {"refused": LATE}
    piece("optimizer", " ".join((name, *words)), here=works(name, words), **refused)(make)


@piece("optimizer", "SGD momentum")
def _(loop):
    return optim.SGD(loop.net.parameters(), .02, .9, weight_decay=1e-3)


def combinations():
    for name in NAMES:
        yield name, ()
        for word in WORDS:
            yield name, (word,)
        for two in itertools.product(("foreach", "fused", "capturable"), ("decay", "amsgrad", "maximize", "nesterov", "tensor rate", "centered")):
            yield name, two


for combination in combinations():
    if combination != ("SGD", ("momentum",)) and (len(combination[1]) < 2 or works(*combination)):
        declare(*combination)


@piece("optimizer", "LBFGS", refused=LATE, weight=0)  # it needs a closure
def _(loop):
    return optim.LBFGS(loop.net.parameters(), .1, max_iter=3, history_size=4)


@piece("optimizer", "two groups")
def _(loop):
    p = list(loop.net.parameters())
    return optim.AdamW([{"params": p[:1], "lr": .02}, {"params": p[1:], "weight_decay": .1}], .01)


@piece("optimizer", "without the first parameter", refused=LATE)
def _(loop):
    return optim.SGD(list(loop.net.parameters())[1:], .02, .9)


@piece("optimizer", "two optimizers", refused=LATE)
def _(loop):
    p = list(loop.net.parameters())
    return [optim.Adam(p[:1], .01), optim.SGD(p[1:], .02, .9)]


class WritesGradient(optim.Optimizer):
    """Puts its decay into .grad."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": .01})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.add_(p, alpha=.1)
                    p.add_(p.grad, alpha=-group["lr"])


class Clips(optim.SGD):
    """Looks at all gradients at once."""

    def step(self, closure=None):
        nn.utils.clip_grad_norm_(self.param_groups[0]["params"], .5)
        return super().step(closure)


for own in WritesGradient, Clips:
    def of(loop, own=own):
        return own(loop.net.parameters()) if own is WritesGradient else own(loop.net.parameters(), .1)
    piece("optimizer", f"own {own.__name__}", refused=LATE)(of)


OTHERWISE = r'another .*option \(foreach, fused|mode="(ddp|local)"'


@piece("optimizer", "foreach on some workers", refused=LATE, says=OTHERWISE, own=("ddp", "wrapped"))
def _(loop):
    return optim.NAdam(loop.net.parameters(), .01, weight_decay=.1, foreach=loop.rank == 0)


@piece("optimizer", "fused on some workers", refused=LATE, says=OTHERWISE, here=works("Adam", ("fused",)), own=("ddp", "wrapped"))
def _(loop):
    return optim.Adam(loop.net.parameters(), .01, weight_decay=.1, fused=loop.rank == 0)
