"""A DistributedDataParallel for scripts that have one: the import changes, the script stays."""

import contextlib
import os
import secrets
import socket
import sys
from typing import Dict, Optional, Sequence

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils import _pytree

from ..library import PoseidonError, options_from
from ..options import OF_PYTORCH
from ..options import has_others
from .client import Client
from .comm_hooks import format_of, lowrank_of, without_effect
from .local import LocalClient
from .uneven import uneven

# By name: of arguments of PyTorch's class that are refused when they are given, what to write instead.
_REFUSED = {
    "outer": "poseidon.join(model, optimizer, outer=...) has outer steps, whose loop needs no wrapper around the model",
    "mixed_precision": "write torch.autocast around the forward pass, and keep the parameters in float32",
    "device_mesh": "leave it out: all workers of the run are one mesh",
}
# And of those that change nothing here: there are no buckets, and no all-reduce whose order could be chosen.
_WITHOUT_EFFECT = ("bucket_cap_mb", "find_unused_parameters", "check_reduction", "gradient_as_bucket_view", "static_graph", "init_sync",
                   "delay_all_reduce_named_params", "param_to_hook_all_reduce", "skip_all_reduce_unused_params", "output_device", "dim")
_METHODS = {
    "join_hook": "its join() is for models alone; else all workers need as many batches (drop_last=True, or DistributedSampler)",
    "reducer": "gradients leave one by one, and there is no reducer",
    "logger": "poseidon.torch.progress() and web= show the run",
    "_get_ddp_logging_data": "poseidon.torch.progress() and web= show the run",
    "_register_fused_optim": "write join(model, optimizer, mode=\"local\"), whose steps are made in the next forward pass",
    "_register_buffer_comm_hook": "buffers come from worker 0, or broadcast_buffers=False",
}


class _NotHere(PoseidonError, AttributeError):
    """So that hasattr() and getattr() with a default answer as for any other name."""


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def _world(**given) -> Dict[str, str]:
    """The options of the run, those `given` before the environment's. Who else is there say POSEIDON_..., the script's process group, or torchrun's
    variables."""
    options = options_from({name: value for name, value in given.items() if value is not None}, OF_PYTORCH)
    if has_others(options):
        return options
    if dist.is_available() and dist.is_initialized():
        rank, size = dist.get_rank(), dist.get_world_size()
        if size == 1:
            return options
        told = [f'{os.environ.get("MASTER_ADDR") or socket.gethostname()}:{_free_port()}', secrets.token_hex(32)] if rank == 0 else [None, None]
        dist.broadcast_object_list(told, src=0)
        where = told[0]
        if "token" not in options and "token-file" not in options:
            options["token"] = told[1]
    elif "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if size == 1:
            return options
        where = f'{os.environ.get("MASTER_ADDR", "127.0.0.1")}:{int(os.environ.get("MASTER_PORT", "29500")) + 1}'
    else:
        return options
    if rank == 0:
        host, _, port = where.rpartition(":")
        here = host in ("127.0.0.1", "localhost", "::1")
        return {**options, "listen": f'{"127.0.0.1" if here else "0.0.0.0"}:{port}', "nodes": str(size)}
    return {**options, "join": where}


class DistributedDataParallel(nn.Module):
    """Takes the place of torch.nn.parallel.DistributedDataParallel, with its arguments and attributes. `.grad` holds the means
    when backward() returns, so any optimizer, clipping and scaler works as it did. With `optimizer` the step is made for one
    parameter at a time in the next forward pass, as poseidon.torch.join(model, optimizer, mode="local") does. With `state=[optimizer, scheduler, ...]`
    others may join later, and are given these. `routes="lowrank"` and `rank` are options of the run, as join() has them.

    Arguments about buckets and about the order of an all-reduce are accepted and do nothing: there are none, and the first step shows which
    parameters are used. What cannot be had is refused by its name."""

    def __init__(self, module: nn.Module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, process_group=None, *positional,
                 optimizer: Optional[optim.Optimizer] = None, state: Optional[Sequence[object]] = None, quiet: bool = False,
                 routes: Optional[str] = None, rank: Optional[int] = None, lossy: Optional[str] = None, **others):
        super().__init__()
        if device_ids and len(device_ids) > 1:
            raise PoseidonError(f"device_ids has {len(device_ids)} devices, expected one: start a process for each")
        if process_group is not None and process_group is not dist.group.WORLD:
            raise PoseidonError("process_group is a part of the world: Poseidon averages over all workers")
        # In the order that PyTorch's class has them: bucket_cap_mb, find_unused_parameters, ... change nothing.
        if len(positional) > 5:
            raise PoseidonError(f"DistributedDataParallel has {len(positional) + 6} arguments without a name, expected at most 11")
        for name, value in others.items():
            if name in _REFUSED and value is not None:
                raise PoseidonError(f"DistributedDataParallel has no {name} (it is {value}): {_REFUSED[name]}")
            if name not in _WITHOUT_EFFECT and name not in _REFUSED:
                raise PoseidonError(f'DistributedDataParallel knows no argument "{name}"; PyTorch\'s other ones are accepted')
        if Client.current is not None:
            raise PoseidonError("this process has a DistributedDataParallel already. To train two models at the same time, write "
                                "DistributedDataParallel(nn.ModuleList([a, b])) once, and call a and b as before")
        if not any(p.requires_grad for p in module.parameters()):
            raise PoseidonError("no parameter of the module requires a gradient: there is nothing to exchange")
        self.module = module
        self.dim, self.device_ids, self.output_device = dim, device_ids, output_device
        self.broadcast_buffers, self.process_group = broadcast_buffers, process_group
        first = next(module.parameters(), None)
        self.device = first.device
        self.device_type = first.device.type
        self._device = first.device if device_ids and first.is_cuda else None
        self.find_unused_parameters = bool(others.get("find_unused_parameters", positional[1] if len(positional) > 1 else False))
        self.static_graph = bool(others.get("static_graph", False))
        said = {"broadcast_buffers": broadcast_buffers, "quiet": quiet,
                "ignored": frozenset(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))}
        self.parameters_to_ignore = set(said["ignored"])
        world = _world(routes=routes, rank=rank, lossy=lossy)
        if state is not None and optimizer is not None:
            raise PoseidonError("state=[...] is for workers that join later, which the mode of optimizer=... cannot let in: leave optimizer out, and name it "
                                "in state")
        client = Client.begun(module, None, state, world, **said) if optimizer is None else LocalClient(module, optimizer, world, **said).begin()
        self.__dict__["client"] = client  # not a part of the module's state
        self.__dict__["_syncs"] = True

    def forward(self, *inputs, **keywords):
        if self._device is not None:  # PyTorch's moves its inputs, too
            inputs, keywords = _pytree.tree_map(self._moved, (inputs, keywords))
        return self.module(*inputs, **keywords)

    def _moved(self, value):
        return value.to(self._device, non_blocking=True) if isinstance(value, torch.Tensor) else value

    @contextlib.contextmanager
    def no_sync(self):
        """Within it gradients add up locally, and nothing is sent."""
        with contextlib.nullcontext() if self.client is None else self.client.no_sync():
            yield

    @property
    def require_backward_grad_sync(self) -> bool:
        """False: gradients add up locally, as in no_sync(), until it is True again."""
        return self.__dict__.get("_syncs", True)

    @require_backward_grad_sync.setter
    def require_backward_grad_sync(self, value: bool) -> None:
        if self.client is not None:
            self.client.paused += int(self.require_backward_grad_sync) - int(bool(value))
        self.__dict__["_syncs"] = bool(value)

    def register_comm_hook(self, state, hook) -> None:
        """PyTorch's allreduce_hook, its hooks and wrappers that round to float16 or bfloat16, and those that quantize, which are int8 here: the
        format in which gradients travel from now on. All workers register the same one. powerSGD_hook says once more what the run has begun with:
        low rank of that rank. Others are refused by their names."""
        rank = lowrank_of(hook, state)
        if rank is not None:
            return self._require_lowrank(rank, state)
        self._travel_as(format_of(hook, state, self.client.size))

    def _register_builtin_comm_hook(self, hook) -> None:
        """PyTorch's hooks in C++, a dist.BuiltinCommHookType: the same two."""
        self._travel_as(format_of(hook, None, self.client.size))

    def _require_lowrank(self, rank: int, state) -> None:
        """Routes are chosen when a run begins, before a hook can be registered."""
        now = self.client.lowrank
        if now != rank and self.client.has_others:
            by = f"has begun with low rank of rank {now}" if now else "sends whole gradients"
            raise PoseidonError(f"register_comm_hook(powerSGD_hook): its rank is {rank}, and the run {by}. Write DistributedDataParallel(model, "
                                f'routes="lowrank", rank={rank}), or give worker 0 POSEIDON_ROUTES=lowrank and POSEIDON_RANK={rank}; then the hook may stay')
        if self.client.rank == 0 and not self.client.quiet:
            for line in without_effect(state):
                print(f"poseidon: powerSGD_hook: without effect: {line}", file=sys.stderr, flush=True)

    def _travel_as(self, form: str) -> None:
        if self.client.votes is not None:
            raise PoseidonError(f'register_comm_hook() and lossy="{self.client.votes.ladder.harshest}" exclude each other: a hook is the format, lossy the roughest one that '
                                "Poseidon may choose")
        if self.client.pushed:
            raise self.client.failed("register_comm_hook() between backward() and step(), when gradients have left already: call it before backward()")
        self.client.run.wire(form)

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False):
        """A context in which workers may have different numbers of batches: one that has none left counts as zeros in the others' means, and at the
        end all have the parameters of one that had the most."""
        if not enable:
            return contextlib.nullcontext()
        if throw_on_early_termination:
            raise PoseidonError("join(throw_on_early_termination=True): without join() a worker that has more batches than another ends with a line that "
                                "says so; leave join() out")
        if not divide_by_initial_world_size:
            raise PoseidonError("join(divide_by_initial_world_size=False): means are over all workers of the run; leave it out, and what a worker without "
                                "batches adds is zero")
        return uneven(self.client)

    def _set_static_graph(self) -> None:
        """The first step shows which parameters are used."""
        self.static_graph = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: nn.Module, names) -> None:
        """These stay each worker's own, as with PyTorch's class."""
        module._ddp_params_and_buffers_to_ignore = names

    def __getattr__(self, name: str):
        if name in _METHODS:
            raise _NotHere(f"DistributedDataParallel has no {name}: {_METHODS[name]}")
        return super().__getattr__(name)

    def __getstate__(self):
        """A copy (an average of the weights, a file) is a module as any other: it takes part in no run."""
        return {**self.__dict__, "client": None, "process_group": None}
