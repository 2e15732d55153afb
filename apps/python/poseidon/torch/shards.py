"""Mode `shards`: the workers share the optimizer's steps and its state, each makes those of a part of every parameter's values."""

import copy
import inspect
import types
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn, optim

from ..library import ADAM, ADAMW, SGD, Hyperparameters, PoseidonError
from .local import LocalClient
from .optimizers import first_difference
from .stale import forget_stale, make_stale
from .values import Values

# By rule: its number in the library, its arrays of state, and what its groups say that changes a step.
_RULES = {
    optim.SGD: (SGD, ("momentum_buffer",), ("lr", "momentum", "dampening", "weight_decay", "nesterov")),
    optim.Adam: (ADAM, ("exp_avg", "exp_avg_sq"), ("lr", "betas", "eps", "weight_decay")),
    optim.AdamW: (ADAMW, ("exp_avg", "exp_avg_sq"), ("lr", "betas", "eps", "weight_decay")),
}
# A NaN that no computation makes, as an int32: but for the sign it stays the same where something is added.
_NOBODY_HAS_IT = 0x7fd05e1d
_WITHOUT = ("amsgrad", "maximize", "differentiable", "fused", "capturable", "decoupled_weight_decay")


def _lerps(optimizer: optim.Optimizer) -> bool:
    """Whether this PyTorch forms Adam's first moment by lerp_, which rounds otherwise than mul_ and add_."""
    return not isinstance(optimizer, optim.SGD) and "lerp_" in inspect.getsource(inspect.getmodule(optim.Adam))


def _why_not_group(optimizer: optim.Optimizer, group: dict) -> Optional[str]:
    name = type(optimizer).__name__
    for key in _WITHOUT:
        if group.get(key) and not (key == "decoupled_weight_decay" and isinstance(optimizer, optim.AdamW)):  # newer AdamW say what they are
            return f"the shards know no {name} with {key}={group[key]}"
    for key in _RULES[type(optimizer)][2]:
        for value in group[key] if isinstance(group[key], (tuple, list)) else (group[key],):
            if not isinstance(value, (int, float)):  # arithmetic with it may round otherwise
                return f"the shards know no {name} whose {key} is a {type(value).__name__}, expected a number"
    if _lerps(optimizer) and group["betas"][0] <= 0.5:
        return f"the shards know no {name} with beta1 = {group['betas'][0]}, expected more than 0.5"
    return None


def why_not(optimizer: optim.Optimizer) -> Optional[str]:
    """Why the shards cannot make this optimizer's steps; None: they can."""
    if type(optimizer) not in _RULES:
        return f"the shards know SGD, Adam and AdamW, not {type(optimizer).__name__}"
    return next(filter(None, (_why_not_group(optimizer, group) for group in optimizer.param_groups)), None)


class ShardsClient(LocalClient):
    _bundled = False  # a shard makes the steps of each by itself
    _large = 1 << 62  # values: taking them over costs the same for every parameter

    _no_lossy = "in mode \"shards\" wire= is the format, for the whole run: mode=\"ddp\" has lossy"
    _no_lowrank = "in mode \"shards\" the workers make the optimizer's steps with whole gradients: mode=\"ddp\" has low rank, or leave routes out"

    def __init__(self, model: nn.Module, optimizer: optim.Optimizer, options: Dict[str, str], **said):
        wrong = why_not(optimizer)
        if wrong:
            raise PoseidonError(f'mode "shards": {wrong}. mode="local" trains the same model with your optimizer')
        super().__init__(model, optimizer, options, **said)
        self._rule, self._arrays, self._keys = _RULES[type(optimizer)]
        self._lerp = _lerps(optimizer)
        self._told: List[Optional[dict]] = [None] * len(self.groups)  # in this clock
        self.values = Values(self.run, self.parameters, self.ring, self.names, self.failed)
        self._marked: Dict[int, torch.Tensor] = {}  # gradients that no zero_grad() has cleared since the step
        self._had_momentum = [group.get("momentum", 0) != 0 for group in optimizer.param_groups]

    # -- the start

    def _declared(self) -> None:
        super()._declared()
        for i, p in enumerate(self.parameters):
            state = self.optimizer.state.get(p)
            if not state:
                continue
            steps = state.get("step", 1)  # SGD does not count, and asks only whether there is a buffer
            if isinstance(steps, torch.Tensor):
                steps = int(steps.item())
            arrays = [self._in_order(state.get(name), p) for name in self._arrays]
            self._first_state += arrays
            if arrays[0] is not None:
                self.run.first_state(i, steps, [0 if a is None else a.data_ptr() for a in arrays])

    @staticmethod
    def _in_order(state: Optional[torch.Tensor], p: nn.Parameter) -> Optional[torch.Tensor]:
        """In the order of the parameter's memory."""
        if state is None:
            return None
        return torch.empty_strided(p.shape, p.stride(), dtype=torch.float32).copy_(state)

    _has_state = False  # the optimizer, again

    def begin(self) -> "ShardsClient":
        self._first_state: List[Optional[torch.Tensor]] = []
        super().begin()
        self._first_state.clear()
        self.values.begin()
        for p in self.parameters:
            self.optimizer.state.pop(p, None)
        return self

    def _take_over_optimizer(self) -> None:
        super()._take_over_optimizer()
        client = self

        def state_dict(self):
            client.bring_state()
            try:
                return type(self).state_dict(self)
            finally:
                client.forget_state()  # it would be old after the next step

        def __getstate__(self):
            client.bring_state()
            try:
                return {**type(self).__getstate__(self), "state": copy.copy(self.state)}
            finally:
                client.forget_state()

        def load_state_dict(self, state_dict) -> None:
            raise PoseidonError('load_state_dict() after join(): the state lies on the shards already. Load it before join(), on all '
                                'workers, or use mode="local"')

        for method in (state_dict, load_state_dict, __getstate__):
            self._before.setdefault(method.__name__, self.optimizer.__dict__.get(method.__name__))
            setattr(self.optimizer, method.__name__, types.MethodType(method, self.optimizer))

    # -- a clock

    def _push(self, i: int) -> None:
        self._require_cleared(i)
        self.values.lend(i, self.clock)
        super()._push(i)
        make_stale(self.parameters[i])

    def _touched_lent(self, i: int) -> None:
        self.values.touched(i)

    def _take_back(self) -> None:
        for i in self.pushed:
            forget_stale(self.parameters[i])

    def _push_factors(self, i: int) -> None:
        g, unit = self.parameters[i].grad, self.factors.units[i]
        if g is not None:
            if torch.count_nonzero(g) > 0:
                raise self.failed(f'the gradient of "{self.names[i]}" was not cleared by zero_grad() before its factors left: start with routes="ps"')
            if not unit.found:  # zeros that are kept are a gradient
                unit.found.append((g.new_zeros(1, g.shape[0]), g.new_zeros(1, g.shape[1])))
        super()._push_factors(i)

    def _require_cleared(self, i: int) -> None:
        """What .grad holds between step() and zero_grad() is the mean elsewhere; here nobody has it, and to add to it would be to add to something
        else. So it holds NaN."""
        marked, g = self._marked.pop(i, None), self.parameters[i].grad
        if marked is None or g is None:
            return
        first = g.detach().reshape(-1)[:1]
        if bool(torch.isnan(first)) if g.is_cuda else int(first.view(torch.int32)) & 0x7fffffff == _NOBODY_HAS_IT:
            raise self.failed(f'the gradient of "{self.names[i]}" was not cleared after the last step(), and the mean that this backward pass would add '
                              'to is not here: call zero_grad() after step(), or use mode="local" or "ddp"')

    def _tell(self, group: int) -> None:
        """How the group steps with the gradients of this clock."""
        it = self.groups[group]
        news = it.has_news(self.optimizer.param_groups[group])
        said = self._told[group] = it.items
        if not news and self.clock > 1:
            return
        wrong = _why_not_group(self.optimizer, self.optimizer.param_groups[group])
        if wrong:
            raise self.failed(f'{wrong}, as group {group} has it since join(): mode="local" trains the same model with your optimizer')
        if self._rule == SGD and (said["momentum"] != 0) != self._had_momentum[group]:
            raise self.failed(f'the momentum of group {group} is {said["momentum"]} and was {"not " if said["momentum"] == 0 else ""}0 at '
                              'join(): mode="local"')
        beta1, beta2 = said.get("betas", (said.get("momentum", 0), 0))
        self.run.step(group, Hyperparameters(said["lr"], said["weight_decay"], beta1, said.get("dampening", 0), beta2, said.get("eps", 0),
                                             bool(said.get("nesterov", False)), self._lerp, self._state_to_say(group)))

    def _before_step(self) -> None:
        self._take_back()
        self.values.require_unchanged()
        for group, told in enumerate(self._told):
            if told is None:
                continue
            it = self.groups[group]
            it.look(self.optimizer.param_groups[group])
            if it.items is told:
                continue
            different = first_difference(told, it.items, self._keys + _WITHOUT)
            if different:
                key, before, after = different
                raise self.failed(f"{key} of group {group} was {before} when its gradients left, and is {after} at step(): set it before "
                                  'backward() or after step(), or use mode="local"')

    def _require_same_parameters(self) -> None:
        super()._require_same_parameters()
        if self._has_its_members():
            return
        there = 0
        for number, group in enumerate(self.optimizer.param_groups):
            for p in group["params"]:
                i = self.index.get(id(p))
                if i is None:
                    continue
                there += 1
                if self._group_of[i] != number:
                    raise self.failed(f'"{self.names[i]}" is in group {number} of the optimizer, and was in group {self._group_of[i]} at '
                                      'join(): mode="local"')
        if there != len(self.parameters):
            raise self.failed(f"the optimizer has {there} parameters, and had {len(self.parameters)} at join(): freeze by lr 0, or use "
                              'mode="local"')

    def _end_clock(self) -> None:
        self._told = [None] * len(self._told)
        super()._end_clock()

    @torch.no_grad()
    def _make_step(self, groups: Dict[int, dict], came: List[Tuple[int, bool]]) -> None:
        added: Dict[int, torch.Tensor] = {}
        for i, there in came:
            p = self.parameters[i]
            self.values.take(i, self.clock, there)
            if p.grad is not None:
                added[i] = p.grad
            g = self.gradients.own(i)
            self._beside.pop(i, None)
            if there and g is None:
                g = torch.zeros_like(p)
            if there and not self.gradients.is_cleared(i):
                torch.as_strided(g, (g.numel(),), (1,)).view(torch.int32).fill_(_NOBODY_HAS_IT)
                self._marked[i] = g
            p.grad = g
        self.gradients.settle([i for i, _ in came], added)

    def _make_state(self) -> None:
        if self.clock == 0:
            raise self.failed('torch.distributed.checkpoint makes the state of this optimizer by a step before the first one, and it lies on the shards: '
                              'optimizer.state_dict(), or mode="ddp"')
        self.synchronize()  # there is one, which state_dict() gathers

    # -- state

    def bring_state(self) -> None:
        """The optimizer's state, as it is now, from all shards."""
        self.synchronize()
        if self.pushed:
            raise PoseidonError("the optimizer's state is asked for between backward() and step(), when steps have begun on the shards: "
                                'call it after step(), or use mode="local"')
        self.run.read_state()
        for i, p in enumerate(self.parameters):
            steps = self.run.steps(i)
            if steps == 0 or (self._rule == SGD and not self._had_momentum[self._group_of[i]]):
                continue
            state = {} if self._rule == SGD else {"step": torch.tensor(float(steps))}
            for slot, name in enumerate(self._arrays):
                state[name] = self._copy_of_state(i, slot)
            self.optimizer.state[p] = state

    def forget_state(self) -> None:
        for p in self.parameters:
            self.optimizer.state.pop(p, None)

    def _copy_of_state(self, i: int, slot: int) -> torch.Tensor:
        p = self.parameters[i]
        values = torch.frombuffer(self.run.memory(self.run.state(i, slot), p.numel()), dtype=torch.float32)
        return torch.as_strided(values, p.shape, p.stride()).clone(memory_format=torch.preserve_format).to(p.device)

    def _undo(self) -> None:
        super()._undo()
        if not self._has_state and self.clock > 0:
            _without_state(self.optimizer)

    def _before_leave(self) -> None:
        super()._before_leave()
        self.bring_state()
        self._has_state = True


def _without_state(optimizer: optim.Optimizer) -> None:
    """After a run that has failed: the optimizer would go on, and be saved, as one that has made no step."""
    def refuse(self, *_, **__):
        raise PoseidonError("the state of this optimizer was on the shards of a run that has failed: load_state_dict() it from a checkpoint, "
                            "or make a new one")

    def load_state_dict(self, state_dict):
        for name in methods:
            self.__dict__.pop(name, None)
        self.__dict__.update(before)
        self.load_state_dict(state_dict)

    methods = {"step": refuse, "state_dict": refuse, "__getstate__": refuse, "load_state_dict": load_state_dict}
    before = {name: optimizer.__dict__[name] for name in methods if name in optimizer.__dict__}
    refuse._with_counter = refuse._wrapped_by_lr_sched = True
    for name, method in methods.items():
        setattr(optimizer, name, types.MethodType(method, optimizer))
