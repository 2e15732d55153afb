#!/usr/bin/env python3
# tools/bench/torch_gpu_company.py - several PyTorch processes that share one GPU: poseidon.torch beside DistributedDataParallel over gloo.
"""Asks   How long is an iteration of the same script and model with each of them, where gradients have to leave a GPU and come back?
Shapes  any net of models/zoo, made by tools/bench/torch_gpu.py; a batch of random images that stays on the GPU; SGD with momentum.
Read    In turn, so many rounds: each program's median of an iteration of rank 0 is one value. A line of JSON for each program: the median of
        its rounds and of their ratios to DDP's of the same round. The processes share the GPU's time, and the wire is this machine's own:
        this tells what the ways between GPU and wire cost, not how a cluster scales.
Checks  nothing.

usage: tools/bench/torch_gpu_company.py --net NET [--batch B] [--processes N] [--iterations N] [--rounds N]
                                        [--programs poseidon,poseidon-ddp,ddp] [--device cuda|cpu]
POSEIDON_LIBRARY names libposeidon.so where it is not in build/release/lib.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WARM_UP = 5
sys.path.append(str(ROOT / "tests/cluster"))
from ports import reserved_address  # noqa: E402


def rank_of(options):
    """One process: its median iteration, in seconds."""
    sys.path[:0] = [str(ROOT / "tools/bench"), str(ROOT / "apps/python")]
    import torch
    import torch_gpu

    warnings.filterwarnings("ignore", message="Lazy modules")
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    layers = torch_gpu.parse((ROOT / f"models/zoo/{options.net}/train_val.prototxt").read_text())["layer"]
    images = torch.randn(options.batch, *torch_gpu.sample_shape(options.net, layers), device=options.device)
    labels = torch.randint(0, 10, (options.batch,), device=options.device)
    net = torch_gpu.Net(layers).to(options.device)
    with torch.no_grad():
        net(images[:2], labels[:2])  # the lazy modules get their shapes
    rule = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4)
    if options.program == "ddp":
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(net)
    else:
        import poseidon.torch as poseidon
        model = net
        poseidon.join(net, rule, mode="ddp" if options.program == "poseidon-ddp" else "local")
    times = []
    for _ in range(WARM_UP + options.iterations):
        begun = time.perf_counter()
        rule.zero_grad(set_to_none=True)
        loss = model(images, labels)
        loss.backward()
        rule.step()
        loss.item()  # as scripts do that say it; the GPU has then computed the backward pass
        times.append(time.perf_counter() - begun)
    if options.program == "ddp":
        torch.distributed.destroy_process_group()
    else:
        poseidon.leave()
    if options.rank == 0:
        print(json.dumps({"s": statistics.median(times[WARM_UP:])}), flush=True)


def run(options, program):
    """Rank 0's median iteration with this program; None where it failed."""
    with reserved_address() as address:
        return run_at(address, options, program)


def run_at(address, options, program):
    """The same, whose processes meet at this address."""
    workers = []
    for rank in range(options.processes):
        variables = {**os.environ, "OMP_NUM_THREADS": "4"}
        if program == "ddp":
            variables.update(RANK=str(rank), WORLD_SIZE=str(options.processes), MASTER_ADDR="127.0.0.1", MASTER_PORT=address.rpartition(":")[2])
        elif rank == 0:
            variables.update(POSEIDON_LISTEN=address, POSEIDON_NODES=str(options.processes))
        else:
            variables.update(POSEIDON_JOIN=address)
        command = [sys.executable, __file__, "--net", options.net, "--batch", str(options.batch), "--iterations", str(options.iterations),
                   "--device", options.device, "--program", program, "--rank", str(rank)]
        workers.append(subprocess.Popen(command, env=variables, stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL, text=True))
    said = workers[0].communicate()[0]
    if any([w.wait() for w in workers]):
        return None
    return json.loads(said.splitlines()[-1])["s"]


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/torch_gpu_company.py", description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--programs", default="poseidon,poseidon-ddp,ddp")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--program", help=argparse.SUPPRESS)  # of one process
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        return rank_of(options)
    programs = options.programs.split(",")
    rounds = [{p: run(options, p) for p in programs} for _ in range(options.rounds)]
    for p in programs:
        times = [r[p] for r in rounds if r[p]]
        ratios = [r[p] / r["ddp"] for r in rounds if r[p] and r.get("ddp")]
        print(json.dumps({"net": options.net, "batch": options.batch, "processes": options.processes, "program": p, "n": len(times),
                          "ms": round(1e3 * statistics.median(times), 2) if times else None,
                          "to_ddp": round(statistics.median(ratios), 3) if ratios else None}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
