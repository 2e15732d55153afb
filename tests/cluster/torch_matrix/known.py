# tests/cluster/torch_matrix/known.py - failures that are known and not mended yet; tools/torch_matrix runs and reports them all the same.

# By slot and name of a piece: the modes in which a case with it fails, and what happens. Who mends one takes it from this list.
OPEN = {
    "model=a parameter without values": (("ddp", "wrapped", "local", "shards"), "join() refuses it, and names no remedy"),
}


def open_reason(parts, mode):
    """Why a case of these parts ("slot", "name") is known to fail; None: it has to pass."""
    return next((reason for slot, name in parts for modes, reason in [OPEN.get(f"{slot}={name}", ((), ""))] if mode in modes), None)
