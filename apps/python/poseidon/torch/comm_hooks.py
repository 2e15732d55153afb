"""PyTorch's communication hooks: what each says of the format in which gradients travel."""

import inspect
from typing import Optional

import torch.distributed as dist

from ..library import PoseidonError

_DEFAULT = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
_FORMATS = {"allreduce_hook": "float32", "fp16_compress_hook": "float16", "bf16_compress_hook": "bfloat16"}
_QUANTIZATION = "torch.distributed.algorithms.ddp_comm_hooks.quantization_hooks"
_EIGHT_BITS = ("quantization_pertensor_hook", "quantization_perchannel_hook")
_WRAPPERS = {"fp16_compress_wrapper": "float16", "bf16_compress_wrapper": "bfloat16"}
_BUILTIN = {"ALLREDUCE": "float32", "FP16_COMPRESS": "float16"}

_HALF = "fp16_compress_hook or bf16_compress_hook halves the bytes, quantization_pertensor_hook quarters them"
_FACTORS = f"large nn.Linear layers send factors of their gradients where that is less (routes), without its error; leave it out, or {_HALF}"
_OTHERS = {
    "powerSGD_hook": _FACTORS,
    "batched_powerSGD_hook": _FACTORS,
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
