"""What a worker that joins later is given: the state of a step's boundary as one block of bytes, packed alike by all members."""

import contextlib
import copy
import zlib
from collections import OrderedDict
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

import numpy
import torch
from torch import nn

from ..library import PoseidonError
from .agreed import Progress
from .carried_trees import Reader, Writer

_OTHERS = "the other workers' state=[...]"


def _with_parts(thing) -> list:
    """The objects whose functions a state may name: the object itself and, of a scheduler made of others, those."""
    return [thing] + [owner for part in getattr(thing, "_schedulers", []) for owner in _with_parts(part)]


def _described(tensors: Mapping) -> Dict[str, str]:
    return {name: f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__ for name, value in tensors.items()}


def _require_alike(came: Mapping, here: Mapping, whose: str) -> None:
    if not isinstance(came, dict):
        raise PoseidonError(f"{whose} of the other workers is a {type(came).__name__}, expected tensors by name")
    theirs, ours = _described(came), _described(here)
    for name in [*theirs, *ours]:
        if theirs.get(name) != ours.get(name):
            raise PoseidonError(f'{whose}: the other workers have "{name}" as {theirs.get(name, "nothing")}, and this one as {ours.get(name, "nothing")}: '
                                "all workers need the same script and model")
    if list(theirs) != list(ours):
        raise PoseidonError(f"{whose}: the other workers have the tensors in the order {list(theirs)[:4]}..., and this one {list(ours)[:4]}...")


def _copied(state):
    """With tensors and containers of its own. A deep copy would copy an object, too, whose function a state names."""
    if isinstance(state, (torch.Tensor, numpy.ndarray)):
        return copy.deepcopy(state.detach() if isinstance(state, torch.Tensor) else state)
    if isinstance(state, dict):
        own = copy.copy(state)
        own.update((name, _copied(value)) for name, value in state.items())
        return own
    if type(state) in (list, tuple):
        return type(state)(_copied(value) for value in state)
    return copy.copy(state) if type(state) is set else state


def _names_of_buffers(module: nn.Module) -> Set[str]:
    """Each buffer by all of its names."""
    return {f"{prefix}.{key}" if prefix else key for prefix, part in module.named_modules(remove_duplicate=False) for key in part._buffers}


@torch.no_grad()
def _copy(here: torch.Tensor, before: torch.Tensor) -> None:
    here.copy_(before)


def _load_again(thing, state) -> None:
    with contextlib.suppress(Exception):  # the error that is raised already says more
        thing.load_state_dict(state)


class Carried:
    """Two sections lie one after the other in a block. "own" is what each worker may have differently, and comes from the oldest member alone:
    the parameters and buffers in `ignored`, what optimizers keep of those parameters, and without `broadcast_buffers` all buffers, those of other
    modules too: from 2.0 on an AveragedModel follows the buffers of its model. "equal" is all else, and the same bits on all members."""

    def __init__(self, model: nn.Module, optimizer: Optional[torch.optim.Optimizer], objects: Iterable, broadcast_buffers: bool,
                 ignored: FrozenSet[str] = frozenset()):
        self._model, self._broadcast, self._ignored = model, broadcast_buffers, frozenset(ignored)
        self._objects: List[Tuple[str, object]] = [] if optimizer is None else [("optimizer", optimizer)]
        for place, thing in enumerate(objects):
            if isinstance(thing, type) or not all(callable(getattr(thing, name, None)) for name in ("state_dict", "load_state_dict")):
                raise PoseidonError(f"join(state=[...]): state[{place}] is a {type(thing).__name__}, which lacks state_dict() and load_state_dict(): "
                                    "leave it out, or keep its numbers in a poseidon.Progress")
            if thing is not model and all(thing is not known for _, known in self._objects):
                self._objects.append((f"state[{place}]", thing))

    def _types(self) -> List[str]:
        """By object: its type, and what of it has to be alike and does not change while it trains."""
        types = []
        for _, thing in self._objects:
            more = ""
            if isinstance(thing, Progress):
                more = f"({', '.join(name for name, _ in thing)})"
            elif isinstance(thing, torch.optim.Optimizer):
                more = f"({' + '.join(str(len(group['params'])) for group in thing.param_groups)} parameters)"
            types.append(type(thing).__name__ + more)
        return types

    @staticmethod
    def _version() -> str:
        return str(torch.__version__).split("+")[0]  # what follows says for which devices it was built

    def kinds(self) -> str:
        """What has to be alike on all workers, to be compared before a newcomer is let in."""
        return f"PyTorch {self._version()}; state=[...]: {', '.join(self._types()) or 'nothing'}"

    def _tensors(self) -> Tuple[dict, dict, set]:
        """The model's own and equal tensors by name, and the names of the buffers among the equal ones."""
        own, equal, buffers = {}, {}, set()
        for name, value in self._model.named_parameters():
            (own if name in self._ignored else equal)[name] = value
        for name, value in self._model.named_buffers():
            shared = self._broadcast and name not in self._ignored
            (equal if shared else own)[name] = value
            if shared:
                buffers.add(name)
        return own, equal, buffers

    def _split(self, thing) -> Tuple[dict, dict]:
        """The object's state, and apart from it what stays each worker's own: of an optimizer what belongs to such parameters, of a module buffers."""
        state = thing.state_dict()
        if isinstance(thing, nn.Module) and not self._broadcast:
            buffers = _names_of_buffers(thing)
            return ({name: value for name, value in state.items() if name not in buffers},
                    {name: value for name, value in state.items() if name in buffers})
        if not isinstance(thing, torch.optim.Optimizer) or not isinstance(state.get("state"), dict):
            return state, {}
        ignored = {id(value) for name, value in self._model.named_parameters() if name in self._ignored}
        places = [id(value) for group in thing.param_groups for value in group["params"]]
        own = {key: kept for key, kept in state["state"].items() if type(key) is int and key < len(places) and places[key] in ignored}
        return {**state, "state": {key: kept for key, kept in state["state"].items() if key not in own}}, own

    def _sections(self, buffers: Optional[Mapping[str, torch.Tensor]], samplers: Sequence[dict]):
        own, equal, shared = self._tensors()
        for name in shared if buffers is not None else ():
            if name not in buffers:
                raise PoseidonError(f'buffer "{name}" of the model has no value among those that worker 0 gave: a buffer was added after join()')
            equal[name] = buffers[name]
        first, second = Writer(), Writer()
        states, own_states = [], []
        try:
            for place, thing in self._objects:
                state, mine = self._split(thing)
                path, owners = f"{place} ({type(thing).__name__}): ", _with_parts(thing)
                states.append(second.node(state, path, owners))
                own_states.append(first.node(mine, path, owners))
            return (first.section([first.node(own, "model: "), own_states]),
                    second.section([self._version(), self._types(), second.node(equal, "model: "), states, second.node(list(samplers), "samplers")]))
        except RecursionError as error:
            raise PoseidonError("join(state=[...]): a state_dict() holds itself, or is nested too deeply, and cannot be given to a worker that joins "
                                "later") from error

    @torch.no_grad()
    def sums(self) -> List[int]:
        """By object, the checksum of what has to be equal on all workers."""
        sums = []
        for place, thing in self._objects:
            writer = Writer()
            size, write = writer.section(writer.node(self._split(thing)[0], f"{place} ({type(thing).__name__}): ", _with_parts(thing)))
            block = torch.zeros(size, dtype=torch.uint8)
            write(block)
            sums.append(zlib.crc32(block.numpy()))
        return sums

    def require_sums(self, of_worker_0: Sequence[int]) -> None:
        """Refuses objects that begin with another content than worker 0's: a worker that joins later could not be given one that all have."""
        for (place, thing), here, there in zip(self._objects, self.sums(), of_worker_0):
            if here != there:
                raise PoseidonError(f"{place} ({type(thing).__name__}) begins with another content than worker 0's: let all workers make it alike "
                                    "(torch.manual_seed() with the same number before the model is made), or load the same checkpoint into it before join()")

    def require_packable(self) -> None:
        """Refuses at join() what pack() would refuse when a newcomer comes. Copies no values."""
        self._sections(None, [])

    @torch.no_grad()
    def pack(self, buffers: Mapping[str, torch.Tensor], samplers: Sequence[dict]) -> Tuple[torch.Tensor, int]:
        """The block, and how many of its first bytes are the oldest member's own. `buffers`: the broadcast ones at the step's boundary by name."""
        (own_bytes, write_own), (equal_bytes, write_equal) = self._sections(buffers, samplers)
        block = torch.zeros(own_bytes + equal_bytes, dtype=torch.uint8)
        write_own(block[:own_bytes])
        write_equal(block[own_bytes:])
        return block, own_bytes

    def unpack(self, block: torch.Tensor, require: Optional[Callable[[List[dict]], object]] = None) -> List[dict]:
        """Loads all of it in place, after all has been read and compared, or nothing; returns the states of the Samplers. `require`: refuses those, before
        anything is loaded."""
        if block.dtype != torch.uint8 or block.dim() != 1 or block.device.type != "cpu" or not block.is_contiguous():
            raise PoseidonError(f"{_OTHERS} is {block.dtype} {list(block.shape)} on {block.device}, expected one row of bytes on the CPU")
        first = Reader(block, "the oldest worker's own state")
        second = Reader(block[first.size:], _OTHERS)
        if first.size + second.size != len(block):
            raise PoseidonError(f"{_OTHERS} has {first.size + second.size} bytes, and {len(block)} have come")
        own, own_states = first.parts(2)
        version, types, equal, states, samplers = second.parts(5)
        if version != self._version():
            raise PoseidonError(f"the other workers have PyTorch {version}, and this one {self._version()}: all workers need the same version")
        if types != self._types():
            theirs = ", ".join(map(str, types)) if isinstance(types, list) else repr(types)
            raise PoseidonError(f"{_OTHERS} has {theirs or 'nothing'} and this one's {', '.join(self._types()) or 'nothing'}: all workers need the same "
                                "version of the script")
        if not all(isinstance(part, list) and len(part) == len(self._objects) for part in (states, own_states)):
            raise PoseidonError(f"{_OTHERS} does not hold {len(self._objects)} states")
        pairs = self._pairs(first.value(own, copies=False), second.value(equal, copies=False))
        loads = [(place, thing, self._joined(place, thing, second.value(state, _with_parts(thing)), first.value(mine, _with_parts(thing))))
                 for (place, thing), state, mine in zip(self._objects, states, own_states)]
        given = second.value(samplers)
        if not isinstance(given, list) or not all(isinstance(state, dict) for state in given):
            raise PoseidonError(f"{_OTHERS}: the states of the Samplers are {given!r}, expected a list of dicts")
        if require is not None:
            require(given)
        with contextlib.ExitStack() as back:  # as all was, if one of the objects refuses its state
            with torch.no_grad():
                for here, came in pairs:
                    back.callback(_copy, here, here.detach().to("cpu", copy=True))
                    here.copy_(came)
            for place, thing, state in loads:
                before = thing.state_dict()
                if not isinstance(thing, torch.optim.Optimizer):  # which takes other tensors for its own, and writes nothing into the ones that it had
                    before = _copied(before)
                back.callback(_load_again, thing, before)
                try:
                    thing.load_state_dict(state)
                except Exception as error:  # an object of the user's may raise anything
                    raise PoseidonError(f"{place} ({type(thing).__name__}): load_state_dict() refuses the other workers' state: {type(error).__name__}: "
                                        f"{error}") from error
            back.pop_all()
        return given

    def _pairs(self, own: dict, equal: dict) -> List[Tuple[torch.Tensor, torch.Tensor]]:
        pairs = []
        for came, here, whose in zip((own, equal), self._tensors(), ("the model's own parameters and buffers", "the model")):
            _require_alike(came, here, whose)
            pairs += [(value, came[name]) for name, value in here.items()]
        return pairs

    def _joined(self, place: str, thing, state, own) -> object:
        """The state that the object loads; refused where it does not fit what is known of the object."""
        whose = f"{place} ({type(thing).__name__})"
        if isinstance(thing, nn.Module):
            for came, here in zip((state, own), self._split(thing)):
                _require_alike(came, here, whose)
            state = OrderedDict({**state, **own})
            state._metadata = thing.state_dict()._metadata  # the versions of modules, without which some read a state as that of an old PyTorch
        elif isinstance(thing, torch.optim.Optimizer):
            kept = state.get("state") if isinstance(state, dict) else None
            if not isinstance(kept, dict) or not isinstance(own, dict):
                raise PoseidonError(f"{whose}: the other workers' state has no parameters' states")
            groups = state.get("param_groups")
            if not isinstance(groups, list) or len(groups) != len(thing.param_groups):
                raise PoseidonError(f"{whose}: the other workers' state does not have {len(thing.param_groups)} groups of parameters")
            for came, here in zip(groups, thing.param_groups):
                lacks = [name for name in here if not isinstance(came, dict) or name not in came]
                if lacks:
                    raise PoseidonError(f"{whose}: a group of parameters of the other workers' lacks {lacks[0]!r}")
            state["state"] = {**kept, **own}
        elif not isinstance(state, dict) and isinstance(thing.state_dict(), dict):
            raise PoseidonError(f"{whose}: the other workers' state is a {type(state).__name__}, expected a dict")
        return state
