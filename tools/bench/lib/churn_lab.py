# tools/bench/lib/churn_lab.py - nodes on hosts, which are killed, frozen, cut off and asked to leave, and come back as new ones.
"""Used by tools/bench/churn. A host is a network namespace (lab.py, needs root) or, with `loopback`, only a name for a process on
this machine: then there is no cable to cut. What nodes tell with --json is read as it comes, with the time that they gave it.
"""
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import lab as labs

PORT = 7600


class ChurnError(Exception):
    """The run does not do what it has to."""


def seconds_of(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc).timestamp()


class Loopback:
    """In place of lab.Lab: no namespaces, no cables."""

    def __init__(self, hosts):
        self.hosts, self.processes = hosts, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    @staticmethod
    def address(_host):
        return "127.0.0.1"

    def start(self, _host, *words, output):
        with open(output, "wb") as out:
            process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                       preexec_fn=labs._die_with_parent)
        process.output = pathlib.Path(output)
        self.processes.append(process)
        return process


class Member:
    """One process on a host, and what it has told."""

    def __init__(self, host, process):
        self.host, self.process = host, process
        self.seat = self.address = self.page = None
        self.frozen = False
        self.last_words = ""
        self._read = 0
        self._rest = b""

    def new_events(self):
        with open(self.process.output, "rb") as log:
            log.seek(self._read)
            data = log.read()
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not line.startswith(b"{"):
                self.last_words = line.decode(errors="replace") or self.last_words
                continue
            event = json.loads(line)
            event["at"] = seconds_of(event["time"])
            yield event

    def signal(self, number):
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def resources(self):
        """(MB of memory, threads, open files) of the process."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return (int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1e3, int(re.search(r"Threads:\s+(\d+)", status)[1]),
                len(os.listdir(f"/proc/{self.process.pid}/fd")))


class ChurnLab:
    """`words_of_first`, `words_of_others`: options of the first node, and of each other one. `shown`: this host's node has a page."""

    def __init__(self, lab, folder, program, nodes, shown, words_of_first, words_of_others):
        self.lab, self.folder, self.program, self.nodes, self.shown = lab, folder, program, nodes, shown
        self.words_of_first, self.words_of_others = words_of_first, words_of_others
        self.members = {}   # by host: its newest process
        self.started = 0
        self.views = {}     # by epoch: (time of the first node that told it, first clock, seats)
        self.steps = []     # (time, clock): iterations that a leader has told
        self.notes = []     # (time, host, text), details included
        self.surprises = []
        self.expected = set()  # processes that may end, by pid

    def start_all(self):
        at = f"{self.lab.address(0)}:{PORT if not isinstance(self.lab, Loopback) else 0}"
        self._start(0, *self.words_of_first, "--listen", at, "--nodes", self.nodes)
        first = self.members[0]
        self.wait(lambda: first.address, "the first node listens")
        for host in range(1, self.nodes):
            self.join(host)
            self.wait(lambda h=host: any(f"worker {h} joined from" in text for _, _, text in self.notes), f"host {host} joins")
        self.wait(lambda: self.steps, "the first iteration")

    def _start(self, host, *words):
        self.started += 1
        page = ["--web", "127.0.0.1:0"] if host == self.shown else []
        process = self.lab.start(host, self.program, *words, *page, "--json", "--log-level", "debug",
                                 output=self.folder / f"host{host}-{self.started}.json")
        self.members[host] = Member(host, process)

    def join(self, host):
        others = [m.address for h, m in self.members.items() if h != host and m.address and m.process.poll() is None and not m.frozen]
        self._start(host, "--join", ",".join(others), *self.words_of_others)

    def look(self):
        """Reads what has been told since, and notes who has ended unasked."""
        for host, m in self.members.items():
            for e in m.new_events():
                self._take(host, m, e)
            if m.process.poll() is not None and m.process.pid not in self.expected:
                self.expected.add(m.process.pid)
                self.surprises.append(f"host {host} (worker {m.seat}) ended with {m.process.returncode}: {m.last_words}")

    def _take(self, host, m, e):
        kind = e["event"]
        if kind == "progress":
            self.steps.append((e["at"], e["clock"]))
        elif kind == "view":
            known = self.views.get(e["epoch"])
            if known is None or e["at"] < known[0]:
                self.views[e["epoch"]] = (e["at"], e["first_clock"], e["members"])
            if known is not None and known[1:] != (e["first_clock"], e["members"]):
                self.surprises.append(f"two views {e['epoch']}: {known[1:]} and {(e['first_clock'], e['members'])}")
        elif kind in ("note", "detail", "warning"):
            text = e["text"]
            self.notes.append((e["at"], host, text))
            if found := re.search(r"^listening on (\S+?);", text):
                m.seat, m.address = 0, found[1]
            if found := re.search(r"page at (http://\S+?)/", text):
                m.page = found[1]
            if found := re.search(r"^joined: worker (\d+) of .*this node listens on (\S+)$", text):
                m.seat, m.address = int(found[1]), found[2]
        elif kind == "end":
            m.last_words = e["reason"] or m.last_words

    def newest(self):
        """(epoch, seats) of the newest view."""
        epoch = max(self.views, default=0)
        return epoch, self.views[epoch][2] if epoch else []

    def who_train(self):
        """Hosts whose processes are members of the newest view, and run."""
        _, seats = self.newest()
        return [h for h, m in sorted(self.members.items()) if m.seat in seats and m.process.poll() is None and not m.frozen]

    def wait(self, condition, what, seconds=120):
        deadline = time.monotonic() + seconds
        while True:
            self.look()
            if condition():
                return
            if time.monotonic() > deadline or self.surprises:
                raise ChurnError("; ".join([f"waited for this: {what}", *self.surprises]))
            time.sleep(0.02)


class Fault:
    """One fault: done to a member, seen in the view that follows, mended, and the member's host back as a new node."""

    def __init__(self, kind, member, lab):
        self.kind, self.member, self.lab = kind, member, lab
        self.seat = member.seat  # who wakes, or is linked again, joins with another one in the same process
        self.at = time.time()
        self.before = lab.newest()[0]
        self.gone = self.back = None   # epochs
        self.ended_at = None
        self.step = {"kill": self._wait_for_view, "freeze": self._wait_for_view, "cut": self._wait_for_view,
                     "silence": self._wait_for_view, "leave": self._wait_for_view}[kind]
        lab.expected.add(member.process.pid)
        if kind == "kill":
            member.signal(signal.SIGKILL)
        elif kind == "freeze":
            member.frozen = True
            member.signal(signal.SIGSTOP)
        elif kind == "cut":
            lab.lab.cut(member.host)
        elif kind == "silence":
            lab.lab.silence(member.host)
        else:
            member.signal(signal.SIGTERM)

    def settled(self):
        """The others train without it."""
        return self.gone is not None

    def over(self):
        return self.back is not None

    def look(self):
        self.step()

    def _wait_for_view(self):
        for epoch in sorted(e for e in self.lab.views if e > self.before):
            if self.member.seat not in self.lab.views[epoch][2]:
                self.gone = epoch
                break
        else:
            return
        if self.kind == "freeze":
            self.member.signal(signal.SIGCONT)
            self.member.frozen = False
        elif self.kind in ("cut", "silence"):
            self.lab.lab.heal(self.member.host)
        self.step = self._wait_for_end

    def _wait_for_end(self):
        if self.member.process.poll() is None:
            if self.member.seat is not None and self._is_back(self.member):  # it has joined again by itself
                return
            return
        self.ended_at = time.time()
        self.lab.join(self.member.host)
        self.step = self._wait_for_return

    def _wait_for_return(self):
        self._is_back(self.lab.members[self.member.host])

    def _is_back(self, member):
        for epoch in sorted(e for e in self.lab.views if e > self.gone):
            if member.seat is not None and member.seat in self.lab.views[epoch][2]:
                self.back = epoch
                self.step = lambda: None
                return True
        return False
