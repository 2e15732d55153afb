"""What may be in force around a call, and would meet what this package does in it: transforms of functions, tracers, modes."""

import contextlib
import threading
from typing import Callable, List

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


if hasattr(torch._C, "_is_any_autocast_enabled"):
    _is_autocast = torch._C._is_any_autocast_enabled
else:
    def _is_autocast() -> bool:
        return torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()


def _sees_functions() -> bool:
    """Whether a mode sees each function of torch; one that only says on which device tensors are made by default is none."""
    count = torch._C._len_torch_function_stack()
    return count > 0 and any(type(torch._C._get_function_stack_at(i)).__name__ != "DeviceContext" for i in range(count))


def is_plain() -> bool:
    """Nothing is in force that changes what a function of torch does, or that records it; but for grad mode."""
    return in_plain_autograd() and not (torch.is_inference_mode_enabled() or _is_autocast() or _sees_functions())


def plainly(function: Callable[[], None]) -> None:
    """Calls it where nothing is in force: what is, is a thread's own, so it is called in another one."""
    if is_plain():
        return function()
    streams = [torch.cuda.current_stream(d) for d in range(torch.cuda.device_count())] if torch.cuda.is_initialized() else []
    raised: List[BaseException] = []

    def call() -> None:
        try:
            with contextlib.ExitStack() as on:
                for stream in reversed(streams):
                    on.enter_context(torch.cuda.stream(stream))
                function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call, name="poseidon-step")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
