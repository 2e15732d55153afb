# tests/cluster/lowrank_world.py - what scripts share whose gradients go by low rank: a net, a worker's samples, and the algorithm, written once more with
# PyTorch.
import programs

WORLD = programs.REFUSED.join(["""
import ast, hashlib, math, os, sys
import torch, torch.nn.functional as F
from torch import nn
import poseidon.torch as poseidon
""", """
torch.set_num_threads(1)
RANK = int(os.environ.get("POSEIDON_RANK", 4))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.first, self.sometimes, self.out = nn.Conv2d(8, 32, 3), nn.Linear(128, 64), nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x, step, seat):
        x = torch.tanh(self.first(torch.relu(self.conv(x)).flatten(1)))
        if step % 3 == 0 or step % 3 == 1 and seat == 0:  # by all, by one, by nobody
            x = x + self.sometimes(x)
        return self.out(x)

def loss_of(net, step, seat):
    g = torch.Generator().manual_seed(100 * step + seat)
    x, y = torch.randn(24, 8, 4, 4, generator=g), torch.randint(0, 10, (24,), generator=g)
    loss = F.cross_entropy(net(x, step, seat), y)
    return loss * math.inf if BAD and step == 4 and seat == 1 else loss

BAD = False

def philox(counter, key):
    for _ in range(10):
        p0, p1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [p1 >> 32 ^ counter[1] ^ key[0], p1 & 0xffffffff, p0 >> 32 ^ counter[3] ^ key[1], p0 & 0xffffffff]
        key = [key[0] + 0x9E3779B9 & 0xffffffff, key[1] + 0xBB67AE85 & 0xffffffff]
    return counter

def drawn(layer, clock, columns):
    words = [w for i in range(-(-columns * RANK // 4)) for w in philox([i, clock, 0, layer], [1 ^ 6 * 0x9E3779B9 & 0xffffffff, 0])]
    return torch.tensor([2 * ((w >> 8) / 16777216) - 1 for w in words[:columns * RANK]]).view(columns, RANK)

class Oracle:
    "Of one parameter of all workers."

    def __init__(self, layer, shape):
        self.layer, self.shape = layer, shape
        self.rows, self.columns = shape[0], math.prod(shape[1:])
        self.is_low = len(shape) > 1 and 2 * RANK * (self.rows + self.columns) <= self.rows * self.columns
        self.kept = {}

    def begin_view(self, clock, seats):
        if self.is_low:
            self.kept = {seat: self.kept.get(seat, torch.zeros(self.rows, self.columns)) for seat in seats}
            self.q = drawn(self.layer, clock, self.columns)

    def mean(self, clock, gradients):
        "`gradients`: by seat; None: there is none."
        if all(g is None for g in gradients.values()):
            return None
        if not self.is_low:
            sum = None
            for g in gradients.values():
                sum = g if sum is None else sum if g is None else sum + g
            return sum * (1 / len(gradients))
        m = {seat: self.kept[seat] + (0 if g is None else g.reshape(self.rows, self.columns)) for seat, g in gradients.items()}
        p = sum_of(each @ self.q for each in m.values()).double()
        if not bool(torch.isfinite(p).all()):
            self.kept = {seat: torch.zeros_like(each) for seat, each in m.items()}
            self.q = drawn(self.layer, clock + 1, self.columns)
            return torch.full(self.shape, math.nan)
        for k in range(RANK):
            for _ in range(2):
                for j in range(k):
                    p[:, k] -= p[:, k] @ p[:, j] * p[:, j]
            p[:, k] /= p[:, k].norm()
        p = p.float()
        q = {seat: each.t() @ p for seat, each in m.items()}
        self.kept = {seat: m[seat] - p @ q[seat].t() for seat in m}
        self.q = sum_of(q.values())
        return (p @ self.q.t()).view(self.shape) * (1 / len(gradients))

def sum_of(parts):
    parts = list(parts)
    return sum(parts[1:], parts[0])

class All:
    "The means of all workers' gradients, computed here."

    def __init__(self, net):
        self.net, self.of = net, {name: Oracle(i, p.shape) for i, (name, p) in enumerate(net.named_parameters())}
        self.views = 0

    def means(self, step, views):
        view = [v for v in views if v[0] <= step][-1]
        seats = view[1]
        if step == view[0]:
            for oracle in self.of.values():
                oracle.begin_view(step, seats)
        parameters = list(self.net.parameters())
        by_seat = {seat: torch.autograd.grad(loss_of(self.net, step, seat), parameters, allow_unused=True) for seat in seats}
        return {name: self.of[name].mean(step, {seat: by_seat[seat][i] for seat in seats}) for i, name in enumerate(self.of)}

def difference(name, wanted, got, is_low):
    "Empty: none."
    if wanted is None or got is None:
        return "" if wanted is got else f"{name}: one has none; "
    if is_low and bool(wanted.isnan().all()):
        same = bool(got.isnan().all())
    elif is_low:
        # Products add in another order, and a column of P that is nearly in the span of the others makes more of that.
        same = torch.allclose(wanted, got, rtol=0, atol=5e-3 * float(wanted.abs().max()))
    else:
        same = torch.equal(wanted.nan_to_num(), got.nan_to_num())
    return "" if same else f"{name}: {(wanted - got).abs().max()} of {wanted.abs().max()}; "

def above_rank(net):
    "What of the means has a higher rank than P Qt. Empty: nothing."
    wrong = ""
    for name, p in net.named_parameters():
        if p.dim() > 1 and p.grad is not None:
            values = torch.linalg.svdvals(p.grad.flatten(1).double())
            if len(values) > RANK and float(values[RANK]) > 1e-5 * float(values[0]):
                wrong += f"{name}: {values[:RANK + 1]}; "
    return wrong

def digest(net):
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest()[:16]

torch.manual_seed(1)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), .05)
"""])
