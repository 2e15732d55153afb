"""Poseidon under PyTorch: a script trains on a cluster of ordinary machines.

    import poseidon.torch as poseidon
    poseidon.join(model, optimizer)      # POSEIDON_LISTEN and POSEIDON_NODES, or POSEIDON_JOIN, say who else is there

The loop stays as it is. Gradients leave while `backward()` still runs, and each parameter is waited for where the next forward
pass needs it. Modes:

- `local`: the mean gradients come back, and your optimizer makes its step for one parameter at a time, just before that
  parameter is read again. For every optimizer that looks at one parameter at a time (SGD, Adam, AdamW, RMSprop, ...).
- `shards`: the workers share the optimizer's steps and its state (SGD, Adam, AdamW; with PyTorch's bits): each makes the steps of a
  part of all values, and what comes back are fresh parameters. A worker needs 1/N of the state's memory and of the steps' time.
- `ddp`: `.grad` holds the means when `backward()` returns, as with DistributedDataParallel. For clip_grad_norm_, GradScaler and
  whatever else looks at gradients.
- `auto`: `local` for PyTorch's own optimizers, `ddp` for those of another class, of which nobody knows what they look at.

N workers train, bit for bit, what one process trains that adds the gradients of N micro-batches in the order of the workers,
multiplies them by 1/N and steps. Between machines the weights of large nn.Linear layers may go as factors, which is equal up to
rounding; `routes="ps"` keeps the bits. Buffers (the statistics of BatchNorm) stay each worker's own.
"""

import atexit
import sys
from typing import Callable, Optional

from torch import nn, optim

from ..library import PoseidonError, options_from, reason_of
from .client import Client
from .distributed import DistributedDataParallel
from .local import LocalClient
from .optimizers import looks_at_one
from .shards import ShardsClient

__all__ = ["DistributedDataParallel", "PoseidonError", "join", "leave", "no_sync", "progress", "rank", "report", "size",
           "synchronize"]

MODES = ("auto", "shards", "local", "ddp")


def join(model: nn.Module, optimizer: Optional[optim.Optimizer] = None, mode: str = "auto", **options) -> Client:
    """Joins the run with this model, and waits until all workers are there. All begin with worker 0's values.

    `options` (`listen="0.0.0.0:7600", nodes=4`, `join="head:7600"`, `token_file=...`) go before the environment's POSEIDON_LISTEN
    and so on; without any this is the only worker. The result can be used in a `with`, at whose end this worker leaves; else it
    leaves when the interpreter ends.

    Raises PoseidonError, which says what to do."""
    if mode not in MODES:
        raise PoseidonError(f'mode is "{mode}", expected one of: {", ".join(MODES)}')
    if Client.current is not None:
        raise PoseidonError("this process has joined already: leave() first. To train two models at the same time, join an "
                            "nn.ModuleList of both")
    if mode == "ddp" or (mode == "auto" and optimizer is not None and not looks_at_one(optimizer)):
        return Client(model, options_from(options)).begin()
    if optimizer is None:
        raise PoseidonError(f'mode "{mode}" needs the optimizer, which makes its steps in it: join(model, optimizer), or '
                            'mode="ddp"')
    kind = ShardsClient if mode == "shards" else LocalClient
    return kind(model, optimizer, options_from(options)).begin()


def _joined() -> Client:
    if Client.current is None:
        raise PoseidonError("this process has not joined: call join(model, optimizer) first")
    return Client.current


def rank() -> int:
    """This worker's number, from 0."""
    return _joined().rank


def size() -> int:
    """How many workers there are."""
    return _joined().size


def synchronize() -> None:
    """Waits until all parameters are fresh."""
    _joined().synchronize()


def no_sync():
    """Within it gradients add up locally, and nothing is sent: for loops whose number of backward passes a step varies."""
    return _joined().no_sync()


def report(loss: float, samples: int) -> None:
    """Tells worker 0 and the page what this step has come to; call it once a step, or never."""
    _joined().report(loss, samples)


def progress(say: Optional[Callable[[str], None]] = print) -> None:
    """Calls `say` with each line that poseidon-node would show its user, from now on, once a step; None: no more."""
    _joined().say = say


def leave(reason: Optional[str] = None) -> None:
    """Ends this worker's part, when all workers have trained as many steps; with a `reason` it gives up at once, and the other
    workers' users read why. The model then has the newest values, and trains on as it did before join()."""
    if Client.current is not None:
        Client.current.leave(reason)


def _leave_at_exit() -> None:
    if Client.current is None:
        return
    error = getattr(sys, "last_value", None)
    try:
        leave(reason_of(error))
    except PoseidonError as failed:
        if error is None:  # else the user has seen what went wrong
            print(f"poseidon: {failed}", file=sys.stderr)


atexit.register(_leave_at_exit)
