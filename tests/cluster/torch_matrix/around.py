# tests/cluster/torch_matrix/around.py - what scripts put around a model: hooks, transforms and tracing, loaders, workers that begin apart.
import torch
from torch import nn

from company import more
from pieces import ALL, LATE, has

# -- how it begins


@more("parameters differ at join", "start")
def _(loop):
    if loop.rank:
        with torch.no_grad():
            for p in loop.net.parameters():
                p.add_(loop.rank)


@more("buffers differ at join", "start")
def _(loop):
    if loop.rank:
        for b in loop.net.buffers():
            with torch.no_grad():
                b.copy_(~b if b.dtype == torch.bool else b + loop.rank)


@more("trained before", "start")
def _(loop):
    """Some steps alone, whose state the run begins with; the same on all workers."""
    loop.clock, rank, loop.rank = 50, loop.rank, 0
    torch.manual_seed(7)
    for _ in range(2):
        for o in loop.optimizers:
            o.zero_grad()
        loop.model.loss(loop, loop.data(0)).backward()
        for o in loop.optimizers:
            o.step()
    for p in loop.net.parameters():
        p.grad = None
    loop.clock, loop.rank = 0, rank


@more("gradients there at join", "start", refused=LATE)
def _(loop):
    loop.model.loss(loop, loop.data(9)).backward()


@more("batches of another size", "start")
def _(loop):
    data = loop.data

    def smaller(worker, part=0):
        x = data(worker, part)
        return x[:2] if loop.clock % 2 else x
    loop.data = smaller


@more("a loader with workers", "start", weight=.3)
def _(loop):
    data = loop.data

    def loaded(worker, part=0):
        x = data(worker, part)
        return torch.cat([b[0] for b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), len(x), num_workers=1)])
    loop.data = loaded


# -- how values travel: all workers end with the same bits, and these are near those of one process
# A walk leaves them out: an optimizer that divides a gradient by its own size makes of a rounded zero anything.
def wire(name, form, **options):
    @more(name, "start", rounds={mode: (.02, f"gradients travel in {form}") for mode in ALL}, weight=1e-9, **options)
    def _(loop):
        loop.options["wire"] = form


wire("wire float16", "float16")
wire("wire bfloat16", "bfloat16")
wire("wire int8", "int8")
wire("wire int4", "int4")


@more("bf16_compress_hook", "joined", rounds={"wrapped": (.02, "gradients travel in bfloat16")}, weight=1e-9,
      here=has("distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook"))
def _(loop):
    if hasattr(loop.run, "register_comm_hook"):
        loop.run.register_comm_hook(None, torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook)


@more("a hook for buckets", "joined", refused=("wrapped",), says=r"register_comm_hook\(powerSGD_hook\): .*(fp16|bf16)_compress_hook",
      here=has("distributed.algorithms.ddp_comm_hooks.powerSGD_hook.powerSGD_hook"))
def _(loop):
    if hasattr(loop.run, "register_comm_hook"):
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
        loop.run.register_comm_hook(None, powerSGD_hook.powerSGD_hook)


# -- hooks

@more("forward hooks", "start")
def _(loop):
    loop.net.register_forward_pre_hook(lambda m, x: None)
    for m in loop.net.modules():
        if type(m) is nn.Linear:
            m.register_forward_hook(lambda m, x, y: y * 1.01)


@more("backward hooks", "start")
def _(loop):
    for m in loop.net.modules():
        if type(m) is nn.Linear:
            m.register_full_backward_hook(lambda m, dx, dy: tuple(None if d is None else d * .9 for d in dx))


@more("tensor hooks", "start")
def _(loop):
    for p in loop.net.parameters():
        if p.requires_grad:
            p.register_hook(lambda g: g * .5)


@more("tensor hooks after join", "joined")
def _(loop):
    for p in loop.net.parameters():
        if p.requires_grad:
            p.register_hook(lambda g: g.clamp(-.1, .1))


def halve(p):
    p.grad.mul_(.5)


@more("hooks after accumulation", "start", here=hasattr(torch.Tensor, "register_post_accumulate_grad_hook"), refused=LATE)
def _(loop):
    for p in loop.net.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(halve)


for place, when in ("start", "at join"), ("joined", "after join"):
    @more(f"the optimizer's hooks {when}", place, here=hasattr(torch.optim.Optimizer, "register_step_pre_hook"), refused=LATE)
    def _(loop):
        def before(o, *_):
            loop.note(sum(p.grad.abs().sum() for p in loop.net.parameters() if p.grad is not None))

        def after(o, *_):
            loop.note(*loop.net.parameters())
        for o in loop.optimizers:
            o.register_step_pre_hook(before)
            o.register_step_post_hook(after)


@more("the optimizer's hooks later", "before", here=hasattr(torch.optim.Optimizer, "register_step_pre_hook"), refused=LATE)
def _(loop):
    if loop.clock == 3:
        for o in loop.optimizers:
            o.register_step_post_hook(lambda o, *_: loop.note(*loop.net.parameters()))


# -- transforms and tracing between steps

def stateless(loop):
    """The loss as a function of the parameters, and these."""
    from torch.func import functional_call
    values = {name: p for name, p in loop.net.named_parameters()}
    x = loop.data(9)

    def loss(values):
        return functional_call(loop.net.eval(), values, (x,)) if not isinstance(x, tuple) else functional_call(loop.net, values, x)
    return loss, values


def transform(name, function, needs, **options):
    @more(name, "after", here=has(needs), refused=LATE, **options)
    def _(loop):
        try:
            function(loop)
        finally:
            loop.net.train()


def first_of(y):
    return y[0] if isinstance(y, tuple) else y


def func_grad(loop):
    loss, values = stateless(loop)
    loop.note(*torch.func.grad(lambda v: first_of(loss(v)).pow(2).sum())(values).values())


def func_grad_of_inputs(loop):
    x = loop.data(9)
    loop.note(torch.func.grad(lambda v: first_of(loop.net.eval()(v)).pow(2).sum())(x))


def vmap(loop):
    loop.note(torch.func.vmap(lambda v: first_of(loop.net.eval()(v)))(torch.stack([loop.data(9)] * 2)))


def make_fx(loop):
    from torch.fx.experimental.proxy_tensor import make_fx as made
    loop.net.eval()
    x = loop.data(9)
    loop.note(first_of(made(loop.net)(x)(x)))


def export(loop):
    torch._dynamo.reset()
    x = loop.data(9)
    loop.note(first_of(torch.export.export(loop.net.eval(), (x,)).module()(x)))


def jit_trace(loop):
    x = loop.data(9)
    loop.note(first_of(torch.jit.trace(loop.net.eval(), x, check_trace=False)(x)))


def symbolic(loop):
    x = loop.data(9)
    loop.note(first_of(torch.fx.symbolic_trace(loop.net.eval())(x)))


def fullgraph(loop):
    x = loop.data(9)
    torch._dynamo.reset()
    with torch.no_grad():
        loop.note(first_of(torch.compile(loop.net.eval(), backend="eager", fullgraph=True)(x)))


transform("func.grad", func_grad, "func.functional_call")
transform("func.grad of inputs", func_grad_of_inputs, "func.grad")
transform("vmap", vmap, "func.vmap")
transform("make_fx", make_fx, "fx.experimental.proxy_tensor.make_fx")
transform("export", export, "export.export", weight=.1)
transform("jit.trace", jit_trace, "jit.trace")
transform("symbolic_trace", symbolic, "fx.symbolic_trace")
transform("compile between steps", fullgraph, "compile", weight=.1)


@more("an error between steps that is caught", "after")
def _(loop):
    training = [m.training for m in loop.net.modules()]
    try:
        loop.net.eval()(torch.ones(3, 99))
    except (RuntimeError, TypeError, ValueError, IndexError, AssertionError, NotImplementedError, AttributeError):
        pass
    for m, was in zip(loop.net.modules(), training):
        m.training = was


@more("gradients are logged", "between", refused=LATE)
def _(loop):
    """In the late modes they are this worker's own, and on their way."""
    loop.note(*[p.grad.clone() for p in loop.net.parameters() if p.grad is not None])


@more("anomaly detection", "start")
def _(loop):
    loss = loop.loss

    def checked(worker, part=0):
        with torch.autograd.detect_anomaly(check_nan=False):
            return loss(worker, part)
    loop.loss = checked


@more("evaluates a part", "after")
def _(loop):
    with torch.no_grad():
        for m in loop.net.modules():
            if type(m) is nn.Linear:
                loop.note(m(torch.ones(1, m.in_features)), torch.nn.functional.linear(torch.ones(1, m.in_features), m.weight, m.bias))
