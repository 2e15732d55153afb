# tests/cluster/elastic_world.py - what scripts of PyTorch share whose workers come and go: a net, a worker's samples, and what one process makes of
# all workers' gradients, as their views say.
WORLD = """
import ast, copy, hashlib, os, sys, time
import torch, torch.nn.functional as F
from torch import nn
import poseidon.torch as poseidon

torch.set_num_threads(1)
ends = {}  # by seat, or for "me": step, place in it, how
here = (None, None)  # the step, and this worker's seat

def end_at(place):
    step, seat = here
    *when, how = ends.get(seat) or ends.get("me") or (None,)
    if when == [step, place]:
        print("ends", flush=True)
        if how == "raise":
            raise ValueError("no more pictures")
        if how == "leave for good":
            poseidon.leave(others_go_on=True)
            print("left", flush=True)
            sys.exit(0)
        if how == "leave":
            poseidon.leave()
            sys.exit(0)
        os.kill(os.getpid(), how)

def pace():
    # Who trains until another one has come, gone or come back need not train fast: so it leaves the processors to that one, and one process has fewer
    # steps to make again.
    time.sleep(0.005)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        # A bias before a BatchNorm would have rounding errors for gradients.
        self.a, self.norm, self.b = nn.Linear(40, 200, bias=False), nn.BatchNorm1d(200), nn.Linear(200, 3)

    def forward(self, x):
        x = self.norm(self.a(x))
        end_at("forward")
        if x.requires_grad:
            x.register_hook(lambda g: end_at("backward"))  # when gradients of self.b have left
        return self.b(torch.relu(x))

def last_step(views, wanted):
    # A newcomer that tries twice has the second number: how many there are is what can be waited for.
    number, without = wanted
    first, seats = views[-1][:2]
    return first + 6 if len(seats) == number and not set(seats) & set(without) else None

def made():
    torch.manual_seed(1)
    net = Net()
    return net, torch.optim.AdamW(net.parameters(), .01)

def backward(net, step, seat):
    g = torch.Generator().manual_seed(100 * step + seat)
    F.cross_entropy(net(torch.randn(6, 40, generator=g)), torch.randint(0, 3, (6,), generator=g)).backward()

def one_process(views, steps, scheduled=None):
    net, optimizer = made()
    scheduler = None if scheduled is None else scheduled(optimizer)
    for step in range(steps):
        seats = [v.seats for v in views if v.first_clock <= step][-1]
        sums, before, after = {}, copy.deepcopy(dict(net.named_buffers())), None
        for seat in seats:
            with torch.no_grad():
                for name, b in net.named_buffers():
                    b.copy_(before[name])
            optimizer.zero_grad(set_to_none=True)
            backward(net, step, seat)
            after = after or copy.deepcopy(dict(net.named_buffers()))
            for p in net.parameters():
                sums[p] = sums[p] + p.grad if p in sums else p.grad
        with torch.no_grad():
            for name, b in net.named_buffers():
                b.copy_(after[name])
        for p, g in sums.items():
            p.grad = g.mul(torch.tensor(1 / len(seats), dtype=torch.float32))
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    return net, optimizer

def values_of(net, optimizer):
    out = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    for number, state in optimizer.state_dict()["state"].items():
        out.update({f"{key} of {number}": value for key, value in state.items()})
    return {name: torch.as_tensor(value).detach().clone() for name, value in out.items()}

"""
# Factors of large layers are equal up to rounding.
EXACT = {"POSEIDON_ROUTES": "ps"}
