"""lossy=FORMAT: how roughly gradients may be rounded at most. All workers measure some steps and predict what each format would make of them; the mean of that chooses one, and the
steps after it show whether it was worth it.

What is decided hangs on the numbers of a vote alone, of which all workers have the same bits, and on nothing that one of them knows: so all take one format before the same step,
whoever is lost or joins meanwhile."""

import statistics
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..library import PoseidonError, View
from .waits import Times

RUNGS = ("float32", "bfloat16", "int8", "int4")
_BYTES = {"float32": 1.0, "bfloat16": 1 / 2, "int8": 258 / 1024, "int4": 130 / 1024}  # of those of float32
LEAST = 4096  # values: smaller parameters stay float32 in int8 and int4
_AFTER, _MEASURED = 12, 8  # steps with the same workers: by then the routes hold; and so many that are looked at
_SETTLED = 2  # steps after a change that are not looked at
_AS_FAST = 1.02  # what a step may take more where less is rounded
VALUES = len(RUNGS) + 4  # of a vote: is a choice, a step on each rung; is a look back, a step before the change, a step after it


class Decision(NamedTuple):
    form: str
    line: str


def harshest_of(options: Dict[str, str]) -> Optional[str]:
    """The option as RUNGS have it; None: nothing may be rounded.

    Raises PoseidonError for what is no rung, and for options that say something else of formats."""
    harshest = options.get("lossy", "none")
    if harshest in ("none", "float32"):
        return None
    if harshest == "lowrank":
        raise PoseidonError('lossy is "lowrank", which a script asks for by name: routes="lowrank", with wire="bfloat16" for half of its bytes')
    if harshest not in RUNGS:
        raise PoseidonError(f'lossy is "{harshest}", expected one of: none, {", ".join(RUNGS[1:])}')
    if "wire" in options:
        raise PoseidonError(f'lossy="{harshest}" and wire="{options["wire"]}" exclude each other: wire is the format, lossy the roughest one that Poseidon may choose')
    if options.get("routes") == "lowrank":
        raise PoseidonError(f'lossy="{harshest}" and routes="lowrank" exclude each other: with low rank, wire="bfloat16" halves its bytes')
    return harshest


def predicted(times: Sequence[Times], rounded: float) -> List[float]:
    """Seconds of a step on each rung. `times`: in float32. `rounded`: the part of all bytes that a format changes."""
    step, between, waited = (statistics.median(values) for values in zip(*times))
    exchange = step - between  # from the first gradient until all means are here; where something waits for the network, it is busy all that time
    computing = exchange - waited
    if waited < (_AS_FAST - 1) * step:
        return [step] * len(RUNGS)
    out = []
    for form in RUNGS:
        wire = exchange * (1 - rounded + rounded * _BYTES[form])
        # Side by side, as docs/decisions/065-ladder.md has it for nets: both where one is much longer, 19 % more where both take as long.
        out.append(between + min(exchange, (computing ** 4 + wire ** 4) ** 0.25))
    out[0] = step
    return out


class Ladder:
    """Of one worker. The client tells it of each step, sends its votes, and tells it what they have come to."""

    def __init__(self, harshest: str):
        self.harshest = harshest
        self.form = "float32"  # now
        self.chosen = False
        self._workers: Sequence[int] = ()
        self._first = 0  # the clock from which these train
        self._times: List[Times] = []
        self._before: Optional[float] = None  # a step's seconds in float32, while the format is on trial
        self._trial = 0  # the clock from which it is

    # -- what a worker that joins later is given

    def state(self) -> Dict[str, object]:
        return {"form": self.form, "chosen": self.chosen}

    def came(self, state: Dict[str, object]) -> str:
        """Returns the format that the others have."""
        self.form, self.chosen = str(state["form"]), bool(state["chosen"])
        return self.form

    # -- a step

    def follow(self, view: View) -> None:
        """Where other workers train than before, what was measured with those says nothing of these. A choice that is made stays."""
        if view.seats != self._workers:
            self._workers, self._first, self._times, self._before = view.seats, view.first_clock, [], None

    def trained(self, clock: int, times: Optional[Times]) -> None:
        if times is None or len(self._workers) < 2:
            return
        if (not self.chosen and clock >= self._first + _AFTER or self._before is not None and clock >= self._trial + _SETTLED):
            self._times.append(times)

    def vote(self, rounded: Callable[[], float]) -> Optional[List[float]]:
        """What this worker says in this step; None: nothing. `rounded`: as predicted() has it."""
        if len(self._times) < _MEASURED:
            return None
        times, self._times = self._times, []
        if self._before is None:
            return [1.0, *predicted(times, rounded()), 0.0, 0.0, 0.0]
        before, self._before = self._before, None
        return [0.0] * (1 + len(RUNGS)) + [1.0, before, statistics.median(t.step for t in times)]

    def decide(self, clock: int, mean: Sequence[float]) -> Decision:
        """What the workers' votes have come to: the format from this clock on, and what is to be said of it. `mean`: over all workers, also those that had no vote."""
        choices, looks_back = mean[0], mean[1 + len(RUNGS)]
        line = ""
        if choices > 0:
            allowed = RUNGS[:RUNGS.index(self.harshest) + 1]
            steps = [seconds / choices for seconds in mean[1:1 + len(allowed)]]
            best = min(steps)
            at = next(i for i, seconds in enumerate(steps) if seconds <= _AS_FAST * best)
            self.form, self.chosen, self._times = allowed[at], True, []
            if at == 0:
                line = f'gradients stay float32: no format that lossy="{self.harshest}" allows would make a step of {_ms(steps[0])} {100 * (_AS_FAST - 1):.0f} % faster'
            else:
                self._before, self._trial = steps[0], clock
                line = (f"from step {clock} on gradients travel as {self.form}: {_ms(steps[at])} a step by prediction, {_ms(steps[0])} in float32 (lossy=\"{self.harshest}\"). "
                        "The result is no longer that of one process; the workers stay equal to each other")
        if looks_back > 0:
            before, now = (seconds / looks_back for seconds in mean[2 + len(RUNGS):])
            if before < _AS_FAST * now:
                line = f"from step {clock} on gradients travel as float32 again: a step took {_ms(now)} in {self.form}, and {_ms(before)} before"
                self.form = "float32"
        return Decision(self.form, line)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
