"""Mode `local`: a clock is a step. The optimizer makes it for one parameter at a time, when that parameter is needed again."""

import inspect
import operator
import types
import weakref
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn, optim

from ..library import OWN, PoseidonError
from .bundles import Bundle
from .contexts import is_plain, plainly
from .optimizers import Group, caller_of_step, digest_of_state, refuse_hooks, require_one_at_a_time
from .put_off import PutOff
from .sent import come_back, readable, send
from .stale import BeforeForward, StaleParameter, forget, freshen, watch

# In evaluation these read parameters of the modules in them, and ask first what class each is of.
_READS_INNER = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)


def _version_of(p: nn.Parameter) -> torch.Tensor:
    """A tensor of no values that shares a parameter's version counter."""
    v = p.detach()
    v.data = torch.empty(0, device=p.device)
    return v


class LocalClient(PutOff):
    _rule = OWN
    _means_in_grad = False  # each parameter is stepped as soon as its mean has come

    _no_lossy = "mode \"local\" and optimizer= have wire=, the format itself: mode=\"ddp\" has lossy"
    _no_lowrank = "mode \"local\" and optimizer= send whole gradients, or factors: mode=\"ddp\" has low rank, or leave routes out"

    def __init__(self, model: nn.Module, optimizer: optim.Optimizer, options: Dict[str, str], **said):
        trained = [p for group in optimizer.param_groups for p in group["params"]]
        require_one_at_a_time(model, optimizer, trained)
        super().__init__(model, optimizer, options, trained, **said)
        self.versions: Dict[int, int] = {}  # of pushed gradients
        self._unsent: Dict[int, torch.Tensor] = {}  # gradients that will leave in this clock
        self._refuser = weakref.WeakMethod(self._touched)
        self.groups = [Group(optimizer, group["params"]) for group in optimizer.param_groups]
        self._group_of = self._apart()
        self._uses: List[BeforeForward] = []  # hooks that note them
        self._told_in = [-1] * len(self.groups)  # the clock in which a group has last said how it steps
        self._members = [list(group["params"]) for group in optimizer.param_groups]  # at join()
        self._outside = [p for p in trained if id(p) not in self.index]  # frozen at join()
        self._said_state: List[int] = []  # by group: a digest of the optimizer's state, for the workers to compare once
        self._say_until = 1  # the last clock in which each group says how it steps, whether it is news or not
        # A graph of an older clock notices by them that values have changed, as with an optimizer that has made its step.
        self._counters = [_version_of(p) for p in self.parameters]

    def _apart(self) -> List[int]:
        """Their groups: a group says how its members are stepped."""
        group_of = {id(p): number for number, group in enumerate(self.optimizer.param_groups) for p in group["params"]}
        return [group_of[id(p)] for p in self.parameters]

    def begin(self) -> "LocalClient":
        super().begin()
        for p in self.parameters:
            watch(p, self._bring, self._clear)
        for module in self.model.modules():
            own = tuple(p for p in module.parameters(recurse=False) if id(p) in self.index)
            if own:
                self._uses.append(BeforeForward(own, self._note_use))
                self._kept.append(module.register_forward_pre_hook(self._uses[-1]))
            if isinstance(module, _READS_INNER):
                of_all = tuple(p for p in module.parameters() if id(p) in self.index)
                self._kept.append(module.register_forward_pre_hook(BeforeForward(of_all, in_evaluation=True)))
            if self.buffers is not None and (module is self.model or module._buffers):
                self._kept.append(module.register_forward_pre_hook(BeforeForward((), self._take_buffers)))
        self._take_over_optimizer()
        return self

    def _declared(self) -> None:
        self.run.optimize(self._rule, [self._group_of[i] for i in self.declared.first] + [0] * (self.buffers is not None))
        self._said_state = self._digests()

    def _digests(self) -> List[int]:
        """By group: of the state that the optimizer has."""
        of_group: List[List[Optional[dict]]] = [[] for _ in self.groups]
        for i, p in enumerate(self.parameters):
            of_group[self._group_of[i]].append(self.optimizer.state.get(p))
        return [digest_of_state(states) for states in of_group]

    def _take_over_optimizer(self) -> None:
        """Methods of the optimizer itself: schedulers take step.__self__ for it."""
        optimizer, client = self.optimizer, self
        self._own_step = types.MethodType(type(optimizer).step, optimizer)
        self._before = {name: optimizer.__dict__.get(name)
                        for name in ("step", "zero_grad", "state_dict", "load_state_dict", "add_param_group", "__getstate__")}
        keeps_zeros = inspect.signature(optim.Optimizer.zero_grad).parameters["set_to_none"].default is False

        def step(self, closure=None):
            return client._step(closure)

        def zero_grad(self, set_to_none: bool = not keeps_zeros) -> None:
            client._zero_grad(set_to_none)

        def state_dict(self):
            client.synchronize()
            return type(self).state_dict(self)

        def load_state_dict(self, state_dict) -> None:
            client._load_state(state_dict)

        def __getstate__(self):  # of a copy
            client.synchronize()
            return type(self).__getstate__(self)

        def add_param_group(self, group) -> None:
            raise PoseidonError("add_param_group() after join(): the other workers do not know the new parameters. Add frozen ones "
                                "before join(), with lr 0 until they train")

        # A scheduler that was made before looks whether step() is the one that it wrapped.
        step._with_counter = step._wrapped_by_lr_sched = True
        for method in (step, zero_grad, state_dict, load_state_dict, add_param_group, __getstate__):
            setattr(optimizer, method.__name__, types.MethodType(method, optimizer))

    def _undo(self) -> None:
        super()._undo()
        self._take_unsent()
        for p in self.parameters:
            forget(p)
            if p.grad is not None:
                come_back(p.grad)
        for name, method in self._before.items():
            if method is None:
                self.optimizer.__dict__.pop(name, None)
            else:
                setattr(self.optimizer, name, method)

    # -- during forward and backward

    def _note_use(self, own: Tuple[nn.Parameter, ...]) -> None:
        self.used += [self.index[id(p)] for p in own if self.index[id(p)] not in self.used]

    def _reached(self) -> None:
        """The clock ends at step(), not with a backward pass."""

    def _reached_again(self, i: int) -> str:
        return (f'a backward pass has reached "{self.names[i]}" {self.fired[i]} times in this step, in its first step '
                f"{self.expected[i]}: its gradient has left already. Where the number of backward passes varies, wrap all but the "
                'last in poseidon.no_sync(), or use mode="ddp"')

    def _take_buffers(self, *_) -> None:
        if self.buffers is not None and self._taken < self.clock:
            plainly(super()._take_buffers)

    def _ready(self, i: int) -> None:
        super()._ready(i)
        g = self.parameters[i].grad
        if g is not None and i not in self.pushed and not self.paused:  # it leaves with a later pass, or in the first clock with step()
            self._unsent[i] = g  # or PyTorch would make another object of it
            send(g, self._refuser, i)

    def _push(self, i: int) -> None:
        unsent = self._unsent.pop(i, None)
        if unsent is not None:
            come_back(unsent)
        group = self._group_of[i]
        if self._told_in[group] != self.clock:
            self._told_in[group] = self.clock
            self._tell(group)
        super()._push(i)
        g = self.pushed[i]
        if g is not None:
            self.versions[i] = g._version
            send(g, self._refuser, i)

    def _push_bundle(self, number: int, bundle: Bundle) -> None:
        with readable(self.pushed[i] for i in bundle.members):
            super()._push_bundle(number, bundle)

    def _tell(self, group: int) -> None:
        """How a group steps with the gradients of this clock: the workers compare it."""
        it = self.groups[group]
        if it.has_news(self.optimizer.param_groups[group]) or self.clock <= self._say_until:
            self.run.step(group, it.compared(self._state_to_say(group)))

    def _state_to_say(self, group: int) -> int:
        return self._said_state[group] if self._said_state else 0

    def _end_clock(self) -> None:
        super()._end_clock()
        self._said_state = []
        torch._foreach_zero_(self._counters)

    # -- the step

    def _step(self, closure) -> None:
        self._require_alive()
        if closure is not None:
            raise self.failed('step(closure) evaluates the model several times a step, mode "local" once: mode="ddp"')
        caller = caller_of_step(self.optimizer)
        if caller == "scaler":
            raise self.failed("a GradScaler makes this step: it divides gradients that have left already, and may leave the step out. "
                              'GradScaler(enabled=False) with bfloat16, or mode="ddp"')
        if caller == "checkpoint" and not self.pushed:
            return self._make_state()
        self._require_same_model()
        self._require_same_parameters()
        self._take_back()
        parameters, versions = self.parameters, self.versions
        for i, g in self.pushed.items():
            if g is not None:
                come_back(g)
                if parameters[i].grad is not g or g._version != versions[i]:
                    self._require_unchanged(i, g)
            elif parameters[i].grad is not None and not self._is_beside(i):
                raise self.failed(f'the gradient of "{self.names[i]}" was set after backward(), when it had left already: mode="ddp" is '
                                  "for that")
        for i in self._not_pushed():
            freshen(parameters[i])  # one that nothing has read since the step before: that step is still to be made
            self._require_exact(i)
            self._push(i)
        self._push_buffers()
        self._wait_for_pushes()
        self._before_step()
        if self.clock == 0:
            self.used += sorted(set(range(len(self.parameters))) - set(self.used))
            self.place = sorted(range(len(self.used)), key=self.used.__getitem__)
            self._tell_order(self.used)
            self._look_along = self.run.along([self.declared.of[i] for i in self.used])
            for hook in self._uses:
                hook.used = None
        self._put_off([it.kept(group) for it, group in zip(self.groups, self.optimizer.param_groups)])  # a scheduler changes them
        versions.clear()
        # As a wrapped step() does for schedulers.
        if hasattr(self.optimizer, "_step_count"):
            self.optimizer._step_count += 1
        self.optimizer._opt_called = True
        self._end_clock()
        if not is_plain():
            self._step_at_once()

    def _place_of_mean(self, i: int) -> None:
        """Means come later than backward() ends: the library keeps them."""

    def _take_back(self) -> None:
        """What of the parameters themselves was lent when their gradients left."""

    def _before_step(self) -> None:
        """All gradients of the clock have left."""

    def _require_unchanged(self, i: int, g: torch.Tensor) -> None:
        p = self.parameters[i]
        changed = None
        if p.grad is None:
            changed = "was taken away"
        elif p.grad.data_ptr() != g.data_ptr():
            changed = "was replaced"
        elif g._version != self.versions[i]:
            changed = "was changed"
        if changed:
            raise self.failed(f'the gradient of "{self.names[i]}" {changed} after backward(), when it was on its way already '
                               '(clip_grad_norm_, scaler.unscale_, ...?): mode="ddp" is for that')

    def _touched(self, i: int) -> PoseidonError:
        return self.failed(f'the gradient of "{self.names[i]}" is read or was changed after backward(), before step(): it is on its way already, and is '
                           f'not the mean of all workers (clip_grad_norm_, scaler.unscale_, a log?): mode="ddp" is for that')

    def _require_exact(self, i: int) -> None:
        """The mean of a gradient that all workers have alike, of a step before, is that gradient; but for some numbers of workers it rounds."""
        if self.size > 4 or self.size == 3:
            mean = self.gradients.kept_mean(i)
            if mean is not None and torch.count_nonzero(mean) > 0:
                raise self.failed(f'no backward pass has reached "{self.names[i]}", and its gradient of a step before was not cleared: call zero_grad(), '
                                  f'or use mode="ddp"')

    def _is_beside(self, i: int) -> bool:
        """Whether .grad is as it was when the gradient left as factors."""
        before, g = self._beside.get(i), self.parameters[i].grad
        return before is not None and g is before[0] and g._version == before[1]

    def _push_factors(self, i: int) -> None:
        g = self.parameters[i].grad
        if g is not None:
            self._beside[i] = g, g._version
        super()._push_factors(i)

    def _require_same_parameters(self) -> None:
        try:
            refuse_hooks(self.optimizer)
        except PoseidonError as error:
            raise self.failed(str(error)) from None
        if len(self.optimizer.param_groups) != len(self.groups):
            raise self.failed(f"the optimizer has {len(self.optimizer.param_groups)} groups, and had {len(self.groups)} at join(): add them "
                              "before join()")
        strange = self._outside
        if not self._has_its_members():
            strange = [p for group in self.optimizer.param_groups for p in group["params"] if id(p) not in self.index]
        for p in strange:
            if p.requires_grad or p.grad is not None:
                raise self.failed(f"a parameter of shape {tuple(p.shape)} trains that was frozen at join(): the other workers do "
                                  "not know it. Join with requires_grad set, and freeze by lr 0")

    def _has_its_members(self) -> bool:
        """Whether the optimizer's groups have the parameters that they had at join()."""
        return all(len(group["params"]) == len(members) and all(map(operator.is_, group["params"], members))
                   for group, members in zip(self.optimizer.param_groups, self._members))

    def _make_state(self) -> None:
        """torch.distributed.checkpoint makes an optimizer's state by a step with zeros and the rate 0, where there is none."""
        self.synchronize()
        if not self.optimizer.state:
            self._own_step()
            self._say_state()

    def _load_state(self, state) -> None:
        self._require_alive()
        if self.pushed:
            raise PoseidonError("load_state_dict() between backward() and step(), when gradients have left already: call it before backward()")
        self.synchronize()
        type(self.optimizer).load_state_dict(self.optimizer, state)
        self._say_state()

    def _say_state(self) -> None:
        """With the next gradients: a checkpoint that one worker alone has loaded is noticed."""
        self._said_state = self._digests()
        self._say_until = self.clock + 1

    def _zero_grad(self, set_to_none: bool) -> None:
        if self.pushed:
            raise self._cleared_late()
        self.fired.clear()
        self._take_unsent()
        if type(self.optimizer).zero_grad is not optim.Optimizer.zero_grad:
            return type(self.optimizer).zero_grad(self.optimizer, set_to_none)  # its own, which looks at .grad
        fresh = []
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                if type(p) is StaleParameter:
                    self._clear(p, set_to_none)
                else:
                    fresh.append(p)
        self.gradients.clear_now(fresh, set_to_none)

    def _take_unsent(self) -> None:
        for g in self._unsent.values():
            come_back(g)
        self._unsent.clear()

    def synchronize(self) -> None:
        super().synchronize()
        for p in self.parameters:
            freshen(p)
