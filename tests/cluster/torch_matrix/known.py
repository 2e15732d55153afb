# tests/cluster/torch_matrix/known.py - failures that are known and not mended yet; tools/torch_matrix runs and reports them all the same.

LATE = ("local", "shards")
ALL = ("ddp", "wrapped", *LATE)
DDP = ("ddp", "wrapped")
KEPT = "the kept gradient of a parameter that no worker reaches is added N times and divided by N, which rounds for 3 workers"
GRAPH = "PyTorch's own error, which says what mode to use: nobody can wait for a parameter within a graph"
REWRITTEN = "worker 0's buffers are written at the end of the first pass, also where they are equal; the graph that is kept has saved one of them"
SAVED = "with PyTorch 2.6 the parameter that _Linear unpacks takes the hooks of the real one with it when it ends (clocks 2 and 3)"
SECOND_ORDER = "a second backward pass through _Linear (clocks 2 and 3) rounds otherwise than through F.linear where the input has three dimensions"

# By pieces that meet in a case: the modes in which it may fail, and what happens. Whoever mends one takes it from this list.
OPEN = {
    **{f"{piece}; zero={zero}": (DDP, KEPT) for piece in ("model=unused parameters", "more=frozen for a while")
       for zero in ("never", "every second step")},
    **{f"{piece}; loop=one graph and two backward passes": (DDP, REWRITTEN) for piece in ("model=orthogonal", "more=prunes")},
    **{f"more={name}": (LATE, GRAPH) for name in ("export", "compile between steps")},
    "forward=compile fullgraph": (LATE, GRAPH),
    **{f"forward={how}; more={hooks}": (ALL, SAVED) for how in ("saved on hooks", "saved on the CPU")
       for hooks in ("tensor hooks", "tensor hooks after join")},
    "model=Transformer; forward=gradient penalty": (ALL, SECOND_ORDER),
}


def open_reason(parts, mode):
    """Why a case with these parts ("slot", "name") is known to fail; None: it has to pass."""
    there = {f"{slot}={name}" for slot, name in parts}
    return next((reason for case, (modes, reason) in OPEN.items() if mode in modes and set(case.split("; ")) <= there), None)
