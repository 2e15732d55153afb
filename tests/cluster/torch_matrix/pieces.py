# tests/cluster/torch_matrix/pieces.py - what a case is made of, by slot and name.
"""A case is one piece of each slot, and any number of the slot `more`:

    model      what is trained, its data and its loss
    optimizer  of torch.optim, with its options; or several
    zero       how gradients are cleared
    forward    how the loss is computed
    loop       what a script does with the loss: backward, step, and what comes between
    more       what scripts do besides, at a place of the loop

In text: "model=lstm; optimizer=Adam foreach; more=EMA, clips by norm". A slot that is left out has its first piece. Each piece is a
function of a few lines, and every piece makes a case with the first ones of the other slots.
"""
import contextlib
import dataclasses
from typing import Callable, Dict, List, Tuple

import torch

SLOTS = ("model", "optimizer", "zero", "forward", "loop", "more")
LATE = ("local", "shards")  # the modes that postpone the optimizer's step
ASK_MODE = r'mode="(ddp|local)"'  # the remedy of most refusals
ALL = ("ddp", "wrapped", *LATE)


@dataclasses.dataclass
class Piece:
    make: Callable
    refused: Dict[str, str] = dataclasses.field(default_factory=dict)  # by mode: what the refusal says, as a regular expression
    rounds: Dict[str, Tuple[float, str]] = dataclasses.field(default_factory=dict)  # by mode: relative tolerance, and the reason
    here: bool = True  # whether this PyTorch has it
    own: Tuple[str, ...] = ()  # modes in which each worker may end with other bits, as with PyTorch's DDP
    least: int = 1  # workers; with fewer one process cannot train it either
    weight: float = 1.0  # how often a walk takes it; 0: no list has it either


pieces: Dict[str, Dict[str, Piece]] = {slot: {} for slot in SLOTS}


def piece(slot: str, name: str, *, refused=(), says: str = ASK_MODE, here: bool = True, **more):
    """Declares the function below it. `refused`: the modes that may refuse it, with a line that `says` this."""
    assert name not in pieces[slot] and not set(name) & set("=;,"), name

    def keep(make):
        pieces[slot][name] = Piece(make, {mode: says for mode in refused}, here=here, **more)
        return make
    return keep


@dataclasses.dataclass
class Case:
    model: str
    optimizer: str
    zero: str
    forward: str
    loop: str
    more: List[str]

    def of(self) -> List[Piece]:
        return [pieces[slot][getattr(self, slot)] for slot in SLOTS[:-1]] + [pieces["more"][name] for name in self.more]


def first(slot: str) -> str:
    return next(iter(pieces[slot]))


def case_of(text: str) -> Case:
    given = {slot: first(slot) for slot in SLOTS[:-1]}
    given["more"] = ""
    for part in filter(None, (p.strip() for p in text.split(";"))):
        slot, _, name = part.partition("=")
        if slot not in given:
            raise ValueError(f'there is no slot "{slot}", expected one of: {", ".join(SLOTS)}')
        given[slot] = name
    more = [name.strip() for name in given.pop("more").split(",") if name.strip()]
    for slot, name in [*given.items(), *(("more", name) for name in more)]:
        if name not in pieces[slot]:
            raise ValueError(f'there is no {slot} "{name}"')
    return Case(**given, more=more)


def has(path: str) -> bool:
    """Whether this PyTorch has torch.PATH."""
    at = torch
    for name in path.split("."):
        if not hasattr(at, name):
            with contextlib.suppress(ImportError):
                __import__(f"{at.__name__}.{name}")
        if not hasattr(at, name):
            return False
        at = getattr(at, name)
    return True
