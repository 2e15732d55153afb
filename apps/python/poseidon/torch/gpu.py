"""Parameters on a GPU: their gradients leave during the backward pass, and the pass waits for no copy.

The library has no CUDA and reads gradients from memory of the host. A copy to it is enqueued on a stream of its own behind the
kernels that make the gradient, and a thread pushes each gradient when its copy is done. Fresh values are read from the library's
memory, which is pinned, on the stream that will use them."""

import contextlib
import mmap
import os
import queue
import threading
from typing import Callable, Dict, Iterable, List, Optional, Tuple

import torch

from ..library import Run


class Pusher:
    """Pushes gradients, in the order in which they are given, when their copies are done."""

    def __init__(self, run: Run, failed: Callable[[BaseException], None]):
        """`failed` is told, in this object's thread, of an error that a copy or a push ended with; nothing is pushed after it."""
        self._run, self._failed = run, failed
        self._waiting: "queue.Queue[Optional[Tuple]]" = queue.Queue()
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._work, name="poseidon-pusher", daemon=True)
        self._thread.start()

    def push(self, i: int, clock: int, values: torch.Tensor, copied) -> None:
        """`copied`: an event after which `values` hold the gradient; they stay until its mean is here."""
        self._waiting.put((i, clock, values, copied))

    def wait(self) -> None:
        """Until all that was given has been pushed."""
        self._waiting.join()

    def end(self) -> None:
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            given = self._waiting.get()
            try:
                if given is None:
                    return
                if self._error is None:
                    i, clock, values, copied = given
                    copied.synchronize()
                    self._run.push(i, clock, values.data_ptr(), 4 * values.numel())
            except BaseException as error:  # a kernel that has failed
                self._error = error
                self._failed(error)
            finally:
                self._waiting.task_done()


def _pages(places: Iterable[Tuple[int, int]]) -> List[Tuple[int, int]]:
    """The pages, as addresses from and to, that memory at these addresses of so many bytes lies in; each page once."""
    size = mmap.PAGESIZE
    spans: List[Tuple[int, int]] = []
    for begin, end in sorted((at // size * size, -(-(at + bytes_) // size) * size) for at, bytes_ in places if bytes_ > 0):
        if spans and begin <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return spans


class Gpus:
    """The ways of one client's gradients and values between GPUs and the library's memory."""

    def __init__(self, run: Run, parameters: List[torch.Tensor], failed: Callable[[BaseException], None]):
        self._parameters = parameters
        self._beside: Dict[torch.device, torch.cuda.Stream] = {}
        self._staged: Dict[int, torch.Tensor] = {}
        self._pinned: List[int] = []
        self._process = os.getpid()
        self._pusher = Pusher(run, failed)

    def pin(self, places: Iterable[Tuple[int, int]]) -> None:
        """Pins the library's memory at these addresses, of so many bytes. Where the system refuses that, values come more slowly, as from any
        other memory."""
        for begin, end in _pages(places):
            if int(torch.cuda.cudart().cudaHostRegister(begin, end - begin, 0)) != 0:
                with contextlib.suppress(RuntimeError):  # CUDA tells the next kernel of it
                    torch.zeros(1, device="cuda")
                return
            self._pinned.append(begin)

    def send(self, i: int, clock: int, gradient: torch.Tensor) -> None:
        """Enqueues the copy of a gradient behind the kernels of the current stream, and its push behind the copy."""
        device = gradient.device
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("a CUDA graph is being captured: hooks do not run when it is replayed, so its gradients would not be exchanged")
        if device not in self._beside:
            self._beside[device] = torch.cuda.Stream(device)
        if i not in self._staged:  # one for the whole run: the mean of a clock is here before the next clock's gradient
            p = self._parameters[i]
            self._staged[i] = torch.empty_strided(p.shape, p.stride(), dtype=torch.float32, pin_memory=True)
        beside, staged = self._beside[device], self._staged[i]
        beside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(beside):
            staged.copy_(gradient, non_blocking=True)
            copied = torch.cuda.Event(blocking=True)
            copied.record(beside)
        gradient.record_stream(beside)  # its memory is given to nobody else before
        self._pusher.push(i, clock, staged, copied)

    def wait_for_pushes(self) -> None:
        self._pusher.wait()

    def end(self) -> None:
        """Nothing is on its way any more, and the library's memory is no longer pinned."""
        if os.getpid() != self._process:
            return  # the child of a fork, which has neither the thread nor the GPU
        self._pusher.end()
        with contextlib.suppress(RuntimeError):  # of a kernel that has failed: the script has seen it
            for device in self._beside:
                torch.cuda.synchronize(device)
        for begin in self._pinned:
            torch.cuda.cudart().cudaHostUnregister(begin)
        self._pinned.clear()
