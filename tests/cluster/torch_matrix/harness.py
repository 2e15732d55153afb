# tests/cluster/torch_matrix/harness.py - runs cases in processes that stay, and says what each has come to.
"""A case passes where all workers end with the same bits, and these are those of one process that adds the micro-batches; or where it is
refused by a line that its pieces declare. What this PyTorch lacks is no case. All else is a failure: other bits, an error, a refusal that no
piece declares, a worker that dies or hangs. In a walk a combination that one process cannot train either ("impossible") is none."""
import contextlib
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import cluster  # noqa: E402
import programs  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MODES = ("ddp", "wrapped", "local", "shards")
PATIENCE_S = 90 * cluster.SLACK  # of one case; torch.compile starts a compiler
PASSED = ("equal", "refused", "absent", "as DDP")


class Ended(Exception):
    """A worker has died, or hangs."""


class Worker:
    """A process of worker.py."""

    def __init__(self, folder, name):
        variables = {"POSEIDON_LIBRARY": programs.LIBRARY, "PYTHONPATH": programs.PACKAGE, "OPENBLAS_NUM_THREADS": 1, "OMP_NUM_THREADS": 1}
        for key in "LISTEN", "JOIN", "NODES":
            variables["POSEIDON_" + key] = ""
        words = ["env"] + [f"{key}={value}" for key, value in variables.items()]
        self.said = (folder / f"{name}.log").open("w+b")
        self.process = subprocess.Popen([*words, programs.PYTHON, "-B", str(folder / "torch_matrix/worker.py")], cwd=folder,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said,
                                        start_new_session=True, preexec_fn=cluster.die_with_parent)

    def ask(self, order):
        try:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Ended(self.end()) from None

    def last_words(self):
        self.said.seek(0)
        return " | ".join(self.said.read().decode(errors="replace").strip().splitlines()[-4:])[-500:]

    def end(self):
        """What it has said last. It may have ended before."""
        if self.said.closed:
            return self.ended
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait(30)
        self.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        words = self.last_words()
        self.said.close()
        self.ended = f"exit code {code}: {words}"
        return self.ended


def answers(workers, patience_s=PATIENCE_S):
    """One of each worker, in their order. Raises Ended."""
    out, chooser = [None] * len(workers), selectors.DefaultSelector()
    deadline = time.monotonic() + patience_s
    for place, worker in enumerate(workers):
        chooser.register(worker.process.stdout, selectors.EVENT_READ, place)
    with chooser:
        while any(answer is None for answer in out):
            ready = chooser.select(max(0, deadline - time.monotonic()))
            if not ready:
                silent = [place for place, answer in enumerate(out) if answer is None]
                said = "; ".join(f"{place} said {workers[place].last_words()}" for place in silent)
                others = "; ".join(str(answer.get("text", answer["kind"])) for answer in out if answer is not None)
                raise Ended(f"hangs for {patience_s:.0f} s on workers {silent}, {said}; the others: {others}")
            for key, _ in ready:
                line = key.fileobj.readline()
                if not line:
                    raise Ended(f"worker {key.data} has died, {workers[key.data].end()}")
                out[key.data] = json.loads(line)
                chooser.unregister(key.fileobj)
    return out


class Matrix:
    """Workers that run cases. After one that dies or hangs come new ones."""

    def __init__(self):
        self._stack = contextlib.ExitStack()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="poseidon-test-matrix-"))
        shutil.copytree(HERE, self.folder / "torch_matrix", ignore=shutil.ignore_patterns("__pycache__"))
        self._started = 0
        self.workers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self):
        for worker in self.workers:
            worker.end()
        self.workers = []

    def _need(self, number):
        while len(self.workers) < number:
            self._started += 1
            self.workers.append(Worker(self.folder, f"worker{self._started}"))
        return self.workers[:number]

    def catalogue(self):
        """By slot and name: what a piece is; and the version of PyTorch."""
        (worker,) = self._need(1)
        worker.ask({})
        return answers([worker])[0]

    def run(self, case, mode, number):
        """The answers of all workers; or what has ended them."""
        workers = self._need(number)
        try:
            with cluster.reserved_address() as address:
                for rank, worker in enumerate(workers):
                    worker.ask({"case": case, "mode": mode, "workers": number, "rank": rank, "address": address})
                return answers(workers)
        except Ended as ended:
            self.stop()
            return str(ended)


def pieces_of(catalogue, case):
    slots = catalogue["slots"]
    chosen = {slot: next(iter(slots[slot])) for slot in slots if slot != "more"}
    for part in filter(None, (p.strip() for p in case.split(";"))):
        slot, _, name = part.partition("=")
        chosen[slot] = name
    more = [name.strip() for name in chosen.pop("more", "").split(",") if name.strip()]
    return [slots[slot][name] for slot, name in chosen.items()] + [slots["more"][name] for name in more]


def verdict(catalogue, case, mode, found):
    """(kind, text) of what the workers have answered."""
    if isinstance(found, str):
        return "ended", found
    kinds = [answer["kind"] for answer in found]
    texts = list(dict.fromkeys(answer.get("text", "") for answer in found if answer["kind"] not in ("equal",)))
    of = pieces_of(catalogue, case)
    for kind in "absent", "impossible":
        if kind in kinds:
            return kind, texts[0]
    for kind in "raised", "unlike":
        if kind in kinds:
            return kind, found[kinds.index(kind)]["text"]
    if "refused" in kinds:
        if set(kinds) != {"refused"}:
            return "half refused", "; ".join(f"worker {rank} {a['kind']} {a.get('text', '')}" for rank, a in enumerate(found))
        allowed = [p["refused"][mode] for p in of if mode in p["refused"]]
        one_line = all("\n" not in text for text in texts)
        if one_line and any(re.search(pattern, text) for pattern in allowed for text in texts):
            return "refused", texts[0]
        return "refused otherwise", f"{' / '.join(texts)}" + (f" (expected: {' or '.join(allowed)})" if allowed else " (no piece declares it)")
    if any(mode in p["own"] for p in of):
        return "as DDP", ""
    if "different" in kinds:
        return "different", texts[0]
    if len({answer["digest"] for answer in found}) > 1:
        return "apart", f"workers end with other bits: {[answer['digest'] for answer in found]}"
    return "equal", ""
