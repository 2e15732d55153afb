"""Numbers of the script that all workers have alike: where it is in its epochs, how long it waits for a better loss."""

from typing import Dict, Iterator, Tuple, Union

from ..library import PoseidonError

Number = Union[int, float]


def _plain(name: str, value: object) -> Number:
    if isinstance(value, (int, float)) and type(value).__module__ == "builtins":
        return value
    hint = ", which .item() makes of it" if hasattr(value, "item") else ""
    raise PoseidonError(f'Progress: "{name}" is {value!r} ({type(value).__name__}), expected a plain number (int, float or bool){hint}: tensors, lists and texts '
                        "belong into a state_dict of their own, beside it in state=[...]")


class Progress:
    """Plain numbers by name, as attributes: `progress = Progress(epoch=0, best=float("inf"))`, `progress.epoch += 1`. A worker that joins a run later
    begins with those of the others where `state=[progress]` names it. Which numbers there are is said when it is made, once."""

    def __init__(self, **numbers: Number):
        for name in numbers:
            if name.startswith("_") or hasattr(type(self), name):
                raise PoseidonError(f'Progress: a number cannot be called "{name}", which is a name of the class itself: choose another one')
        object.__setattr__(self, "_numbers", {name: _plain(name, value) for name, value in numbers.items()})

    def __getattr__(self, name: str) -> Number:
        numbers = self.__dict__.get("_numbers", {})
        if name in numbers:
            return numbers[name]
        raise AttributeError(self._unknown(name))

    def __setattr__(self, name: str, value: Number) -> None:
        if name not in self._numbers:
            raise PoseidonError(self._unknown(name))
        self._numbers[name] = _plain(name, value)

    def _unknown(self, name: str) -> str:
        there = ", ".join(self.__dict__.get("_numbers", {})) or "none"
        return f'Progress has no number "{name}", it has: {there}. Name all of them when it is made: Progress({name}=0)'

    def __iter__(self) -> Iterator[Tuple[str, Number]]:
        return iter(self._numbers.items())

    def __repr__(self) -> str:
        return "Progress(" + ", ".join(f"{name}={value!r}" for name, value in self) + ")"

    def state_dict(self) -> Dict[str, Number]:
        return dict(self._numbers)

    def load_state_dict(self, state: Dict[str, Number]) -> None:
        """Takes all of them, or none."""
        if not isinstance(state, dict):
            raise PoseidonError(f"Progress.load_state_dict: the state is a {type(state).__name__}, expected what state_dict() returns")
        if set(state) != set(self._numbers):
            raise PoseidonError(f"Progress.load_state_dict: the state has the numbers {', '.join(map(str, state)) or 'none'}, and this Progress has "
                                f"{', '.join(self._numbers) or 'none'}: another version of the script has written it; make Progress with the same names")
        taken = {name: _plain(name, state[name]) for name in self._numbers}
        self._numbers.update(taken)
