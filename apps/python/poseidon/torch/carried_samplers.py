"""What a newcomer's Samplers begin with: the states of the members' Samplers at the boundary of a step."""

import gc
import weakref
from typing import List, Optional, Sequence

from ..library import PoseidonError


class Samplers:
    """Those of one run in this process, in the order in which they got to know the run (each one when it is made, if that is after join()).

    Their places in that order, among those that are alive, say which Sampler of one worker is which one of another worker. The state is taken when a
    member has step c's batch in hand, so it has made all that step c trains with, and a newcomer has made the same ones before its gradients of that step
    leave, which is its first one.
    So:
    - "for epoch: sampler = Sampler(...)" has one that is alive while a step is trained, and the newcomer's first one goes on with it.
    - Nothing came for a Sampler that is made after the newcomer's first step. The members make theirs in the same step, and all begin alike.
    - A Sampler that the members still hold and the newcomer's script does not make before it trains cannot be told from one that it will use later: it is
      refused."""

    def __init__(self):
        self._known: List["weakref.ref"] = []
        self._came: Optional[List[dict]] = None  # to this newcomer, until its first step is over
        self._clock: Optional[int] = None  # of that step
        self._taken = 0

    def states(self) -> List[dict]:
        """Of those that are alive, equal on all members in the same step. Call it while that step's batch is in hand."""
        alive = self._alive()
        # Nothing of ours refers to a Sampler in a circle, so one that no script holds is gone. One in a circle of the script's own (a trainer and its
        # callbacks) lives until the collector runs, which is in another step on each worker. It takes 0.1 to 1 s, and is left out in the usual case: the
        # only Sampler has an epoch that is trained.
        if len(alive) > 1 or any(sampler.ended for sampler in alive):
            del alive
            gc.collect()
            alive = self._alive()
        return [sampler.state_dict() for sampler in alive]

    def _alive(self) -> list:
        self._known = [known for known in self._known if known() is not None]
        return [sampler for sampler in (known() for known in self._known) if sampler is not None]

    def came(self, states: Sequence[dict], clock: Optional[int] = None) -> None:
        """On a newcomer, before it makes a Sampler of this run. `clock`: that of its first step; None: that in which it makes its first Sampler."""
        self._came, self._clock, self._taken = list(states), clock, 0

    def carry(self, sampler) -> Optional[dict]:
        """The state that a Sampler of this run begins with; None: it begins anew."""
        clock = sampler._run.clock
        if self._came is not None and self._clock is None:
            self._clock = clock
        if self._came is not None and clock > self._clock:
            self._came = None
        self._known.append(weakref.ref(sampler))
        if self._came is None:
            return None
        place, self._taken = self._taken, self._taken + 1
        if place >= len(self._came):
            raise PoseidonError(f"Sampler: this worker has come when the others had {self._number(len(self._came))}, and its script makes number {place + 1} before "
                                "its first step is trained: run the same script on all workers, and make no Sampler of an earlier part of the script again")
        return self._came[place]

    def require_all_made(self, clock: int) -> None:
        """Before a worker's gradients of a step leave. Refuses the script of a newcomer that has not made all that came: what it has drawn for its first step
        may be another one's share."""
        came = self._came
        if came is not None and self._clock in (None, clock) and self._taken < len(came):
            raise PoseidonError(f"Sampler: this worker has come when the others had {self._number(len(came))}, and its script has made {self._taken} of them when its "
                                "first step is trained, so that the others' epochs would go on without it: run the same script on all workers, make all its "
                                "Samplers before the loop, and \"del\" one that is not used any more")

    @staticmethod
    def _number(samplers: int) -> str:
        return "1 Sampler" if samplers == 1 else f"{samplers} Samplers"
