"""What a newcomer's Samplers begin with: the states of the members' Samplers at the boundary of a step."""

import gc
import weakref
from typing import List, Optional, Sequence

from ..library import PoseidonError


class Samplers:
    """Those of one run in this process, in the order in which they got to know the run (each one when it is made, if that is after join()).

    Their places in that order, among those that are alive, say which Sampler of one worker is which one of another worker. The state is taken when a
    member has step c's batch in hand, so it has made all that step c trains with, and a newcomer has made the same ones when it ends that step: its first.
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
        # A Sampler and its parts refer to each other, so one that no script holds lives until the collector runs, which is another step on each worker.
        gc.collect()
        self._known = [known for known in self._known if known() is not None]
        return [sampler.state_dict() for sampler in (known() for known in self._known) if sampler is not None]

    def came(self, states: Sequence[dict], clock: Optional[int] = None) -> None:
        """On a newcomer, before it makes a Sampler of this run. `clock`: that of its first step; None: the one in which its first Sampler is made."""
        self._came, self._clock, self._taken = list(states), clock, 0

    def carry(self, sampler) -> Optional[dict]:
        """The state that a Sampler of this run begins with; None: it begins anew."""
        clock = sampler._run.clock
        if self._came is not None and self._clock is None:
            self._clock = clock
        if self._came is not None and clock > self._clock:
            self.first_step_done()
        self._known.append(weakref.ref(sampler))
        if self._came is None:
            return None
        place, self._taken = self._taken, self._taken + 1
        if place >= len(self._came):
            raise PoseidonError(f"Sampler: this worker has come when the others had {self._number(len(self._came))}, and its script makes number {place + 1} before "
                                "its first step is trained: run the same script on all workers, and make no Sampler of an earlier part of the script again")
        return self._came[place]

    def first_step_done(self) -> None:
        """When a newcomer's first step is over. Refuses a script that has not made all that came."""
        came, self._came = self._came, None
        if came is not None and self._taken < len(came):
            raise PoseidonError(f"Sampler: this worker has come when the others had {self._number(len(came))}, and its script has made {self._taken} of them when its "
                                "first step was trained, so that the others' epochs would go on without it: run the same script on all workers, make all its "
                                "Samplers before the loop, and \"del\" one that is not used any more")

    @staticmethod
    def _number(samplers: int) -> str:
        return "1 Sampler" if samplers == 1 else f"{samplers} Samplers"
