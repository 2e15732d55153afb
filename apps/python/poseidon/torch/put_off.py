"""Steps of an optimizer that are put off: each is made when its parameter is needed again, by whoever touches it first."""

import contextlib
import ctypes
import os
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn, optim

from ..library import HERE, PoseidonError
from .client import Client
from .contexts import plainly
from .gradients import Gradients
from .optimizers import looks_at_one
from .stale import forget_stale, freshen, make_stale

# While another one is waited for, a large one is asked for so often.
_ASKED_EVERY_S = 1e-3
# So many parameters at most get their step with one call of the optimizer, which costs as much as the steps of several small ones.
_TOGETHER = 512


class PutOff(Client):
    _outlives_losses = False  # steps that are put off, and those that the shards make, would have to be made again
    _large = 1 << 18  # values: to make the step takes longer than to ask now and then whether it can be made

    def __init__(self, model: nn.Module, optimizer: optim.Optimizer, options: Dict[str, str], trained: List[nn.Parameter], **said):
        self.optimizer = optimizer
        super().__init__(model, options, trained, **said)
        self._process = os.getpid()
        self.gradients = Gradients(self.parameters)
        self.used: List[int] = []  # all parameters in the order of their first use in the first clock
        self.place: List[int] = []  # in `used`, by parameter
        self.waiting: Dict[int, dict] = {}  # of the same clock: the group with which the optimizer will step
        self.large: Dict[int, nn.Parameter] = {}  # among those that wait
        self._sizes = [p.numel() for p in self.parameters]
        self._large_ones = {i: p for i, p in enumerate(self.parameters) if self._sizes[i] > self._large}
        # Of an optimizer of another class nobody knows what it looks at: its step is made for all parameters at once.
        self._at_once = not looks_at_one(optimizer)
        self._beside: Dict[int, Tuple[torch.Tensor, int]] = {}  # .grad, and its version, of parameters whose gradients have left as factors
        self._groups: List[dict] = []  # as they were at step()
        self._grad_mode = True  # then
        self._flags: List[List[Optional[ctypes.c_float]]] = []  # as the rings, of those that travel with others: above 0 where somebody had a gradient

    def begin(self) -> "PutOff":
        super().begin()
        self._flags = [[self._flag(i, version) for i in range(len(self.parameters))] for version in (0, 1)]
        return self

    def _flag(self, i: int, version: int) -> Optional[ctypes.c_float]:
        place = self.declared.place_of_flag(i)
        return None if place is None else ctypes.c_float.from_address(self.run.values(self.declared.of[i], version) + place)

    def _undo(self) -> None:
        super()._undo()
        self._flags.clear()  # their memory ends with the run

    def _somebody_had(self, i: int) -> bool:
        """Of a parameter whose mean is here, and where that of those it travels with says that somebody had a gradient of one of them."""
        flag = self._flags[self.clock % 2][i]
        return flag is None or flag.value > 0

    def _wait(self, i: int) -> bool:
        """Until the mean of parameter i is here. False: nobody had a gradient."""
        return self.run.wait(self.declared.of[i], self.clock) and self._somebody_had(i)

    def _put_off(self, groups: List[dict]) -> None:
        """`groups`: as the optimizer has them now."""
        self._groups, self._grad_mode = groups, torch.is_grad_enabled()
        for group in groups:
            self.waiting.update((self.index[id(p)], group) for p in group["params"] if id(p) in self.index)
        self.large.update(self._large_ones)
        self.gradients.keep()
        for p in self.parameters:
            make_stale(p)

    def _clear(self, p: nn.Parameter, set_to_none: bool) -> None:
        """zero_grad() of one whose step is put off."""
        if self.index[id(p)] not in self.waiting:
            raise self._cleared_late()
        self.gradients.clear(self.index[id(p)], set_to_none)

    def _bring(self, p: nn.Parameter) -> None:
        """Makes the step of one parameter, which somebody is about to read, and of those that are here as well."""
        i = self.index[id(p)]
        if os.getpid() != self._process:
            raise PoseidonError(f'process {os.getpid()} is a fork of a worker and reads "{self.names[i]}", whose step was not made yet when it was '
                                'forked: call poseidon.synchronize() before the fork, or use mode="ddp"')
        if i not in self.waiting:
            forget_stale(p)
            return self._touched_lent(i)
        # Until _make() nothing touches it, and it stays stale: after Ctrl-C the step is still to be made.
        self._require_alive()
        self._take_buffers()  # who copies a model reads these next
        if not self._at_once:
            self._work_until_here(i)
            if i not in self.waiting:
                return  # its mean came while a large one's step was made, and its own was made with it
        there = self._wait(i)
        others = self._all_others(i) if self._at_once else self._here_too(i)
        plainly(lambda: self._make([(i, there)] + others))

    def _touched_lent(self, i: int) -> None:
        """Somebody touches a parameter between backward() and step()."""

    def _cleared_late(self) -> PoseidonError:
        return self.failed("zero_grad() after backward(): gradients have left already. Call it after step(), or before backward(). Where "
                           'a step is left out (by a GradScaler, for a loss that is not finite): mode="ddp"')

    def _step_at_once(self) -> None:
        """What is in force around step() is in force in it, as where it is not put off."""
        self._make([(i, self._wait(i)) for i in self.waiting])

    def _make(self, came: List[Tuple[int, bool]]) -> None:
        """`came`: parameters whose versions are here, and whether somebody had a gradient of them."""
        groups = {}
        for i, _ in came:
            groups[i] = self.waiting.pop(i)
            self.large.pop(i, None)
            self.lent.pop(i, None)
            forget_stale(self.parameters[i])
        try:
            self._make_step(groups, came)
        except BaseException as error:
            # Some of these may have made theirs, and nobody can tell which.
            self.failed(f"the optimizer's step, which is made when its parameters are read again, has ended by {type(error).__name__}: {error}. What a "
                        'step has lost cannot be made good: let the error end this worker, or use mode="ddp"')
            raise

    def _all_others(self, i: int) -> List[Tuple[int, bool]]:
        return [(j, self._wait(j)) for j in self.waiting if j != i]

    def _here_too(self, i: int) -> List[Tuple[int, bool]]:
        """Parameters that are used soon after parameter i and whose gradients are here. Whoever waits for a later one loses nothing: all of these
        steps come before it anyway."""
        first = self.place[i] + 1
        answers = self._look_along(first, _TOGETHER - 1, self.clock)
        return [(j, answer == HERE and self._somebody_had(j)) for j, answer in zip(self.used[first:first + _TOGETHER], answers) if j in self.waiting]

    def _make_step(self, groups: Dict[int, dict], came: List[Tuple[int, bool]]) -> None:
        """`groups`: by parameter."""
        added: Dict[int, torch.Tensor] = {}
        steps: Dict[int, Tuple[dict, List[nn.Parameter]]] = {}
        with torch.no_grad():
            for i, there in came:
                p = self.parameters[i]
                if p.grad is not None:
                    added[i] = p.grad
                p.grad = self._mean(i, there)
                if p.grad is not None:
                    steps.setdefault(id(groups[i]), (groups[i], []))[1].append(p)
        if steps:
            with torch.set_grad_enabled(self._grad_mode), self._with_groups(list(steps.values())):
                self._own_step()
        with torch.no_grad():
            self.gradients.settle([i for i, _ in came], added)

    def _mean(self, i: int, there: bool) -> Optional[torch.Tensor]:
        """In this worker's own gradient, if it has one: an optimizer may write to it."""
        g, beside = self.gradients.own(i), self._beside.pop(i, None)
        if not there:
            return g
        mean, p = self.ring(i, self.clock), self.parameters[i]
        if g is None:
            return torch.empty_like(p).copy_(mean, non_blocking=True)
        if beside is not None:
            return g.add_(mean)  # what was there before has not gone with the factors
        return g.copy_(mean, non_blocking=True)

    @contextlib.contextmanager
    def _with_groups(self, steps: List[Tuple[dict, List[nn.Parameter]]]):
        """The optimizer's groups as they were at step(), with these parameters."""
        if not self._at_once:
            groups, self.optimizer.param_groups = self.optimizer.param_groups, [{**group, "params": of} for group, of in steps]
            try:
                yield
            finally:
                self.optimizer.param_groups = groups
            return
        since = []  # what the script has written to the groups since step()
        for now, then in zip(self.optimizer.param_groups, self._groups):
            since.append({key: value for key, value in now.items() if value is not then.get(key)})
            now.update(then)
        yield
        for now, then, written in zip(self.optimizer.param_groups, self._groups, since):  # what the step has written stays
            now.update((key, value) for key, value in written.items() if now.get(key) is then.get(key))

    def _work_until_here(self, i: int) -> None:
        """Makes the steps of large parameters whose gradients come before the one of parameter i, instead of waiting."""
        self.large.pop(i, None)
        if not self.large:
            return
        of = self.declared.of
        here = self.run.look(of[i], self.clock) is not None
        while not here and self.large:
            came = next((p for j, p in self.large.items() if self.run.look(of[j], self.clock) is not None), None)
            if came is not None:
                freshen(came)
            here = self.run.wait_for(of[i], self.clock, _ASKED_EVERY_S if came is None else 0.0)
