"""What a DataLoader draws from: the batches of one worker, one after the other."""

import sys
from collections import deque
from typing import Deque, List, Optional, Tuple

from torch.utils.data import Sampler as TorchSampler

from .epochs import Epoch


class Batches:
    """The batches from the clock on that this worker has reached when the first one is drawn (a DataLoader makes two iterators for a loop, and draws from
    one). There may be more after the end, if the epoch has got more steps since then."""

    def __init__(self, sampler: "Sampler"):
        self._sampler = sampler
        self._epoch: Optional[Epoch] = None
        self._clock = 0
        self._ready: Deque[List[int]] = deque()
        self._counts: Deque[Tuple[int, int]] = deque()  # by step that is drawn and not trained: its clock, and how many batches it has

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> List[int]:
        if self._epoch is None:
            self._epoch, self._clock = self._sampler._begin_to_draw()
        if not self._ready:
            while self._counts and self._counts[0][0] <= self._sampler._run.clock:
                self._counts.popleft()
            batches = self._sampler._draw(self._epoch, self._clock, sum(count for _, count in self._counts))
            if batches is None:
                raise StopIteration
            self._counts.append((self._clock, len(batches)))
            self._clock += 1
            self._ready.extend(batches)
        return self._ready.popleft()


class ByBatch(TorchSampler):
    """The same sampler for DataLoader(dataset, batch_sampler=...)."""

    def __init__(self, sampler: "Sampler"):
        self.sampler = sampler

    @property
    def batch_size(self) -> Optional[int]:
        return self.sampler.batch_size

    @property
    def drop_last(self) -> bool:
        return self.sampler.drop_last

    def set_epoch(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)

    def __iter__(self) -> Batches:
        self.sampler._words.who_asks(sys._getframe(1), self)
        return Batches(self.sampler)

    def __len__(self) -> int:
        return self.sampler.planned()[1]
