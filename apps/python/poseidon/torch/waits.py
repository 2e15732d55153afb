"""How long backward() waits for the other workers' gradients, and the line that tells a script when another mode would hide that."""

import statistics
from typing import List, Optional

_FROM = 12  # clocks: by then the routes hold
_CLOCKS = 20  # that are looked at
_WORTH, _WORTH_S = 0.1, 2e-3  # of a step, and in seconds


class Waits:
    """Of one worker. Times are in seconds, of any one clock."""

    def __init__(self):
        self._seen = 0
        self._ended: Optional[float] = None
        self._began: Optional[float] = None
        self._steps: List[float] = []
        self._between: List[float] = []  # from the end of a backward pass to the first gradient of the next one
        self._waited: List[float] = []

    def gradient(self, now: float) -> None:
        """The first one of a clock is there."""
        if self._began is None:
            self._began = now

    def end(self, since: float, now: float) -> Optional[str]:
        """A backward pass has ended, and has waited from `since` to `now`. What is to be said, once in a run."""
        ended, self._ended = self._ended, now
        began, self._began = self._began, None
        self._seen += 1
        if self._seen <= _FROM or self._seen > _FROM + _CLOCKS or ended is None:
            return None
        self._steps.append(now - ended)
        self._between.append((since if began is None else began) - ended)
        self._waited.append(now - since)
        return self._line() if self._seen == _FROM + _CLOCKS else None

    def _line(self) -> Optional[str]:
        step, between, waited = map(statistics.median, (self._steps, self._between, self._waited))
        hidden = min(waited, between)
        if hidden < max(_WORTH * step, _WORTH_S):
            return None
        return (f"backward() waits {1e3 * waited:.0f} of {1e3 * step:.0f} ms a step for the other workers' gradients; mode=\"local\" hides up to "
                f"{1e3 * hidden:.0f} ms of that in the next forward pass, for scripts that keep its rules (docs/pytorch.md, Modes)")
