"""How long backward() waits for the other workers' gradients, and the line that tells a script when another mode would hide that."""

import statistics
from typing import List, NamedTuple, Optional

_FROM = 12  # clocks: by then the routes hold
_CLOCKS = 20  # that are looked at
_WORTH, _WORTH_S = 0.1, 2e-3  # of a step, and in seconds


class Times(NamedTuple):
    """Of one clock, in seconds."""
    step: float  # from the end of one backward pass to that of the next
    between: float  # of it, until the first gradient is there
    waited: float  # of it, at the end, for the other workers' gradients


class Clockwork:
    """Takes the times of clocks."""

    def __init__(self):
        self._ended: Optional[float] = None
        self._began: Optional[float] = None

    def gradient(self, now: float) -> None:
        """The first one of a clock is there."""
        if self._began is None:
            self._began = now

    def end(self, since: float, now: float) -> Optional[Times]:
        """A backward pass has ended, and has waited from `since` to `now`. None: it was the first one."""
        ended, self._ended = self._ended, now
        began, self._began = self._began, None
        return None if ended is None else Times(now - ended, (since if began is None else began) - ended, now - since)


class Waits:
    """Of one worker."""

    def __init__(self):
        self._seen = 0
        self._times: List[Times] = []

    def trained(self, times: Optional[Times]) -> Optional[str]:
        """What is to be said after a clock, once in a run."""
        self._seen += 1
        if self._seen <= _FROM or self._seen > _FROM + _CLOCKS or times is None:
            return None
        self._times.append(times)
        return self._line() if self._seen == _FROM + _CLOCKS else None

    def _line(self) -> Optional[str]:
        step, between, waited = map(statistics.median, zip(*self._times))
        hidden = min(waited, between)
        if hidden < max(_WORTH * step, _WORTH_S):
            return None
        return (f"backward() waits {1e3 * waited:.0f} of {1e3 * step:.0f} ms a step for the other workers' gradients; mode=\"local\" hides up to "
                f"{1e3 * hidden:.0f} ms of that in the next forward pass, for scripts that keep its rules (docs/pytorch.md, Modes)")
