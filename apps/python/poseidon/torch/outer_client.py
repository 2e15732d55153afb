"""Outer steps: a clock is what an outer step is made of, and between two of them each worker's own optimizer makes the steps."""

import ctypes
import sys
from typing import Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple

import torch
from torch import nn, optim

from ..library import NOT_YET, PoseidonError
from .carried import Carried
from .client import Client
from .inner_steps import InnerSteps
from .newcomers import Newcomers, name_of_run
from .outer import Outer, Rule
from .statistics import Statistics, averaged


class OwnObjects(Carried):
    """Where each worker's optimizer, schedules and scaler are its own: a newcomer begins with the oldest member's."""

    def _split(self, thing) -> Tuple[dict, dict]:
        return {}, thing.state_dict()

    def _joined(self, place: str, thing, state, own) -> object:
        return super()._joined(place, thing, own, {})


def _require_one_optimizer(model: nn.Module, optimizer: Optional[optim.Optimizer]) -> None:
    if optimizer is None:
        raise PoseidonError("outer=... counts the steps of the optimizer: join(model, optimizer, outer=...)")
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    other = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in trained]
    if other:
        raise PoseidonError(f'"{other[0]}" trains and is not in this optimizer ({len(other)} such parameters): outer=... counts the steps of one optimizer, which '
                            "has all that trains; what does not train needs requires_grad_(False)")


class OuterClient(Client):
    _no_lossy = "with outer=... wire= is the format: leave one of the two out"
    _no_lowrank = "with outer=... what a worker has moved leaves as a whole: leave one of the two out"

    def __init__(self, model: nn.Module, optimizer: optim.Optimizer, outer: Outer, options: Dict[str, str], *, broadcast_buffers: bool = True,
                 ignored: FrozenSet[str] = frozenset(), **said):
        _require_one_optimizer(model, optimizer)
        if options.get("routes") == "sfb":
            raise PoseidonError('routes is "sfb", and what a worker has moved in several steps has no factors: leave routes out with outer=...')
        self.outer, self.optimizer = outer, optimizer
        self._means_of = averaged(model, ignored) if broadcast_buffers else frozenset()
        super().__init__(model, options, broadcast_buffers=broadcast_buffers, ignored=ignored, **said)
        self.members.steps = "outer step"
        self._wants_factors = False
        self.fragment_of = self._apart()
        statistics = Statistics(model, self._means_of, self.failed)
        self.statistics = statistics if statistics.values > 0 else None
        self._momenta: Optional[List[torch.Tensor]] = None  # that the others have given
        self._deltas: Dict[int, torch.Tensor] = {}  # by parameter: the library reads them until the means are here
        self._compared = torch.zeros(1, dtype=torch.uint8)  # the library reads and writes it until begin() returns
        self._since = 0  # inner steps since a fragment has left
        self._since_all = 0  # inner steps since all workers were equal
        self._next = 0  # the fragment whose turn it is
        self._away: Optional[FrozenSet[int]] = None  # fragments on their way
        self._said: List[Tuple[float, int]] = []  # losses and samples since the last outer step
        self._stays = True

    @classmethod
    def of(cls, model: nn.Module, optimizer: Optional[optim.Optimizer], state: Optional[Sequence[object]], options: Dict[str, str], *, outer: Outer,
           broadcast_buffers: bool = True, **said) -> "OuterClient":
        newcomers = None
        if state is not None and outer.streams:
            raise PoseidonError(f"state=[...] lets others join later, and {outer} leaves workers with values of their own at every moment: leave fragments and delay "
                                "out, or state")
        if state is not None:
            newcomers = Newcomers(OwnObjects(model, optimizer, state, broadcast_buffers))
        return cls(model, optimizer, outer, options, broadcast_buffers=broadcast_buffers, newcomers=newcomers, **said)

    def _apart(self) -> List[int]:
        return self.outer.cut(self.names, [p.numel() for p in self.parameters])

    def _averaged(self) -> FrozenSet[str]:
        return self._means_of

    # -- the start

    def _more_means(self) -> List[Tuple[str, Tuple[int, ...], int]]:
        if self.statistics is None:
            return []
        return [("floating-point buffers", (self.statistics.values,), self.statistics.lent.data_ptr())]

    def _shared(self) -> List[Tuple[str, torch.Tensor]]:
        return [*super()._shared(), (repr(self.outer), self._compared)]

    def begin(self) -> "OuterClient":
        super().begin()
        self._rule = Rule(self.outer, self.parameters)
        for mine, came in zip(self._rule.momenta, self._momenta or []):
            mine.copy_(came)
        if self.statistics is not None:
            self.statistics.begin()
        self._own_number = len(self.declared) + (self.buffers is not None)  # of the floating-point buffers
        count = self._own_number + (self.statistics is not None)
        self._all = (ctypes.c_uint32 * count)(*range(count))
        self._inner = InnerSteps(self.optimizer, self._after_step)
        if not self.quiet and self._has_others:
            print(f"poseidon: {self.outer}: workers are equal after outer steps, and differ between them; the result is not that of one process that trains all "
                  "batches", file=sys.stderr, flush=True)
        return self

    def _undo(self) -> None:
        super()._undo()
        if hasattr(self, "_inner"):
            self._inner.undo()

    def _came(self, states: List[dict]) -> None:
        self._name = torch.tensor(list(name_of_run(states)), dtype=torch.uint8)
        self._momenta = states[1]["momenta"]

    def _give_state(self) -> Tuple[int, int, int]:
        """What the last outer step has left."""
        buffers = {} if self.buffers is None else self.buffers.of_last_step(self.run, len(self.declared))
        if self.statistics is not None:
            buffers = {**buffers, **self.statistics.of_last_step()}
        return self.newcomers.give([{"run": self.id}, {"momenta": self._rule.momenta}], buffers)

    # -- a clock

    def _ready(self, i: int) -> None:
        """The first gradient after an outer step: nothing of the script's own state has changed since, and others may join now."""
        if self.failure is not None:
            self._require_alive()
        if self._away is None:
            self.begin_clock()

    def _after_step(self) -> None:
        if Client.current is not self:
            return
        self._require_alive()
        self._since += 1
        self._since_all += 1
        if self._away is not None and self._since == self.outer.delay:
            self._take_step(self.outer.mix)
        if self._since == self.outer.turn:
            self._push_fragments(frozenset([self._next]), not self.outer.streams)
            self._since, self._next = 0, (self._next + 1) % self.outer.fragments
            if self.outer.delay == 0:
                self._take_step(0.0)
            if not self.outer.streams:
                self._since_all = 0

    @torch.no_grad()
    def _push_fragments(self, fragments: FrozenSet[int], all_equal: bool) -> None:
        """`all_equal`: all workers have the same values when the means are here."""
        self._require_same_model()
        for i, p in enumerate(self.parameters):
            delta = None
            if self.fragment_of[i] in fragments:
                if i not in self._deltas:
                    self._deltas[i] = torch.empty_like(self._rule.anchors[i])
                delta = torch.sub(self._rule.anchors[i], p, out=self._deltas[i])
            self._push_value(i, delta)
        self._away = fragments
        packed = self.statistics.pack() if self.statistics is not None and self._takes_statistics() else None
        if self._alone:
            return
        if self.buffers is not None:
            self._push_buffers() if all_equal else self.run.push_nothing(len(self.declared), self.clock)
        if packed is not None:
            self.run.push(self._own_number, self.clock, packed.data_ptr(), 4 * self.statistics.values)
        elif self.statistics is not None:
            self.run.push_nothing(self._own_number, self.clock)

    def _takes_statistics(self) -> bool:
        """They go with the last fragment."""
        return self.outer.fragments - 1 in self._away

    @torch.no_grad()
    def _take_step(self, mix: float) -> None:
        """Waits for the means, and makes the outer step."""
        if not self._alone:
            self._wait_for_pushes()
            self._collect()
            self.members.follow(self.clock)
        for i, p in enumerate(self.parameters):
            if self.fragment_of[i] in self._away:
                mean = self._deltas[i] if self._alone else self.ring(i, self.clock + 1).to(p.device)
                anchor = self._rule.step(i, mean)
                p.copy_(p.mul(mix).add_(anchor.mul(1 - mix)) if mix else anchor)
        if self.statistics is not None and self._takes_statistics():
            self.statistics.take(self._statistics_mean(), mix)
        self._away = None
        self.lent.clear()
        self.pushed = {}
        self.clock += 1
        self._take_buffers()
        self._tell_losses()
        self._show(self.run.lines())

    def _statistics_mean(self) -> torch.Tensor:
        if self._alone:
            return self.statistics.lent
        memory = self.run.memory(self.run.values(self._own_number, self.clock + 1), self.statistics.values)
        return torch.frombuffer(memory, dtype=torch.float32)

    def _collect(self) -> None:
        count = len(self._all)
        to, answers = (ctypes.c_void_p * count)(), (ctypes.c_uint8 * count)(*[NOT_YET] * count)
        while self.run.collect(self._all, self.clock + 1, to, answers):
            pass

    # -- what the user calls

    def synchronize(self) -> None:
        """Makes an outer step of all parameters now, on all workers: they all call it after as many steps."""
        self._require_alive()
        if self._away is not None:
            self._take_step(self.outer.mix)
        if self._since_all == 0 or not self._stays:
            return
        self._push_fragments(frozenset(range(self.outer.fragments)), True)
        self._take_step(0.0)
        self._since = self._since_all = self._next = 0

    def leave(self, reason: Optional[str] = None, others_go_on: bool = False) -> None:
        """With `others_go_on`, this worker's steps since the last outer one go into the others' next one; where fragments take turns, they are lost."""
        self._stays = not (others_go_on and self.outer.streams)
        super().leave(reason, others_go_on)

    def report(self, loss: float, samples: int) -> None:
        """The mean over the inner steps is told with the outer one."""
        self._said.append((float(loss), int(samples)))

    def _tell_losses(self) -> None:
        samples = sum(n for _, n in self._said)
        if samples > 0:
            self.run.report(self.clock - 1, sum(loss * n for loss, n in self._said) / samples, samples)
        self._said = []
