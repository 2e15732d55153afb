# tests/cluster/outer_world.py - a script of PyTorch with outer steps, and one process that makes the steps of all of its workers.
OUTER = """
import ast, copy, hashlib, os, sys
import torch, torch.nn.functional as F
from torch import nn
import poseidon.torch as poseidon

torch.set_num_threads(1)
words, wanted, state_is, ends = (ast.literal_eval(word) for word in sys.argv[1:5])
kind, form = words.pop("model", "norm"), words.pop("wire", "float32")

def layers():
    # With 30 small parameters, which travel together, and an integer buffer.
    return [nn.Linear(8, 8) for _ in range(15)] if kind == "small" else [nn.Linear(8, 8)]

def made():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(8, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 8), *layers(), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(net.parameters(), .01)
    return net, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 3, .9)

def inner(net, optimizer, scheduler, step, seat, scaler=None):
    g = torch.Generator().manual_seed(100 * step + seat)
    optimizer.zero_grad(set_to_none=True)
    for _ in range(2):  # two backward passes a step
        F.cross_entropy(net(torch.randn(6, 8, generator=g)), torch.randint(0, 3, (6,), generator=g)).backward()
    nn.utils.clip_grad_norm_(net.parameters(), .5)
    optimizer.step()
    scheduler.step()

def f32(x):
    return torch.tensor(x, dtype=torch.float32)

def travelled(x):
    return x.to(getattr(torch, form)).float()

class Simulated:
    # All workers of the run; `outer`: what the script has said.
    def __init__(self, outer, seats):
        self.o, self.workers = outer, {seat: made() for seat in seats}
        self.anchors = [p.detach().clone() for p in self.workers[0][0].parameters()]
        self.momenta = [torch.zeros_like(p) for p in self.anchors]
        self.of = outer.cut([name for name, _ in self.workers[0][0].named_parameters()], [p.numel() for p in self.anchors])

    def come_and_go(self, seats):
        for seat in [seat for seat in self.workers if seat not in seats]:
            del self.workers[seat]
        oldest = self.workers[min(self.workers)]
        for seat in seats:
            if seat not in self.workers:
                self.workers[seat] = made()
                for mine, its in zip(self.workers[seat], oldest):
                    mine.load_state_dict(copy.deepcopy(its.state_dict()))

    def train(self, step):
        for seat, worker in self.workers.items():
            inner(*worker, step, seat)

    def mean(self, values):
        total = travelled(values[0])
        for v in values[1:]:
            total = total + travelled(v)
        return travelled(total * f32(1 / len(values)))

    @torch.no_grad()
    def push(self, fragments):
        nets = [self.workers[seat][0] for seat in sorted(self.workers)]
        self.fragments, self.has_buffers = fragments, self.o.fragments - 1 in fragments
        self.means = {i: self.mean([a - list(net.parameters())[i] for net in nets]) for i, a in enumerate(self.anchors) if self.of[i] in fragments}
        self.buffers = {name: self.mean([dict(net.named_buffers())[name] for net in nets])
                        for name, b in nets[0].named_buffers() if b.is_floating_point()}

    @torch.no_grad()
    def take(self, mix):
        o = self.o
        for i, mean in self.means.items():
            if o.momentum:
                self.momenta[i] = self.momenta[i] * o.momentum + mean
            direction = (self.momenta[i] * o.momentum + mean if o.nesterov else self.momenta[i]) if o.momentum else mean
            self.anchors[i] = self.anchors[i] - direction * o.rate
            for net, *_ in self.workers.values():
                p = list(net.parameters())[i]
                p.copy_(p * mix + self.anchors[i] * (1 - mix) if mix else self.anchors[i])
        for net, *_ in self.workers.values():
            for name, b in net.named_buffers():
                if name in self.buffers and self.has_buffers:
                    b.copy_(b * mix + self.buffers[name] * (1 - mix) if mix else self.buffers[name])

    def run(self, views, steps, ends_whole=True):
        o, clock, away = self.o, 0, None
        for step in range(steps):
            if away is None:
                self.come_and_go([v.seats for v in views if v.first_clock <= clock][-1])
            self.train(step)
            if away is not None and (step + 1) % o.turn == o.delay:
                self.take(o.mix)
                away, clock = None, clock + 1
            if (step + 1) % o.turn == 0:
                self.come_and_go([v.seats for v in views if v.first_clock <= clock][-1])
                self.push({(step + 1) // o.turn % o.fragments - 1 if o.fragments > 1 and (step + 1) // o.turn % o.fragments else o.fragments - 1})
                away = True
                if o.delay == 0:
                    self.take(0.)
                    away, clock = None, clock + 1
        if away:
            self.take(o.mix)
            clock += 1
        if o.streams or steps % o.turn:
            self.come_and_go([v.seats for v in views if v.first_clock <= clock][-1])
            self.push(set(range(o.fragments)))
            self.take(0.)

def values_of(net, optimizer, *_):
    out = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    for number, state in optimizer.state_dict()["state"].items():
        out.update({f"{key} of {number}": value for key, value in state.items()})
    return {name: torch.as_tensor(value).detach().clone() for name, value in out.items()}
"""

SCRIPT = OUTER + """
outer = poseidon.Outer(**words)
net, optimizer, scheduler = made()
progress = poseidon.Progress(step=0)
joined = poseidon.join(net, optimizer, outer=outer, state=[scheduler, progress] if state_is else None, wire=form)
seat, first = joined.seat, joined.clock
here = None

def changed(change):
    print("change", tuple(change), "in clock", joined.clock, flush=True)

poseidon.on_change(changed)
print("seat", seat, "from", progress.step, first, flush=True)
begun = progress.step
while True:
    how = ends.get(seat)
    if how is not None and progress.step - begun == how[0]:
        print("ends", flush=True)
        if how[1] == "leave":
            poseidon.leave(others_go_on=True)
            print("left", flush=True)
            sys.exit(0)
        os.kill(os.getpid(), how[1])
    inner(net, optimizer, scheduler, progress.step, seat)
    progress.step += 1
    poseidon.report(1., 6)
    if progress.step - begun == 2 * outer.every:
        print("trains", flush=True)
    at, seats = joined.members.views[-1]
    number, without, more = wanted
    if progress.step % outer.every == 0 and len(seats) == number and not set(seats) & set(without) and joined.clock >= at + 3 * outer.fragments:
        break
for _ in range(more):
    inner(net, optimizer, scheduler, progress.step, seat)
    progress.step += 1
poseidon.synchronize()
clocks = joined.clock
poseidon.synchronize()
assert joined.clock == clocks, "an outer step without an inner one"
views = list(joined.members.views)
print("now", poseidon.rank(), poseidon.size(), flush=True)
values = values_of(net, optimizer)
poseidon.leave()
shared = [*net.parameters(), *net.buffers()]
print("digest", progress.step, hashlib.sha256(b"".join(v.detach().numpy().tobytes() for v in shared)).hexdigest(), flush=True)
if first == 0:
    alone = Simulated(outer, views[0].seats)
    alone.run(views, progress.step)
    mine = values_of(*alone.workers[seat])
    different = [name for name in mine if not torch.equal(mine[name], values[name])]
    print("oracle", f"different: {different}" if different else "equal", flush=True)
"""
