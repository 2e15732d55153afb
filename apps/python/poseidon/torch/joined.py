"""What joins a run and leaves it: the model with its parameters, which worker this is, what it begins with, and why it has failed."""

import contextlib
import weakref
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, List, Optional, Tuple

import torch
from torch import nn

from ..library import BUNDLE, GIVEN, PoseidonError, Run, reason_of
from ..options import has_others
from .bundles import Declared
from .exchangeable import is_empty, require_exchangeable, require_statistics
from .factors import Factors
from .gpu import Gpus
from .hooks import leaf_hook
from .ladder import harshest_of
from .means import Means
from .members import Members
from .newcomers import Newcomers
from .passes import Passes
from .state import Buffers, FirstState
from .traits import traits_of
from .votes import Votes
from .waits import Clockwork, Waits


class Joined:
    """A worker of a run. Its clocks are those of the class that is derived from it."""

    current: Optional["Joined"] = None  # of this process
    _means_in_grad = True  # one worker alone has nothing to send
    _bundled = True  # small parameters travel together
    _outlives_losses = False  # the others go on without a worker that is lost
    _no_lowrank: Optional[str] = None  # why no gradient goes by low rank
    _no_lossy: Optional[str] = None  # why no format can be chosen
    say: Optional[Callable[[str], None]] = None

    def __init__(self, model: nn.Module, options: Dict[str, str], trained: Optional[List[nn.Parameter]] = None, *,
                 broadcast_buffers: bool = True, quiet: bool = False, ignored: FrozenSet[str] = frozenset(),
                 newcomers: Optional[Newcomers] = None):
        """`trained`: the parameters that the optimizer has; None: all that require a gradient. `broadcast_buffers`: after each clock all workers
        have worker 0's. `ignored`: names of parameters and buffers that stay each worker's own. `newcomers`: None: nobody joins later."""
        if isinstance(model, nn.DataParallel):
            raise PoseidonError("the model is an nn.DataParallel, whose replicas Poseidon cannot see: join its .module")
        wanted = None if trained is None else {id(p) for p in trained}
        self.names: List[str] = []
        self.parameters: List[nn.Parameter] = []
        for name, p in model.named_parameters():  # a shared one once, by its first name
            if is_empty(p) and wanted is None:
                continue  # there is nothing to exchange
            if p.requires_grad and (wanted is None or id(p) in wanted) and name not in ignored:
                require_exchangeable(name, p)
                self.names.append(name)
                self.parameters.append(p)
        self.index = {id(p): i for i, p in enumerate(self.parameters)}
        self._strides = [p.stride() for p in self.parameters]
        self.declared = Declared(self.names, self.parameters, self._bundled, self._apart())
        self.model, self.quiet = model, quiet
        self._ignored = ignored
        self._beginning = FirstState(model, self.index, ignored)
        buffers = Buffers(model, self.failed, ignored | self._averaged()) if broadcast_buffers else None
        self.buffers = buffers if buffers is not None and buffers.words > 0 else None
        self._has_others = has_others(options)
        self.newcomers = newcomers if self._has_others else None
        told = self._with_on_loss(options)
        if self._has_others:
            require_statistics(model)
        if options.get("routes") == "lowrank" and self._no_lowrank is not None:
            raise PoseidonError(f'routes is "lowrank", and {self._no_lowrank}')
        harshest = harshest_of(told)
        if harshest is not None and self._no_lossy is not None:
            raise PoseidonError(f'lossy is "{harshest}", and {self._no_lossy}')
        told.pop("lossy", None)
        self.votes = Votes(harshest) if harshest is not None and self._has_others else None
        self.run = Run(told, quiet, traits_of(self.parameters))
        self.members = Members(self.run, quiet)
        self.outlives_losses = told.get("on-loss") == "go-on"
        self._rings: List[List[torch.Tensor]] = []  # by version, whose memory is that of every second one; then by parameter
        self.factors: Optional[Factors] = None
        self.gpus: Optional[Gpus] = None
        self._wants_factors = options.get("routes") not in ("ps", "lowrank")
        # The rank of low rank; 0: gradients go as a whole, or as factors.
        self.lowrank = int(options.get("rank", 4)) if options.get("routes") == "lowrank" and self._has_others else 0
        self.clock = 0
        self.fired: Dict[int, int] = {}  # in this clock, by parameter: how often a backward pass has reached it
        self.expected: Dict[int, int] = {}  # the same of the first clock in which one was reached
        self.pushed: Dict[int, Optional[torch.Tensor]] = {}  # in this clock; None: no gradient
        self.lent: Dict[int, torch.Tensor] = {}  # memory that the library reads, until the mean is here
        self.failure: Optional[str] = None
        self.paused = 0  # within so many no_sync()
        self._begun = -1  # the clock whose routes are known
        self._clockwork, self._waits = Clockwork(), Waits()
        self._kept: list = []
        self._passes: Optional[Passes] = None
        self._frozen = [(name, p) for name, p in model.named_parameters() if not p.requires_grad and name not in ignored]
        self._taken = 0  # version of buffers

    def _apart(self) -> List[int]:
        """By parameter: only those with the same number travel together."""
        return [0] * len(self.parameters)

    def _averaged(self) -> FrozenSet[str]:
        """Names of buffers of which all workers take the mean, and not worker 0's."""
        return frozenset()

    def _more_means(self) -> List[Tuple[str, Tuple[int, ...], int]]:
        """What else has means, as declared: name, shape and address."""
        return []

    def _with_on_loss(self, options: Dict[str, str]) -> Dict[str, str]:
        """Who is alone loses nobody."""
        if not has_others(options):
            return {name: value for name, value in options.items() if name != "on-loss"}
        if options.get("on-loss") == "go-on" and not self._outlives_losses:
            raise PoseidonError('on_loss is "go-on", and in this mode a lost worker ends the run: mode="ddp" goes on')
        if self.newcomers is not None:
            if options.get("on-loss") == "end":
                raise PoseidonError('on_loss is "end", and state=[...] lets others join later: leave one of the two out')
            options = {**options, "newcomers": "accept"}
        return {"on-loss": "go-on" if self._outlives_losses else "end", **options}

    # -- the start

    def begin(self) -> "Joined":
        """Joins the cluster; all workers take worker 0's values, and one that comes later what the others have."""
        first = [p.detach().cpu() for p in self.parameters]  # themselves, on a CPU; kept until begin() returns
        try:
            declared, kept = self.declared.declared(first)
            if self.buffers is not None:
                kept.append(self.buffers.declared())
                declared.append(("buffers of worker 0", (self.buffers.words,), kept[-1].data_ptr()))
            more = self._more_means()
            if self.votes is not None:
                more.append(self.votes.declared(len(declared) + len(more)))
            self._declared_in_all = len(declared) + len(more)
            self.run.declare(declared + more, self.declared.kinds() + [GIVEN] * (self.buffers is not None) + [BUNDLE] * len(more))
            self._declared()
            routes = torch.tensor([self._wants_factors, self.lowrank], dtype=torch.uint8)  # worker 0's option counts
            self._beginning.share(self.run, [("worker 0's routes", routes), *self._shared()])
            self.run.begin()
            if self.newcomers is not None:
                self.clock = self._taken = self.run.first_clock
            # Before the others' state is read: a worker may be lost meanwhile, and then the run names another view in place of this one.
            self.members.begin(self.clock)
            came_later = self._take_state_given()
            if not came_later:
                self._beginning.take()
            if self.buffers is not None:
                self.buffers.begin(self.outlives_losses)
            if not came_later:
                self._wants_factors, self.lowrank = bool(routes[0]), int(routes[1])
            if self._has_others:
                require_statistics(self.model, self.run.workers)
            del kept
        except BaseException as error:  # Ctrl-C, too: the next join() finds the port free
            with contextlib.suppress(PoseidonError):
                self.run.leave(reason_of(error), 5)
            raise
        self.members.look(self.clock)
        self._alone = self.size == 1 and self._means_in_grad and not self._has_others
        if any(p.is_cuda for p in self.parameters):
            me = weakref.ref(self)
            self.gpus = Gpus(self.run, self.declared.tensors(), lambda error: me() and me()._give_up(error))
            self.gpus.pin((self._address(i, version), 4 * p.numel()) for i, p in enumerate(self.parameters) if p.is_cuda
                          for version in (0, 1))
        self._rings = [[self._place(i, version) for i in range(len(self.parameters))] for version in (0, 1)]
        self._means = Means(self.run, self.parameters, self.declared)
        if not came_later:
            for i, p in enumerate(self.parameters):
                p.data.copy_(self.ring(i, 0))
            self._require_alike()
        self._passes = Passes(self._end_of_backward, self._pass_broken, self.failed, self.gpus is not None)
        self._hook()
        if self._wants_factors and self._has_others and not came_later:
            self.factors = Factors(self, self.model)
        Joined.current = self
        return self

    def _take_state_given(self) -> bool:
        """Whether this worker has come later, and has now what the others have."""
        if self.newcomers is None:
            return False
        states = self.newcomers.take(self.run)
        if states is None:
            return False
        self._came(states)
        return True

    def _require_alike(self) -> None:
        """What newcomers will be given has to be equal on all workers from the beginning."""
        try:
            if self.newcomers is not None:
                self.newcomers.require_alike()
        except PoseidonError as error:
            with contextlib.suppress(PoseidonError):
                self.run.leave(str(error), 5)
            raise

    def _came(self, states: List[dict]) -> None:
        """What the others have given beside what the script names."""

    @property
    def rank(self) -> int:
        """This worker's number now; it falls when an older one has gone."""
        return self.members.rank

    @property
    def seat(self) -> int:
        """The number that it keeps for as long as it takes part."""
        return self.members.seat

    @property
    def has_others(self) -> bool:
        """Whether the run has had other workers, or may have."""
        return self._has_others

    @property
    def size(self) -> int:
        """How many workers there are now."""
        return self.members.size

    def _shared(self) -> List[Tuple[str, torch.Tensor]]:
        """What else is to be worker 0's, by name."""
        return []

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
                if client is not None and client is Joined.current:
                    client._ready(i)
            return ready

        for i, p in enumerate(self.parameters):
            leaf_hook(p, of(i), self._kept)

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

    def __enter__(self) -> "Joined":
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

    def leave(self, reason: Optional[str] = None, others_go_on: bool = False) -> None:
        """Ends this worker's part, when all have trained as many steps, or, with `others_go_on`, when one of them trains on; with a reason at once."""
        if Joined.current is not self:
            return
        reason = reason or self.failure
        try:
            if reason is None:
                self._before_leave()
        except BaseException as error:  # Ctrl-C, too: the others are not waited for any more
            reason = str(error) if isinstance(error, PoseidonError) else reason_of(error)
            raise
        finally:
            Joined.current = None
            with contextlib.ExitStack() as last_first:  # each of them, whatever another one raises
                last_first.callback(lambda: self._show(self.run.last_lines))
                last_first.callback(self.run.leave, reason, others_go_on=others_go_on)
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
