# tools/launch/ssh_run.py - the nodes of one run from their start to their end: who is told what, who comes back, whose fault it was.
import contextlib
import math
import os
import queue
import re
import signal
import sys
import time

from remote_node import signal_name

DIVERGED = 4  # poseidon-node's exit code: all others end, too
KILLED_AFTER_S = 5  # for a machine that does not even answer to SIGKILL: then its ssh is killed
BACK_AFTER_S, BACK_AT_MOST_S = 3, 60  # a node that has died is started again; each time that it could not join later


def say(text):
    with contextlib.suppress(BrokenPipeError):
        print(f"launch: {text}", file=sys.stderr, flush=True)


class Run:
    def __init__(self, nodes, token, grace, speaks, survives):
        self.nodes, self.token, self.grace = nodes, token, grace
        self.speaks = speaks  # poseidon-node says what it does: not with --log-level quiet
        self.survives = survives and speaks  # the others go on without a node that dies, and say where they are
        self.max_restarts = math.inf  # of each node
        self.away = []  # nodes that are to be started again, as (time, node)
        self.done = False  # a member has ended as the run has
        self.events = queue.SimpleQueue()  # (node, is_error, line or None at the end of a stream), or a signal's number
        self.asked = None  # the signal that this program got
        self.failed = []  # nodes that ended with another code than 0, in order
        self.formed = not speaks  # the nodes know each other: they notice by themselves that one is lost
        self.steps = []  # what is still to be done to end it, as (time, function)
        self.adds = nodes[0].options.add is not None

    def run(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda n, _: self.events.put(n))
        self.start_all()
        while self.goes_on:
            due = min((at for at, _ in [*self.steps, *self.away]), default=None)
            try:
                event = self.events.get(timeout=None if due is None else max(due - time.monotonic(), 0))
            except queue.Empty:
                self.do_what_is_due()
                continue
            if isinstance(event, int):
                self.on_signal(event)
            elif event[2] is None:
                self.on_stream_end(event[0])
            else:
                self.on_line(*event)
        return self.verdict()

    @property
    def goes_on(self):
        return any(n.runs for n in self.nodes)

    def start_all(self):
        """The others wait until the first one says where it listens, if it says anything."""
        self.nodes[0].start(self.token, self.events)
        if not self.speaks or self.adds:
            self.start_others(None)

    def do_what_is_due(self):
        now = time.monotonic()
        if self.steps and self.steps[0][0] <= now:
            self.steps.pop(0)[1]()
        for node in [n for at, n in self.away if at <= now]:
            self.away = [(at, n) for at, n in self.away if n is not node]
            if addresses := self.reachable():
                node.come_back(addresses, self.token, self.events)
            else:
                self.away.append((now + BACK_AFTER_S, node))

    def reachable(self):
        """Where a node can ask to join the run."""
        return [n.address for n in self.nodes if n.trains and n.address]

    def start_others(self, port):
        for node in self.nodes[1:]:
            if port is not None and not self.adds:
                node.words[2] = re.sub(r"\d+$", port, node.words[2])
            node.start(self.token, self.events)

    def on_line(self, node, is_error, line):
        with contextlib.suppress(BrokenPipeError):
            print(f"{node.name}: {line}", file=sys.stderr if is_error else sys.stdout, flush=True)
        if is_error and line:
            node.last_error = line
        node.has_left = node.has_left or line.startswith("left the run before iteration")
        self.hear(node, line)

    def hear(self, node, line):
        """Who is a member, and where it can be reached. The lines of two nodes come in any order."""
        first = self.nodes[0]
        listening = re.match(r"listening on \S+:(\d+)\b", line)
        if listening and node is first and not self.ending:
            first.address, first.member = f"{first.reached_at}:{listening[1]}", any(n.member for n in self.nodes)
            if self.nodes[-1].process is None:
                self.start_others(listening[1])
        if re.match(r"joined: worker \d+ of \d+", line):
            node.member, node.deaths, self.formed = True, 0, True
            here = re.search(r"; this (?:node|worker) listens on (\S+)$", line)
            node.address = here[1] if here else None
            first.member = first.member or first.address is not None

    def on_stream_end(self, node):
        node.open_streams -= 1
        if node.open_streams > 0:
            return
        code = node.process.wait()
        node.code = code if code >= 0 else 128 - code
        with contextlib.suppress(OSError):
            node.process.stdin.close()
        self.on_end(node)

    def on_end(self, node):
        was_member = node.member or node.deaths > 0
        node.member, node.address = False, None
        if node.has_left:
            return
        self.done = self.done or (was_member and node.code == 0)
        if was_member and self.may_come_back(node):
            return self.send_for(node)
        if node.code != 0:
            self.failed.append(node)
        if self.survives and not any(n.trains for n in self.nodes):
            self.send_for_nobody()
        if not self.adds and (node.code != 0 or node is self.nodes[0]):
            self.end_all()

    def may_come_back(self, node):
        return (self.survives and not self.ending and node.code not in (0, DIVERGED) and node.restarts < self.max_restarts
                and bool(self.reachable()))

    def send_for_nobody(self):
        """There is no run any more for them to join."""
        self.away.clear()
        for node in self.nodes:
            if node.runs and node.deaths > 0:
                node.say("TERM")

    def send_for(self, node):
        delay = min(BACK_AFTER_S * 2 ** node.deaths, BACK_AT_MOST_S)
        node.deaths += 1
        which = "" if self.max_restarts == math.inf else f", restart {node.restarts + 1} of {self.max_restarts}"
        say(f"{node.name}: {node.why()}. The others go on, and it is started again in {delay} s{which}")
        self.away.append((time.monotonic() + delay, node))

    def on_signal(self, number):
        if self.asked is not None:
            self.kill_all()
            return
        self.asked = number
        self.away.clear()
        first = next((n for n in self.nodes if n.trains), self.nodes[0])
        trains = self.formed and first.runs and not self.adds
        doing = "the added nodes leave" if self.adds else "the run ends with a snapshot" if trains else "the nodes end"
        say(f"{signal_name(number)}: {doing}; once more kills them all")
        if trains:
            first.say("INT")  # TERM would let it leave alone
            self.end_all()
        else:
            self.term_all()

    # Nodes that know each other end by themselves, with a snapshot, when one is lost or stops: a signal would only
    # cut that short. So they are given the time; those that still wait for each other are not.
    def end_all(self):
        if not self.ending:
            self.steps = [(time.monotonic() + (self.grace if self.formed else 0), self.term_all)]

    def tell_all(self, name):
        for node in self.nodes:
            if node.runs:
                node.say(name)

    def term_all(self):
        self.tell_all("TERM")
        self.steps = [(time.monotonic() + self.grace, self.kill_all)]

    def kill_all(self):
        for node in self.nodes:
            if node.runs:
                say(f"{node.name} still runs: SIGKILL")
                node.kill()
        self.steps = [(time.monotonic() + KILLED_AFTER_S, self.give_up)]

    def give_up(self):
        for node in self.nodes:
            if node.runs:
                say(f"{node.name} does not answer; its {node.what} may still run")
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(node.process.pid, signal.SIGKILL)
        self.steps = []

    @property
    def ending(self):
        return bool(self.steps)

    def verdict(self):
        if self.asked is not None:
            say(f"stopped by {signal_name(self.asked)}")
            return 128 + self.asked
        if self.done and self.survives:
            return 0  # who died on the way has not ended the run
        # A node that lost a peer, or was told to end, is not blamed if another one failed.
        causes = [n for n in self.failed if not n.was_killed and n.code not in (3, 128 + signal.SIGTERM)]
        if not self.failed:
            return 0
        culprit = (causes or self.failed)[0]
        say(f"{culprit.name}: {culprit.why()}")
        return culprit.code
