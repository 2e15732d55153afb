# tests/cluster/torch_local_right_test.py - modes "local" and "shards": what lies between step() and the next forward pass sees whole steps, and
# what these modes cannot do is refused by name.
"""tests/cluster/torch_matrix holds cases of several workers against one process. Here are the kinds that need no second worker."""
import unittest

import cluster
import programs
from torch_refusals_test import HEAD

# A script with functions that are called between two steps of one process alone and of a worker; all that they see has to be the same.
BETWEEN = HEAD + """
from torch.overrides import TorchFunctionMode
func = getattr(torch, "func", None) or __import__("functorch")
functional_call = getattr(func, "functional_call", None) or torch.nn.utils.stateless.functional_call

def input_of(clock):
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(clock))

seen_with = input_of(99)
kinds = {}

def kind(function):
    kinds[function.__name__] = function
    return function

@kind
def transforms_of_parameters(net, optimizer, clock):
    return [func.grad(lambda p: functional_call(net, p, (seen_with,)).sum())(dict(net.named_parameters()))["0.weight"],
            *func.jvp(lambda w: seen_with @ w.t(), (net[0].weight,), (torch.ones(3, 4),))]

@kind
def transforms_of_inputs(net, optimizer, clock):
    return [func.grad(lambda x: net(x).sum())(seen_with), func.vmap(net)(seen_with)]

@kind
def jit_trace(net, optimizer, clock):
    return [torch.jit.trace(net, seen_with)(seen_with)]

@kind
def fx(net, optimizer, clock):
    from torch.fx.experimental.proxy_tensor import make_fx
    return [torch.fx.symbolic_trace(net)(seen_with), make_fx(lambda x: net(x))(seen_with)(seen_with)]

@kind
def inference_mode(net, optimizer, clock):
    with torch.inference_mode():
        seen = net(seen_with)
    return [seen.clone()]

@kind
def autocast(net, optimizer, clock):
    with torch.autocast("cpu", torch.bfloat16):
        return [net(seen_with).float()]

@kind
def a_mode_of_functions(net, optimizer, clock):
    class Doubles(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            return out * 2 if function in (torch.add, torch.Tensor.add_, torch.Tensor.mul_, F.linear) else out
    with Doubles():
        return [net(seen_with)]

@kind
def written_in_place(net, optimizer, clock):
    with torch.no_grad():
        net[0].weight.mul_(.9).clamp_(-.2, .2)
        net[0].bias.data.add_(.1)
    net[1].weight.detach().numpy()[0] *= 2
    net[1].bias.data = net[1].bias.data * 1.5
    return []

@kind
def zeros_kept(net, optimizer, clock):
    optimizer.zero_grad(set_to_none=False)
    return [p.grad for p in net.parameters()]

@kind
def the_model_keeps_zeros(net, optimizer, clock):
    net.zero_grad(set_to_none=False)
    return []

@kind
def frozen_with_zeros(net, optimizer, clock):
    optimizer.zero_grad(set_to_none=False)
    net[0].weight.requires_grad_(clock % 2 == 1)  # Adam and decay move it all the same
    return []

@kind
def cleared_by_hand(net, optimizer, clock):
    for p in net.parameters():
        if clock % 2:
            p.grad = None
        else:
            p.grad.zero_()
    return []

@kind
def gradients_are_means(net, optimizer, clock):
    return [] if mode == "shards" else [p.grad for p in net.parameters()]

@kind
def gradients_add_up(net, optimizer, clock):
    if mode == "local":
        optimizer.keeps = clock % 3 != 2
    return []

@kind
def state_is_loaded(net, optimizer, clock):
    if mode == "local" and clock == 1:
        optimizer.kept = copy.deepcopy(optimizer.state_dict())
    if mode == "local" and clock == 3:
        optimizer.load_state_dict(optimizer.kept)
    return []

@kind
def state_of_a_checkpoint(net, optimizer, clock):
    try:
        from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict
    except ImportError:
        return []
    return [v for _, of in sorted(get_optimizer_state_dict(net, optimizer)["state"].items()) for v in of.values()]

def trained(net, optimizer, between):
    seen = []
    for clock in range(6):
        if not getattr(optimizer, "keeps", False):
            optimizer.zero_grad()
        net(input_of(clock)).pow(2).sum().backward()
        optimizer.step()
        seen += [torch.as_tensor(t).detach().clone() for t in between(net, optimizer, clock)]
    return seen + [p.detach().clone() for p in net.parameters()]

class Counts(torch.optim.SGD):
    # Looks at all gradients, writes to them and to its groups.
    def step(self, closure=None):
        for group in self.param_groups:
            group["made"] = group.get("made", 0) + 1
            nn.utils.clip_grad_norm_(group["params"], 1 / group["made"])
        return super().step()

class AddsToGradient(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, dict(lr=.1))

    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad.add_(p, alpha=.1), alpha=.1)

mode = sys.argv[1]
optimizers = {"Adam": lambda net: torch.optim.Adam(net.parameters(), .01, weight_decay=.1)}
if mode == "local":
    optimizers["foreach"] = lambda net: torch.optim.Adagrad(net.parameters(), .01, weight_decay=.1, foreach=True)
    optimizers["Counts"], optimizers["AddsToGradient"] = lambda net: Counts(net.parameters(), .1), lambda net: AddsToGradient(net.parameters())
if hasattr(torch.optim, "Adafactor") and mode == "local":
    optimizers["Adafactor"] = lambda net: torch.optim.Adafactor(net.parameters(), .01)
for name, make in optimizers.items():
    for between in kinds.values() if name == "Adam" else [inference_mode, autocast, gradients_are_means]:
        torch.manual_seed(1)
        net, _ = made()
        alone = copy.deepcopy(net)
        wanted = trained(alone, make(alone), between)
        optimizer = make(net)
        with poseidon.join(net, optimizer, mode=mode):
            got = trained(net, optimizer, between)
        same = len(got) == len(wanted) and all(map(torch.equal, got, wanted))
        print(name, between.__name__, "equal" if same else "different", flush=True)
"""

LATE = """
mode = sys.argv[1] if len(sys.argv) > 1 else "local"
net, _ = made()
optimizer = torch.optim.Adam(net.parameters(), .1)
def named(module, **of):
    # A function of that module, which this PyTorch may not have.
    code = {"__name__": module}
    exec("def step(self, optimizer):\\n    return optimizer.step()", code)
    return code["step"]
"""

# By name: what is refused, whatever the mode, and the text.
REFUSED = {
    "a scaler": ("""
poseidon.join(net, optimizer, mode="MODE")
net(torch.ones(2, 4)).sum().backward()
class Scaler: _enabled = True
refused(lambda: named("torch.amp.grad_scaler")(Scaler(), optimizer))
""", r'a GradScaler makes this step.*mode="ddp"'),
    "a scaler that tells the optimizer its scale": ("""
poseidon.join(net, optimizer, mode="MODE")
net(torch.ones(2, 4)).sum().backward()
optimizer.grad_scale = torch.ones(1)
refused(optimizer.step)
""", r'a GradScaler makes this step.*mode="ddp"'),
    "a step that a scaler leaves out": ("""
poseidon.join(net, optimizer, mode="MODE")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
refused(optimizer.zero_grad)
""", r'zero_grad\(\) after backward\(\).*GradScaler.*mode="ddp"'),
    "a second optimizer": ("""
refused(lambda: poseidon.join(net, torch.optim.Adam(net[0].parameters(), .1), mode="MODE"))
""", r'"1\.weight" trains and is not in this optimizer \(2 such parameters\): is there a second optimizer\? mode="ddp"'),
    "an error in a step, which is caught": ("""
poseidon.join(net, optimizer, mode="MODE")
step(net, optimizer)
run = poseidon.Client.current
make, run._make_step = run._make_step, lambda *_: 1 / 0
try:
    net(torch.ones(2, 4))
except ZeroDivisionError:
    run._make_step = make
refused(lambda: step(net, optimizer))
""", r'the run is over: the optimizer.s step, which is made when its parameters are read again, has ended by ZeroDivisionError'),
    "a script module": ("""
poseidon.join(net, optimizer, mode="MODE")
step(net, optimizer)
refused(lambda: torch.jit.script(net))
""", r'torch\.jit\.script makes a module that reads parameters past Python.*mode="ddp"'),
    "a gradient that is looked at": ("""
poseidon.join(net, optimizer, mode="MODE")
net(torch.ones(2, 4)).sum().backward()
assert net[0].weight.grad.shape == (3, 4)
refused(lambda: net[0].weight.grad.norm().item())
""", r'the gradient of "0\.weight" is read or was changed.*mode="ddp"'),
    "a graph of an older clock": ("""
poseidon.join(net, optimizer, mode="MODE")
old = net(torch.ones(2, 4)).sum()
step(net, optimizer)
try:
    old.backward()
except RuntimeError as e:
    print("refused:", e, flush=True)
""", r"modified by an inplace operation"),
}

OF_SHARDS = {
    "values that are written too early": ("""
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
net(torch.ones(2, 4)).sum().backward()
net[0].weight.data.clamp_(-.1, .1)
refused(optimizer.step)
""", r'"0\.weight" was written to between backward\(\) and step\(\).*mode="local"'),
    "a gradient that is not cleared": ("""
poseidon.join(net, optimizer, mode="shards")
for _ in range(2):
    loss = net(torch.ones(2, 4)).sum()
    if _ == 0:
        loss.backward()
        optimizer.step()
refused(loss.backward)
""", r'the gradient of "[01]\.(weight|bias)" was not cleared.*zero_grad\(\)'),
    "a checkpoint before the first step": ("""
poseidon.join(net, optimizer, mode="shards")
refused(lambda: named("torch.distributed.checkpoint.state_dict")(None, optimizer))
""", r'torch\.distributed\.checkpoint makes the state of this optimizer.*mode="ddp"'),
    "values with other strides": ("""
poseidon.join(net, optimizer, mode="shards")
step(net, optimizer)
net[0].weight.data = net[0].weight.data.t().contiguous().t()
refused(lambda: step(net, optimizer))
""", r'"0\.weight" is torch\.float32 with strides \(1, 3\) now.*p\.copy_\(\)'),
}

TWO = HEAD + """
case = sys.argv[1]
first = "POSEIDON_LISTEN" in os.environ
net, _ = made()
optimizer = torch.optim.NAdam(net.parameters(), .1, weight_decay=.1, foreach=case == "foreach on one" and first)
poseidon.join(net, optimizer, mode="local")
step(net, optimizer)
if case == "a checkpoint on one" and first:
    state = optimizer.state_dict()
    for of in state["state"].values():
        of["exp_avg"].mul_(2)
    optimizer.load_state_dict(state)
for _ in range(3):
    step(net, optimizer)
net(torch.ones(2, 4))
print("trained", flush=True)
"""


class Right(unittest.TestCase):
    def between(self, mode):
        with programs.Programs() as c:
            (worker,) = c.workers(BETWEEN, 1, mode)
            self.assertEqual(worker.wait(), 0, worker)
            self.assertNotIn("different", worker.output, worker)
            self.assertGreater(worker.output.count("equal"), 15, worker)

    def test_between_steps_of_local(self):
        self.between("local")

    def test_between_steps_of_shards(self):
        self.between("shards")

    def test_refused(self):
        for mode in "local", "shards":
            programs.each_is_refused(self, HEAD + LATE, {f"{name}, {mode}": (script.replace("MODE", mode), text)
                                                        for name, (script, text) in REFUSED.items()})
        programs.each_is_refused(self, HEAD + LATE, OF_SHARDS)

    def test_workers_that_step_otherwise(self):
        for case in "foreach on one", "a checkpoint on one":
            with self.subTest(case), programs.Programs() as c:
                for worker in c.workers(TWO, 2, case):
                    self.assertNotEqual(worker.wait(), 0, worker)
                    self.assertRegex(worker.output, r"option \(foreach, fused, ...\), number of steps or first state", worker)
                    self.assertNotIn("trained", worker.output, worker)


if __name__ == "__main__":
    programs.need("torch")
    cluster.main()
