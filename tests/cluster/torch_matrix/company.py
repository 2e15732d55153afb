# tests/cluster/torch_matrix/company.py - what scripts do besides: copies, evaluation, schedules, gradients that they change.
import copy
import io

import torch
from torch import nn, optim

from loop import CLOCKS
from pieces import ALL, ASK_MODE, LATE, has, piece


def more(name, place, **options):
    """The function below is called at `place` of the loop."""
    def keep(function):
        piece("more", name, **options)(lambda loop: loop.on(place, function))
        return function
    return keep


def output(loop, net=None):
    """Of a batch that all workers have, in evaluation."""
    net = loop.net if net is None else net
    was, run, clock, rank = loop.net.training, loop.run, loop.clock, loop.rank
    training = [m.training for m in net.modules()]
    net.eval()
    loop.run, loop.clock, loop.rank = net, 0, 0
    try:
        return loop.model.loss(loop, loop.data(9))
    finally:
        loop.run, loop.clock, loop.rank = run, clock, rank
        for m, t in zip(net.modules(), training):
            m.training = t
        loop.net.training = was


# -- gradients that are looked at or changed

@more("clips by norm", "between", refused=LATE)
def _(loop):
    loop.note(nn.utils.clip_grad_norm_(loop.net.parameters(), .5))


@more("clips by value", "between", refused=LATE)
def _(loop):
    nn.utils.clip_grad_value_(loop.net.parameters(), .05)


@more("scales gradients past autograd", "between", refused=LATE)
def _(loop):
    for p in loop.net.parameters():
        if p.grad is not None:
            p.grad.data.mul_(.5)


@more("replaces a gradient", "between", refused=LATE)
def _(loop):
    p = next(loop.net.parameters())
    if p.grad is not None:
        p.grad = p.grad.sign()


@more("drops a gradient", "between", refused=LATE)
def _(loop):
    next(loop.net.parameters()).grad = None


@more("gives a gradient", "between", refused=LATE)
def _(loop):
    for p in loop.net.parameters():
        if p.requires_grad and p.grad is None:
            p.grad = torch.ones_like(p)


@more("writes values before the step", "between", refused=LATE)
def _(loop):
    with torch.no_grad():
        next(loop.net.parameters()).mul_(.9)


# -- values that are written

def write(name, change, every=1):
    @more(name, "after", refused=LATE)
    def _(loop):
        if loop.clock % every == 0:
            with torch.no_grad():
                for p in loop.net.parameters():
                    change(p)


write("shrinks values", lambda p: p.mul_(.999))
write("clamps values", lambda p: p.clamp_(-.3, .3))
write("clamps values past autograd", lambda p: p.data.clamp_(-.3, .3))
write("copies values", lambda p: p.copy_(p.sign() * .1), 3)
write("gives other memory", lambda p: setattr(p, "data", p.data * .99), 2)
write("writes through NumPy", lambda p: p.detach().numpy().__imul__(.5) if p.requires_grad else None, 3)
write("writes through a view", lambda p: p.view(-1)[:1].fill_(.1) if p.is_contiguous() else None)


@more("prunes", "start", refused=LATE)
def _(loop):
    from torch.nn.utils import prune
    for module in loop.net.modules():
        if type(module) is nn.Linear and type(module._parameters.get("weight")) is nn.Parameter:
            prune.random_unstructured(module, "weight", .3)


@more("loads values", "after", refused=LATE)
def _(loop):
    if loop.clock == 1:
        loop.kept["values"] = copy.deepcopy(loop.net.state_dict())
    if loop.clock == 3:
        loop.net.load_state_dict(loop.kept["values"])


@more("loads the optimizer's state", "after", refused=LATE, says=rf"{ASK_MODE}|before join")
def _(loop):
    if loop.clock == 1:
        loop.kept["state"] = [copy.deepcopy(o.state_dict()) for o in loop.optimizers]
    if loop.clock == 3:
        for o, state in zip(loop.optimizers, loop.kept["state"]):
            o.load_state_dict(state)


# -- copies

@more("EMA", "after")
def _(loop):
    average = loop.kept.setdefault("average", None) or copy.deepcopy(loop.net)
    loop.kept["average"] = average
    with torch.no_grad():
        for a, p in zip(average.parameters(), loop.net.parameters()):
            a.mul_(.9).add_(p.detach(), alpha=.1)
    loop.note(*average.parameters())


@more("SWA", "after", refused=LATE)
def _(loop):
    average = loop.kept.setdefault("swa", None) or optim.swa_utils.AveragedModel(loop.net)
    loop.kept["swa"] = average
    average.update_parameters(loop.net)
    loop.note(*average.module.parameters())


@more("deepcopy", "after")
def _(loop):
    loop.note(*copy.deepcopy(loop.net).parameters())


@more("deepcopy of both", "after", refused=LATE)
def _(loop):
    _, optimizer = copy.deepcopy((loop.net, loop.optimizer))
    loop.note(*(v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)))


@more("saves both", "after")
def _(loop):
    file = io.BytesIO()
    torch.save([loop.net.state_dict(), *(o.state_dict() for o in loop.optimizers)], file)
    values = torch.load(io.BytesIO(file.getvalue()))
    loop.note(*values[0].values())


@more("saves the model", "after")
def _(loop):
    file = io.BytesIO()
    torch.save(loop.net, file)
    more_words = {"weights_only": False} if torch.__version__ >= "2" else {}
    loop.note(*torch.load(io.BytesIO(file.getvalue()), **more_words).parameters())


@more("distributed.checkpoint", "after", refused=LATE, here=has("distributed.checkpoint.state_dict.get_optimizer_state_dict"))
def _(loop):
    from torch.distributed.checkpoint import state_dict
    values = state_dict.get_model_state_dict(loop.net)
    state = state_dict.get_optimizer_state_dict(loop.net, loop.optimizers)
    loop.note(*(values[k] for k in sorted(values)),
              *(s[k] for _, s in sorted(state["state"].items()) for k in sorted(s) if isinstance(s[k], torch.Tensor)))


# -- evaluation

@more("evaluates", "after")
def _(loop):
    with torch.no_grad():
        loop.note(output(loop))


@more("evaluates in inference_mode", "after", refused=LATE)
def _(loop):
    with torch.inference_mode():
        value = output(loop)
    loop.note(value)


@more("evaluates on one worker", "after")
def _(loop):
    if loop.rank == 0 and loop.clock < CLOCKS - 1:  # a buffer that it changes reaches the others in the next step
        with torch.no_grad():
            loop.note(output(loop))


@more("evaluates under autocast", "after", refused=LATE)
def _(loop):
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        loop.note(output(loop).float())


@more("wants a gradient of the input", "after", refused=LATE)
def _(loop):
    x = loop.data(9)
    if not x.is_floating_point():
        return
    x.requires_grad_()
    net = copy.copy(loop)
    net.run, net.clock, net.rank = loop.net.eval(), 0, 0
    loop.note(torch.autograd.grad(loop.model.loss(net, x), x)[0])
    loop.net.train()


@more("wants gradients of parameters", "after", refused=LATE)
def _(loop):
    parameters = [p for p in loop.net.parameters() if p.requires_grad]
    loop.note(*(g for g in torch.autograd.grad(output(loop), parameters, allow_unused=True) if g is not None))


@more("flattens values", "after")
def _(loop):
    loop.note(nn.utils.parameters_to_vector(p for p in loop.net.parameters()))


@more("prints a value", "after")
def _(loop):
    p = next(loop.net.parameters())
    loop.note(float(p.flatten()[0]), *map(float, p.detach().numpy().reshape(-1)[:2]))
    str(p)


# -- schedules

def schedule(name, make, by_loss=False, **options):
    @more(name, "start", **options)
    def _(loop):
        loop.kept["schedules"] = [make(o) for o in loop.optimizers]
        loop.on("after", lambda loop: [s.step(*([1.] if by_loss else [])) for s in loop.kept["schedules"]])


lr = optim.lr_scheduler
schedule("StepLR", lambda o: lr.StepLR(o, 2, .5))
schedule("OneCycleLR", lambda o: lr.OneCycleLR(o, .05, 10, cycle_momentum="momentum" in o.defaults or "betas" in o.defaults))
schedule("CosineAnnealingLR", lambda o: lr.CosineAnnealingLR(o, 4))
schedule("ReduceLROnPlateau", lambda o: lr.ReduceLROnPlateau(o, patience=0), by_loss=True)
schedule("SequentialLR", lambda o: lr.SequentialLR(o, [lr.ConstantLR(o, .5, 2), lr.ExponentialLR(o, .9)], [2]))


@more("a rate by hand", "before")
def _(loop):
    for o in loop.optimizers:
        for group in o.param_groups:
            rate = group["lr"]
            group["lr"] = rate * .9 if not isinstance(rate, torch.Tensor) else rate.mul_(.9)


@more("frozen for a while", "before", refused=LATE)
def _(loop):
    p = loop.kept.setdefault("freezes", next(p for p in loop.net.parameters() if p.requires_grad))
    if loop.clock in (2, 4):
        p.requires_grad_(loop.clock == 4)


@more("thawed later", "start", refused=ALL, says=r"frozen at join.*requires_grad")
def _(loop):
    p = next(loop.net.parameters())
    p.requires_grad_(False)
    loop.on("before", lambda loop: p.requires_grad_(loop.clock >= 3))


@more("a group that comes later", "start", refused=LATE, says=rf"add_param_group|{ASK_MODE}")
def _(loop):
    o = loop.optimizer
    kept = o.param_groups[-1]["params"].pop()
    loop.on("before", lambda loop: loop.clock == 3 and o.add_param_group({"params": [kept]}))
