# tests/cluster/torch_matrix/loop.py - one training loop, as a worker of a run and as one process that adds the micro-batches.
import contextlib

import torch

import pieces as known

CLOCKS = 6


class Loop:
    """What pieces see. `rank`: the worker whose part is computed."""

    def __init__(self, case, mode, workers):
        self.case, self.mode, self.workers = case, mode, workers
        self.clock, self.rank = 0, 0
        self.seen = []  # what must be equal besides parameters, buffers and the optimizer's state
        self.at = {}  # by place: functions of this loop
        self.kept = {}  # what pieces keep from clock to clock
        self.options = {}  # of join(), besides those that say who is there
        self.model = known.pieces["model"][case.model].make

    def make(self):
        torch.manual_seed(1)
        self.net = self.model.net()
        made = known.pieces["optimizer"][self.case.optimizer].make(self)
        self.optimizers = made if isinstance(made, list) else [made]
        self.optimizer = self.optimizers[0]
        self.run = self.net  # what forward passes call: a wrapper, a compiled one
        for name in self.case.more:
            known.pieces["more"][name].make(self)
        self.call("start")

    def on(self, place, function):
        """Places: start (before join), joined, before (each clock), between (backward and step), after (each step), end."""
        self.at.setdefault(place, []).append(function)

    def call(self, place):
        for function in self.at.get(place, ()):
            function(self)

    def data(self, worker, part=0):
        return self.model.data(torch.Generator().manual_seed(1000 * self.clock + 10 * part + worker))

    def loss(self, worker, part=0):
        """Of this worker's micro-batch, as the case computes it."""
        return known.pieces["forward"][self.case.forward].make(self, lambda: self.model.loss(self, self.data(worker, part)))

    def note(self, *values):
        self.seen += [v.detach().clone() if isinstance(v, torch.Tensor) else v for v in values]

    def train(self):
        zero, loop = (known.pieces[slot][getattr(self.case, slot)].make for slot in ("zero", "loop"))
        self.call("joined")
        for self.clock in range(CLOCKS):
            self.call("before")
            self.zero(zero)
            loop(self)
            self.call("after")
        self.call("end")

    def zero(self, clear):
        clear(self)

    def step(self, by=None):
        """`by`: what makes the step of an optimizer, if not its own step()."""
        for optimizer in self.optimizers:
            self.step_of(optimizer, by)

    def step_of(self, optimizer, by=None):
        if by is None:
            optimizer.step()
        else:
            by(optimizer)

    def result(self):
        """Names and tensors, of all that must be equal."""
        out = {name: p.detach() for name, p in self.net.named_parameters()}
        out.update((f"buffer {name}", b) for name, b in self.net.named_buffers())
        for number, optimizer in enumerate(self.optimizers):
            for key, state in optimizer.state_dict()["state"].items():
                flat = torch.utils._pytree.tree_flatten([state[name] for name in sorted(state)])[0]
                out.update((f"state {number} {key} {place}", v) for place, v in enumerate(flat) if v is not None)
        out.update((f"seen {place}", v) for place, v in enumerate(self.seen))
        return {name: torch.as_tensor(float("nan") if v is None else v) for name, v in out.items() if not isinstance(v, str)}


class Joined(Loop):
    """A worker of a run."""

    def __init__(self, case, mode, workers, rank):
        super().__init__(case, mode, workers)
        self.rank = rank

    def backward(self, loss=None):
        value = (loss or self.loss)(self.rank)
        value.backward()
        return value

    def no_sync(self):
        import poseidon.torch
        return poseidon.torch.no_sync()


class Alone(Loop):
    """One process that computes the parts of all workers in turn, adds their gradients in the order of the workers and multiplies the sum by
    1/N. Each worker has its own buffers and random numbers until gradients are added, after which all have worker 0's buffers."""

    def make(self):
        super().make()
        self.paused = False
        self.own = None  # by worker: what it has for itself since gradients have been added last
        torch.manual_seed(0)
        self.random = []
        for worker in range(self.workers):
            torch.manual_seed(100 + worker)
            self.random.append(torch.get_rng_state())

    def backward(self, loss=None):
        parameters = list(self.net.parameters())
        if self.own is None:
            self.own = [([None if p.grad is None else p.grad.clone() for p in parameters], self._buffers()) for _ in range(self.workers)]
            self.reached = set()
        losses, error = [], None
        for self.rank in range(self.workers):
            try:
                losses.append(self._part(parameters, loss or self.loss))
            except Exception as raised:  # each worker meets it
                error = error or raised
        self.rank = 0
        if error is not None:
            self.own = [([None for _ in grads], buffers) for grads, buffers in self.own]  # the cases clear gradients then
            self.reached = set()
            raise error
        if self.mode not in known.LATE and not self.paused:
            self.add()
        return losses[0]

    def _part(self, parameters, loss):
        grads, buffers = self.own[self.rank]
        torch.set_rng_state(self.random[self.rank])
        self._set_buffers(buffers)
        for p, g in zip(parameters, grads):
            p.grad = g
        before = [(p.grad, None if p.grad is None else p.grad._version) for p in parameters]
        try:
            value = loss(self.rank)
            value.backward()
        finally:
            self.random[self.rank] = torch.get_rng_state()
            self.own[self.rank] = ([p.grad for p in parameters], self._buffers())
        for i, (p, (g, version)) in enumerate(zip(parameters, before)):
            if p.grad is not g or (g is not None and g._version != version):
                self.reached.add(i)
        return value.detach()

    def zero(self, clear):
        if self.own is None:
            return clear(self)
        for grads, _ in self.own:  # of passes without a step
            for p, g in zip(self.net.parameters(), grads):
                p.grad = g
            clear(self)
            grads[:] = [p.grad for p in self.net.parameters()]

    def call(self, place):
        """What comes between backward and step is done by each worker with its own gradients, worker 0 last."""
        if place != "between" or self.own is None:
            return super().call(place)
        parameters, seen = list(self.net.parameters()), len(self.seen)
        values = [p.detach().clone() for p in parameters]
        for grads, _ in reversed(self.own):
            del self.seen[seen:]
            for p, v, g in zip(parameters, values, grads):
                p.grad = g
                p.data.copy_(v)
            super().call(place)
            grads[:] = [p.grad for p in parameters]
            self.reached.update(i for i, g in enumerate(grads) if g is not None)

    def add(self):
        if self.own is None:
            return
        for i, p in enumerate(self.net.parameters()):
            there = [grads[i] for grads, _ in self.own if grads[i] is not None]
            if i in self.reached and there:
                total = there[0]
                for g in there[1:]:
                    total = total + g
                p.grad = total * torch.tensor(1 / self.workers, dtype=torch.float32)
            else:
                p.grad = self.own[0][0][i]
        self._set_buffers(self.own[0][1])
        self.own = None

    def step_of(self, optimizer, by=None):
        self.add()
        super().step_of(optimizer, by)

    def _buffers(self):
        return [b.clone() for b in self.net.buffers()]

    def _set_buffers(self, values):
        for b, v in zip(self.net.buffers(), values):
            if not torch.equal(b, v):
                with torch.no_grad():
                    b.copy_(v)

    @contextlib.contextmanager
    def no_sync(self):
        self.paused = True
        yield
        self.paused = False
