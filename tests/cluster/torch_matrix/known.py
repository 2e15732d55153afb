# tests/cluster/torch_matrix/known.py - failures that are known and not mended yet; tools/torch_matrix runs and reports them all the same.

LATE = ("local", "shards")
ALL = ("ddp", "wrapped", *LATE)
DDP = ("ddp", "wrapped")
KEPT = "the kept gradient of a parameter that no worker reaches is added N times and divided by N, which rounds for 3 workers"

# By pieces that meet in a case: the modes in which it may fail, and what happens. Whoever mends one takes it from this list.
OPEN = {
    "model=a parameter without values": (ALL, "join() refuses it, and names no remedy"),
    "model=unused parameters; zero=never": (DDP, KEPT),
    "model=unused parameters; zero=every second step": (DDP, KEPT),
}


def open_reason(parts, mode):
    """Why a case with these parts ("slot", "name") is known to fail; None: it has to pass."""
    there = {f"{slot}={name}" for slot, name in parts}
    return next((reason for case, (modes, reason) in OPEN.items() if mode in modes and set(case.split("; ")) <= there), None)
