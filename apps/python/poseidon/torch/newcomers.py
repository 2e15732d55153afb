"""Workers that join a script which trains already: what it gives them at a step's boundary, and what it takes when it is one of them."""

from typing import List, Mapping, Optional, Sequence, Tuple

import torch

from ..library import PoseidonError, Run
from .carried import Carried


def name_of_run(states: Sequence[dict]) -> bytes:
    """The first of the states that come beside what the script names."""
    try:
        name = bytes.fromhex(states[0]["run"])
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise PoseidonError(f"what the other workers have given does not name the run ({type(error).__name__}: {error})") from error
    if len(name) != 16:
        raise PoseidonError(f"what the other workers have given names the run by {len(name)} bytes, expected 16")
    return name


class Newcomers:
    """Of a worker whose script has said with `state=[...]` what more than model and optimizer a newcomer needs."""

    def __init__(self, carried: Carried):
        carried.require_packable()
        self._carried = carried
        # Worker 0's, when begin() has returned; until then the library reads and writes this memory. One more, since there may be no objects.
        self._sums = torch.tensor([0, *carried.sums()], dtype=torch.int64)
        self._given: Optional[torch.Tensor] = None  # while the library copies it

    def entry(self) -> Tuple[str, torch.Tensor]:
        """What all workers compare before they train together."""
        return f"newcomers: {self._carried.kinds()}", self._sums

    def require_alike(self) -> None:
        """When a worker that has not come later has worker 0's model."""
        self._carried.require_sums(self._sums[1:].tolist())

    def give(self, states: Sequence[dict], buffers: Mapping[str, torch.Tensor]) -> Tuple[int, int, int]:
        """Address and size of what newcomers need, and how much of it is this worker's own. `states`: beside what the script names; `buffers`: as the
        last step has left them."""
        self._given, own = self._carried.pack(buffers, states)
        return self._given.data_ptr(), self._given.numel(), own

    def given(self) -> None:
        """The library has copied it."""
        self._given = None

    def take(self, run: Run) -> Optional[List[dict]]:
        """Loads what the others have given, and returns their `states`. None: this worker has begun with them."""
        memory = run.state_given()
        if memory is None:
            return None
        if len(memory) == 0:
            raise PoseidonError("the others were about to leave when this worker came, and have given it nothing: the run is over")
        return self._carried.unpack(torch.frombuffer(memory, dtype=torch.uint8), name_of_run)
