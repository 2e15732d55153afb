"""Mode `local`: a clock is a step. The optimizer makes it for one parameter at a time, when that parameter is needed again."""

import operator
import types
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn, optim

from ..library import HERE, OWN, PoseidonError
from .client import Client
from .optimizers import Group, digest_of_state, refuse_hooks, require_one_at_a_time
from .stale import BeforeForward, forget, forget_stale, freshen, make_stale, watch

# In the first clocks all bits of a gradient are compared with those that were pushed, later a few, now and then: a script that
# changes gradients does so from the beginning. Identity and version are compared in every clock.
_CLOCKS_COMPARED, _COMPARED_EVERY, _VALUES_COMPARED = 3, 10, 16
# While another one is waited for, a large one is asked for so often.
_ASKED_EVERY_S = 1e-3
# So many parameters at most get their step with one call of the optimizer, which costs as much as the steps of several small ones;
# large ones, whose step the first of them would wait for, are not among them.
_TOGETHER = 64


class LocalClient(Client):
    _rule = OWN
    _means_in_grad = False  # each parameter is stepped as soon as its mean has come
    _large = 1 << 18  # values: to make the step takes longer than to ask now and then whether it can be made

    def __init__(self, model: nn.Module, optimizer: optim.Optimizer, options: Dict[str, str], **said):
        trained = [p for group in optimizer.param_groups for p in group["params"]]
        require_one_at_a_time(model, optimizer, trained)
        super().__init__(model, options, trained, **said)
        self.optimizer = optimizer
        self.used: List[int] = []  # all parameters in the order of their first use in the first clock
        self.place: List[int] = []  # in `used`, by parameter
        self.waiting: Dict[int, dict] = {}  # of the same clock: the group with which the optimizer will step
        self.large: Dict[int, nn.Parameter] = {}  # among those that wait
        self.versions: Dict[int, int] = {}  # of pushed gradients, and, in some clocks, their bits
        self.bits: Dict[int, torch.Tensor] = {}
        self.groups = [Group(optimizer) for _ in optimizer.param_groups]
        self._group_of = [0] * len(self.parameters)
        for number, group in enumerate(optimizer.param_groups):
            for p in group["params"]:
                if id(p) in self.index:
                    self._group_of[self.index[id(p)]] = number
        self._uses: List[BeforeForward] = []  # hooks that note them
        self._told_in = [-1] * len(self.groups)  # the clock in which a group has last said how it steps
        self._members = [list(group["params"]) for group in optimizer.param_groups]  # at join()
        self._outside = [p for p in trained if id(p) not in self.index]  # frozen at join()
        self._sizes = [p.numel() for p in self.parameters]
        self._large_ones = {i: p for i, p in enumerate(self.parameters) if self._sizes[i] > self._large}
        self._compares = True  # the bits of gradients, in this clock

    def begin(self) -> "LocalClient":
        super().begin()
        for p in self.parameters:
            watch(p, self._bring)
        for module in self.model.modules():
            own = tuple(p for p in module.parameters(recurse=False) if id(p) in self.index)
            if own:
                self._uses.append(BeforeForward(own, self._note_use))
                self._kept.append(module.register_forward_pre_hook(self._uses[-1]))
            if self.buffers is not None and (module is self.model or module._buffers):
                self._kept.append(module.register_forward_pre_hook(BeforeForward((), self._take_buffers)))
        self._take_over_optimizer()
        return self

    def _declared(self) -> None:
        self.run.optimize(self._rule, self._group_of + [0] * (self.buffers is not None))
        self._first_states = self._digests()

    def _digests(self) -> List[int]:
        """By group: of the state that the optimizer begins with."""
        of_group: List[List[Optional[dict]]] = [[] for _ in self.groups]
        for i, p in enumerate(self.parameters):
            of_group[self._group_of[i]].append(self.optimizer.state.get(p))
        return [digest_of_state(states) for states in of_group]

    def _take_over_optimizer(self) -> None:
        """Methods of the optimizer itself: schedulers take step.__self__ for it."""
        optimizer, client = self.optimizer, self
        self._own_step = types.MethodType(type(optimizer).step, optimizer)
        self._before = {name: optimizer.__dict__.get(name)
                        for name in ("step", "zero_grad", "state_dict", "add_param_group", "__getstate__")}

        def step(self, closure=None):
            return client._step(closure)

        def zero_grad(self, set_to_none: bool = True) -> None:
            client._zero_grad()

        def state_dict(self):
            client.synchronize()
            return type(self).state_dict(self)

        def __getstate__(self):  # of a copy
            client.synchronize()
            return type(self).__getstate__(self)

        def add_param_group(self, group) -> None:
            raise PoseidonError("add_param_group() after join(): the other workers do not know the new parameters. Add frozen ones "
                                "before join(), with lr 0 until they train")

        # A scheduler that was made before looks whether step() is the one that it wrapped.
        step._with_counter = step._wrapped_by_lr_sched = True
        for method in (step, zero_grad, state_dict, add_param_group, __getstate__):
            setattr(optimizer, method.__name__, types.MethodType(method, optimizer))

    def _undo(self) -> None:
        super()._undo()
        for p in self.parameters:
            forget(p)
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

    def _push(self, i: int) -> None:
        group = self._group_of[i]
        if self._told_in[group] != self.clock:
            self._told_in[group] = self.clock
            self._tell(group)
        super()._push(i)
        g = self.pushed[i]
        if g is not None:
            self.versions[i] = g._version
            if self._compares:
                self.bits[i] = self._bits(g).clone()

    def _tell(self, group: int) -> None:
        """How a group steps with the gradients of this clock: the workers compare it."""
        it = self.groups[group]
        if it.has_news(self.optimizer.param_groups[group]) or self.clock <= 1:
            self.run.step(group, it.compared(self._first_states[group] if self.clock == 0 else 0))

    def _end_clock(self) -> None:
        super()._end_clock()
        self._compares = self.clock < _CLOCKS_COMPARED or self.clock % _COMPARED_EVERY == 0

    def _bits(self, g: torch.Tensor) -> torch.Tensor:
        """A version number misses `.grad.data.clamp_()` and NumPy, so bits are compared: as integers, where a NaN equals itself."""
        flat = torch.as_strided(g, (g.numel(),), (1,)).view(torch.int32)
        return flat if self.clock < _CLOCKS_COMPARED else flat[::max(1, g.numel() // _VALUES_COMPARED)]

    # -- the step

    def _step(self, closure) -> None:
        self._require_alive()
        if closure is not None:
            raise self.failed('step(closure) evaluates the model several times a step, mode "local" once: mode="ddp"')
        self._require_same_parameters()
        parameters, versions, bits = self.parameters, self.versions, self.bits
        for i, g in self.pushed.items():
            if g is not None:
                if parameters[i].grad is not g or g._version != versions[i] or i in bits:
                    self._require_unchanged(i, g)
            elif parameters[i].grad is not None:
                raise self.failed(f'the gradient of "{self.names[i]}" was set after backward(), when it had left already: mode="ddp" is '
                                  "for that")
        for i in self._not_pushed():
            freshen(parameters[i])  # one that nothing has read since the step before: that step is still to be made
            self._push(i)
        self._push_buffers()
        self._wait_for_pushes()
        self._before_step()
        if self.clock == 0:
            self.used += sorted(set(range(len(self.parameters))) - set(self.used))
            self.place = sorted(range(len(self.used)), key=self.used.__getitem__)
            self._tell_order(self.used)
            self._look_along = self.run.along(self.used)
            for hook in self._uses:
                hook.used = None
        for it, group in zip(self.groups, self.optimizer.param_groups):
            before = it.kept(group)  # a scheduler changes it
            self.waiting.update((self.index[id(p)], before) for p in group["params"] if id(p) in self.index)
        self.large.update(self._large_ones)
        for p in parameters:
            p.grad = None  # ours until all of it has been received; model.zero_grad() finds nothing to write to
            make_stale(p)
        versions.clear()
        bits.clear()
        # As a wrapped step() does for schedulers.
        if hasattr(self.optimizer, "_step_count"):
            self.optimizer._step_count += 1
        self.optimizer._opt_called = True
        self._end_clock()

    def _place_of_mean(self, i: int) -> None:
        """Means come later than backward() ends: the library keeps them."""

    def _before_step(self) -> None:
        """All gradients of the clock have left."""

    def _require_unchanged(self, i: int, g: torch.Tensor) -> None:
        p = self.parameters[i]
        bits = self.bits.get(i)
        changed = None
        if p.grad is None:
            changed = "was taken away"
        elif p.grad.data_ptr() != g.data_ptr():
            changed = "was replaced"
        elif g._version != self.versions[i] or not (bits is None or torch.equal(self._bits(g), bits)):
            changed = "was changed"
        if changed:
            raise self.failed(f'the gradient of "{self.names[i]}" {changed} after backward(), when it was on its way already '
                               '(clip_grad_norm_, scaler.unscale_, ...?): mode="ddp" is for that')

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
            if p.requires_grad:
                raise self.failed(f"a parameter of shape {tuple(p.shape)} trains that was frozen at join(): the other workers do "
                                  "not know it. Join with requires_grad set, and freeze by lr 0")

    def _has_its_members(self) -> bool:
        """Whether the optimizer's groups have the parameters that they had at join()."""
        return all(len(group["params"]) == len(members) and all(map(operator.is_, group["params"], members))
                   for group, members in zip(self.optimizer.param_groups, self._members))

    def _bring(self, p: nn.Parameter) -> None:
        """Makes the step of one parameter, which somebody is about to read, and of those used next that are here as well."""
        i = self.index[id(p)]
        group = self.waiting.pop(i, None)
        if group is None:
            return
        self.large.pop(i, None)
        self._require_alive()
        try:
            self._take_buffers()  # who copies a model reads these next
            self._work_until_here(i)
            there = self.run.wait(i, self.clock)
        except BaseException:
            self.waiting[i] = group  # Ctrl-C: the step is still to be made
            make_stale(p)
            raise
        self._make_step(group, [(i, there)] + self._here_too(i, group))

    def _here_too(self, i: int, group: dict) -> List[Tuple[int, bool]]:
        """Parameters of the same group that are used soon after parameter i and whose gradients are here: they are fresh from now on,
        as soon as their step is made."""
        found, values, waiting = [], 0, self.waiting
        self.lent.pop(i, None)
        first = self.place[i] + 1
        for j, answer in zip(self.used[first:first + _TOGETHER], self._look_along(first, _TOGETHER - 1, self.clock)):
            if waiting.get(j) is not group:
                continue
            values += self._sizes[j]
            if values > self._large:
                break
            del waiting[j]
            if self.large:
                self.large.pop(j, None)
            self.lent.pop(j, None)
            forget_stale(self.parameters[j])
            found.append((j, answer == HERE))
        return found

    def _make_step(self, group: dict, came: List[Tuple[int, bool]]) -> None:
        """`came`: parameters, and whether somebody had a gradient of them."""
        of = [i for i, there in came if there]
        if not of:
            return
        parameters = [self.parameters[j] for j in of]
        for j, p in zip(of, parameters):
            p.grad = self.here(j, self.clock)
        groups, self.optimizer.param_groups = self.optimizer.param_groups, [{**group, "params": parameters}]
        try:
            self._own_step()
        finally:
            self.optimizer.param_groups = groups
            for p in parameters:
                p.grad = None  # as before: who had set one would have touched the parameter, and brought it here

    def _work_until_here(self, i: int) -> None:
        """Makes the steps of large parameters whose gradients come before the one of parameter i, instead of waiting."""
        if not self.large:
            return
        here = self.run.look(i, self.clock) is not None
        while not here and self.large:
            came = next((p for j, p in self.large.items() if self.run.look(j, self.clock) is not None), None)
            if came is not None:
                freshen(came)
            here = self.run.wait_for(i, self.clock, _ASKED_EVERY_S if came is None else 0.0)

    def _zero_grad(self) -> None:
        """After step() there is nothing left to clear. Within a step it takes back what has not left."""
        if self.pushed:
            raise self.failed("zero_grad() after backward(): gradients have left already. Call it after step(), or before "
                               "backward()")
        self.fired.clear()
        for p in self.parameters:
            if type(p) is nn.Parameter:
                p.grad = None

    def synchronize(self) -> None:
        super().synchronize()
        for p in self.parameters:
            freshen(p)
