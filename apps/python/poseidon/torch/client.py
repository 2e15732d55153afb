"""The clocks that every mode has: hooks push gradients during backward; and mode `ddp` as a whole."""

import os
import sys
import time
from typing import Callable, Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple

import torch
from torch import nn, optim

from ..library import LeftOut, PoseidonError, View
from .bundles import Bundle
from .carried import Carried
from .carried_samplers import Samplers
from .exchangeable import is_empty
from .joined import Joined
from .ladder import LEAST
from .newcomers import Newcomers, name_of_run
from .weights import Weights

_UNKNOWN = 1 << 62  # passes
# The model's parameters are looked through in the first clocks, and from then on after so many.
_CLOCKS_LOOKED, _LOOKED_EVERY = 3, 20


class Client(Joined):
    """Mode `ddp`: a clock is a backward pass, at whose end `.grad` holds the means of all workers."""

    _outlives_losses = True

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.weights = Weights()
        self.samplers = Samplers()
        self._name = torch.tensor(list(os.urandom(16)), dtype=torch.uint8)  # worker 0's, when the run has begun

    @classmethod
    def of(cls, model: nn.Module, optimizer: Optional[optim.Optimizer], state: Optional[Sequence[object]], options: Dict[str, str], *,
           broadcast_buffers: bool = True, ignored: FrozenSet[str] = frozenset(), **said) -> "Client":
        """`state`: what more a worker needs that joins later; None: nobody does."""
        newcomers = None
        if state is not None:
            newcomers = Newcomers(Carried(model, optimizer, state, broadcast_buffers, ignored))
        return cls(model, options, broadcast_buffers=broadcast_buffers, ignored=ignored, newcomers=newcomers, **said)

    @classmethod
    def begun(cls, *arguments, **named) -> "Client":
        """Of of()'s arguments: has joined the run. Where those that it was about to join lose a worker at that moment, and go on, it joins them then."""
        while True:
            try:
                return cls.of(*arguments, **named).begin()
            except LeftOut as error:
                print(f"poseidon: {error}", file=sys.stderr, flush=True)

    def begin(self) -> "Client":
        super().begin()
        if self.votes is not None:
            self._tell(f'lossy="{self.votes.ladder.harshest}": after some twenty steps gradients may be rounded, where that makes a step faster; a line says so then')
        return self

    def _shared(self) -> List[Tuple[str, torch.Tensor]]:
        compared = [] if self.newcomers is None else [self.newcomers.entry()]
        return [("worker 0 names the run", self._name), *compared]

    def _came(self, states: List[dict]) -> None:
        self._name = torch.tensor(list(name_of_run(states)), dtype=torch.uint8)
        self.lowrank = int(states[0].get("lowrank", 0))
        if self.votes is not None:
            self.run.wire(self.votes.ladder.came(states[0]["lossy"]))
        self.samplers.came(states[1:], self.run.first_clock)

    # -- what a Sampler asks

    @property
    def id(self) -> str:
        """The same on all workers of this run, and of no other one."""
        return bytes(self._name.tolist()).hex()

    @property
    def views(self) -> List[View]:
        """All that have begun here; a later one may say otherwise of a clock than an earlier one."""
        if not self._outlives_losses:
            raise AttributeError("mode ddp alone has members that change, and steps that some workers have no samples for")
        return self.members.all_views

    def weigh(self, sampler) -> None:
        self.weights.ask(sampler)

    def carry(self, sampler) -> Optional[dict]:
        """Notes a Sampler. What it begins with where this worker has come later; None: anew."""
        return self.samplers.carry(sampler)

    # -- a clock

    def _ready(self, i: int) -> None:
        """A backward pass has written the gradient of parameter i."""
        factors = self.factors
        by_factors = factors is not None and factors.on_factors(i)
        if self.paused or (self.parameters[i].grad is None and not by_factors):  # None: an undefined gradient came, and there is nothing to add
            return
        if self.failure is not None:
            self._require_alive()
        if factors is not None and not factors.offered:
            factors.reached(i)
        self.fired[i] = fired = self.fired.get(i, 0) + 1
        self._reached()
        if fired < self.expected.get(i, _UNKNOWN):
            return
        if i in self.pushed:
            raise self.failed(self._reached_again(i))
        self._push(i)

    def _reached(self) -> None:
        if self._passes.reached():
            self._clockwork.gradient(time.perf_counter())

    def _reached_again(self, i: int) -> str:
        return (f'"{self.names[i]}" was reached again by a backward pass after its gradient had left: {self.fired[i]} times, in its '
                f"first step {self.expected[i]}. Passes that differ from step to step need no_sync() around all but the last one")

    def _pass_broken(self) -> None:
        """An error has ended a backward pass, which the script may catch."""
        if self.factors is not None:
            self.factors.forget()
        if not self._alone and self.pushed:
            self.failed(f"an error ended a backward pass when {len(self.pushed)} of {len(self.parameters)} gradients had left: they cannot be taken "
                        "back, and the other workers have got them. Let the error end this worker")
        self.pushed, self.fired = {}, {}

    def _not_pushed(self) -> List[int]:
        """The parameters whose gradients have not left in this clock."""
        return [i for i in range(len(self.parameters)) if i not in self.pushed]

    def begin_clock(self) -> None:
        """Waits while routes change, or others join; which way a gradient goes, and who trains, then holds for the whole clock."""
        if self._begun == self.clock or self._alone:
            return
        by_factors = self.factors is not None and self.factors.offered
        if not by_factors and self.newcomers is None:
            return
        self.samplers.require_all_made(self.clock)
        if self.run.begin_clock(self.clock, self._give_state):
            if self.newcomers is not None:
                self.newcomers.given()
            self.members.follow(self.clock)
        self._begun = self.clock
        if by_factors:
            self.factors.begin_clock()

    def _give_state(self) -> Tuple[int, int, int]:
        """What this step computes with: nothing of it has changed since the last one ended, but the buffers, in a forward pass."""
        self._take_buffers()
        lossy = {} if self.votes is None else {"lossy": self.votes.ladder.state()}
        return self.newcomers.give([{"run": self.id, "lowrank": self.lowrank, **lossy}, *self.samplers.states()], {} if self.buffers is None else self.buffers.of_last_step(self.run, len(self.declared)))

    def _push(self, i: int) -> None:
        factors = self.factors
        self.begin_clock()
        if factors is not None and factors.offered:
            if factors.on_factors(i):
                return self._push_factors(i)
        p = self.parameters[i]
        g = p.grad
        if g is not None:
            if g.is_sparse:
                raise self.failed(f'the gradient of "{self.names[i]}" is sparse: Poseidon exchanges dense ones (sparse=False)')
            if g.dtype != torch.float32:
                raise self.failed(f'the gradient of "{self.names[i]}" is {g.dtype}, expected torch.float32')
        self.weights.begin(self.clock)
        self._push_value(i, None if g is None else self.weights.of(g))

    def _push_value(self, i: int, g: Optional[torch.Tensor]) -> None:
        """What is to leave for parameter i. None: nothing."""
        self.pushed[i] = g
        if self._alone:
            return
        bundle = self.declared.bundle_of(i)
        if bundle is not None:
            bundle.missing -= 1
            if bundle.missing == 0:
                self._push_bundle(self.declared.of[i], bundle)
        elif g is None:
            self.run.push_nothing(self.declared.of[i], self.clock)
        else:
            self._send(i, g)

    def _push_bundle(self, number: int, bundle: Bundle) -> None:
        bundle.missing = len(bundle.members)
        gradients = [self.pushed[i] for i in bundle.members]
        if not any(g is not None for g in gradients):
            return self.run.push_nothing(number, self.clock)
        filled = bundle.filled(gradients)
        if filled.is_cuda:
            return self._send_from_gpu(bundle.members[0], filled)
        self.run.push(number, self.clock, filled.data_ptr(), 4 * bundle.size)

    def _send_from_gpu(self, i: int, g: torch.Tensor) -> None:
        try:
            self.gpus.send(self.declared.of[i], self.clock, g)
        except RuntimeError as error:  # no memory, a kernel that has failed
            raise self.failed(f'the gradient of "{self.names[i]}" cannot be copied from {g.device}: {error}') from error

    def _send(self, i: int, g: torch.Tensor) -> None:
        if g.is_cuda:
            return self._send_from_gpu(i, g)
        lent = g
        if g.stride() != self._strides[i]:  # values travel in the order of the parameter's memory
            p = self.parameters[i]
            lent = torch.empty_strided(p.shape, p.stride(), dtype=torch.float32).copy_(g)
        self.run.push(self.declared.of[i], self.clock, lent.data_ptr(), 4 * lent.numel())
        self.lent[i] = lent

    def _push_factors(self, i: int) -> None:
        unit = self.factors.units[i]
        if i in self.fired and unit.has_dense_gradient():
            raise self.failed(f'"{self.names[i]}" goes as factors, and a backward pass has reached it by another way than its layer, as in '
                              'none of the first steps: start with routes="ps"')
        factors, number = unit.take(), self.declared.of[i]
        self.weights.begin(self.clock)
        u = self.weights.of(factors[0]) if factors is not None else None
        if u is None:
            self.run.push_nothing(number, self.clock)
        else:
            v = factors[1]
            self.run.push_factors(number, self.clock, u.data_ptr(), v.data_ptr(), u.shape[0], self._place_of_mean(i))
        self.pushed[i] = None

    def _place_of_mean(self, i: int) -> Optional[int]:
        """Where the mean of factors is to be made; None: in the library's memory."""
        return self._means.place_for(i)

    def _end_of_backward(self) -> None:
        """In the thread of backward(), after everything else: waits for the means."""
        self._require_same_model()
        for i in self._not_pushed():
            self._push(i)
        self._push_buffers()
        if self.votes is not None:
            self.votes.push(self.run, self.clock, self._rounded)
        if not self._alone:
            since = time.perf_counter()
            self._wait_for_pushes()
            self._means.collect(self.clock + 1, self.lent, self._take)
            self.members.follow(self.clock)
            self.weights.correct(self.clock, self.parameters)
            times = self._clockwork.end(since, time.perf_counter())
            if self.votes is not None:
                self._tell(self.votes.take(self.run, self.clock, self.members.views[-1], times))
            elif not self.lowrank:  # what mode "local" has, too
                self._tell(self._waits.trained(times))
        if not self.expected:
            self._tell_order(list(self.fired))
        self._end_clock()
        self._take_buffers()

    def _tell(self, line: Optional[str]) -> None:
        if line and self.rank == 0 and not self.quiet:
            print(f"poseidon: {line}", file=sys.stderr, flush=True)

    def _rounded(self) -> float:
        """The part of all bytes that a format changes; factors are none of them."""
        sizes = {i: p.numel() for i, p in enumerate(self.parameters) if self.factors is None or not self.factors.on_factors(i)}
        return sum(size for i, size in sizes.items() if size >= LEAST and self.declared.bundle_of(i) is None) / max(1, sum(sizes.values()))

    def _require_same_model(self) -> None:
        """All that trains is exchanged."""
        thawed = next((name for name, p in self._frozen if p.requires_grad), None)
        if thawed is not None:
            raise self.failed(f'"{thawed}" trains, and was frozen at join(): the other workers do not know it. Freeze after join() what is to train '
                              "later (requires_grad_(False)), not before")
        if self.clock >= _CLOCKS_LOOKED and self.clock % _LOOKED_EVERY != 0:
            return
        strange = next((name for name, p in self.model.named_parameters()
                        if p.requires_grad and id(p) not in self.index and name not in self._ignored and not is_empty(p)), None)
        if strange is not None:
            raise self.failed(f'"{strange}" trains, and has come to the model after join(): the other workers do not know it. Make it before join()')

    def _push_buffers(self) -> None:
        if self.buffers is not None and not self._alone:
            self._take_buffers()  # those of this clock, if nothing has read them
            self.buffers.push(self.run, len(self.declared), self.clock)

    def _take_buffers(self, *_) -> None:
        """Takes worker 0's buffers of the clock before, once."""
        if self.buffers is not None and not self._alone and self._taken < self.clock and self.failure is None:
            self.buffers.take(self.run, len(self.declared), self.clock)
            self._taken = self.clock

    def _take(self, number: int, there: bool) -> None:
        """What has come, by its number in the run."""
        bundle = self.declared.bundles[number]
        if bundle is None:
            return self._take_mean(self.declared.first[number], there)
        if not there and self.weights.now == 0.0:
            for i in bundle.members:
                self.parameters[i].grad = None
        if there:
            pushed, parameters = self.pushed, self.parameters
            gradients = [pushed[i] if parameters[i].grad is pushed[i] else None for i in bundle.members]
            bundle.spread(self.run.values(number, self.clock + 1), gradients, self._take_mean)

    def _take_mean(self, i: int, there: bool) -> None:
        """Of a parameter whose `.grad` is not what has left. `there`: somebody had a gradient."""
        if not there:
            if self.weights.now == 0.0:
                self.parameters[i].grad = None
            return
        p, made = self.parameters[i], self._means.made.get(i)
        mean = self.ring(i, self.clock + 1) if made is None else made
        if p.grad is None:
            p.grad = torch.empty_like(p).copy_(mean, non_blocking=True) if made is None else made
        elif self.factors is not None and self.factors.on_factors(i):
            p.grad.add_(mean)  # what was there before has not gone with the factors
        else:
            p.grad.copy_(mean, non_blocking=True)

    def _wait_for_pushes(self) -> None:
        """Until the copies of all gradients have come from a GPU: the mean of one that has not been pushed cannot be waited for. Nothing is lost
        by it, since the parameters that come next need these means."""
        if self.gpus is not None:
            self.gpus.wait_for_pushes()
            self._require_alive()

    def _tell_order(self, order: List[int]) -> None:
        """In which gradients leave where several wait, from now on."""
        numbers = [self.declared.of[i] for i in reversed(order + [i for i in range(len(self.parameters)) if i not in order])]
        last_first = list(dict.fromkeys(numbers))  # a bundle leaves with its last member
        places = [0] * len(last_first)
        for place, number in enumerate(reversed(last_first)):
            places[number] = place
        self.run.order(places + list(range(len(places), self._declared_in_all)))

    def _end_clock(self) -> None:
        # In its first clock a gradient leaves at the end, from then on at its last pass of a clock, during backward.
        self.expected = {**self.fired, **self.expected}
        if self.factors is not None:
            self.factors.end_clock(self.fired)
        self.pushed, self.fired = {}, {}
        self.clock += 1
        self._show(self.run.lines())

    def _show(self, lines: Iterable[str]) -> None:
        if self.say is not None:
            for line in lines:
                self.say(line)
