"""What modes `local` and `shards` ask of an optimizer, and what its groups say of their steps, so that workers can compare it."""

import inspect
import operator
import sys
import zlib
from typing import Dict, Iterable, List, Optional, Tuple

import torch
from torch import nn, optim

from ..library import Hyperparameters, PoseidonError

# Of a group's items: the rate is compared by itself, and what a schedule keeps there changes no step.
_CHANGES_NOTHING = ("params", "lr", "initial_lr")
# How its steps are made, where not set: as is best on its device. Another way rounds otherwise, or is another formula.
_WAYS = ("foreach", "fused", "capturable", "differentiable")
# From here a scaler calls an optimizer's step().
_SCALERS = ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler", "torch.cpu.amp.grad_scaler", "torch.distributed.fsdp.sharded_grad_scaler")
_CHECKPOINT = "torch.distributed.checkpoint.state_dict"
_FRAMES = 8  # between it and a step()
_SAMPLES = 16  # of an array of state


def looks_at_one(optimizer: optim.Optimizer) -> bool:
    """Whether it is one of PyTorch's own, of which only LBFGS looks at several parameters at a time. Of another class nobody knows."""
    return type(optimizer).__module__.startswith("torch.optim.")


def _is_patched(optimizer: optim.Optimizer) -> bool:
    """Whether the script has put another step() in place. A schedule's, which counts, calls the class's."""
    mine = optimizer.__dict__.get("step")
    return mine is not None and inspect.unwrap(getattr(mine, "__func__", mine)) is not inspect.unwrap(type(optimizer).step)


def refuse_hooks(optimizer: optim.Optimizer) -> None:
    """PyTorch 2 calls them around each step of the optimizer, of which there are several for one of the script's, or none."""
    if getattr(optimizer, "_optimizer_step_pre_hooks", None) or getattr(optimizer, "_optimizer_step_post_hooks", None):
        raise PoseidonError('the optimizer has a hook for its steps (register_step_pre_hook, ..._post_hook), which would see a few '
                            'parameters at a time: mode="ddp"')


def caller_of_step(optimizer: optim.Optimizer) -> Optional[str]:
    """Who calls step() and means another one than a script's: "scaler", one that is enabled; "checkpoint", which makes an optimizer's state by it."""
    if getattr(optimizer, "grad_scale", None) is not None or getattr(optimizer, "found_inf", None) is not None:
        return "scaler"
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        frame = frame.f_back
        if frame is None:
            return None
        name = frame.f_globals.get("__name__")
        if name in _SCALERS and getattr(frame.f_locals.get("self"), "_enabled", True):
            return "scaler"
        if name == _CHECKPOINT:
            return "checkpoint"
    return None


def refuse_other_parameters(model: nn.Module, trained: Iterable[nn.Parameter]) -> None:
    """A clock ends with this optimizer's step, so what it has not is not exchanged."""
    wanted = {id(p) for p in trained}
    other = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in wanted]
    if other:
        raise PoseidonError(f'"{other[0]}" trains and is not in this optimizer ({len(other)} such parameters): is there a second optimizer? mode="ddp" '
                            "exchanges all, whichever optimizer has them; what does not train needs requires_grad_(False)")


def refuse_shared_memory(model: nn.Module, trained: Iterable[nn.Parameter]) -> None:
    """Two tensors over one memory: who reads the one would not wait for what the other one's step writes there."""
    wanted = {id(p) for p in trained}
    places = []
    for name, t in [*model.named_parameters(), *model.named_buffers()]:
        if t.layout == torch.strided and t.device.type == "cpu" and t.numel() > 0:
            last = sum((n - 1) * abs(s) for n, s in zip(t.shape, t.stride()))
            places.append((t.data_ptr(), t.data_ptr() + t.element_size() * (last + 1), name, id(t) in wanted))
    places.sort()
    end, of, was_trained = 0, "", False
    for begins, ends, name, is_trained in places:
        if begins < end and (is_trained or was_trained):
            raise PoseidonError(f'"{of}" and "{name}" are two tensors over one memory, each of which is waited for by itself: give both '
                                'modules the same parameter (a.weight = b.weight), or use mode="ddp"')
        if ends > end:
            end, of, was_trained = ends, name, is_trained


def require_one_at_a_time(model: nn.Module, optimizer: optim.Optimizer, trained: List[nn.Parameter]) -> None:
    """Refuses what cannot make its step for one parameter at a time, when that parameter is read again."""
    if any(isinstance(m, torch.jit.ScriptModule) for m in model.modules()):
        raise PoseidonError('the model has a ScriptModule, which reads parameters past Python: mode="ddp"')
    known = {id(p) for p in model.parameters()}
    strange = sum(id(p) not in known for p in trained)
    if strange:
        raise PoseidonError(f"the optimizer has {strange} of its {len(trained)} parameters from elsewhere, not from this model: "
                            "join a module that holds all of them")
    refuse_other_parameters(model, trained)
    if isinstance(optimizer, optim.LBFGS):
        raise PoseidonError('LBFGS looks at all parameters at once, and evaluates several times a step: mode="ddp"')
    other = next((p for p in trained if type(p) is not nn.Parameter), None)
    if other is not None:
        raise PoseidonError(f'a parameter is a {type(other).__name__}, expected an nn.Parameter: mode="ddp"')
    if _is_patched(optimizer):
        raise PoseidonError(f'the step() of this {type(optimizer).__name__} has been replaced by {optimizer.step}, which would not be '
                            'called: mode="ddp"')
    refuse_hooks(optimizer)
    refuse_shared_memory(model, trained)


def _plain(value) -> object:
    """A value that stays as it is when the script writes into the one of the group."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 else tuple(value.flatten().tolist())
    return tuple(_plain(v) for v in value) if isinstance(value, (list, tuple)) else value


def _copied(value) -> object:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return type(value)(map(_copied, value)) if type(value) in (list, tuple) else value


def _changes_in_place(value) -> bool:
    return isinstance(value, (list, torch.Tensor)) or (isinstance(value, tuple) and any(_changes_in_place(v) for v in value))


def _is_number(value) -> bool:
    return isinstance(value, (bool, int, float, str, type(None))) or (isinstance(value, tuple) and all(map(_is_number, value)))


def digest_of_state(states: Iterable[Optional[dict]]) -> int:
    """Of what an optimizer has made so far: numbers, and some values of each array. Another checkpoint differs in them."""
    out = 0
    for state in states:
        for key in sorted(k for k, v in (state or {}).items() if v is not None):
            value = state[key]
            if isinstance(value, torch.Tensor):
                flat = value.detach().reshape(-1)
                value = tuple(value.shape), flat[::max(1, flat.numel() // _SAMPLES)].tolist()
            elif not _is_number(value):
                continue
            out = zlib.crc32(repr((key, value)).encode(), out)
    return out


class Group:
    """What a group of the optimizer says of its steps. A clock looks at it once or twice, so it is read anew only where it has changed."""

    def __init__(self, optimizer: optim.Optimizer, parameters: Iterable[nn.Parameter]):
        self._name = type(optimizer).__name__
        on_gpus = all(p.is_cuda for p in parameters)
        self._as_default = {"foreach": on_gpus and hasattr(sys.modules[optim.Optimizer.__module__], "_default_to_fused_or_foreach")}
        self._seen: List[object] = []
        self._moves = True  # may change although its items are the same objects
        self.items: Dict[str, object] = {}  # as they were when somebody looked
        self._told: Optional[Dict[str, object]] = None

    def look(self, group: dict) -> None:
        now = list(group.values())
        if not self._moves and len(now) == len(self._seen) and all(map(operator.is_, now, self._seen)):
            return
        self.items = {key: _plain(value) for key, value in group.items() if key != "params"}
        self._seen = now
        self._moves = any(_changes_in_place(value) for key, value in group.items() if key != "params")

    def has_news(self, group: dict) -> bool:
        """Whether it says something else than when this was asked last."""
        self.look(group)
        before, self._told = self._told, self.items
        return before is not self.items and before != self.items

    def kept(self, group: dict) -> dict:
        """A copy for a later step, which the script changes no more."""
        self.look(group)
        if not self._moves:
            return {**group}
        return {key: value if key == "params" else _copied(value) for key, value in group.items()}

    @property
    def rate(self) -> float:
        lr = self.items.get("lr", 0.0)
        return float(lr) if isinstance(lr, (int, float)) else 0.0

    def digest(self) -> int:
        """Of all but the rate."""
        said = sorted((k, v) for k, v in self.items.items() if k not in _CHANGES_NOTHING + _WAYS and _is_number(v))
        said += [(k, self.items[k]) for k in _WAYS if self.items.get(k) is not None and self.items[k] != self._as_default.get(k, False)]
        return zlib.crc32(repr((self._name, said)).encode())

    def compared(self, state: int) -> Hyperparameters:
        """For steps that the program makes itself. `state`: digest_of_state() in the first clock, then 0."""
        return Hyperparameters(rate=self.rate, rest=self.digest() ^ state)


def first_difference(before: Dict[str, object], now: Dict[str, object], keys: Iterable[str]) -> Optional[Tuple[str, object, object]]:
    """Key and both values."""
    return next(((k, before.get(k), now.get(k)) for k in keys if before.get(k) != now.get(k)), None)
