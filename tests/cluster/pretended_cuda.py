# tests/cluster/pretended_cuda.py - a machine without a GPU whose tensors say that they lie on one, for the client's ways there.
"""install() makes every tensor of this process say is_cuda. What is enqueued on a stream that is not the current one is done late, in
a thread of the stream: who does not wait for it reads what was there before."""
import contextlib
import queue
import threading
import time

import torch

_now = threading.local()


class Event:
    def __init__(self, blocking=False):
        self._done = threading.Event()

    def record(self, stream):
        stream.enqueue(self._done.set)

    def synchronize(self):
        self._done.wait()


class Stream:
    def __init__(self, device=None, late_s=0.002):
        self._work, self._late_s = queue.Queue(), late_s
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            work = self._work.get()
            time.sleep(self._late_s)  # so that who does not wait is found out
            work()

    def enqueue(self, work):
        self._work.put(work)

    def wait_stream(self, other):
        assert other is None, "what the current stream has been given is done at once"


class Runtime:
    registered = {}

    def cudaHostRegister(self, begin, size, flags):
        assert begin % 4096 == size % 4096 == flags == 0 and size > 0
        assert all(begin + size <= b or b + s <= begin for b, s in self.registered.items()), "a page is registered twice"
        self.registered[begin] = size
        return 0

    def cudaHostUnregister(self, begin):
        del self.registered[begin]


@contextlib.contextmanager
def stream(s):
    _now.stream = s
    yield
    _now.stream = None


def install():
    copy_, empty_strided = torch.Tensor.copy_, torch.empty_strided

    def copy(self, other, non_blocking=False):
        s = getattr(_now, "stream", None)
        if s is None:
            return copy_(self, other)
        assert non_blocking
        values = other.detach()  # what a stream copies is memory, whatever becomes of the tensor meanwhile
        s.enqueue(lambda: copy_(self, values))
        return self

    def empty(*shape, pin_memory=False, **more):
        return empty_strided(*shape, **more).fill_(float("nan")) if pin_memory else empty_strided(*shape, **more)

    torch.Tensor.is_cuda = property(lambda self: True)
    torch.Tensor.copy_, torch.Tensor.record_stream, torch.empty_strided = copy, lambda self, s: None, empty
    for name, value in {"Event": Event, "Stream": Stream, "stream": stream, "current_stream": lambda device=None: None,
                        "cudart": Runtime, "synchronize": lambda device=None: None, "is_current_stream_capturing": lambda: False,
                        "get_device_name": lambda device=None: "pretended", "get_device_capability": lambda device=None: (0, 0)}.items():
        setattr(torch.cuda, name, value)
