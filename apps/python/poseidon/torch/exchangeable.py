"""Which models and parameters can be exchanged."""

from typing import Optional

import torch
import torch.distributed as dist
from torch import nn, optim

from ..library import PoseidonError


def _without_gaps(t: torch.Tensor) -> bool:
    return t.numel() == 0 or t.numel() == 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))


def is_empty(p: torch.Tensor) -> bool:
    """It has a shape, and no values."""
    return not isinstance(p, nn.parameter.UninitializedTensorMixin) and p.numel() == 0


def require_all_of_model(model: nn.Module, optimizer: Optional[optim.Optimizer]) -> None:
    """Refuses an optimizer that would step with gradients that nobody exchanges."""
    known = {id(p) for p in model.parameters()}
    groups = optimizer.param_groups if optimizer is not None else []
    strange = [p for group in groups for p in group["params"] if id(p) not in known and p.requires_grad]
    if strange:
        total = sum(len(group["params"]) for group in groups)
        raise PoseidonError(f"the optimizer has {len(strange)} of its {total} parameters from elsewhere, not from this model (the first of shape "
                            f"{tuple(strange[0].shape)}): nobody would exchange their gradients. Join an nn.ModuleList of all that it trains")


def require_exchangeable(name: str, p: torch.Tensor) -> None:
    """Refuses a parameter that has no place in the library's memory."""
    if isinstance(p, nn.parameter.UninitializedParameter):
        raise PoseidonError(f'"{name}" has no shape yet: run one forward pass before join()')
    if p.numel() == 0:
        raise PoseidonError(f'"{name}" has no values (shape {tuple(p.shape)}), and no step can be made for it: mode="ddp" leaves it alone')
    if p.is_sparse or p.is_meta:
        raise PoseidonError(f'"{name}" is {"sparse" if p.is_sparse else "on the meta device"}: Poseidon exchanges dense values')
    if not p.is_cuda and p.device.type != "cpu":
        raise PoseidonError(f'"{name}" is on {p.device}, expected the CPU or a CUDA device')
    if p.dtype != torch.float32:
        raise PoseidonError(f'"{name}" is {p.dtype}, expected torch.float32: keep the parameters in it, also with autocast')
    if not _without_gaps(p):
        raise PoseidonError(f'"{name}" has gaps in memory (shape {tuple(p.shape)}, strides {p.stride()}): make it contiguous')


def require_statistics(model: nn.Module, workers: Optional[int] = None) -> None:
    """Refuses a SyncBatchNorm that nobody would tell of the other workers: without a process group it is a BatchNorm, and says nothing. Asked before
    the run begins, so that all workers refuse it alike, and once more when it has `workers`."""
    name = next((name for name, m in model.named_modules() if isinstance(m, nn.SyncBatchNorm)), None)
    if name is None:
        return
    has_group = dist.is_available() and dist.is_initialized()
    if has_group and workers in (None, dist.get_world_size()):
        return
    size = f"it has {dist.get_world_size()} processes and this run {workers} workers" if has_group else "there is none"
    raise PoseidonError(f'"{name}" is a SyncBatchNorm, which adds its statistics over the process group of torch.distributed, and {size}: call '
                        "torch.distributed.init_process_group() with all workers first, or use BatchNorm")
