"""Workers with different numbers of batches, as DistributedDataParallel.join() has them: a worker that has none left takes part in the others' steps
without a gradient. When all have ended, all take the parameters of one that had the most steps."""

import contextlib
from typing import Iterator, List, Optional

import torch

from ..library import PoseidonError
from .client import Client

_Gradients = List[Optional[torch.Tensor]]


def _exchanged(client: Client, gradients: _Gradients) -> _Gradients:
    """A clock with these gradients: the means of all workers."""
    kept = [p.grad for p in client.parameters]
    try:
        for p, g in zip(client.parameters, gradients):
            p.grad = g
        client._end_of_backward()
        return [p.grad for p in client.parameters]
    finally:
        for p, g in zip(client.parameters, kept):
            p.grad = g


def _nothing(client: Client) -> _Gradients:
    return [None] * len(client.parameters)


def _halves(p: torch.Tensor) -> Iterator[torch.Tensor]:
    """The upper and the lower 16 bits of each value, as numbers that a mean of one worker's carries exactly."""
    bits = p.detach().view(torch.int32)
    for half in (bits >> 16) & 0xffff, bits & 0xffff:
        yield torch.empty_like(p).copy_(half)


def _take_those_of_one(client: Client, is_last: bool) -> None:
    """All workers take the parameters of the first of those that have ended last, bit for bit."""
    form = client.run.wire("float32")  # numbers of 16 bits are not to be rounded
    widest = max(range(len(client.parameters)), key=lambda i: client.parameters[i].numel())
    votes = _nothing(client)
    if is_last:
        votes[widest] = torch.zeros_like(client.parameters[widest])
        torch.as_strided(votes[widest], (votes[widest].numel(),), (1,))[client.rank] = 1
    found = _exchanged(client, votes)[widest]
    gives = int(torch.as_strided(found, (found.numel(),), (1,)).nonzero()[0])
    own = [list(_halves(p)) if gives == client.rank else [None, None] for p in client.parameters]
    upper, lower = ([(m.double() * client.size).round().to(torch.int64) for m in _exchanged(client, [parts[half] for parts in own])] for half in (0, 1))
    with torch.no_grad():
        for p, high, low in zip(client.parameters, upper, lower):
            p.copy_((high << 16 | low).to(torch.int32).view(torch.float32))
    client.run.wire(form)


def _require_whole(client: Client) -> None:
    """Refuses what a worker without batches could not take part in."""
    if type(client) is not Client:
        raise PoseidonError("DistributedDataParallel.join() with optimizer=: a worker without batches makes no steps; leave the optimizer out")
    if client.lowrank:
        raise PoseidonError('DistributedDataParallel.join() with routes="lowrank": its last exchange carries parameters bit for bit; leave routes out, or give '
                            "each worker as many batches")
    if client.votes is not None:
        raise PoseidonError("DistributedDataParallel.join() with lossy=: a worker without batches has no steps to measure; give wire=, or each worker as many batches")
    if client.buffers is not None:
        raise PoseidonError("DistributedDataParallel.join(): the model has buffers, which all workers take from worker 0 in each step, also when it has no "
                            "batches left: broadcast_buffers=False, or as many batches on each worker (drop_last=True)")
    if max(p.numel() for p in client.parameters) < client.size:
        raise PoseidonError(f"DistributedDataParallel.join(): the model's largest parameter has fewer values than there are workers ({client.size}): give each "
                            "worker as many batches")
    if client.factors is not None and client.factors.offered:
        raise PoseidonError('DistributedDataParallel.join() after the first steps, when large layers may go as factors: start with routes="ps" '
                            "(POSEIDON_ROUTES=ps), or enter it before the first backward pass")
    if client.factors is not None:
        client.factors.undo()
        client.factors = None


@contextlib.contextmanager
def uneven(client: Client) -> Iterator[None]:
    """Within it this worker has its batches; at its end it goes along with the others until they have ended, too."""
    if client.size > 1:
        _require_whole(client)
    yield
    if client.size == 1:
        return
    clocks = 1
    while any(g is not None for g in _exchanged(client, _nothing(client))):
        clocks += 1
    _take_those_of_one(client, clocks == 1)
