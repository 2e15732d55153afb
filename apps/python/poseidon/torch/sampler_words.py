"""What a Sampler refuses, and what it says: every line has both values and what to do."""

import sys
from types import FrameType
from typing import Iterable, Optional

from torch.utils.data import BatchSampler, DataLoader
from torch.utils.data import Sampler as TorchSampler

from ..library import PoseidonError
from .epochs import Epoch


def whole_number(name: str, value: object, least: Optional[int]) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or (least is not None and value.__index__() < least):
        raise PoseidonError(f"Sampler: {name} is {value!r}, expected a whole number" + ("" if least is None else f" from {least} on"))
    return value.__index__()


def length_of(dataset) -> int:
    if isinstance(dataset, int):
        return whole_number("dataset", dataset, 0)
    try:
        return len(dataset)
    except TypeError as error:
        raise PoseidonError(f"Sampler: the dataset is a {type(dataset).__name__}, which has no length (an IterableDataset?): workers can only share samples "
                            "that have numbers. Give it a __len__ and a __getitem__, or give the Sampler the number of samples") from error


class Words:
    """Of one sampler."""

    def __init__(self, sampler):
        self._of = sampler

    # -- the run

    def require_run(self, run) -> None:
        if run is None:
            raise PoseidonError("Sampler: this process has not joined, and the workers of the run are not known: call join(model, optimizer) first")
        if hasattr(run, "outer"):
            raise PoseidonError(f"Sampler: this run has outer={run.outer}, whose workers exchange nothing in most steps, so that a share cannot be weighed: use "
                                "DistributedSampler(dataset, poseidon.size(), poseidon.rank(), drop_last=True)")
        lacks = [name for name in ("views", "seat", "clock", "id", "carry", "weigh") if not hasattr(run, name)]
        if lacks:
            raise PoseidonError(f"Sampler: this run ({type(run).__name__}) does not say who its members are (it has no {lacks[0]}): join with mode=\"ddp\"")
        if not run.views:
            raise PoseidonError("Sampler: the run has not begun, and has no members yet: use the Sampler after join()")

    def came_later(self, asked: int) -> PoseidonError:
        return PoseidonError(f"Sampler: this worker has come when the others were in epoch {self._of.epoch}, and its script begins with epoch {asked}: let all "
                             "workers take the number from a poseidon.Progress: for progress.epoch in range(progress.epoch, 90)")

    def other_seat(self, was: int) -> PoseidonError:
        return PoseidonError(f"Sampler: this worker was {was} of the run and is {self._of._run.seat} now, so the others have trained what its loader has drawn: a "
                             "process that comes back begins its script anew")

    # -- the loop

    def other_loop(self) -> PoseidonError:
        was, now = ("sampler.batches(loader)", "a plain loop") if self._of._now.grows else ("a plain loop", "sampler.batches(loader)")
        return PoseidonError(f"Sampler: epoch {self._of.epoch} was begun with {was} and goes on with {now}, and the workers have to agree on where it ends: use "
                             "the same one on all workers")

    def require_in_reach(self, clock: int, trained: int, epoch: Epoch, drawn: int) -> None:
        sampler = self._of
        if clock < trained:
            raise PoseidonError(f"Sampler: {trained - epoch.first} steps of epoch {epoch.number} are trained, and the loader has drawn {clock - epoch.first}: a "
                                f"step has to train {epoch.cut.share} samples (batch_size={sampler.batch_size}, batches_per_step={sampler.batches_per_step}). "
                                "Check that the loader has the same batch_size, and that no_sync() is around all but the last backward pass of a step")
        if clock >= trained + epoch.cut.kept and drawn >= sampler.ahead:
            raise PoseidonError(f"Sampler: the loader draws step {clock - epoch.first} of epoch {epoch.number} when {trained - epoch.first} are trained, more than "
                                f"ahead={sampler.ahead} batches ahead. Give all workers a Sampler with an ahead of at least the loader's num_workers * "
                                "prefetch_factor; or else not every batch is trained by a backward pass that exchanges (a batch left out, a sampler that is used "
                                "for an evaluation, another batch_size in the loader)")

    def require_trained(self, drawn: int, clock: int, batches: int) -> None:
        if drawn != clock:
            raise PoseidonError(f"Sampler: batch {batches} of this loop belongs to step {drawn} of the run, and {clock} steps are trained: each batch has to be "
                                f"trained by one backward pass, every {self._of.batches_per_step}. of which exchanges (the others in no_sync()). For a batch "
                                "that is not to count, multiply its loss by 0; for several batches a step, give batches_per_step")

    def not_trained(self, batches: int, left: int) -> PoseidonError:
        return PoseidonError(f"Sampler: the loader has given {batches} batches, and no step was trained with them; {left} steps of epoch {self._of.epoch} are left. "
                             "Each batch has to be trained by a backward pass that exchanges, and the loader must not leave any out")

    def strange_batch(self):
        raise PoseidonError("Sampler: the loader gives more batches than it has drawn from this sampler: batches() wants the DataLoader that has this sampler")

    # -- the loader

    def require_draws_here(self, loader: Iterable) -> None:
        if not isinstance(loader, DataLoader):
            return  # something around one; what it draws is checked
        sampler, by = self._of, loader.batch_sampler
        if by is not sampler.batch_sampler and getattr(by, "sampler", loader.sampler) is not sampler:
            raise PoseidonError("Sampler: batches(loader) wants the DataLoader that draws from this sampler: DataLoader(dataset, "
                                "batch_sampler=sampler.batch_sampler), or DataLoader(dataset, batch_size, sampler=sampler)")
        drawn = loader.num_workers * (loader.prefetch_factor or 0) if loader.num_workers else 0
        if drawn > sampler.ahead:
            raise PoseidonError(f"Sampler: the loader draws num_workers * prefetch_factor = {loader.num_workers} * {loader.prefetch_factor} = {drawn} batches ahead "
                                f"of training, and ahead is {sampler.ahead}: give the Sampler of every worker ahead={drawn}, or the largest of theirs")
        if loader.num_workers and not getattr(loader, "in_order", True):
            raise PoseidonError("Sampler: a DataLoader with in_order=False gives batches in another order than it draws them, so that nobody knows which ones "
                                "are trained: in_order=True")
        if isinstance(by, BatchSampler):
            self.require_keeps_last(by)

    def who_asks(self, frame: FrameType, of: TorchSampler) -> Optional[BatchSampler]:
        """The BatchSampler, as a DataLoader makes it, that asks for the indices. Refuses one that would make batches of batches, and a DataLoader that
        would take an index for a batch."""
        asks, loader = frame.f_locals.get("self"), frame.f_locals.get("loader")
        if isinstance(asks, BatchSampler):
            if of is not self._of:
                raise PoseidonError("Sampler: sampler.batch_sampler gives whole batches, and the loader asks it for indices: write DataLoader(dataset, "
                                    "batch_sampler=sampler.batch_sampler), without batch_size")
            self.require_keeps_last(asks)
            return asks
        if of is self._of and isinstance(loader, DataLoader) and loader.batch_sampler is of:
            raise PoseidonError("Sampler: the sampler gives indices, and the loader asks it for batches: write DataLoader(dataset, "
                                "batch_sampler=sampler.batch_sampler), or DataLoader(dataset, batch_size, sampler=sampler)")
        return None

    def require_keeps_last(self, by: BatchSampler) -> None:
        sampler = self._of
        if by.drop_last and not sampler.drop_last:
            raise PoseidonError("Sampler: the loader has drop_last=True and the Sampler drop_last=False, so that the loader would drop what the other workers "
                                "take for trained: give it to the Sampler as well, or to neither")
        if sampler.batches_per_step > 1 and not sampler.drop_last:
            raise PoseidonError(f"Sampler: with batches_per_step={sampler.batches_per_step} the last step has smaller batches, which DataLoader(dataset, batch_size, "
                                "sampler=sampler) cannot tell apart: write batch_sampler=sampler.batch_sampler, or Sampler(drop_last=True)")

    def other_batch_size(self, batch_size: int, of: str) -> PoseidonError:
        return PoseidonError(f"Sampler: the {of} makes batches of {batch_size}, and the Sampler's batch_size is {self._of.batch_size}: give both the same number")

    # -- at the end

    def _speaks(self) -> bool:
        """One worker for all."""
        return self._of._run.seat == self._of._views[-1].seats[0] and not getattr(self._of._run, "quiet", False)

    def say_nothing_left(self) -> None:
        if self._speaks():
            print(f"poseidon: an earlier run has trained all of epoch {self._of.epoch}, so this loop has no batches; sampler.set_epoch({self._of.epoch + 1}) begins "
                  "the next one", file=sys.stderr, flush=True)

    def say_unused(self) -> None:
        """How many samples of the epoch no step has trained, if there are any."""
        sampler, run, epoch = self._of, self._of._run, self._of._now
        if epoch is None:
            return
        sampler._follow()
        last, done = epoch.stretches[-1], run.clock - epoch.first
        if run.clock < epoch.end:
            unused = len(epoch.rest(run.clock))
            why = f"its loop has ended after {done} of {epoch.end - epoch.first} steps"
        else:
            unused = last.unplaced()
            why = "a worker was lost near its end, when the others' loaders had drawn all that they have: \"for batch in sampler.batches(loader)\" trains them, too"
            if sampler.drop_last and unused < last.block:
                return
        if unused and self._speaks():
            print(f"poseidon: {unused} of {len(epoch.samples)} samples of epoch {epoch.number} were not used: {why}", file=sys.stderr, flush=True)
