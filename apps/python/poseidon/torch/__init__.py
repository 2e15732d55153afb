"""Poseidon under PyTorch: a script trains on a cluster of ordinary machines.

    import poseidon.torch as poseidon
    poseidon.join(model, optimizer)      # POSEIDON_LISTEN and POSEIDON_NODES, or POSEIDON_JOIN, say who else is there

The loop stays as it is. Gradients leave while `backward()` still runs. Modes:

- `ddp` (`auto`): `.grad` holds the means when `backward()` returns, as with DistributedDataParallel, and the optimizer is yours alone:
  what is right with DDP is right with it.
- `local`, where the network is what a step waits for: your optimizer makes its step for one parameter at a time, just before the next forward
  pass reads that parameter, so the network has the time of that pass, too. For every optimizer that looks at one parameter at a time.
- `shards`, for large models: the workers share the optimizer's steps and its state (SGD, Adam, AdamW; with PyTorch's bits): each makes the steps
  of a part of all values, and what comes back are fresh parameters. A worker needs 1/N of the state's memory and of the steps' time.

N workers train, bit for bit, what one process trains that adds the gradients of N micro-batches in the order of the workers,
multiplies them by 1/N and steps. Between machines the weights of large nn.Linear layers may go as factors, which is equal up to
rounding; `routes="ps"` keeps the bits. All workers begin with worker 0's parameters, frozen ones included, and buffers; after each step
all have worker 0's buffers (the statistics of BatchNorm), or with `broadcast_buffers=False` each its own.
"""

import atexit
import sys
from typing import Callable, Optional, Sequence

from torch import nn, optim

from ..library import PoseidonError, options_from, reason_of
from ..options import OF_PYTORCH
from .agreed import Progress
from .client import Client
from .distributed import DistributedDataParallel
from .exchangeable import require_all_of_model
from .local import LocalClient
from .members import Change
from .outer import Outer
from .outer_client import OuterClient
from .sampler import Sampler
from .shards import ShardsClient

__all__ = ["Change", "DistributedDataParallel", "Outer", "PoseidonError", "Progress", "Sampler", "join", "leave", "no_sync", "on_change", "progress", "rank", "report", "size",
           "synchronize"]

MODES = ("auto", "shards", "local", "ddp")


def join(model: nn.Module, optimizer: Optional[optim.Optimizer] = None, mode: str = "auto", *, outer: Optional[Outer] = None,
         state: Optional[Sequence[object]] = None, broadcast_buffers: bool = True, quiet: bool = False, **options) -> Client:
    """Joins the run with this model, and waits until all workers are there; what it waits for is said on stderr, unless `quiet`. All begin with
    worker 0's parameters and buffers, and take its buffers after each step, unless `broadcast_buffers` is False.

    `state`: what a worker needs that joins later, beside the model and the optimizer: schedulers, a Progress, a GradScaler, all that has state_dict()
    and load_state_dict(). With it, on all workers, others may join at any time; then join() returns when this worker has all of what they have.

    `outer`: each worker makes so many steps by itself, and then all take an outer step together; see Outer. All give the same.

    `options` (`listen="0.0.0.0:7600", nodes=4, token_file="token"`, `join="head:7600", token_file="token"`) go before the environment's POSEIDON_LISTEN
    and so on; without any this is the only worker. The result can be used in a `with`, at whose end this worker leaves; else it
    leaves when the interpreter ends.

    Raises PoseidonError, which says what to do."""
    if mode not in MODES:
        raise PoseidonError(f'mode is "{mode}", expected one of: {", ".join(MODES)}')
    if Client.current is not None:
        raise PoseidonError("this process has joined already: leave() first. To train two models at the same time, each with an optimizer of its "
                            "own, join an nn.ModuleList of both, in mode ddp")
    said = {"broadcast_buffers": broadcast_buffers, "quiet": quiet}
    if outer is not None:
        if not isinstance(outer, Outer):
            raise PoseidonError(f"outer is {outer!r}, expected a poseidon.Outer: outer=poseidon.Outer(every=20)")
        if mode not in ("auto", "ddp"):
            raise PoseidonError(f'outer=... and mode="{mode}" exclude each other: with outer steps each worker\'s optimizer makes its steps at once')
        require_all_of_model(model, optimizer)
        return OuterClient.begun(model, optimizer, state, options_from(options, OF_PYTORCH), outer=outer, **said)
    if mode in ("auto", "ddp"):
        require_all_of_model(model, optimizer)
        return Client.begun(model, optimizer, state, options_from(options, OF_PYTORCH), **said)
    if state is not None:
        raise PoseidonError(f'state=[...] is for workers that join later, which mode "{mode}" cannot let in: mode="ddp" does')
    if optimizer is None:
        raise PoseidonError(f'mode "{mode}" needs the optimizer, which makes its steps in it: join(model, optimizer), or '
                            'mode="ddp"')
    kind = ShardsClient if mode == "shards" else LocalClient
    return kind(model, optimizer, options_from(options, OF_PYTORCH), **said).begin()


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


def on_change(callback: Callable[[Change], object]) -> None:
    """Calls `callback` with a Change when workers have joined or gone: before the optimizer's step for the first mean that is over those that are there
    now, so that it may set the learning rate. An error in it is this worker's end."""
    client = _joined()
    if client.has_others and not client.outlives_losses:  # who is alone stays alone
        raise PoseidonError("on_change: the members of this run do not change (on_loss=\"end\")")
    client.members.tell(callback)


def synchronize() -> None:
    """Waits until all parameters are fresh. With `outer` it makes an outer step now, which all workers have to call."""
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


def leave(reason: Optional[str] = None, *, others_go_on: bool = False) -> None:
    """Ends this worker's part, when all workers have trained as many steps. With `others_go_on` this one leaves, and the others may train on: it waits
    until one of them does, so that its last step counts. With a `reason` it gives up at once, and the other workers' users read why. The model
    then has the newest values, and trains on as it did before join()."""
    if Client.current is not None:
        Client.current.leave(reason, others_go_on)


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
