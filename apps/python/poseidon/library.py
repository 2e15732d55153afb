"""A run of libposeidon.so: a class that calls the functions of poseidon.h and turns their errors into exceptions."""

import ctypes
import os
import sys
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .functions import Hyperparameters, Load, Memory, Parameter, Shared, library, version
from .options import PoseidonError, has_others, in_script_words, options_from

HERE, NOT_YET, NO_GRADIENT, GIVE_STATE = 0, 1, 2, 3
LEFT_OUT = -2
OWN, SGD, ADAM, ADAMW = 0, 1, 2, 3
MEAN, GIVEN, BUNDLE = 0, 1, 2
FORMATS = ("float32", "float16", "bfloat16", "int8", "int4")

# A blocking call lets go of Python's lock and is made again and again, so that Ctrl-C is seen between two of them.
_SLICE_S = 0.2


class LeftOut(PoseidonError):
    """Workers that train go on without this one, which was about to join them. It may join again."""


class View(NamedTuple):
    """The workers that train together from a clock on."""
    first_clock: int  # the means of this clock and of those after it are over these workers
    seats: Tuple[int, ...]  # by rank: the number that each worker has for as long as it takes part


def reason_of(error: Optional[BaseException]) -> Optional[str]:
    """Why a program gives up, for the other workers' users; None: it does not."""
    if error is None:
        return None
    return f"its program ended by {type(error).__name__}" + (f": {error}" if str(error) else "")


class Run:
    """One worker's part in a run; see poseidon.h. Every function raises PoseidonError with the library's text. begin() says on stderr what it
    waits for, unless `quiet`."""

    def __init__(self, options: Dict[str, str], quiet: bool = False, traits: Optional[Dict[str, str]] = None):
        """`traits`: by what this program's gradients may differ from another worker's, as poseidon.h says."""
        self._library = library()
        if traits:
            options = {**options, "traits": ";".join(f"{name}={value}".replace(";", ",") for name, value in traits.items())}
        self._says = not quiet and has_others(options)  # who is alone waits for nobody
        for name, value in options.items():
            if "\n" in value:
                raise PoseidonError(f'option {name.replace("-", "_")} has a line break in its value')
        text = "\n".join(f"{name}={value}" for name, value in options.items())
        self._run = self._library.join(text.encode())
        if not self._run:
            raise PoseidonError(in_script_words(self._library.error(None).decode()))
        self._memory = Memory(self._library, self._run)
        self._process = os.getpid()
        self._seats = (ctypes.c_uint32 * 16)()
        self.last_lines: List[str] = []  # that nobody had taken when this worker left

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.leave(reason_of(error))

    def _error(self) -> str:
        return in_script_words(self._library.error(self._run).decode())

    def _checked(self, answer: int) -> int:
        if answer < 0:
            raise PoseidonError(self._error())
        return answer

    def declare(self, parameters: Sequence[Tuple[str, Sequence[int], Optional[int]]], kinds: Optional[Sequence[int]] = None) -> None:
        """Says which parameters there are: name, shape, and the address of the first values, which stay until begin(), or until leave() where
        that fails. `kinds`: by parameter, MEAN, GIVEN or BUNDLE; all MEAN where it is left out."""
        entries, kept = (Parameter * len(parameters))(), []
        for entry, (name, shape, address), kind in zip(entries, parameters, kinds or [MEAN] * len(parameters)):
            dims = (ctypes.c_int64 * len(shape))(*shape)
            kept.append(dims)
            entry.name, entry.dims, entry.dims_count, entry.values, entry.kind = name.encode(), dims, len(shape), address, kind
        self._checked(self._library.declare(self._run, entries, len(parameters)))

    def share(self, entries: Sequence[Tuple[str, str, int, int]]) -> None:
        """What else is to be worker 0's on all workers when begin() has returned: name, kind, address and size in bytes. The memory stays as that
        of the first values; on other workers than 0 it is overwritten where it differs."""
        listed = (Shared * len(entries))()
        for entry, (name, kind, address, size) in zip(listed, entries):
            entry.name, entry.kind, entry.bytes, entry.size = name.encode(), kind.encode(), address, size
        self._checked(self._library.share(self._run, listed, len(entries)))

    def begin(self) -> None:
        """Waits until all workers have joined, and the first values are here."""
        while True:
            answer = self._library.begin(self._run, _SLICE_S)
            if self._says:
                for line in self.lines():
                    print(f"poseidon: {line}", file=sys.stderr, flush=True)
            if answer == LEFT_OUT:
                raise LeftOut(self._error())
            if self._checked(answer) != NOT_YET:
                return

    @property
    def worker(self) -> int:
        return self._library.worker(self._run)

    @property
    def workers(self) -> int:
        return self._library.workers(self._run)

    def view(self, index: int) -> Optional[View]:
        """The `index`-th view of this run, the first one being 0; None: there are not so many yet."""
        first = ctypes.c_uint64()
        workers = self._library.view(self._run, index, ctypes.byref(first), self._seats, len(self._seats))
        if workers > len(self._seats):
            self._seats = (ctypes.c_uint32 * workers)()
            return self.view(index)
        return View(first.value, tuple(self._seats[:workers])) if workers > 0 else None

    def order(self, places: Sequence[int]) -> None:
        """By parameter: its place in the order in which fresh values are needed."""
        self._checked(self._library.order(self._run, (ctypes.c_uint32 * len(places))(*places)))

    def optimize(self, rule: int, groups: Sequence[int]) -> None:
        """The workers make the steps of this optimizer; OWN: they only compare what step() says. `groups`: by parameter."""
        self._checked(self._library.optimize(self._run, rule, (ctypes.c_uint32 * len(groups))(*groups)))

    def first_state(self, parameter: int, steps: int, addresses: Sequence[int]) -> None:
        """What the optimizer has made of a parameter so far; memory that stays until begin()."""
        self._checked(self._library.first_state(self._run, parameter, steps, (ctypes.c_void_p * len(addresses))(*addresses), len(addresses)))

    def step(self, group: int, how: Hyperparameters) -> None:
        """How a group steps with the gradients that are pushed from now on."""
        self._checked(self._library.step(self._run, group, ctypes.byref(how)))

    def step_from(self, parameter: int, address: int) -> None:
        """Where the values lie that a parameter's steps begin with, from the next push on; they stay as they are from a push until wait()."""
        self._checked(self._library.step_from(self._run, parameter, address))

    def read_state(self) -> None:
        """Copies the optimizer's state from all workers."""
        while self._checked(self._library.read_state(self._run, _SLICE_S)) == NOT_YET:
            pass

    def state(self, parameter: int, array: int) -> int:
        """The address of what read_state() has copied last; 0: there is none."""
        return self._library.state(self._run, parameter, array) or 0

    def steps(self, parameter: int) -> int:
        """How many steps a parameter has made."""
        return self._checked(self._library.steps(self._run, parameter))

    def memory(self, address: int, values: int) -> ctypes.Array:
        """Values in the library's memory, which stays as long as somebody has them."""
        out = (ctypes.c_float * values).from_address(address)
        out.owner = self._memory
        return out

    def push(self, parameter: int, clock: int, address: int, size: int) -> None:
        """Lends a gradient: its memory stays as it is until wait() of version clock + 1 has returned."""
        if self._library.push(self._run, parameter, clock, address, size) < 0:
            raise PoseidonError(self._error())

    def push_nothing(self, parameter: int, clock: int) -> None:
        self._checked(self._library.push_nothing(self._run, parameter, clock))

    def wire(self, form: str) -> str:
        """One of FORMATS, in which gradients that are pushed from now on travel; all workers change it before the same clock. Returns the one
        before."""
        return FORMATS[self._checked(self._library.wire(self._run, FORMATS.index(form)))]

    def measured(self, loads: Sequence[Tuple[float, float, int]]) -> None:
        """Offers factors. By parameter: seconds of its backward pass; of these, those of the product of its factors; their rows, 0
        where it has none. From now on every clock begins with begin_clock()."""
        self._checked(self._library.measured(self._run, (Load * len(loads))(*loads)))

    def begin_clock(self, clock: int, give: Optional[Callable[[], Tuple[int, int, int]]] = None) -> bool:
        """Before a clock's first push: waits while routes change, or others join. `give`: packs what these need, and returns its address, its size
        and how many bytes in front are this worker's own. Returns whether it has waited."""
        answer = self._checked(self._library.begins(self._run, clock, 0.0))
        waited = answer != 0
        while answer != 0:
            if answer == GIVE_STATE:
                self._checked(self._library.give_state(self._run, clock, *give()))
            answer = self._checked(self._library.begin_clock(self._run, clock, _SLICE_S))
        return waited

    @property
    def first_clock(self) -> int:
        """The clock that this worker has joined with; 0: it has begun with the others."""
        return self._library.first_clock(self._run)

    def state_given(self) -> Optional[ctypes.Array]:
        """What the others have given to this worker, which came later: memory that is valid until the first begin_clock(). None: it has begun
        with them."""
        size = ctypes.c_uint64()
        address = self._library.state_given(self._run, ctypes.byref(size))
        return (ctypes.c_char * size.value).from_address(address) if address else None

    def route(self, parameter: int) -> bool:
        """Whether the gradient goes as factors in the clock that has begun."""
        return self._checked(self._library.route(self._run, parameter)) == 1

    def push_factors(self, parameter: int, clock: int, u: int, v: int, rows: int, mean: Optional[int] = None) -> None:
        """Sends factors, from these addresses; they are copied. `mean`: where the mean is to be made; None: at values()."""
        self._checked(self._library.push_factors(self._run, parameter, clock, u, v, rows, mean))

    def look(self, parameter: int, version: int) -> Optional[bool]:
        """What wait() would return at once; None: it would wait."""
        answer = self._library.is_here(self._run, parameter, version, 0.0)
        if answer == HERE:  # the rule, and this is asked for every parameter
            return True
        return None if self._checked(answer) == NOT_YET else False

    def along(self, parameters: Sequence[int]) -> Callable[[int, int, int], List[int]]:
        """look() for many: f(first, count, version) answers for those of these parameters that lie from place `first` on, up to the first one
        that is not here: HERE, or NO_GRADIENT."""
        order, answers = (ctypes.c_uint32 * len(parameters))(*parameters), (ctypes.c_uint8 * len(parameters))()
        address, total = ctypes.addressof(order), len(parameters)

        def look(first: int, count: int, version: int, kept=order) -> List[int]:
            here = self._library.look(self._run, address + 4 * first, min(count, total - first), version, answers)
            return answers[:self._checked(here)]

        return look

    def wait_for(self, parameter: int, version: int, limit_s: float) -> bool:
        """Waits until the version is here. False: it is not, within that time."""
        return self._checked(self._library.wait(self._run, parameter, version, limit_s)) != NOT_YET

    def wait(self, parameter: int, version: int) -> bool:
        """Waits until the version is here. False: no worker had a gradient of it, there is nothing to read."""
        answer = self._checked(self._library.is_here(self._run, parameter, version, 0.0))
        while answer == NOT_YET:
            answer = self._checked(self._library.wait(self._run, parameter, version, _SLICE_S))
        return answer == HERE

    def collect(self, parameters: ctypes.Array, version: int, to: ctypes.Array, answers: ctypes.Array) -> int:
        """Waits for versions of these parameters, in the order in which they come, and copies each to its address, as poseidon_collect says.
        How many are still to come, once one has come that has no address, or a slice of time is over."""
        return self._checked(self._library.collect(self._run, parameters, len(parameters), version, to, answers, _SLICE_S))

    def values(self, parameter: int, version: int) -> int:
        """The address of a version's values."""
        return self._library.values(self._run, parameter, version)

    def report(self, clock: int, loss: float, samples: int) -> None:
        self._checked(self._library.report(self._run, clock, loss, samples))

    def lines(self) -> Iterator[str]:
        """What poseidon-node would show its user, as far as nobody has taken it yet."""
        while True:
            line = self._library.next_line(self._run)
            if line is None:
                return
            yield in_script_words(line.decode())

    def give_up(self, reason: str) -> None:
        """Ends the run with this reason, for who waits in other threads, too. leave() is still to be called."""
        if self._run is not None:
            self._library.leave(self._run, reason.replace("\n", " ").encode(), 0.0)

    def leave(self, reason: Optional[str] = None, limit_s: float = float("inf"), others_go_on: bool = False) -> None:
        """Ends this worker's part: without a reason after the same clock on all workers, for which it waits, or with `others_go_on` when one of them
        has begun a further clock."""
        if self._run is None:
            return
        if os.getpid() != self._process:  # the child of a fork: the run is its parent's
            self._run = self._memory._run = None
            return
        text = None if reason is None else reason.replace("\n", " ").encode()
        leave = self._library.leave_others if others_go_on and reason is None else lambda run, limit: self._library.leave(run, text, limit)
        end, ended = time.monotonic() + limit_s, False
        try:
            while self._checked(leave(self._run, _SLICE_S)) == NOT_YET:
                if time.monotonic() > end:
                    raise PoseidonError(f"the run has not ended within {limit_s:.0f} s")
            ended = True
        except KeyboardInterrupt:
            self._library.leave(self._run, b"its user has ended it (Ctrl-C)", 5.0)
            raise
        finally:
            self.last_lines = list(self.lines())
            self._run, memory, self._memory = None, self._memory, None
            if not ended:
                memory.free()  # else the last who looks at its values frees it
