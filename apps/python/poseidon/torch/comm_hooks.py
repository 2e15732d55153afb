"""PyTorch's communication hooks: what each says of the format in which gradients travel."""

import inspect
from typing import List, Optional

import torch.distributed as dist

from ..library import PoseidonError

_DEFAULT = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
_FORMATS = {"allreduce_hook": "float32", "fp16_compress_hook": "float16", "bf16_compress_hook": "bfloat16"}
_QUANTIZATION = "torch.distributed.algorithms.ddp_comm_hooks.quantization_hooks"
_EIGHT_BITS = ("quantization_pertensor_hook", "quantization_perchannel_hook")
_WRAPPERS = {"fp16_compress_wrapper": "float16", "bf16_compress_wrapper": "bfloat16"}
_BUILTIN = {"ALLREDUCE": "float32", "FP16_COMPRESS": "float16"}

_POWER_SGD = "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook"
_RANKS = (4, 8)

_HALF = "fp16_compress_hook or bf16_compress_hook halves the bytes, quantization_pertensor_hook quarters them"
_OTHERS = {
    "powerSGD_hook": f'P and Q travel as float32; leave out the wrapper around powerSGD_hook, or {_HALF}',
    "batched_powerSGD_hook": f'there are no buckets; powerSGD_hook has the matrices of the layers (routes="lowrank"), or {_HALF}',
    "post_localSGD_hook": f"join(model, optimizer, outer=poseidon.Outer(...)) averages seldom, as it does; leave it out, or {_HALF}",
    "noop_hook": "no_sync() is for steps that send nothing",
}
_ANY = ("gradients leave one by one, and there are no buckets that a hook could get; Tensor.register_hook changes a gradient before it leaves, and "
        + _HALF)


def _name(hook) -> str:
    if type(hook).__name__ == "BuiltinCommHookType":
        return hook.name
    return getattr(hook, "__name__", type(hook).__name__)


def _wrapper(hook) -> Optional[str]:
    """The name of PyTorch's wrapper that has made this hook."""
    made_in = getattr(hook, "__qualname__", "").partition(".<locals>.")[0]
    return made_in if getattr(hook, "__module__", None) == _DEFAULT and made_in in _WRAPPERS else None


def _require_possible(state) -> None:
    """Refuses what low rank cannot be with."""
    head = "register_comm_hook(powerSGD_hook): "
    if not hasattr(state, "matrix_approximation_rank"):
        raise PoseidonError(f"{head}its state is {state!r}, expected a PowerSGDState, which says the rank; for rounded gradients {_HALF}")
    rank = state.matrix_approximation_rank
    if rank not in _RANKS:
        raise PoseidonError(f"{head}matrix_approximation_rank is {rank}, expected 4 or 8: write matrix_approximation_rank={_RANKS[rank > _RANKS[0]]}")
    for name, why in (("use_error_feedback", "what a step has not sent is always sent later"), ("warm_start", "Q is always that of the step before")):
        if not getattr(state, name, True):
            raise PoseidonError(f"{head}{name} is False, and here {why}: leave it out")


def lowrank_of(hook, state) -> Optional[int]:
    """The rank that PyTorch's powerSGD_hook asks for; None: it is another hook.

    Raises PoseidonError where low rank cannot be what its state says."""
    if _name(hook) != "powerSGD_hook" or getattr(hook, "__module__", None) != _POWER_SGD:
        return None
    _require_possible(state)
    return state.matrix_approximation_rank


def without_effect(state) -> List[str]:
    """What a PowerSGDState says that changes nothing here, beside names that only concern how it computes."""
    said = []
    if getattr(state, "start_powerSGD_iter", 0) > 0:
        said.append(f"start_powerSGD_iter={state.start_powerSGD_iter}: low rank begins with the first step")
    if getattr(state, "min_compression_rate", 2) != 2:
        said.append(f"min_compression_rate={state.min_compression_rate}: a matrix goes by low rank that saves half of its values")
    return said


def format_of(hook, state, workers: int) -> str:
    """The wire format that a hook of PyTorch stands for.

    Raises PoseidonError with the hook's name, and what to write instead."""
    name = _name(hook)
    if type(hook).__name__ == "BuiltinCommHookType" and name in _BUILTIN:
        return _BUILTIN[name]
    if state is not None and isinstance(state, dist.ProcessGroup) and state.size() != workers:
        raise PoseidonError(f"register_comm_hook({name}): its process group has {state.size()} processes, and this run {workers} workers: Poseidon "
                            "averages over all of them")
    wrapper = _wrapper(hook)
    if wrapper is not None:
        inner = inspect.getclosurevars(hook).nonlocals["hook"]
        wrapped = format_of(inner, state, workers)
        if wrapped not in ("float32", _WRAPPERS[wrapper]):
            raise PoseidonError(f"register_comm_hook({wrapper}({_name(inner)})): gradients are rounded once; write {wrapper}(allreduce_hook)")
        return _WRAPPERS[wrapper]
    if name in _FORMATS and getattr(hook, "__module__", None) == _DEFAULT:
        return _FORMATS[name]
    if name in _EIGHT_BITS and getattr(hook, "__module__", None) == _QUANTIZATION:
        return "int8"
    raise PoseidonError(f"register_comm_hook({name}): {_OTHERS.get(name, _ANY)}")
