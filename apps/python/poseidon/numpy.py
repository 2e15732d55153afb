"""Poseidon for programs without a framework: NumPy arrays go out, and the means of all workers come back.

    worker = poseidon.numpy.Worker({"w": w, "b": b})       # POSEIDON_LISTEN, POSEIDON_NODES, POSEIDON_JOIN say who else is there
    w[:], b[:] = worker.first("w"), worker.first("b")       # worker 0's values
    for x, y in batches:
        worker.push("w", gradient_of_w)                     # as soon as it is there: it leaves while the program goes on
        worker.push("b", gradient_of_b)
        w -= rate * worker.mean("w")                        # waits for it
        b -= rate * worker.mean("b")
    worker.leave()
"""

from typing import Dict, Optional

import numpy as np

from .library import PoseidonError, Run, options_from, reason_of


class Worker:
    """One worker. `parameters`: arrays of float32 by name, the same names and shapes on all workers. `options`: as in
    poseidon.options.OPTIONS, instead of the environment's. What it waits for is said on stderr, unless `quiet`."""

    def __init__(self, parameters: Dict[str, np.ndarray], *, quiet: bool = False, **options):
        self._names = {name: number for number, name in enumerate(parameters)}
        self._shapes = {name: array.shape for name, array in parameters.items()}
        first = {name: self._checked(name, array) for name, array in parameters.items()}
        self._run = Run(options_from(options), quiet, {"NumPy": np.__version__})
        self._run.declare([(name, array.shape, array.ctypes.data) for name, array in first.items()])
        self._run.begin()
        self._clocks = dict.fromkeys(parameters, 0)  # of each: how many gradients it has pushed
        self._lent: Dict[str, np.ndarray] = {}

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.leave(reason_of(error))

    @property
    def rank(self) -> int:
        return self._run.worker

    @property
    def size(self) -> int:
        return self._run.workers

    def first(self, name: str) -> np.ndarray:
        """Worker 0's first values, as a copy; before the first push of this parameter."""
        if self._clocks[name] > 0:
            raise PoseidonError(f'the first values of "{name}" are gone: it has been pushed already')
        return self._version(name, 0).copy()

    def push(self, name: str, gradient: Optional[np.ndarray]) -> None:
        """Sends this worker's gradient; None: it has none in this clock. The array must not change before mean() returns."""
        number, clock = self._names[name], self._clocks[name]
        if gradient is None:
            self._run.push_nothing(number, clock)
        else:
            lent = self._lent[name] = self._checked(name, gradient)
            self._run.push(number, clock, lent.ctypes.data, lent.nbytes)
        self._clocks[name] = clock + 1

    def mean(self, name: str) -> Optional[np.ndarray]:
        """The mean of all workers' gradients that were pushed last: waits for it. It is to be read only, until the push after
        the next one. None: no worker had a gradient."""
        there = self._run.wait(self._names[name], self._clocks[name])
        self._lent.pop(name, None)
        return self._version(name, self._clocks[name]) if there else None

    def report(self, loss: float, samples: int) -> None:
        """Tells worker 0 and the page what the last clock has come to."""
        self._run.report(min(self._clocks.values()) - 1, loss, samples)

    def leave(self, reason: Optional[str] = None) -> None:
        self._run.leave(reason)

    def _version(self, name: str, version: int) -> np.ndarray:
        shape = self._shapes[name]
        address = self._run.values(self._names[name], version)
        memory = self._run.memory(address, int(np.prod(shape, dtype=np.int64)))
        array = np.frombuffer(memory, dtype=np.float32).reshape(shape)
        array.flags.writeable = False
        return array

    def _checked(self, name: str, array: np.ndarray) -> np.ndarray:
        if name not in self._names or array.dtype != np.float32 or array.shape != self._shapes[name]:
            raise PoseidonError(f'"{name}" is {array.dtype} {array.shape}, expected float32 '
                                f"{self._shapes.get(name, 'and a name that was declared')}")
        return np.ascontiguousarray(array)
