"""What may be in force around a call, and would meet what this package does in it: transforms of functions, tracers, modes."""

import torch

_functorch = getattr(torch._C, "_functorch", None)
if hasattr(_functorch, "peek_interpreter_stack"):
    def _is_transformed() -> bool:
        return _functorch.peek_interpreter_stack() is not None
elif hasattr(_functorch, "are_transforms_active"):  # PyTorch 1.13
    def _is_transformed() -> bool:
        return _functorch.are_transforms_active()
else:
    def _is_transformed() -> bool:
        return False

_modes = getattr(torch._C, "_len_torch_dispatch_stack", int)
_is_exporting = getattr(getattr(torch, "compiler", None), "is_exporting", bool)


def in_plain_autograd() -> bool:
    """No torch.func transform, no tracing or exporting, and no mode that sees each operation below autograd."""
    return not (_is_transformed() or torch._C._get_tracing_state() is not None or _modes() > 0 or _is_exporting())
