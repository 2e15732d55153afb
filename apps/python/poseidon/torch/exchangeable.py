"""Which parameters can be exchanged."""

import torch
from torch import nn

from ..library import PoseidonError


def _without_gaps(t: torch.Tensor) -> bool:
    return t.numel() == 0 or t.numel() == 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))


def require_exchangeable(name: str, p: torch.Tensor) -> None:
    """Refuses a parameter that has no place in the library's memory."""
    if isinstance(p, nn.parameter.UninitializedParameter):
        raise PoseidonError(f'"{name}" has no shape yet: run one forward pass before join()')
    if p.is_sparse or p.is_meta:
        raise PoseidonError(f'"{name}" is {"sparse" if p.is_sparse else "on the meta device"}: Poseidon exchanges dense values')
    if not p.is_cuda and p.device.type != "cpu":
        raise PoseidonError(f'"{name}" is on {p.device}, expected the CPU or a CUDA device')
    if p.dtype != torch.float32:
        raise PoseidonError(f'"{name}" is {p.dtype}, expected torch.float32: keep the parameters in it, also with autocast')
    if not _without_gaps(p):
        raise PoseidonError(f'"{name}" has gaps in memory (shape {tuple(p.shape)}, strides {p.stride()}): make it contiguous')
