"""Sufficient factors of nn.Linear: instead of a weight's gradient, which is u transposed times v, a worker sends u (the gradient of
the layer's output) and v (its input), and every node multiplies those of all workers. The weight's own gradient is never made."""

import math
import time
import types
import weakref
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import nn

from .contexts import in_plain_autograd
from .stale import freshen

# Clock 0 shows how often each layer is used; in these, its times are taken.
_MEASURED = (2, 3)


class _Linear(torch.autograd.Function):
    """F.linear, with the same bits, whose unit decides what becomes of the weight's gradient."""

    @staticmethod
    def forward(ctx, x, weight, bias, unit):
        # Not the parameter itself: PyTorch 2.6 drops the hooks of one that is saved while saved tensors are packed (save_on_cpu).
        ctx.save_for_backward(x, weight.detach())
        ctx.unit = unit
        return unit.output(x, weight, bias)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        u, v = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
        of_x, of_weight, of_bias, _ = ctx.needs_input_grad
        unit = ctx.unit
        if torch.is_grad_enabled():
            return (*_as_linear(x, unit.module, dy, ctx.needs_input_grad), None)
        return (unit.of_input(u, weight).view(x.shape) if of_x else None, unit.gradient(u, v) if of_weight else None,
                u.sum(0) if of_bias else None, None)


def _as_linear(x: torch.Tensor, module: nn.Linear, dy: torch.Tensor, needs: Tuple[bool, ...]) -> List[Optional[torch.Tensor]]:
    """The gradients of F.linear where they are differentiated again (create_graph): by its own formulas, and the weight's as a whole."""
    inputs = [x, module.weight, module.bias]
    wanted = [t for t, needed in zip(inputs, needs) if needed]
    made = iter(torch.autograd.grad(F.linear(*inputs), wanted, dy, create_graph=True))
    return [next(made) if needed else None for needed in needs[:3]]


class _Forward:
    """Stands in a module's dictionary as `forward`. It is copied and pickled with its module: a copy is the class's own forward."""

    def __init__(self, unit: "Unit"):
        self._unit = weakref.ref(unit)
        self._module = unit.module

    def __call__(self, x):
        m, unit = self._module, self._unit()
        if unit is None or not unit.takes(x):
            return type(m).forward(m, x)
        if not unit.on_factors:
            y = type(m).forward(m, x)  # what is measured runs as it always does
            unit.watch(x, y)
            return y
        for p in (m.weight, m.bias):
            freshen(p)  # who calls forward() itself runs no hook
        return _Linear.apply(x, m.weight, m.bias, unit)

    def __deepcopy__(self, memo):
        return types.MethodType(type(self._module).forward, memo[id(self._module)])

    def __reduce__(self):
        return getattr, (self._module, "forward")  # while it is read, the module has only its class's


class Unit:
    """An nn.Linear whose weight is trained: how it computes, and what becomes of its gradient."""

    def __init__(self, factors: "Factors", module: nn.Linear, index: int, bias: Optional[int]):
        self.module, self.index, self.bias = module, index, bias
        self._factors = weakref.ref(factors)
        self.possible = True
        self.calls = 0  # in this clock
        self.rows = 0
        self.product_s, self.begun = math.inf, 0.0
        self.seen: Optional[Tuple[torch.Tensor, torch.Tensor]] = None  # in a clock that is measured: the factors
        self.is_product = False  # and the gradient is theirs
        self.on_factors = False  # in this clock
        self.found: List[Tuple[torch.Tensor, torch.Tensor]] = []  # factors of the backward pass under way
        self.grad_before: Tuple[Optional[torch.Tensor], int] = (None, 0)
        module.__dict__["forward"] = _Forward(self)

    output = staticmethod(F.linear)
    of_input = staticmethod(torch.mm)

    def of_weight(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return u.t().mm(v)

    def factors_of(self, dy: torch.Tensor, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])

    def watch(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """In a clock that is measured. A hook changes nothing of the graph, so that whatever differentiates it meets F.linear."""
        me, x = weakref.ref(self), x.detach()

        def reached(dy: torch.Tensor) -> None:
            unit = me()
            if unit is not None and torch.is_grad_enabled():
                unit.possible = False  # the gradient is differentiated again, and factors would end its graph
            elif unit is not None:
                unit.begun = unit.now()
                unit.seen = unit.factors_of(dy.detach(), x)

        if y.requires_grad:
            y.register_hook(reached)

    def now(self) -> float:
        """In seconds, without the time that measuring takes."""
        factors = self._factors()
        return time.perf_counter() - (0.0 if factors is None else factors.spent_s)

    def compare(self, gradient: torch.Tensor) -> None:
        """Measures the product, and looks whether it is the gradient: where something else has added to it, factors would lose that."""
        (u, v), self.seen = self.seen, None
        at = time.perf_counter()
        made = self.of_weight(u, v)
        self.product_s = min(self.product_s, time.perf_counter() - at)
        self.is_product = torch.equal(gradient, made)
        self.possible = self.possible and self.is_product

    def takes(self, x: torch.Tensor) -> bool:
        """Whether this call is measured, or goes through _Linear."""
        factors = self._factors()
        if factors is None or not torch.is_grad_enabled() or not self.possible:
            return False
        if hasattr(torch, "compiler") and getattr(torch.compiler, "is_compiling", bool)():
            return False  # and so it stays uncounted
        if not in_plain_autograd():
            return False  # a transform or a tracer would meet a function that it does not know
        if x.dtype != torch.float32 or x.device.type != "cpu" or torch.is_autocast_cpu_enabled():
            return False
        self.calls += 1
        return factors.before_use(self, x)

    def gradient(self, u: torch.Tensor, v: torch.Tensor) -> Optional[torch.Tensor]:
        factors = self._factors()
        if factors is not None and factors.offered:
            factors.begin_clock_of_client()  # the graph may be of an earlier clock
        if factors is None or not self.on_factors:
            return self.of_weight(u, v)
        factors.require_synced(self)
        p = self.module.weight
        if not self.found:
            self.grad_before = (p.grad, 0 if p.grad is None else p.grad._version)
        self.found.append((u.detach(), v.detach()))
        # torch.autograd.grad() comes here too, and wants no weight's gradient: what nobody has taken by then is nobody's.
        torch.autograd.Variable._execution_engine.queue_callback(self.found.clear)
        return None

    def has_dense_gradient(self) -> bool:
        """Whether the backward pass that has reached the weight has written a gradient: by another way than this layer, or because its
        call did not go through _Linear, as under autocast."""
        now = self.module.weight.grad
        if not self.found:
            return now is not None
        before, version = self.grad_before
        return now is not before or (now is not None and now._version != version)

    def take(self) -> Optional[Tuple[torch.Tensor, torch.Tensor]]:
        """u and v of this clock, each without gaps; None: the layer was not reached."""
        found, self.found = self.found, []
        if not found:
            return None
        u, v = found[0] if len(found) == 1 else (torch.cat([f[0] for f in found]), torch.cat([f[1] for f in found]))
        return u.contiguous(), v.contiguous()

    def undo(self) -> None:
        self.module.__dict__.pop("forward", None)


# By a module's exact type: a class that is derived from it may compute something else.
UNITS = {nn.Linear: Unit}


class Factors:
    """All units of a client: first it looks which could give factors, then what they would save; then the library decides."""

    def __init__(self, client, model: nn.Module):
        self._client = weakref.ref(client)
        owners: Dict[int, List[nn.Module]] = {}
        for module in model.modules():
            for p in module._parameters.values():
                owners.setdefault(id(p), []).append(module)
        self.units: Dict[int, Unit] = {}
        for module in model.modules():
            weight = module._parameters.get("weight") if type(module) in UNITS else None
            if id(weight) not in client.index or len(owners[id(weight)]) > 1 or "forward" in module.__dict__:
                continue
            if client.declared.bundle_of(client.index[id(weight)]) is not None:
                continue
            if not weight.is_contiguous() or weight.device.type != "cpu":
                continue
            i = client.index[id(weight)]
            self.units[i] = UNITS[type(module)](self, module, i, client.index.get(id(module.bias)))
        self.offered = False
        self._times: List[Tuple[int, float]] = []  # of a measured clock: when a gradient was there
        self._seconds: Dict[int, float] = {}  # by parameter, the least
        self.spent_s = 0.0  # on measuring

    def on_factors(self, i: int) -> bool:
        return self.offered and i in self.units and self.units[i].on_factors

    # -- while a clock runs

    def before_use(self, unit: Unit, x: torch.Tensor) -> bool:
        client = self._client()
        if client is None or client.failure is not None:
            return False
        if self.offered:
            client.begin_clock()
            return unit.on_factors
        if client.paused:
            unit.possible = False
        unit.rows = max(unit.rows, x.numel() // max(1, x.shape[-1]))
        return client.clock in _MEASURED

    def begin_clock_of_client(self) -> None:
        client = self._client()
        if client is not None and client.failure is None:
            client.begin_clock()

    def require_synced(self, unit: Unit) -> None:
        client = self._client()
        if client.paused:
            raise client.failed(f'"{client.names[unit.index]}" goes as factors, and is reached in no_sync(), as it was not in the first '
                                f'{_MEASURED[-1] + 1} steps: start with routes="ps"')

    def reached(self, i: int) -> None:
        """The gradient of parameter i is there."""
        client = self._client()
        if client.clock not in _MEASURED or self.offered:
            return
        begun = time.perf_counter()
        self._times.append((i, begun - self.spent_s))
        unit = self.units.get(i)
        if unit is not None and unit.seen is not None:
            unit.compare(client.parameters[i].grad.detach())
            self.spent_s += time.perf_counter() - begun

    def begin_clock(self) -> None:
        client = self._client()
        for i, unit in self.units.items():
            unit.on_factors = client.run.route(client.declared.of[i])

    def end_clock(self, fired: Dict[int, int]) -> None:
        """Before the client counts the next clock."""
        client = self._client()
        measured = client.clock in _MEASURED
        for i, unit in self.units.items():
            if not self.offered and (client.clock == 0 or measured) and (unit.calls != 1 or fired.get(i) != 1):
                unit.possible = False
            if measured and not unit.is_product:
                unit.possible = False
            unit.calls, unit.seen, unit.is_product = 0, None, False
        if measured and not self.offered:
            self._note_times()
        if client.clock == _MEASURED[-1]:
            self._offer(client)

    def _note_times(self) -> None:
        times, self._times = self._times, []
        if not times:
            return
        first = self.units.get(times[0][0]) or next((u for u in self.units.values() if u.bias == times[0][0]), None)
        before = times[0][1] if first is None else first.begun
        for i, at in times:
            self._seconds[i] = min(self._seconds.get(i, math.inf), at - before)
            before = at

    def _offer(self, client) -> None:
        for i in [i for i, unit in self.units.items() if not unit.possible]:
            self.units.pop(i).undo()
        if not self.units:
            return
        seconds = [self._seconds.get(i, 0.0) for i in range(len(client.parameters))]
        loads = [(s, 0.0, 0) for s in seconds]
        for i, unit in self.units.items():
            # A layer's backward pass makes both gradients; which of the two is told first does not matter.
            own = seconds[i]
            if unit.bias is not None:
                own += seconds[unit.bias]
                loads[unit.bias] = (0.0, 0.0, 0)
            loads[i] = (max(own, unit.product_s), unit.product_s, unit.rows)
        of_run = [(0.0, 0.0, 0)] * (len(client.declared) + (client.buffers is not None))
        for number, load in zip(client.declared.of, loads):
            of_run[number] = (of_run[number][0] + load[0], load[1], load[2])
        client.run.measured(of_run)
        self.offered = True

    def forget(self) -> None:
        """A backward pass was ended by an error: what it has found is nobody's."""
        for unit in self.units.values():
            unit.found.clear()
            unit.seen = None

    def undo(self) -> None:
        for unit in self.units.values():
            unit.undo()
        self.units.clear()
