"""A DistributedDataParallel for scripts that have one: the import changes, the script stays."""

import contextlib
import os
import socket
from typing import Dict, Optional

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils import _pytree

from ..library import PoseidonError, options_from
from .client import Client
from .local import LocalClient


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def _world() -> Dict[str, str]:
    """Who else is there: the environment's POSEIDON_..., the script's process group, or torchrun's variables."""
    options = options_from({})
    if "listen" in options or "join" in options:
        return options
    if dist.is_available() and dist.is_initialized():
        rank, size = dist.get_rank(), dist.get_world_size()
        if size == 1:
            return options
        address = [f'{os.environ.get("MASTER_ADDR") or socket.gethostname()}:{_free_port()}' if rank == 0 else None]
        dist.broadcast_object_list(address, src=0)
        where = address[0]
    elif "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if size == 1:
            return options
        where = f'{os.environ.get("MASTER_ADDR", "127.0.0.1")}:{int(os.environ.get("MASTER_PORT", "29500")) + 1}'
    else:
        return options
    if rank == 0:
        return {**options, "listen": "0.0.0.0:" + where.rpartition(":")[2], "nodes": str(size)}
    return {**options, "join": where}


class DistributedDataParallel(nn.Module):
    """Takes the place of torch.nn.parallel.DistributedDataParallel, with its arguments and attributes. `.grad` holds the means
    when backward() returns, so any optimizer, clipping and scaler works as it did. With `optimizer` the step is made for one
    parameter at a time in the next forward pass, as poseidon.torch.join(model, optimizer) does.

    bucket_cap_mb, find_unused_parameters, static_graph, gradient_as_bucket_view, check_reduction and broadcast_buffers are
    accepted and do nothing: there are no buckets, and the first step shows which parameters are used. Buffers stay each
    worker's own."""

    def __init__(self, module: nn.Module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True,
                 process_group=None, bucket_cap_mb=25, find_unused_parameters=False, check_reduction=False,
                 gradient_as_bucket_view=False, static_graph=False, *, optimizer: Optional[optim.Optimizer] = None):
        super().__init__()
        if device_ids and len(device_ids) > 1:
            raise PoseidonError(f"device_ids has {len(device_ids)} devices, expected one: start a process for each")
        if process_group is not None and process_group is not dist.group.WORLD:
            raise PoseidonError("process_group is a part of the world: Poseidon averages over all workers")
        if Client.current is not None:
            raise PoseidonError("this process has a DistributedDataParallel already: wrap one module that holds both models")
        self.module = module
        first = next(module.parameters(), None)
        self._device = first.device if device_ids and first is not None and first.is_cuda else None
        world = _world()
        client = Client(module, world) if optimizer is None else LocalClient(module, optimizer, world)
        self.__dict__["client"] = client.begin()  # not a part of the module's state

    def forward(self, *inputs, **keywords):
        if self._device is not None:  # PyTorch's moves its inputs, too
            inputs, keywords = _pytree.tree_map(self._moved, (inputs, keywords))
        return self.module(*inputs, **keywords)

    def _moved(self, value):
        return value.to(self._device, non_blocking=True) if isinstance(value, torch.Tensor) else value

    @contextlib.contextmanager
    def no_sync(self):
        """Within it gradients add up locally, and nothing is sent."""
        with self.client.no_sync():
            yield
