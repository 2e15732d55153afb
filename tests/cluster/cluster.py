# tests/cluster/cluster.py - starts real processes for tests, and never leaves one behind.
"""For tests that run poseidon-node as processes on loopback.

    with Cluster() as c:
        first = c.node("--solver", solver, "--nodes", "2", "--listen", "127.0.0.1:0")
        address = first.wait_for(LISTENING)[1]
        second = c.node("--join", address)
        assert first.wait() == 0
        second.kill()

Rules: no sleeps as synchronisation (wait for a line, an end, a file). Every wait has a deadline, which is long: it ends
what hangs and measures nothing. What a test watches lasts until the test has seen it: a run of ENDLESS iterations, which
the test ends (Node.stop), or a record that is complete whenever it is read (lines, drawings, events, traces). A process
that was started is killed when the `with` ends, when this process is told to end, and when it dies.
`c.folder` is a temporary folder; it is kept, and named, when the test fails. A test script calls main().

POSEIDON_TEST_PAUSE=SECONDS delays each look of a test at a run: on a busy machine a watcher is as slow (tools/repeat).
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from endless import ENDLESS, die_with_parent, go_behind, is_endless  # noqa: F401
from ports import reserved_address  # noqa: F401
from seen_processes import processes_of, threads_of  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("POSEIDON_BIN", ROOT / "build/release/bin"))
SLACK = float(os.environ.get("POSEIDON_TEST_SLACK", "1"))  # deadlines are multiplied by this: sanitizers, slow machines
PAUSE_S = float(os.environ.get("POSEIDON_TEST_PAUSE", "0"))
PATIENT_SILENCE_S = 60
HASTY = ("--silence-limit", "auto")  # as users start nodes: for a test that has to see a silent one given up
PATIENCE_S = 120  # the deadline of a wait, before it is multiplied by SLACK
DEADLINE_S = PATIENCE_S * SLACK
SKIPPED = 77
ALL = bool(os.environ.get("POSEIDON_TEST_ALL"))  # every case of what is a matrix of cases (tools/test --all)
LISTENING = r"^listening on (\S+:\d+)"  # the first node's line; [1] is the address for --join


def pause():
    """Before each look at a run."""
    if PAUSE_S:
        time.sleep(PAUSE_S)


class Node:
    """One process, its output by line, and its end."""

    def __init__(self, name, command, cwd, env, process=None, behind=False):
        """`process`: that has been started already, with pipes. `behind`: all other processes of this machine go first."""
        self.name, self.behind = name, behind
        self.command = [str(word) for word in command]
        self.lines = []  # standard output and standard error, in the order of arrival
        self.errors = []  # standard error alone
        self._changed = threading.Condition()
        self._ended = 0  # pipes that have been read to their ends
        # start_new_session: a Ctrl-C at the terminal reaches the test, which ends its nodes itself.
        self.process = process or subprocess.Popen(self.command, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                                   preexec_fn=go_behind if behind else die_with_parent)
        self._readers = [threading.Thread(target=self._read, args=(pipe, kept), daemon=True)
                         for pipe, kept in ((self.process.stdout, None), (self.process.stderr, self.errors))]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe, kept):
        for line in pipe:
            text = line.decode(errors="replace").rstrip("\n")
            with self._changed:
                self.lines.append(text)
                if kept is not None:
                    kept.append(text)
                self._changed.notify_all()
        with self._changed:
            self._ended += 1
            self._changed.notify_all()

    @property
    def pid(self):
        return self.process.pid

    @property
    def output(self):
        with self._changed:
            return "\n".join(self.lines)

    def wait_for(self, pattern, seconds=PATIENCE_S, since=0):
        """The match of `pattern` in the first line (from number `since`) that has it. Fails at the deadline,
        and as soon as the process has ended without such a line."""
        pause()
        deadline = time.monotonic() + seconds * SLACK
        compiled = re.compile(pattern)
        at = since
        with self._changed:
            while True:
                for line in self.lines[at:]:
                    found = compiled.search(line)
                    if found:
                        return found
                at = len(self.lines)
                if self._ended == len(self._readers):
                    raise AssertionError(f"no line like /{pattern}/ before the end of {self}{self._others()}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"no line like /{pattern}/ in {seconds} s from {self}\n{threads_of(self.pid)}{self._others()}")
                self._changed.wait(min(left, 0.5))

    def _others(self):
        """The last lines of the nodes that run beside it, or have failed: often one of them knows why it waits."""
        of = [node for cluster in Cluster.unfinished if self in cluster.nodes for node in cluster.nodes if node is not self and node.process.poll() != 0]
        return "".join(f"\n{node.name} (pid {node.pid}) said at last:\n" + "\n".join(f"  | {line[:300]}" for line in node.lines[-12:]) for node in of)

    def wait(self, seconds=PATIENCE_S):
        """The exit code (negative: the signal that ended it), after all output has been read. Who says something in each of four times so many
        seconds is only slow."""
        code, said = None, 0
        for _ in range(4):
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(seconds * SLACK)
            if code is not None or said == len(self.lines):
                break
            said = len(self.lines)
        if code is None:
            raise AssertionError(f"no end in {seconds} s of {self}\n{threads_of(self.pid)}{self._others()}")
        for reader in self._readers:
            reader.join(DEADLINE_S)
        return code

    def stop(self):
        """Ctrl-C, and the orderly end after it."""
        self.signal(signal.SIGINT)
        code = self.wait()
        assert code == 130, f"exit code {code} after SIGINT of {self}"

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self):
        """kill -9: no goodbye, no snapshot."""
        self.signal(signal.SIGKILL)

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # and whatever it has started
        self.process.wait(30)
        for reader in self._readers:
            reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()

    def __str__(self):
        """With its last lines; of those of iterations, which drown the others, the last five."""
        lines = list(self.lines)
        rare = [i for i, line in enumerate(lines) if not line.startswith("iteration ")][-30:]
        said = "\n".join("  | " + lines[i] for i in sorted({*rare, *range(max(0, len(lines) - 5), len(lines))}))
        return f"{self.name} (pid {self.pid}, {' '.join(self.command)}), which said:\n{said}"


class Cluster:
    """The nodes of one test and a folder for their files."""

    unfinished = []

    def __init__(self, cwd=None, env=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="poseidon-test-"))
        self.cwd = cwd or ROOT
        self.env = {**os.environ, "POSEIDON_SILENCE_LIMIT": str(PATIENT_SILENCE_S), **(env or {})}  # of scripts; node() has that of nodes
        self.nodes = []
        Cluster.unfinished.append(self)

    def __enter__(self):
        return self

    def end(self):
        for node in self.nodes:
            node.end()

    def __exit__(self, kind, _value, _trace):
        self.end()
        if self in Cluster.unfinished:
            Cluster.unfinished.remove(self)
        if kind is None or issubclass(kind, unittest.SkipTest):
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            for node in self.nodes:
                (self.folder / f"{node.name}.log").write_text(node.output + "\n")
            print(f"the files and logs of this test are kept in {self.folder}", file=sys.stderr)

    def start(self, *command, name=None, cwd=None):
        """Any program."""
        joins_one = "--join" in command and any(node.behind for node in self.nodes)
        behind = joins_one or is_endless([*command, self.env.get("POSEIDON_SOLVER", "")])
        node = Node(name or f"process{len(self.nodes)}", command, cwd or self.cwd, self.env, behind=behind)
        self.nodes.append(node)
        return node

    def node(self, *options, name=None, cwd=None):
        """poseidon-node with these options. Who trains with others and was given no limit is patient with their silence."""
        options = patient(options) if {"--join", "--nodes"} & set(options) else options
        return self.start(BIN / "poseidon-node", *options, name=name or f"node{len(self.nodes)}", cwd=cwd)

    def first_and_others(self, solver, count, *options, first=()):
        """A listening node on a free port of loopback and count - 1 joiners, all with `options`; `first` is what
        the listening one gets besides."""
        first = self.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", count, *options, *first)
        address = first.wait_for(LISTENING)[1]
        return [first] + [self.node("--join", address, *options) for _ in range(count - 1)]

    def wait_all(self):
        """Exit codes in the order of starting."""
        return [node.wait() for node in self.nodes]

    def token_file(self, text="a token for tests only"):
        path = self.folder / f"token{len(list(self.folder.glob('token*')))}"
        path.write_text(text + "\n")
        path.chmod(0o600)
        return path


def patient(options):
    """Of nodes none of which is to be lost by its silence: on a busy machine one may get no processor for seconds."""
    return options if "--silence-limit" in options else (*options, "--silence-limit", PATIENT_SILENCE_S)


def run(program, *words, cwd=None):
    """One of our programs, until its end: its exit code and its output."""
    return subprocess.run([BIN / program, *map(str, words)], capture_output=True, text=True, timeout=DEADLINE_S, cwd=cwd)


# -- what nodes leave ---------------------------------------------------------------------------------------

class Trace:
    """A Chrome trace. Events are dicts with name, cat, ph, ts, dur, pid, tid, args; lanes have names."""

    def __init__(self, path):
        data = json.loads(pathlib.Path(path).read_text())
        events = data["traceEvents"] if isinstance(data, dict) else data
        self.communication = data.get("communication", []) if isinstance(data, dict) else []
        self.lanes = {(e.get("pid"), e.get("tid")): e["args"]["name"]
                      for e in events if e.get("ph") == "M" and e.get("name") == "thread_name"}
        self.spans = sorted((e for e in events if e.get("ph") == "X"), key=lambda e: e["ts"])

    def find(self, name=None, cat=None, lane=None, **args):
        """Spans in order of their begin. `lane` is a regex on the lane's name; args are compared."""
        return [e for e in self.spans
                if (name is None or e["name"] == name) and (cat is None or e.get("cat") == cat)
                and (lane is None or re.search(lane, self.lanes.get((e.get("pid"), e.get("tid")), "")))
                and all(e.get("args", {}).get(k) == v for k, v in args.items())]

    def partial_overlaps(self):
        """Pairs of spans of one lane that overlap without one containing the other: viewers cannot nest them."""
        bad = []
        by_lane = {}
        for e in self.spans:
            by_lane.setdefault((e.get("pid"), e.get("tid")), []).append(e)
        for spans in by_lane.values():
            open_spans = []
            for e in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
                while open_spans and open_spans[-1]["ts"] + open_spans[-1]["dur"] <= e["ts"]:
                    open_spans.pop()
                if open_spans and e["ts"] + e["dur"] > open_spans[-1]["ts"] + open_spans[-1]["dur"]:
                    bad.append((open_spans[-1], e))
                open_spans.append(e)
        return bad


def _fields(data):
    """(number, wire type, value) of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 2:
            size = varint()
            value = data[at:at + size]
            at += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value = data[at:at + size]
            at += size
        else:
            raise ValueError(f"wire type {kind} at byte {at}")
        if at > len(data):
            raise ValueError("truncated")
        yield key >> 3, kind, value


def weights(path):
    """The blobs of a .caffemodel (NetParameter.layer = 100): {"conv1/0": bytes of its float32 values}."""
    out = {}
    for number, _, layer in _fields(pathlib.Path(path).read_bytes()):
        if number != 100:
            continue
        name, blobs = "?", []
        for field, kind, value in _fields(layer):
            if field == 1:
                name = value.decode()
            elif field == 7:
                values = b""
                for blob_field, blob_kind, blob in _fields(value):
                    if blob_field == 5:  # data, packed or one by one
                        values += blob
                blobs.append(values)
        for i, values in enumerate(blobs):
            out[f"{name}/{i}"] = values
    return out


def assert_same_weights(one, other):
    """Bit for bit; the message names parameter, index and both values."""
    a, b = weights(one), weights(other)
    assert a, f"{one} holds no weights"
    assert a.keys() == b.keys(), f"{one} has {sorted(a)}, {other} has {sorted(b)}"
    for name in a:
        assert len(a[name]) == len(b[name]), f"{name}: {len(a[name]) // 4} and {len(b[name]) // 4} values"
        if a[name] != b[name]:
            at = next(i for i in range(0, len(a[name]), 4) if a[name][i:i + 4] != b[name][i:i + 4])
            left, right = (struct.unpack("<f", x[name][at:at + 4])[0] for x in (a, b))
            different = sum(a[name][i:i + 4] != b[name][i:i + 4] for i in range(0, len(a[name]), 4))
            raise AssertionError(f"{name}[{at // 4}] is {left!r} in {one} and {right!r} in {other}; "
                                 f"{different} of {len(a[name]) // 4} values differ")


def assert_same_state(one, other):
    """Two solver states: everything but the name of the weights beside them."""
    a, b = ([(number, value)
             for number, _, value in _fields(pathlib.Path(path).read_bytes()) if number != 2] for path in (one, other))
    assert a and a == b, f"{one} and {other} differ"


def wait_until(condition, what, seconds=PATIENCE_S):
    """Asks again and again, up to the deadline: for conditions that no line of output tells."""
    pause()
    deadline = time.monotonic() + seconds * SLACK
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds} s still not: {what}")
        time.sleep(0.02)


def need(*programs):
    """Skips the whole script where a program has not been built."""
    for program in programs:
        if not (BIN / program).exists():
            print(f"skipped: {BIN / program} has not been built")
            sys.exit(SKIPPED)


def main():
    """Runs the script's unittest cases; a script that ran nothing fails, one that skipped everything is skipped."""
    def told_to_end(*_):
        raise KeyboardInterrupt  # unittest takes any other exception for a failure of one test, and goes to the next
    signal.signal(signal.SIGTERM, told_to_end)
    try:
        done = unittest.main(module="__main__", exit=False, verbosity=2).result
    except KeyboardInterrupt:
        for c in Cluster.unfinished:
            c.end()
        sys.exit(143)
    if not done.wasSuccessful():
        sys.exit(1)
    if done.testsRun == 0 and not done.skipped:
        sys.exit("no test was run")
    # A class whose beginning is skipped runs no test.
    sys.exit(SKIPPED if done.testsRun in (0, len(done.skipped)) else 0)
