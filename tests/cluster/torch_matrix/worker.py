# tests/cluster/torch_matrix/worker.py - a process that is one worker of many cases, one after the other.
"""Reads a line of JSON for each case and answers with one: "kind" is

    equal      to one process, bit for bit; or as near as the case says
    different  from it; "text" has the first names, and how far apart they are
    refused    a PoseidonError; "text" is its line
    raised     something else, which one process does not raise
    impossible one process raises it, too
    absent     this PyTorch lacks it

and "digest" that of all parameters and buffers, which all workers end with.
"""
import hashlib
import inspect
import json
import os
import sys
import traceback
import warnings
import zlib

import torch
import torch.utils._pytree

import pieces
import models  # noqa: F401
import optimizers  # noqa: F401
import passes  # noqa: F401
import loops  # noqa: F401
import company  # noqa: F401
import around  # noqa: F401
import faults  # noqa: F401
from loop import Alone, Joined

import poseidon.torch as poseidon
from poseidon.torch import bundles

_FEWEST = bundles._FEWEST


def join(loop, address):
    options = {"nodes": loop.workers, "listen": address} if loop.rank == 0 else {"join": address}
    if loop.workers == 1:
        options = {}
    options.update(loop.options)
    if loop.mode == "wrapped":
        # It has no words for who is there.
        for key, value in options.items():
            os.environ["POSEIDON_" + key.upper()] = str(value)
        try:
            loop.run = poseidon.DistributedDataParallel(loop.net)
        finally:
            for key in options:
                del os.environ["POSEIDON_" + key.upper()]
        return
    if "quiet" in inspect.signature(poseidon.join).parameters:
        options["quiet"] = True
    poseidon.join(loop.net, loop.optimizer, mode=loop.mode, **options)


def small_ones_together(case):
    """Whether small parameters travel together although they are few: in every second case, by its name."""
    bundles._FEWEST = 2 if zlib.crc32(str(case).encode()) % 2 else _FEWEST


def joined(case, mode, workers, rank, address):
    small_ones_together(case)
    loop = Joined(case, mode, workers, rank)
    loop.make()
    join(loop, address)
    try:
        loop.rank = poseidon.rank()  # joiners are counted in the order of their coming
        torch.manual_seed(100 + loop.rank)
        loop.train()
        by_factors = bool(getattr(poseidon.Client.current.factors, "offered", False)) and any(
            u.on_factors for u in poseidon.Client.current.factors.units.values())
    except BaseException as error:
        try:
            poseidon.leave(f"{type(error).__name__}: {error}"[:500])
        except poseidon.PoseidonError:
            pass
        raise
    poseidon.leave()
    return loop, by_factors


def alone(case, mode, workers):
    loop = Alone(case, mode, workers)
    loop.make()
    loop.train()
    return loop.result()


def bits(t):
    t = t.detach().contiguous()
    return t.view(torch.uint8).numpy().tobytes() if t.dim() and t.numel() else repr(t.tolist()).encode()


def differences(mine, wanted, tolerance):
    """Names, with how far they are apart."""
    out = [f'"{name}" is not there' for name in wanted if name not in mine] + [f'"{name}" is too much' for name in mine if name not in wanted]
    for name, value in mine.items():
        other = wanted.get(name)
        if other is None or (value.shape == other.shape and torch.equal(value, other)):
            continue
        if value.shape != other.shape:
            out.append(f'"{name}" has shape {tuple(value.shape)}, expected {tuple(other.shape)}')
            continue
        a, b = value.double(), other.double()
        same = (a == b) | (a.isnan() & b.isnan())
        far = float((a - b).abs()[~same].max()) if not bool(same.all()) else 0.0
        if not far <= tolerance * max(1e-30, float(b.abs().max())) and not bool(same.all()):
            out.append(f'"{name}" differs by {far:.2g} in {int((~same).sum())} of {a.numel()} values')
    return out


def tolerance_of(case, mode, by_factors):
    given = [p.rounds[mode][0] for p in case.of() if mode in p.rounds]
    return max([*given, 1e-5 if by_factors else 0.0])


def run(case, mode, workers, rank, address):
    if not all(p.here for p in case.of()):
        return {"kind": "absent", "text": "not in this PyTorch"}
    try:
        loop, by_factors = joined(case, mode, workers, rank, address)
    except poseidon.PoseidonError as error:
        return {"kind": "refused", "text": str(error)}
    except Exception as error:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__)[-3:])
        cause = error.__cause__ or error.__context__
        if isinstance(cause, poseidon.PoseidonError):
            return {"kind": "refused", "text": str(cause)}
        try:
            alone(case, mode, workers)
        except Exception as same:
            if type(same) is type(error):
                return {"kind": "impossible", "text": f"one process raises {same!r}"}
        return {"kind": "raised", "text": " | ".join(f"{error!r}: {text[-600:]}".split("\n"))}
    mine = loop.result()
    digest = hashlib.sha256(b"".join(bits(v) for n, v in mine.items() if not n.startswith(("seen", "state")))).hexdigest()[:16]
    if rank > 0:  # worker 0 compares for all; these have its bits or not
        return {"kind": "equal", "digest": digest}
    try:
        wanted = alone(case, mode, workers)
    except Exception as error:
        return {"kind": "unlike", "text": f"one process raises {error!r}", "digest": digest}
    found = differences(mine, wanted, tolerance_of(case, mode, by_factors))
    if found:
        return {"kind": "different", "text": "; ".join(found[:3]) + (f"; {len(found)} in all" if len(found) > 3 else ""), "digest": digest}
    return {"kind": "equal", "digest": digest, "by_factors": by_factors}


def catalogue():
    return {"torch": torch.__version__, "slots": {slot: {name: {
        "refused": p.refused, "here": p.here, "own": p.own, "weight": p.weight, "least": p.least} for name, p in of.items()}
        for slot, of in pieces.pieces.items()}}


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a case prints
    for line in sys.stdin:
        order = json.loads(line)
        if "case" not in order:
            answer = catalogue()
        else:
            answer = run(pieces.case_of(order["case"]), order["mode"], order["workers"], order["rank"], order["address"])
            torch.set_grad_enabled(True)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":  # a DataLoader's process imports this file
    main()
