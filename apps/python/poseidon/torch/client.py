"""What every mode has: the list of parameters, hooks that push gradients during backward, and mode `ddp` as a whole."""

import contextlib
import sys
import time
import weakref
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, List, Optional

import torch
from torch import nn

from ..library import GIVEN, MEAN, PoseidonError, Run, reason_of
from .bundles import Bundle, Declared
from .exchangeable import require_exchangeable, require_statistics
from .factors import Factors
from .gpu import Gpus
from .hooks import leaf_hook
from .means import Means
from .passes import Passes
from .state import Buffers, FirstState
from .waits import Waits

_UNKNOWN = 1 << 62  # passes
# The model's parameters are looked through in the first clocks, and from then on after so many.
_CLOCKS_LOOKED, _LOOKED_EVERY = 3, 20


class Client:
    """Mode `ddp`: a clock is a backward pass, at whose end `.grad` holds the means of all workers."""

    current: Optional["Client"] = None
    # Means go into .grad: small parameters travel together, and one worker alone has nothing to send.
    _means_in_grad = True
    say: Optional[Callable[[str], None]] = None

    def __init__(self, model: nn.Module, options: Dict[str, str], trained: Optional[List[nn.Parameter]] = None, *,
                 broadcast_buffers: bool = True, quiet: bool = False, ignored: FrozenSet[str] = frozenset()):
        """`trained`: the parameters that the optimizer has; None: all that require a gradient. `broadcast_buffers`: after each clock all workers
        have worker 0's. `ignored`: names of parameters and buffers that stay each worker's own."""
        if isinstance(model, nn.DataParallel):
            raise PoseidonError("the model is an nn.DataParallel, whose replicas Poseidon cannot see: join its .module")
        wanted = None if trained is None else {id(p) for p in trained}
        self.names: List[str] = []
        self.parameters: List[nn.Parameter] = []
        for name, p in model.named_parameters():  # a shared one once, by its first name
            if p.requires_grad and (wanted is None or id(p) in wanted) and name not in ignored:
                require_exchangeable(name, p)
                self.names.append(name)
                self.parameters.append(p)
        self.index = {id(p): i for i, p in enumerate(self.parameters)}
        self._strides = [p.stride() for p in self.parameters]
        self.declared = Declared(self.names, self.parameters, self._means_in_grad)
        self.model, self.quiet = model, quiet
        self._ignored = ignored
        self._beginning = FirstState(model, self.index, ignored)
        buffers = Buffers(model, self.failed, ignored) if broadcast_buffers else None
        self.buffers = buffers if buffers is not None and buffers.words > 0 else None
        self.run = Run(options, quiet)
        self._rings: List[List[torch.Tensor]] = []  # by version, whose memory is that of every second one; then by parameter
        self.factors: Optional[Factors] = None
        self.gpus: Optional[Gpus] = None
        self._wants_factors = options.get("routes") != "ps"
        self.clock = 0
        self.fired: Dict[int, int] = {}  # in this clock, by parameter: how often a backward pass has reached it
        self.expected: Dict[int, int] = {}  # the same of the first clock in which one was reached
        self.pushed: Dict[int, Optional[torch.Tensor]] = {}  # in this clock; None: no gradient
        self.lent: Dict[int, torch.Tensor] = {}  # memory that the library reads, until the mean is here
        self.failure: Optional[str] = None
        self.paused = 0  # within so many no_sync()
        self._begun = -1  # the clock whose routes are known
        self._waits = Waits()
        self._kept: list = []
        self._passes: Optional[Passes] = None
        self._frozen = [(name, p) for name, p in model.named_parameters() if not p.requires_grad and name not in ignored]
        self._taken = 0  # version of buffers

    # -- the start

    def begin(self) -> "Client":
        """Joins the cluster; all workers take worker 0's values."""
        first = [p.detach().cpu() for p in self.parameters]  # themselves, on a CPU; kept until begin() returns
        try:
            declared, kept = self.declared.declared(first)
            if self.buffers is not None:
                kept.append(self.buffers.declared())
                declared.append(("buffers of worker 0", (self.buffers.words,), kept[-1].data_ptr()))
            self.run.declare(declared, [MEAN] * len(self.declared) + [GIVEN] * (self.buffers is not None))
            self._declared()
            measures = torch.tensor([self._wants_factors], dtype=torch.uint8)  # worker 0's option counts
            self._beginning.share(self.run, [("worker 0 measures what factors save", measures)])
            self.run.begin()
            self._beginning.take(self.run.worker)
            self._wants_factors = bool(measures.item())
            require_statistics(self.model, self.run.workers)
            del kept
        except BaseException as error:  # Ctrl-C, too: the next join() finds the port free
            with contextlib.suppress(PoseidonError):
                self.run.leave(reason_of(error), 5)
            raise
        self.rank, self.size = self.run.worker, self.run.workers
        self._alone = self.size == 1 and self._means_in_grad
        if any(p.is_cuda for p in self.parameters):
            me = weakref.ref(self)
            self.gpus = Gpus(self.run, self.declared.tensors(), lambda error: me() and me()._give_up(error))
            self.gpus.pin((self._address(i, version), 4 * p.numel()) for i, p in enumerate(self.parameters) if p.is_cuda
                          for version in (0, 1))
        self._rings = [[self._place(i, version) for i in range(len(self.parameters))] for version in (0, 1)]
        self._means = Means(self.run, self.parameters, self.declared)
        for i, p in enumerate(self.parameters):
            p.data.copy_(self.ring(i, 0))
        self._passes = Passes(self._end_of_backward, self._pass_broken, self.failed, self.gpus is not None)
        self._hook()
        if self._wants_factors and self.size > 1:
            self.factors = Factors(self, self.model)
        Client.current = self
        return self

    def _declared(self) -> None:
        """Says what else there is to say before the run begins."""

    def _place(self, i: int, version: int) -> torch.Tensor:
        p = self.parameters[i]
        memory = self.run.memory(self._address(i, version), p.numel())
        return torch.as_strided(torch.frombuffer(memory, dtype=torch.float32), p.shape, p.stride())

    def _address(self, i: int, version: int) -> int:
        return self.run.values(self.declared.of[i], version) + self.declared.offset[i]

    def ring(self, i: int, version: int) -> torch.Tensor:
        """A version of a parameter, as a tensor over the library's memory."""
        return self._rings[version % 2][i]

    def here(self, i: int, version: int) -> torch.Tensor:
        """The same for who computes with it: on a GPU a copy, made on the current stream. Its kernels make what this worker pushes for the
        next clock, and the library writes to that memory only after that push."""
        values = self.ring(i, version)
        if self.gpus is None or not self.parameters[i].is_cuda:
            return values
        return values.to(self.parameters[i].device, non_blocking=True)

    def _hook(self) -> None:
        me = weakref.ref(self)

        def of(i: int) -> Callable[..., None]:
            def ready(*_) -> None:
                client = me()
                if client is not None and client is Client.current:
                    client._ready(i)
            return ready

        for i, p in enumerate(self.parameters):
            leaf_hook(p, of(i), self._kept)

    # -- a clock

    def _ready(self, i: int) -> None:
        """A backward pass has written the gradient of parameter i."""
        factors = self.factors
        by_factors = factors is not None and factors.on_factors(i)
        if self.paused or (self.parameters[i].grad is None and not by_factors):  # None: an undefined gradient came, and there is nothing to add
            return
        if self.failure is not None:
            self._require_alive()
        if factors is not None and not factors.offered:
            factors.reached(i)
        self.fired[i] = fired = self.fired.get(i, 0) + 1
        self._reached()
        if fired < self.expected.get(i, _UNKNOWN):
            return
        if i in self.pushed:
            raise self.failed(self._reached_again(i))
        self._push(i)

    def _reached(self) -> None:
        if self._passes.reached():
            self._waits.gradient(time.perf_counter())

    def _reached_again(self, i: int) -> str:
        return (f'"{self.names[i]}" was reached again by a backward pass after its gradient had left: {self.fired[i]} times, in its '
                f"first step {self.expected[i]}. Passes that differ from step to step need no_sync() around all but the last one")

    def _pass_broken(self) -> None:
        """An error has ended a backward pass, which the script may catch."""
        if self.factors is not None:
            self.factors.forget()
        if not self._alone and self.pushed:
            self.failed(f"an error ended a backward pass when {len(self.pushed)} of {len(self.parameters)} gradients had left: they cannot be taken "
                        "back, and the other workers have got them. Let the error end this worker")
        self.pushed, self.fired = {}, {}

    def _not_pushed(self) -> List[int]:
        """The parameters whose gradients have not left in this clock."""
        return [i for i in range(len(self.parameters)) if i not in self.pushed]

    def begin_clock(self) -> None:
        """Waits while routes change; which way a gradient goes then holds for the whole clock."""
        if self._begun < self.clock and self.factors is not None and self.factors.offered:
            self.run.begin_clock(self.clock)
            self._begun = self.clock
            self.factors.begin_clock()

    def _push(self, i: int) -> None:
        factors = self.factors
        if factors is not None and factors.offered:
            self.begin_clock()
            if factors.on_factors(i):
                return self._push_factors(i)
        p = self.parameters[i]
        g = p.grad
        if g is not None:
            if g.is_sparse:
                raise self.failed(f'the gradient of "{self.names[i]}" is sparse: Poseidon exchanges dense ones (sparse=False)')
            if g.dtype != torch.float32:
                raise self.failed(f'the gradient of "{self.names[i]}" is {g.dtype}, expected torch.float32')
        self.pushed[i] = g
        if self._alone:
            return
        bundle = self.declared.bundle_of(i)
        if bundle is not None:
            bundle.missing -= 1
            if bundle.missing == 0:
                self._push_bundle(self.declared.of[i], bundle)
        elif g is None:
            self.run.push_nothing(self.declared.of[i], self.clock)
        else:
            self._send(i, g)

    def _push_bundle(self, number: int, bundle: Bundle) -> None:
        bundle.missing = len(bundle.members)
        gradients = [self.pushed[i] for i in bundle.members]
        if not any(g is not None for g in gradients):
            return self.run.push_nothing(number, self.clock)
        filled = bundle.filled(gradients)
        if filled.is_cuda:
            return self._send_from_gpu(bundle.members[0], filled)
        self.run.push(number, self.clock, filled.data_ptr(), 4 * bundle.size)

    def _send_from_gpu(self, i: int, g: torch.Tensor) -> None:
        try:
            self.gpus.send(self.declared.of[i], self.clock, g)
        except RuntimeError as error:  # no memory, a kernel that has failed
            raise self.failed(f'the gradient of "{self.names[i]}" cannot be copied from {g.device}: {error}') from error

    def _send(self, i: int, g: torch.Tensor) -> None:
        if g.is_cuda:
            return self._send_from_gpu(i, g)
        lent = g
        if g.stride() != self._strides[i]:  # values travel in the order of the parameter's memory
            p = self.parameters[i]
            lent = torch.empty_strided(p.shape, p.stride(), dtype=torch.float32).copy_(g)
        self.run.push(self.declared.of[i], self.clock, lent.data_ptr(), 4 * lent.numel())
        self.lent[i] = lent

    def _push_factors(self, i: int) -> None:
        unit = self.factors.units[i]
        if i in self.fired and unit.has_dense_gradient():
            raise self.failed(f'"{self.names[i]}" goes as factors, and a backward pass has reached it by another way than its layer, as in '
                              'none of the first steps: start with routes="ps"')
        factors, number = unit.take(), self.declared.of[i]
        if factors is None:
            self.run.push_nothing(number, self.clock)
        else:
            u, v = factors
            self.run.push_factors(number, self.clock, u.data_ptr(), v.data_ptr(), u.shape[0], self._place_of_mean(i))
        self.pushed[i] = None

    def _place_of_mean(self, i: int) -> Optional[int]:
        """Where the mean of factors is to be made; None: in the library's memory."""
        return self._means.place_for(i)

    def _end_of_backward(self) -> None:
        """In the thread of backward(), after everything else: waits for the means."""
        self._require_same_model()
        for i in self._not_pushed():
            self._push(i)
        self._push_buffers()
        if not self._alone:
            since = time.perf_counter()
            self._wait_for_pushes()
            self._means.collect(self.clock + 1, self.lent, self._take)
            line = self._waits.end(since, time.perf_counter())
            if line is not None and self.rank == 0 and not self.quiet:
                print(f"poseidon: {line}", file=sys.stderr, flush=True)
        if self.clock == 0:
            self._tell_order(list(self.fired))
        self._end_clock()
        self._take_buffers()

    def _require_same_model(self) -> None:
        """All that trains is exchanged."""
        thawed = next((name for name, p in self._frozen if p.requires_grad), None)
        if thawed is not None:
            raise self.failed(f'"{thawed}" trains, and was frozen at join(): the other workers do not know it. Freeze after join() what is to train '
                              "later (requires_grad_(False)), not before")
        if self.clock >= _CLOCKS_LOOKED and self.clock % _LOOKED_EVERY != 0:
            return
        strange = next((name for name, p in self.model.named_parameters()
                        if p.requires_grad and id(p) not in self.index and name not in self._ignored), None)
        if strange is not None:
            raise self.failed(f'"{strange}" trains, and has come to the model after join(): the other workers do not know it. Make it before join()')

    def _push_buffers(self) -> None:
        if self.buffers is not None and not self._alone:
            self._take_buffers()  # those of this clock, if nothing has read them
            self.buffers.push(self.run, len(self.declared), self.clock)

    def _take_buffers(self, *_) -> None:
        """Takes worker 0's buffers of the clock before, once."""
        if self.buffers is not None and not self._alone and self._taken < self.clock and self.failure is None:
            self.buffers.take(self.run, len(self.declared), self.clock)
            self._taken = self.clock

    def _take(self, number: int, there: bool) -> None:
        """What has come, by its number in the run."""
        bundle = self.declared.bundles[number]
        if bundle is None:
            return self._take_mean(self.declared.first[number], there)
        if there:
            pushed, parameters = self.pushed, self.parameters
            gradients = [pushed[i] if parameters[i].grad is pushed[i] else None for i in bundle.members]
            bundle.spread(self.run.values(number, self.clock + 1), gradients, self._take_mean)

    def _take_mean(self, i: int, there: bool) -> None:
        """Of a parameter whose `.grad` is not what has left. `there`: somebody had a gradient."""
        if not there:
            return
        p, made = self.parameters[i], self._means.made.get(i)
        mean = self.ring(i, self.clock + 1) if made is None else made
        if p.grad is None:
            p.grad = torch.empty_like(p).copy_(mean, non_blocking=True) if made is None else made
        elif self.factors is not None and self.factors.on_factors(i):
            p.grad.add_(mean)  # what was there before has not gone with the factors
        else:
            p.grad.copy_(mean, non_blocking=True)

    def _wait_for_pushes(self) -> None:
        """Until the copies of all gradients have come from a GPU: the mean of one that has not been pushed cannot be waited for. Nothing is lost
        by it, since the parameters that come next need these means."""
        if self.gpus is not None:
            self.gpus.wait_for_pushes()
            self._require_alive()

    def _tell_order(self, order: List[int]) -> None:
        """In which gradients leave where several wait, from now on."""
        numbers = [self.declared.of[i] for i in reversed(order + [i for i in range(len(self.parameters)) if i not in order])]
        last_first = list(dict.fromkeys(numbers))  # a bundle leaves with its last member
        places = [0] * len(last_first)
        for place, number in enumerate(reversed(last_first)):
            places[number] = place
        if self.buffers is not None:
            places.append(len(places))
        self.run.order(places)

    def _end_clock(self) -> None:
        # In its first clock a gradient leaves at the end, from then on at its last pass of a clock, during backward.
        self.expected = {**self.fired, **self.expected}
        if self.factors is not None:
            self.factors.end_clock(self.fired)
        self.pushed, self.fired = {}, {}
        self.clock += 1
        self._show(self.run.lines())

    def _show(self, lines: Iterable[str]) -> None:
        if self.say is not None:
            for line in lines:
                self.say(line)

    # -- what the user calls

    def synchronize(self) -> None:
        """Waits until all parameters and buffers are fresh."""
        self._take_buffers()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it gradients add up locally, and nothing is sent."""
        self.paused += 1
        try:
            yield
        finally:
            self.paused -= 1

    def report(self, loss: float, samples: int) -> None:
        """What the step before has come to."""
        if self.clock > 0:
            self.run.report(self.clock - 1, float(loss), int(samples))

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.leave(reason_of(error))

    # -- the end

    def failed(self, text: str) -> PoseidonError:
        """The run is over on this worker; the others will read why."""
        self.failure = self.failure or text
        return PoseidonError(text)

    def _give_up(self, error: BaseException) -> None:
        """In another thread: whoever waits for a mean learns that it will not come."""
        self.failed(str(error) if isinstance(error, PoseidonError) else reason_of(error))
        self.run.give_up(self.failure)

    def _require_alive(self) -> None:
        if self.failure is not None:
            raise PoseidonError(f"the run is over: {self.failure}")

    def leave(self, reason: Optional[str] = None) -> None:
        """Ends this worker's part, when all have trained as many steps; with a reason at once."""
        if Client.current is not self:
            return
        reason = reason or self.failure
        try:
            if reason is None:
                self._before_leave()
        except BaseException as error:  # Ctrl-C, too: the others are not waited for any more
            reason = str(error) if isinstance(error, PoseidonError) else reason_of(error)
            raise
        finally:
            Client.current = None
            with contextlib.ExitStack() as last_first:  # each of them, whatever another one raises
                last_first.callback(lambda: self._show(self.run.last_lines))
                last_first.callback(self.run.leave, reason)
                last_first.callback(self._undo)
                if self.gpus is not None:
                    last_first.callback(self.gpus.end)

    def _before_leave(self) -> None:
        self.synchronize()

    def _undo(self) -> None:
        """The model and the optimizer are again what they were before join()."""
        if self.factors is not None:
            self.factors.undo()
        for kept in self._kept:
            if hasattr(kept, "remove"):
                kept.remove()
        self._kept.clear()
        self._rings.clear()  # their memory ends with the run
