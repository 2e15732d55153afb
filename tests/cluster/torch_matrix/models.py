# tests/cluster/torch_matrix/models.py - what is trained.
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from pieces import ALL, ASK_MODE, LATE, has, piece


class Model:
    """`net`: makes it; `data`: of a generator, one worker's micro-batch; `loss`: of a loop and that."""

    def __init__(self, net, data=None, loss=None):
        self.net = net
        self.data = data or (lambda g: torch.randn(5, 6, generator=g))
        self.loss = loss or (lambda loop, x: out_of(loop.run(x)).pow(2).sum())


def out_of(y):
    return y[0] if isinstance(y, tuple) else y


def model(name, net, data=None, loss=None, **more):
    piece("model", name, **more)(Model(net, data, loss))


def pictures(g):
    return torch.randn(4, 2, 6, 6, generator=g)


def sequences(g):
    return torch.randn(3, 4, 6, generator=g)


def tokens(g):
    return torch.randint(0, 9, (4, 3), generator=g)


def stack(*layers):
    return lambda: nn.Sequential(*[layer() if callable(layer) and not isinstance(layer, nn.Module) else layer for layer in layers])


def small():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


model("small", small)
model("wide", lambda: nn.Sequential(nn.Linear(6, 300), nn.Tanh(), nn.Linear(300, 200), nn.Linear(200, 3)))


class Sometimes(nn.Module):
    """A layer that nobody uses, one of some workers in some clocks, one of all workers in some clocks."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.some, self.every, self.never = (nn.Linear(6, 6) for _ in range(5))

    def forward(self, x, clock, worker):
        x = torch.tanh(self.a(x))
        if clock % 3 == 1 and worker % 2 == 0:
            x = x + self.some(x)
        if clock % 3 == 2:
            x = x + self.every(x)
        return self.b(x)


model("unused parameters", Sometimes, loss=lambda loop, x: loop.run(x, loop.clock, loop.rank).pow(2).sum())


def tied():
    net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
    net[2].weight = net[0].weight
    return net


def frozen():
    net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3))
    net[0].requires_grad_(False)
    return net


class Features(nn.Module):
    """Random features in a buffer, and buffers of other types."""

    def __init__(self):
        super().__init__()
        self.register_buffer("features", torch.randn(6, 8))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mask", torch.arange(8) % 3 > 0)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        self.seen += 1
        return self.out(torch.sin(x @ self.features) * self.mask)


class Odd(nn.Module):
    """Parameters of no dimension, in a list, transposed."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(.5))
        self.list = nn.ParameterList([nn.Parameter(torch.randn(6)), nn.Parameter(torch.randn(3, 6).t())])

    def forward(self, x):
        return (x * self.list[0]) @ self.list[1] * self.scale


class Empty(nn.Module):
    """A parameter that has no values, which DistributedDataParallel takes."""

    def __init__(self):
        super().__init__()
        self.nothing, self.out = nn.Parameter(torch.zeros(0, 3)), nn.Linear(6, 2)

    def forward(self, x):
        return self.out(x) + self.nothing.sum()


model("a parameter without values", Empty, refused=LATE)
model("tied weights", tied)
model("frozen parameters", frozen)
model("buffers", Features)
model("odd shapes", Odd)
model("two tensors over one memory", lambda: shared_memory(), refused=LATE)
model("BatchNorm", lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)))
model("SyncBatchNorm", lambda: nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8))),
      refused=ALL, says=r"SyncBatchNorm", weight=.2, least=2)
model("dropout", lambda: nn.Sequential(nn.Linear(6, 8), nn.Dropout(.5), nn.Linear(8, 2)))
model("convolutions", lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)), pictures)
model("channels_last", lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Conv2d(4, 3, 3)).to(
    memory_format=torch.channels_last), lambda g: pictures(g).to(memory_format=torch.channels_last))
model("LSTM", lambda: nn.LSTM(6, 5, 2, batch_first=True), sequences)
model("GRU", lambda: nn.GRU(6, 5, bidirectional=True), sequences)
model("Transformer", lambda: nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), sequences)
model("embedding", lambda: nn.Sequential(nn.Embedding(9, 6), nn.LayerNorm(6), nn.Linear(6, 3)), tokens)
model("sparse embedding", lambda: nn.Sequential(nn.Embedding(9, 6, sparse=True), nn.Linear(6, 3)), tokens, refused=ALL,
      says=r"sparse.*sparse=False", weight=.2)
model("weight_norm", lambda: nn.Sequential(nn.utils.weight_norm(nn.Linear(6, 6)), nn.Linear(6, 2)), refused=LATE)
model("spectral_norm", lambda: nn.Sequential(nn.utils.spectral_norm(nn.Linear(6, 6)), nn.Linear(6, 2)), refused=LATE)
made_by = nn.utils.parametrizations
model("parametrized weight_norm", lambda: nn.Sequential(made_by.weight_norm(nn.Linear(6, 6)), nn.Linear(6, 2)),
      here=has("nn.utils.parametrizations.weight_norm"), refused=LATE)
model("parametrized spectral_norm", lambda: nn.Sequential(made_by.spectral_norm(nn.Linear(6, 6)), nn.Linear(6, 2)), refused=LATE)
model("orthogonal", lambda: nn.Sequential(made_by.orthogonal(nn.Linear(6, 6)), nn.Linear(6, 2)), refused=LATE)
model("double precision", lambda: nn.Linear(6, 2).double(), lambda g: torch.randn(5, 6, generator=g).double(), refused=ALL,
      says=r"torch\.float64, expected torch\.float32: keep", weight=.2)
model("nn.DataParallel", lambda: nn.DataParallel(small()), refused=ALL, says=r"nn\.DataParallel.*join its \.module", weight=.2)


def shared_memory():
    net = small()
    net[2].bias.data = net[0].bias.data[:3]
    return net


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.reentrant = reentrant

    def forward(self, x):
        x = torch.tanh(self.a(x))
        for layer in self.b, self.c, self.b:  # one of them twice
            x = checkpoint(lambda v, layer=layer: torch.relu(layer(v)), x, use_reentrant=self.reentrant)
        return x


model("checkpoint", lambda: Checkpointed(False))
model("reentrant checkpoint", lambda: Checkpointed(True), refused=LATE, says=rf"use_reentrant=False|{ASK_MODE}")


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = nn.ModuleList([nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1))])

    def forward(self, x):
        generator, critic = self.both
        return torch.cat([critic(generator(x)) - 1, critic(x)])


model("GAN", Gan)
