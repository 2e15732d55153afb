"""What a model has besides the parameters that it trains: frozen parameters and buffers. All workers begin with worker 0's; buffers are
worker 0's again after each clock."""

from typing import Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import torch
from torch import nn

from ..library import PoseidonError, Run

_ALIGNED = 16  # bytes, of buffers of one kind among the others


def _described(kind: str, t: torch.Tensor) -> str:
    return f"{kind} {t.dtype} {list(t.shape)}"


def _require_dense(name: str, kind: str, t: torch.Tensor) -> None:
    if isinstance(t, nn.parameter.UninitializedTensorMixin):
        raise PoseidonError(f'{kind} "{name}" has no shape yet: run one forward pass before join()')
    if t.layout != torch.strided or t.is_meta or t.is_quantized:
        what = "on the meta device" if t.is_meta else "quantized" if t.is_quantized else f"of layout {t.layout}"
        raise PoseidonError(f'{kind} "{name}" is {what}, and all workers begin with worker 0\'s dense values: make it dense before join(), or '
                            "keep it out of the model's buffers")


def _bits(t: torch.Tensor) -> torch.Tensor:
    """Of a tensor without gaps: a NaN is equal to itself, and 0 is not -0."""
    return t.view(-1).view(torch.uint8)


class FirstState:
    """Frozen parameters and buffers, which worker 0 gives to all at join(). What is equal already costs no bytes."""

    def __init__(self, model: nn.Module, exchanged: Iterable[int], ignored: Set[str] = frozenset()):
        """`exchanged`: the ids of parameters that travel by themselves; `ignored`: names of what stays each worker's own."""
        exchanged = set(exchanged)
        self._of: List[Tuple[str, str, torch.Tensor]] = []
        for kind, tensors in ("frozen parameter", model.named_parameters()), ("buffer", model.named_buffers()):
            for name, t in tensors:
                if id(t) not in exchanged and name not in ignored:
                    _require_dense(name, kind, t)
                    self._of.append((name, kind, t))
        self._staged: Dict[int, torch.Tensor] = {}

    def share(self, run: Run, more: Iterable[Tuple[str, torch.Tensor]] = ()) -> None:
        """Before run.begin(). `more`: others, by name, on a CPU without gaps."""
        entries = []
        for place, (name, kind, t) in enumerate(self._of):
            memory = t.detach()
            if not (t.device.type == "cpu" and t.is_contiguous() and not t.is_conj() and not t.is_neg()):
                memory = self._staged[place] = torch.empty(t.shape, dtype=t.dtype).copy_(memory)
            entries.append((name, _described(kind, t), memory.data_ptr(), memory.numel() * memory.element_size()))
        entries += [(name, _described("", t).strip(), t.data_ptr(), t.numel() * t.element_size()) for name, t in more]
        if entries:
            run.share(entries)

    def take(self) -> None:
        """After run.begin(): what does not lie on a CPU without gaps is written back."""
        for place, staged in self._staged.items():
            name, kind, t = self._of[place]
            here = torch.empty_like(staged).copy_(t.detach())
            if torch.equal(_bits(here), _bits(staged)):
                continue
            try:
                t.data.copy_(staged)
            except RuntimeError as error:  # an expanded tensor, whose values lie over one another
                raise PoseidonError(f'{kind} "{name}" differs from worker 0\'s and cannot be written to ({error}): make it contiguous before '
                                    "join()") from error
        self._staged.clear()


def buffers_of(model: nn.Module, wanted: Callable[[str], bool]) -> Iterator[Tuple[dict, str, str, torch.Tensor]]:
    """Each buffer once that is `wanted` by its name and not empty: where its module has it, and by which key, its name, and itself."""
    seen: Set[int] = set()
    for prefix, module in model.named_modules():
        for key, t in module._buffers.items():
            name = f"{prefix}.{key}" if prefix else key
            if t is not None and wanted(name) and id(t) not in seen and t.numel() > 0:
                seen.add(id(t))
                yield module._buffers, key, name, t


class _Kind:
    """Buffers of one type on one device: they travel one after the other."""

    def __init__(self, dtype: torch.dtype, device: torch.device):
        self.dtype, self.device = dtype, device
        self.places: List[Tuple[dict, str, str, torch.Size]] = []  # where a module has it, and its name and shape


class Buffers:
    """All buffers of a model as one value of the run, which worker 0 gives. A clock in which none of them has changed there costs nothing."""

    def __init__(self, model: nn.Module, failed: Callable[[str], Exception], ignored: Set[str] = frozenset()):
        self._failed = failed
        kinds: Dict[Tuple[torch.dtype, torch.device], _Kind] = {}
        for of, key, name, t in buffers_of(model, lambda name: name not in ignored):
            _require_dense(name, "buffer", t)
            kinds.setdefault((t.dtype, t.device), _Kind(t.dtype, t.device)).places.append((of, key, name, t.shape))
        self._kinds = list(kinds.values())
        self._spans: List[Tuple[int, int]] = []  # by kind: its first byte, and how many
        end = 0
        for kind in self._kinds:
            size = sum(shape.numel() for *_, shape in kind.places) * torch.empty(0, dtype=kind.dtype).element_size()
            self._spans.append((end, size))
            end = -(-(end + size) // _ALIGNED) * _ALIGNED
        self.words = end // 4
        self._packed = torch.zeros(end, dtype=torch.uint8)
        self._sent: Optional[torch.Tensor] = None
        self._newest: Optional[int] = None  # the last version in which somebody's had changed; None: those of the beginning
        self._first = self._packed
        self._gave = False  # in the newest clock
        self._all_push = False

    def _current(self, kind: _Kind) -> List[torch.Tensor]:
        out = []
        for of, key, name, shape in kind.places:
            t = of.get(key)
            if t is None or t.shape != shape or t.dtype != kind.dtype or t.device != kind.device:
                now = "is gone" if t is None else f"is {t.dtype} {list(t.shape)} on {t.device}"
                raise self._failed(f'buffer "{name}" {now}, and was {kind.dtype} {list(shape)} on {kind.device} at join(): all workers take worker '
                                   "0's after each step. broadcast_buffers=False leaves each its own")
            out.append(t.detach())
        return out

    @torch.no_grad()
    def _pack(self) -> torch.Tensor:
        for kind, (begin, size) in zip(self._kinds, self._spans):
            joined = torch.cat([t.reshape(-1) for t in self._current(kind)])
            self._packed[begin:begin + size].view(kind.dtype).copy_(joined)
        return self._packed

    def declared(self) -> torch.Tensor:
        """What version 0 holds, which nobody reads: FirstState has brought the buffers."""
        return torch.zeros(self.words)

    def begin(self, all_push: bool) -> None:
        """All workers have worker 0's. `all_push`: so that another one can give them when worker 0 is lost."""
        self._sent = self._first = self._pack().clone()
        self._all_push = all_push

    def push(self, run: Run, number: int, clock: int) -> None:
        """Worker 0 gives its buffers, if they have changed since it did; all others say that they have none. Where the run outlives losses, the
        others push theirs, too: the library sends them where worker 0 is lost."""
        self._gave = run.worker == 0
        if not self._gave and not self._all_push:
            return run.push_nothing(number, clock)
        packed = self._pack()
        if self._sent is not None and torch.equal(packed, self._sent):
            return run.push_nothing(number, clock)
        self._sent = packed.clone()  # lent until the next version is here
        run.push(number, clock, self._sent.data_ptr(), 4 * self.words)

    @torch.no_grad()
    def take(self, run: Run, number: int, version: int) -> None:
        """Waits until `version` is here, and writes it to this worker's buffers."""
        if not run.wait(number, version):
            return
        self._newest, self._first = version, self._packed
        if self._gave:
            return
        values = torch.frombuffer(run.memory(run.values(number, version), self.words), dtype=torch.uint8)
        for kind, (begin, size) in zip(self._kinds, self._spans):
            mine = self._current(kind)
            # A copy: CUDA refuses memory of which the library's pinned pages hold a part.
            came = values[begin:begin + size].view(kind.dtype).clone().to(kind.device).split([t.numel() for t in mine])
            for t, new in zip(mine, came):
                # Where it can be asked without a wait: a graph that is kept may have saved what has not changed.
                if t.is_cuda or not torch.equal(t, new.view(t.shape)):
                    t.copy_(new.view(t.shape))

    def of_last_step(self, run: Run, number: int) -> Dict[str, torch.Tensor]:
        """All of them by name, as the last step has left them: a forward pass of the next one may have changed those of the modules."""
        if self._newest is None:
            values = self._first
        else:
            values = torch.frombuffer(run.memory(run.values(number, self._newest), self.words), dtype=torch.uint8)
        out: Dict[str, torch.Tensor] = {}
        for kind, (begin, size) in zip(self._kinds, self._spans):
            flat = values[begin:begin + size].view(kind.dtype).split([shape.numel() for *_, shape in kind.places])
            out.update({name: t.view(shape) for t, (*_, name, shape) in zip(flat, kind.places)})
        return out
