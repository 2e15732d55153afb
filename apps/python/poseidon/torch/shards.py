"""Mode `shards`: the workers share the optimizer's steps and its state, each makes those of a part of every parameter's values."""

import inspect
import types
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn, optim

from ..library import ADAM, ADAMW, SGD, Hyperparameters, PoseidonError
from .local import LocalClient

# By rule: its number in the library, its arrays of state, and what its groups say that changes a step.
_RULES = {
    optim.SGD: (SGD, ("momentum_buffer",), ("lr", "momentum", "dampening", "weight_decay", "nesterov")),
    optim.Adam: (ADAM, ("exp_avg", "exp_avg_sq"), ("lr", "betas", "eps", "weight_decay")),
    optim.AdamW: (ADAMW, ("exp_avg", "exp_avg_sq"), ("lr", "betas", "eps", "weight_decay")),
}
_WITHOUT = ("amsgrad", "maximize", "differentiable", "fused", "capturable", "decoupled_weight_decay")


def _lerps(optimizer: optim.Optimizer) -> bool:
    """Whether this PyTorch forms Adam's first moment by lerp_, which rounds otherwise than mul_ and add_."""
    return not isinstance(optimizer, optim.SGD) and "lerp_" in inspect.getsource(inspect.getmodule(optim.Adam))


def why_not(optimizer: optim.Optimizer) -> Optional[str]:
    """Why the shards cannot make this optimizer's steps; None: they can."""
    name = type(optimizer).__name__
    if type(optimizer) not in _RULES:
        return f"the shards know SGD, Adam and AdamW, not {name}"
    for group in optimizer.param_groups:
        for key in _WITHOUT:
            if group.get(key):
                return f"the shards know no {name} with {key}={group[key]}"
        if isinstance(group["lr"], torch.Tensor):
            return f"the shards know no {name} whose lr is a tensor"
        if _lerps(optimizer) and group["betas"][0] <= 0.5:
            return f"the shards know no {name} with beta1 = {group['betas'][0]}, expected more than 0.5"
    return None


class ShardsClient(LocalClient):
    _large = 1 << 62  # values: taking them over costs the same for every parameter

    def __init__(self, model: nn.Module, optimizer: optim.Optimizer, options: Dict[str, str]):
        wrong = why_not(optimizer)
        if wrong:
            raise PoseidonError(f'mode "shards": {wrong}. mode="local" trains the same model with your optimizer')
        super().__init__(model, optimizer, options)
        self._rule, self._arrays, self._keys = _RULES[type(optimizer)]
        self._lerp = _lerps(optimizer)
        self._group_of = [0] * len(self.parameters)
        for number, group in enumerate(optimizer.param_groups):
            for p in group["params"]:
                if id(p) in self.index:
                    self._group_of[self.index[id(p)]] = number
        self._told: List[Optional[tuple]] = [None] * len(optimizer.param_groups)  # by group, in this clock
        self._had_momentum = [group.get("momentum", 0) != 0 for group in optimizer.param_groups]
        # A tensor of no values that shares a parameter's version counter: a graph of an older clock notices that values have changed.
        self._versions = [self._version_of(p) for p in self.parameters]

    @staticmethod
    def _version_of(p: nn.Parameter) -> torch.Tensor:
        v = p.detach()
        v.data = torch.empty(0, device=p.device)
        return v

    # -- the start

    def _declared(self) -> None:
        super()._declared()
        self.run.optimize(self._rule, self._group_of)
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

    def begin(self) -> "ShardsClient":
        self._first_state: List[Optional[torch.Tensor]] = []
        super().begin()
        self._first_state.clear()
        for i, p in enumerate(self.parameters):
            self._take_values(i, 0)
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
                for p in client.parameters:
                    self.state.pop(p, None)  # it would be old after the next step

        def load_state_dict(self, state) -> None:
            raise PoseidonError('load_state_dict() after join(): the state lies on the shards already. Load it before join(), on all '
                                'workers')

        for method in (state_dict, load_state_dict):
            self._before.setdefault(method.__name__, self.optimizer.__dict__.get(method.__name__))
            setattr(self.optimizer, method.__name__, types.MethodType(method, self.optimizer))

    # -- a clock

    def _hyperparameters(self, group: int) -> tuple:
        g = self.optimizer.param_groups[group]
        return tuple(g[key] for key in self._keys)

    def _push(self, i: int) -> None:
        group = self._group_of[i]
        if self._told[group] is None:
            self._tell(group)
        super()._push(i)

    def _tell(self, group: int) -> None:
        """How the group steps with the gradients of this clock."""
        self._told[group] = self._hyperparameters(group)
        said = dict(zip(self._keys, self._told[group]))
        if self._rule == SGD and (said["momentum"] != 0) != self._had_momentum[group]:
            raise self.failed(f'the momentum of group {group} is {said["momentum"]} and was {"not " if said["momentum"] == 0 else ""}0 at '
                              'join(): mode="local"')
        beta1, beta2 = said.get("betas", (said.get("momentum", 0), 0))
        self.run.step(group, Hyperparameters(said["lr"], said["weight_decay"], beta1, said.get("dampening", 0), beta2, said.get("eps", 0),
                                             bool(said.get("nesterov", False)), self._lerp))

    def _before_step(self) -> None:
        for group, told in enumerate(self._told):
            if told is None:
                continue
            now = self._hyperparameters(group)
            if now != told:
                key, before, after = next((k, a, b) for k, a, b in zip(self._keys, told, now) if a != b)
                raise self.failed(f"{key} of group {group} was {before} when its gradients left, and is {after} at step(): set it before "
                                  'backward() or after step(), or use mode="local"')

    def _end_clock(self) -> None:
        self._told = [None] * len(self._told)
        torch._foreach_zero_(self._versions)
        super()._end_clock()

    def _take_values(self, i: int, version: int) -> None:
        p = self.parameters[i]
        values = self.ring(i, version)
        if p.is_cuda:
            p.data.copy_(values)  # its memory stays where it is
        else:
            p.data = values

    def _make_step(self, group: dict, came: List[Tuple[int, bool]]) -> None:
        for i, _ in came:  # also where nobody had a gradient: the memory of two versions ago is written next
            self._take_values(i, self.clock)

    # -- state

    def bring_state(self) -> None:
        """The optimizer's state, as it is now, from all shards."""
        self.synchronize()
        if self.pushed:
            raise PoseidonError("the optimizer's state is asked for between backward() and step(): ask after step()")
        self.run.read_state()
        for i, p in enumerate(self.parameters):
            steps = self.run.steps(i)
            if steps == 0 or (self._rule == SGD and not self._had_momentum[self._group_of[i]]):
                continue
            state = {} if self._rule == SGD else {"step": torch.tensor(float(steps))}
            for slot, name in enumerate(self._arrays):
                state[name] = self._copy_of_state(i, slot)
            self.optimizer.state[p] = state

    def _copy_of_state(self, i: int, slot: int) -> torch.Tensor:
        p = self.parameters[i]
        values = torch.frombuffer(self.run.memory(self.run.state(i, slot), p.numel()), dtype=torch.float32)
        return torch.as_strided(values, p.shape, p.stride()).clone(memory_format=torch.preserve_format).to(p.device)

    def _undo(self) -> None:
        super()._undo()
        for p in self.parameters:
            p.data = p.data.clone(memory_format=torch.preserve_format)  # away from the library's memory

    def _before_leave(self) -> None:
        super()._before_leave()
        self.bring_state()
