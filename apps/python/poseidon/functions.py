"""What of libposeidon.so is called through ctypes: the functions and structures of poseidon.h, and where the file is found."""

import ctypes
import os
import threading
from pathlib import Path
from typing import Iterator, Optional

from .options import PoseidonError

ABI = 10


class Parameter(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dims", ctypes.POINTER(ctypes.c_int64)), ("dims_count", ctypes.c_uint32),
                ("values", ctypes.c_void_p), ("kind", ctypes.c_uint32)]


class Shared(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_char_p), ("bytes", ctypes.c_void_p), ("size", ctypes.c_uint64)]


class Load(ctypes.Structure):
    _fields_ = [("backward_s", ctypes.c_double), ("product_s", ctypes.c_double), ("factor_rows", ctypes.c_uint32)]


class Hyperparameters(ctypes.Structure):
    """How an optimizer steps; Adam's beta1 is its momentum."""
    _fields_ = [("rate", ctypes.c_double), ("weight_decay", ctypes.c_double), ("momentum", ctypes.c_double),
                ("dampening", ctypes.c_double), ("beta2", ctypes.c_double), ("eps", ctypes.c_double), ("nesterov", ctypes.c_uint32),
                ("lerp", ctypes.c_uint32), ("rest", ctypes.c_uint64)]


class Functions:
    """The functions. Those of microseconds keep Python's lock (PyDLL): another thread could hold it for milliseconds once it
    is gone. Those that block let it go (CDLL)."""

    def __init__(self, path: str):
        quick, blocking = ctypes.PyDLL(path), ctypes.CDLL(path)
        run, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
        number, size, text, address = ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p

        def declare(library, name, result, *arguments):
            function = library["poseidon_" + name]  # a new object each time: the two kinds do not mix
            function.restype, function.argtypes = result, arguments
            return function

        self.abi = declare(quick, "abi", u32)
        if self.abi() != ABI:
            raise PoseidonError(f"{path} has version {self.abi()} of the interface, this package needs {ABI}: "
                                "install both from one release")
        self.version = declare(quick, "version", text)
        self.join = declare(quick, "join", run, text)
        self.error = declare(quick, "error", text, run)
        self.declare = declare(quick, "declare", number, run, ctypes.POINTER(Parameter), size)
        self.share = declare(quick, "share", number, run, ctypes.POINTER(Shared), size)
        self.begin = declare(blocking, "begin", number, run, ctypes.c_double)
        self.worker = declare(quick, "worker", u32, run)
        self.workers = declare(quick, "workers", u32, run)
        self.view = declare(quick, "view", number, run, size, ctypes.POINTER(u64), ctypes.POINTER(u32), size)
        self.order = declare(quick, "order", number, run, ctypes.POINTER(u32))
        self.optimize = declare(quick, "optimize", number, run, number, ctypes.POINTER(u32))
        self.first_state = declare(quick, "first_state", number, run, u32, u64, ctypes.POINTER(address), size)
        self.step = declare(quick, "step", number, run, u32, ctypes.POINTER(Hyperparameters))
        self.step_from = declare(quick, "step_from", number, run, u32, address)
        self.read_state = declare(blocking, "read_state", number, run, ctypes.c_double)
        self.state = declare(quick, "state", address, run, u32, u32)
        self.steps = declare(quick, "steps", ctypes.c_int64, run, u32)
        self.push = declare(quick, "push", number, run, u32, u64, address, size)
        self.push_nothing = declare(quick, "push_nothing", number, run, u32, u64)
        self.wire = declare(quick, "wire", number, run, number)
        self.measured = declare(quick, "measured", number, run, ctypes.POINTER(Load))
        self.begins = declare(quick, "begin_clock", number, run, u64, ctypes.c_double)
        self.begin_clock = declare(blocking, "begin_clock", number, run, u64, ctypes.c_double)
        self.give_state = declare(blocking, "give_state", number, run, u64, address, u64, u64)
        self.first_clock = declare(quick, "first_clock", u64, run)
        self.state_given = declare(quick, "state_given", address, run, ctypes.POINTER(u64))
        self.route = declare(quick, "route", number, run, u32)
        self.push_factors = declare(quick, "push_factors", number, run, u32, u64, address, address, u32, address)
        self.is_here = declare(quick, "wait", number, run, u32, u64, ctypes.c_double)
        self.wait = declare(blocking, "wait", number, run, u32, u64, ctypes.c_double)
        self.look = declare(quick, "look", number, run, address, u32, u64, ctypes.POINTER(ctypes.c_uint8))
        self.collect = declare(blocking, "collect", number, run, address, u32, u64, address, address, ctypes.c_double)
        self.values = declare(quick, "values", address, run, u32, u64)
        self.report = declare(quick, "report", number, run, u64, ctypes.c_double, u64)
        self.next_line = declare(quick, "next_line", text, run)
        self.leave = declare(blocking, "leave", number, run, text, ctypes.c_double)
        self.leave_others = declare(blocking, "leave_others", number, run, ctypes.c_double)
        self.free = declare(blocking, "free", None, run)


class Memory:
    """The run's memory, which is freed when nobody looks at it any more."""

    def __init__(self, functions: "Functions", run: int):
        self._functions, self._run = functions, run

    def free(self) -> None:
        run, self._run = self._run, None
        if run:
            self._functions.free(run)

    def __del__(self) -> None:
        self.free()


_loaded: Optional[Functions] = None
_loading = threading.Lock()


def _candidates() -> Iterator[Path]:
    here = Path(__file__).resolve().parent
    name = "libposeidon.so"
    yield here / name
    yield here / "lib" / name  # a wheel
    for above in list(here.parents)[:4]:  # a bundle, an installation below one prefix
        yield above / "lib" / name
        yield above / name


def library() -> Functions:
    """Opens the library once: the file that POSEIDON_LIBRARY names, or one near this package, or one that the system knows.

    Raises PoseidonError where there is none, or one of another version."""
    global _loaded
    with _loading:
        if _loaded is not None:
            return _loaded
        named = os.environ.get("POSEIDON_LIBRARY")
        if named and not os.path.exists(named):
            raise PoseidonError(f'POSEIDON_LIBRARY is "{named}", and there is no such file')
        found = named or next((str(path) for path in _candidates() if path.exists()), "libposeidon.so")
        try:
            _loaded = Functions(found)
        except OSError as error:
            raise PoseidonError(f"libposeidon.so cannot be opened ({error}). Set POSEIDON_LIBRARY to its file, or install "
                                "Poseidon") from error
        return _loaded


def version() -> str:
    """The version of the library."""
    return library().version().decode()
