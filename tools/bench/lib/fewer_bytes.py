# tools/bench/lib/fewer_bytes.py - what "tools/bench/convergence fewer-bytes" runs, in which order, and its table.
"""Asks   What do formats of fewer bytes, outer steps and gradients of a low rank cost in accuracy, in a short run?
Shapes  4 workers on this machine, every value over loopback: LeNet, CIFAR-10 quick and a ResNet-20 on Fashion-MNIST, 4 x 32 images an iteration, as nets of Caffe (poseidon-node)
        and as scripts (poseidon.torch); a GPT of 438,000 parameters on the bytes of the King James Bible, 4 x 8 x 64 bytes, with AdamW.
        With one seed all runs of a model have the same first parameters and the same batches in the same order; of nets the seed chooses the parameters alone.
Controls  Each row names the exact run that it is compared with, which differs in nothing else. Beside outer steps stand exact runs with as few exchanges: each step
        has the gradients of 5 or 20 batches, or the run has a fifth or a twentieth of the iterations.

usage: tools/bench/convergence fewer-bytes [--only TEXT[,TEXT]] [--seeds 1,2,3] [--iterations N] [--results FILE] [--list | --table] [--write]

  --only        only runs whose names have one of these texts, such as "gpt" or "lenet net int4"
  --iterations  in place of those that are usual; a multiple of 20
  --results     a line of JSON for each run that has ended; runs that it has are not made again       (default: build/fewer-bytes.jsonl)
  --list        says which runs there are and whether they have been made, and makes none
  --table       prints the table of what has been made, and makes no run
  --write       puts the table into docs/measurements/accuracy-of-fewer-bytes.md

Needs Debian's PyTorch, dataset-fashion-mnist and bible-kjv (tools/dependencies --bench). Exit codes: 0 done, 1 a run failed, 2 wrong use.
"""
import argparse
import contextlib
import dataclasses
import functools
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import fewer_bytes_nets as nets
import report
from cluster import BIN, PATIENT_SILENCE_S, ROOT, Cluster, reserved_address

WORKER = pathlib.Path(__file__).with_name("fewer_bytes_worker.py")
PYTHON = "/usr/bin/python3"  # the system's, which has Debian's PyTorch
NODES, LIMIT_S = 4, 3600
# Of each worker. There are more workers than cores, and on a busy machine one that waits for a core is not lost.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POSEIDON_SILENCE_LIMIT": str(PATIENT_SILENCE_S), "POSEIDON_ON_LOSS": "end"}
TITLES = {"lenet": "LeNet, 431,080 parameters, accuracy in %", "cifar10_quick": "CIFAR-10 quick, 115,000 parameters, accuracy in %",
          "resnet20": "ResNet-20, 272,000 parameters, accuracy in %",
          "gpt": "GPT, 438,000 parameters, bits per byte (less is better)"}
# By task: of nets, of scripts. Multiples of 20, so that outer steps end with the run. PyTorch takes two to four times as long for an iteration as poseidon-node.
ITERATIONS = {"lenet": {"net": 600, "script": 400}, "cifar10_quick": {"net": 1000}, "resnet20": {"net": 400, "script": 160}, "gpt": {"script": 240}}


@dataclasses.dataclass(frozen=True)
class Rung:
    """A row of the table: how it is run, and what it is compared with."""
    name: str
    words: tuple = ()  # of poseidon-node or of the worker
    exact: str = ""  # the row that differs in nothing but the bytes; none: it is one of these
    more: bool = False  # made when all others are

    @property
    def kind(self):
        return "net" if self.name.startswith("net") else "script"


def wired(format_):
    return ("--wire", format_)


EXACT = Rung("net float32", wired("float32"))
MATH = Rung("net math bf16", ("--math", "bf16"), EXACT.name)  # as many bytes: what is rounded lies between layers
OF_NETS = [EXACT, *(Rung(f"net {f}", wired(f), EXACT.name) for f in ("bfloat16", "int8", "int4")),
           *(Rung(f"net rank {r}", ("--rank", str(r)), EXACT.name) for r in (8, 4)),
           MATH]
SCRIPT = Rung("script float32")
ROUNDED = {f: Rung(f"script {f}", wired(f), SCRIPT.name, more=f == "bfloat16") for f in ("bfloat16", "int8", "int4")}
SHARDS = Rung("shards float32", ("--mode", "shards"), SCRIPT.name, more=True)
OF_SHARDS = [SHARDS, *(Rung(f"shards {f}", ("--mode", "shards", *wired(f)), SCRIPT.name, more=f == "int8") for f in ("int8", "int4"))]
LOW = [Rung(f"script rank {r}", ("--rank", str(r)), SCRIPT.name) for r in (8, 4)]
OUTER = [Rung(f"outer {h} {f}".strip(), ("--outer", str(h), *(wired(f) if f else ())), SCRIPT.name) for h in (5, 20) for f in ("", "int4")]
SEVERAL = [Rung(f"exact {h} batches a step", ("--accumulate", str(h)), SCRIPT.name, more=True) for h in (5, 20)]
SHORTER = [Rung(f"exact 1/{h} of the iterations", ("--shorter", str(h)), SCRIPT.name) for h in (5, 20)]
OF_PICTURES = [*OF_NETS, SCRIPT, dataclasses.replace(ROUNDED["int4"], more=True), *OUTER, *SHORTER, *SEVERAL]
RUNGS = {"lenet": OF_PICTURES, "cifar10_quick": [EXACT, MATH], "resnet20": OF_PICTURES, "gpt": [SCRIPT, *ROUNDED.values(), *OF_SHARDS, *LOW, *OUTER, *SHORTER, *SEVERAL]}


@functools.cache
def can_run(rung):
    """Whether this build and this processor have what the rung needs: a low rank, products of bfloat16."""
    if "--math" in rung.words:
        return "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
    if "--rank" not in rung.words:
        return True
    if rung.kind == "net":
        return "--rank" in subprocess.run([BIN / "poseidon-node", "--help"], capture_output=True, text=True, check=True).stdout
    return bool(re.search(r'"rank"', (ROOT / "apps/python/poseidon/options.py").read_text()))


# -- one run


class RunFailed(Exception):
    pass


def of_nodes(folder, task, rung, seed, iterations):
    """(score, loss, bytes that the first node sends in the run)."""
    with Cluster() as c:
        solver = nets.write(c.folder, task, iterations)
        routes = "lowrank" if "--rank" in rung.words else "ps"
        common = ["--devices", "cpu:1", "--data-root", folder, "--silence-limit", PATIENT_SILENCE_S]
        first = c.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", NODES, "--routes", routes, "--seed", seed, "--survive", 0, "--json", *rung.words, *common)
        address = first.wait_for(r"listening on ([\d.]+:\d+)")[1]
        of_each = rung.words if "--math" in rung.words else ()
        others = [c.node("--join", address, *of_each, *common) for _ in range(NODES - 1)]
        codes = [node.wait(LIMIT_S) for node in (first, *others)]
        events = [json.loads(line) for line in first.lines if line.startswith("{")]
    tested = [e["outputs"] for e in events if e["event"] == "test"]
    views = [e["members"] for e in events if e["event"] == "view"]
    if any(codes) or len(tested) != 1 or any(len(members) != NODES for members in views):
        raise RunFailed(f"exit codes {codes}, views {views}, {len(tested)} test phases:\n" + "\n".join(line for line in first.lines if '"progress"' not in line))
    rates = [(e["bytes_out_per_s"], e["images_per_s"]) for e in events if e["event"] == "progress" and e["bytes_out_per_s"]]
    of_image = statistics.median(out / images for out, images in rates) if rates else None
    return 100 * tested[0]["accuracy"], tested[0]["loss"], of_image and of_image * nets.BATCH * NODES * iterations


def of_script(folder, task, rung, seed, iterations):
    data = folder / "text" if task == "gpt" else nets.IMAGES
    with reserved_address() as page, Cluster(env=ENVIRONMENT) as c:
        run = c.start(ROOT / "tools/launch/local", NODES, PYTHON, WORKER, "--task", task, "--data", data, "--seed", seed, "--iterations", iterations, "--page", page, *rung.words)
        code = run.wait(LIMIT_S)
    found = re.search(r"RESULT (\{.*\})", run.output)
    if code or not found:
        raise RunFailed("\n".join(run.lines[-8:]))
    said = json.loads(found[1])
    return said["score"], said["loss"], said["sent"]


def write_data(folder, tasks):
    """What the runs read, once for all."""
    if tasks - {"gpt"}:
        nets.convert(folder)
    if "gpt" in tasks:
        verses = subprocess.run(["bible", "-f", "Gen1:1-Rev22:21"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
        (folder / "text").write_text("".join(line.partition(" ")[2] + "\n" for line in verses.splitlines()))


# -- results


class Results:
    """The file of results: a line of JSON for each run."""

    def __init__(self, path):
        self.path, self.of = pathlib.Path(path), {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                with contextlib.suppress(ValueError):  # a torn line
                    self._take(json.loads(line))

    def _take(self, r):
        self.of[r["task"], r["rung"], r["seed"], r["iterations"]] = r

    def add(self, r):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")  # its writer was ended in the middle of a line
        with open(self.path, "a") as file:
            file.write("\n" * torn + json.dumps(r) + "\n")
        self._take(r)


@dataclasses.dataclass(frozen=True)
class Plan:
    tasks: dict  # task -> its rungs
    seeds: list
    given: int  # iterations; none: those of ITERATIONS

    def runs(self):
        """One seed after the other, so that a plan that is stopped has whole seeds."""
        return [(task, rung, seed) for more in (False, True) for seed in self.seeds for task, rungs in self.tasks.items() for rung in rungs if rung.more == more]

    def iterations(self, task, kind):
        return self.given or ITERATIONS[task][kind]

    def made(self, results, task, rung):
        """The results of this rung's runs by seed, in the plan's order."""
        keys = {seed: (task, rung.name, seed, self.iterations(task, rung.kind)) for seed in self.seeds}
        return {seed: results.of[key] for seed, key in keys.items() if key in results.of}


def planned(only, seeds, iterations):
    wanted = [text.strip() for text in only.split(",")]
    tasks = {task: [r for r in rungs if any(text in f"{task} {r.name}" for text in wanted)] for task, rungs in RUNGS.items()}
    return Plan({task: rungs for task, rungs in tasks.items() if rungs}, seeds, iterations)


def make(plan, results, folder):
    """Makes the runs that are missing; the names of those that failed."""
    left, failed = [], []
    for task, rung, seed in plan.runs():
        if seed in plan.made(results, task, rung):
            continue
        if can_run(rung):
            left.append((task, rung, seed))
        else:
            print(f"{task} {rung.name}, seed {seed}: not run, this build has no --rank", flush=True)
    write_data(folder, {task for task, _, _ in left})
    for number, (task, rung, seed) in enumerate(left, 1):
        began, iterations = time.time(), plan.iterations(task, rung.kind)
        name = f"{task} {rung.name}, seed {seed}"
        try:
            score, loss, sent = (of_nodes if rung.kind == "net" else of_script)(folder, task, rung, seed, iterations)
        except (RunFailed, AssertionError) as why:
            failed.append(name)
            print(f"{name}: failed: {why}", flush=True)
            continue
        results.add({"task": task, "rung": rung.name, "seed": seed, "iterations": iterations, "score": score, "loss": loss, "sent": sent,
                     "seconds": round(time.time() - began, 1), "commit": report.commit(), "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        print(f"{number}/{len(left)} {name}: {score:.3f}, loss {loss:.4f}, {(sent or 0) / 1e6:.1f} MB sent, {time.time() - began:.0f} s", flush=True)
    return failed


# -- the table


def numbers(values, digits, sign=""):
    return ", ".join(f"{round(v, digits) + 0.0:{sign}.{digits}f}" for v in values)  # no -0.00


def row(task, rung, plan, results):
    digits, mine = 3 if task == "gpt" else 2, plan.made(results, task, rung)
    exact = plan.made(results, task, dataclasses.replace(rung, name=rung.exact)) if rung.exact else {}
    if not mine:
        return f"| {rung.name} | not run | | | |"
    sent, scores = [r["sent"] / 1e6 for r in mine.values() if r["sent"]], [r["score"] for r in mine.values()]
    mean = f"{statistics.mean(scores):.{digits}f}" + (f" ± {statistics.stdev(scores):.{digits}f}" if len(scores) > 1 else "")
    apart = [mine[seed]["score"] - exact[seed]["score"] for seed in mine if seed in exact]
    difference = f"**{statistics.mean(apart):+.{digits}f}** ({numbers(apart, digits, '+')}) to {rung.exact}" if apart else ""
    return f"| {rung.name} | {numbers([statistics.median(sent)] if sent else [], 1)} | {mean} | {numbers(scores, digits)} | {difference} |"


def table(plan, results, command):
    commits = ", ".join(sorted({r["commit"] for task, rungs in plan.tasks.items() for rung in rungs for r in plan.made(results, task, rung).values()}))
    lines = [f"{report.machine_line()} {NODES} workers over loopback, seeds {', '.join(map(str, plan.seeds))}; runs made at commit {commits}. Command: `{command}`"]
    for task, rungs in plan.tasks.items():
        long = ", ".join(f"{plan.iterations(task, kind)} iterations of {kind}s" for kind in ITERATIONS[task])
        lines += ["", f"**{TITLES[task]}**, {long}", "",
                  "| run | MB sent by a worker | mean ± standard deviation | by seed | difference at the same seed, mean (each) |", "| --- | --- | --- | --- | --- |",
                  *(row(task, rung, plan, results) for rung in rungs)]
    return "\n".join(lines) + "\n"


# -- the command


def arguments(words):
    parser = argparse.ArgumentParser(prog="tools/bench/convergence fewer-bytes", description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", default="1,2,3", type=lambda text: [int(seed) for seed in text.split(",")])
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--results", default=ROOT / "build/fewer-bytes.jsonl")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args(words)


def run(words):
    """(text, the names of runs that failed, whether the text is a table to be written)."""
    o = arguments(words)
    plan, results = planned(o.only, o.seeds, o.iterations), Results(o.results)
    if not plan.tasks:
        print(f'tools/bench/convergence: no run has "{o.only}" in its name; --list says which there are', file=sys.stderr)
        raise SystemExit(2)
    if o.list:
        return "".join(f"{task} {rung.name}, seed {seed}: {'made' if seed in plan.made(results, task, rung) else 'not made'}\n"
                       for task, rung, seed in plan.runs()), [], False
    failed = []
    if not o.table:
        with tempfile.TemporaryDirectory(prefix="poseidon-fewer-bytes-") as folder:
            failed = make(plan, results, pathlib.Path(folder))
    given = [word for word in words if word not in ("--write", "--table")]
    return table(plan, results, " ".join(["tools/bench/convergence", "fewer-bytes", *given])), failed, o.write
