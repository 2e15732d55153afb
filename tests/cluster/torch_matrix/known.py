# tests/cluster/torch_matrix/known.py - failures that are known and not mended yet, or PyTorch's own; tools/torch_matrix runs and reports them all the same.

LATE = ("local", "shards")
DDP = ("ddp", "wrapped")
KEPT = "the kept gradient of a parameter that no worker reaches is added N times and divided by N, which rounds for 3 workers"
GRAPH = "PyTorch's own error, which says what mode to use: nobody can wait for a parameter within a graph"
FUSED = "inductor fuses what lies between two layers that wait, and so rounds otherwise than in one graph"

# By pieces that meet in a case: the modes in which it may fail, and what happens. Whoever mends one takes it from this list.
OPEN = {
    **{f"{piece}; zero={zero}": (DDP, KEPT) for piece in ("model=unused parameters", "more=frozen for a while")
       for zero in ("never", "every second step")},
    **{f"more={name}": (LATE, GRAPH) for name in ("export", "compile between steps")},
    "forward=compile fullgraph": (LATE, GRAPH),
    "forward=compile inductor": (LATE, FUSED),
}


def open_reason(parts, mode):
    """Why a case with these parts ("slot", "name") is known to fail; None: it has to pass."""
    there = {f"{slot}={name}" for slot, name in parts}
    return next((reason for case, (modes, reason) in OPEN.items() if mode in modes and set(case.split("; ")) <= there), None)
