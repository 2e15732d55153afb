# tools/launch/script_run.py - the workers of a script: what each finds in its environment, how they start, and how they end together.
import collections
import contextlib
import errno
import json
import os
import pathlib
import re
import secrets
import shlex
import shutil
import signal
import socket
import sys
import time
import typing

from host_file import Unclear, WrongUse
from remote_node import Node, signal_name
from ssh_run import Run, say

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
AGENT = pathlib.Path(__file__).resolve().parent / "worker_agent.py"
# Where the user has not said otherwise. Python shows each line at once, though it writes to a pipe. PyTorch's store takes the way that
# exists in every build: Debian's has no libuv.
DEFAULTS = {"PYTHONUNBUFFERED": "1", "USE_LIBUV": "0"}


# -- ports ------------------------------------------------------------------------------------------------

def _holder(port):
    """A socket that has a port and does not listen. It is bound with SO_REUSEADDR, and so a listener that is bound with it, too, may be
    beside it (socket(7)), as PyTorch's and Poseidon's are; no other process gets the port by chance."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    holder = socket.socket(family)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        holder.bind(("", port))
    except BaseException:
        holder.close()
        raise
    return holder


def hold_ports(first=0):
    """Two ports of this machine, one after the other, for as long as the result lives: (what holds them, the first). 0: any two."""
    while True:
        with contextlib.ExitStack() as held:
            try:
                one = held.enter_context(_holder(first)).getsockname()[1]
                held.enter_context(_holder(one + 1))
                return held.pop_all(), one
            except (OSError, OverflowError) as error:
                if first or getattr(error, "errno", errno.EADDRINUSE) != errno.EADDRINUSE:
                    raise WrongUse(f"port {first} or the one after it cannot be had on this machine: {error}. Give another --port, "
                                   "or 0 for free ones") from None


# -- the environment --------------------------------------------------------------------------------------

class Meeting(typing.NamedTuple):
    """Where the workers meet at the start: the first one's address, its MASTER_PORT, and the address at which its Poseidon listens, at the next port."""
    address: str
    port: int
    listen: str


def torchruns(local_rank, local_world, run, max_restarts, rank=None, world=None, group=None, groups=None, meeting=None):
    """What torchrun sets. There is no agent with a store, so worker 0 opens one at MASTER_PORT. One that joins a run knows only its place on its machine."""
    out = {"LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": local_world, "TORCHELASTIC_RUN_ID": run, "TORCHELASTIC_RESTART_COUNT": 0,
           "TORCHELASTIC_MAX_RESTARTS": max_restarts, "TORCHELASTIC_USE_AGENT_STORE": False}
    if meeting:
        out.update({"RANK": rank, "WORLD_SIZE": world, "GROUP_RANK": group, "GROUP_WORLD_SIZE": groups, "ROLE_NAME": "default", "ROLE_RANK": rank,
                    "ROLE_WORLD_SIZE": world, "MASTER_ADDR": meeting.address, "MASTER_PORT": meeting.port})
    return out


def poseidons(rank, world, meeting, options):
    if options.add:
        return {"POSEIDON_LISTEN": "", "POSEIDON_NODES": "", "POSEIDON_JOIN": options.add}
    if world == 1 and not options.token_file:  # nobody can join a worker whose token nobody has
        return {}
    if rank == 0:
        return {"POSEIDON_LISTEN": f"{meeting.listen}:{meeting.port + 1}", "POSEIDON_NODES": world, "POSEIDON_JOIN": ""}
    return {"POSEIDON_LISTEN": "", "POSEIDON_NODES": "", "POSEIDON_JOIN": f"{bracketed(meeting.address)}:{meeting.port + 1}"}


def bracketed(address):
    return f"[{address}]" if ":" in address else address


def workers_of(hosts, words, options, meeting, named):
    """A worker for each slot: those of one host are neighbours. `meeting`: None where they join a run; `named(host, place, slots, rank)`."""
    slots = collections.Counter()  # in the order of the file
    for host in hosts:
        slots[host.address] += host.slots
    by_address = {host.address: host for host in reversed(hosts)}
    run, world = f"poseidon-{secrets.token_hex(4)}", sum(slots.values())
    out = []
    for group, (name, count) in enumerate(slots.items()):
        for place in range(count):
            rank = len(out)
            sets = torchruns(place, count, run, options.max_restarts, rank, world, group, len(slots), meeting)
            sets.update(poseidons(rank, world, meeting, options))
            defaults = dict(DEFAULTS)
            if count > 1:
                defaults["OMP_NUM_THREADS"] = "1"
            if all(h.local for h in hosts):
                defaults["GLOO_SOCKET_IFNAME"] = "lo"  # else gloo asks what this machine's name means
            out.append(Worker(named(by_address[name], place, count, rank), by_address[name], words, options,
                              {key: str(value) for key, value in sets.items()}, defaults))
    if meeting:
        out[0].reached_at = bracketed(meeting.address)
    return out


def add_options(parser):
    """Those of local and of ssh --script."""
    parser.add_argument("--max-restarts", type=count_of, default=0)
    parser.add_argument("--token-file")
    parser.add_argument("--add")


def count_of(text):
    if not re.fullmatch(r"\d{1,6}", text):
        raise Unclear(f'"{text}" is no number of restarts: 0 or more is needed')
    return int(text)


def check_add(options):
    """--add for the workers of a script."""
    if not re.fullmatch(r"[^,\s]+:\d+(,[^,\s]+:\d+)*", options.add):
        raise WrongUse(f"--add {options.add}: HOST:PORT is needed, or several with commas between them: where members of the run listen, as they have said")


def read_token(path):
    try:
        with open(path, encoding="utf-8") as file:
            token = file.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as e:
        raise WrongUse(f"--token-file {path}: cannot be read: {getattr(e, 'strerror', None) or e}") from None
    if not token:
        raise WrongUse(f"--token-file {path}: its first line is empty. Make one with: openssl rand -hex 32 > {path}")
    return token


class Worker(Node):
    """One process of a script. Its output is seen through the agent that runs it, and on other machines through ssh."""

    def __init__(self, name, host, words, options, sets, defaults):
        super().__init__(name, host, words, [], options)
        self.sets, self.defaults = sets, defaults
        self.what = words[0]

    def join(self, addresses):
        """The others have gone on: worker 0 begins no second run. It listens where it did."""
        self.sets.update(POSEIDON_NODES="", POSEIDON_JOIN=addresses, TORCHELASTIC_RESTART_COUNT=str(self.restarts))

    def command(self):
        plan = {"directory": self.options.directory, "grace": self.options.grace, "set": self.sets, "default": self.defaults,
                "roots": self.options.roots, "words": self.words}
        here = [sys.executable if self.host.local else "python3", "-c", AGENT.read_text(encoding="utf-8"), json.dumps(plan)]
        return here if self.host.local else [*shlex.split(self.options.ssh), self.host.destination, "exec " + shlex.join(here)]

    def shown(self):
        assigned = [f"{name}={value}" for name, value in self.sets.items() if not name.startswith("TORCHELASTIC_")]
        token = ["POSEIDON_TOKEN=TOKEN"] if self.sets.get("POSEIDON_LISTEN") or self.sets.get("POSEIDON_JOIN") else []
        line = shlex.join(["cd", self.options.directory]) + " && " + shlex.join(["env", *assigned, *token, *self.words])
        return line if self.host.local else shlex.join([*shlex.split(self.options.ssh), self.host.destination, line])

    def why(self):
        if self.code == 255 and not self.host.local:
            how = "ssh could not reach it, or lost it"
        elif self.code in (126, 127):
            how = f"{self.what} cannot be run in {self.options.directory}"
        elif self.code > 128:
            how = f"{self.what} was ended by {signal_name(self.code - 128)}"
        else:
            how = f"{self.what} ended with code {self.code}"
        return how + (f": {self.last_error}" if self.last_error else "") + self.remedy()

    def remedy(self):
        """Where a module is missing: which Python that was, and what helps."""
        missing = re.match(r"ModuleNotFoundError: No module named '(torch|numpy|poseidon)\b", self.last_error)
        if not missing:
            return ""
        found = (shutil.which(self.what) if self.host.local else None) or self.what
        which = f'. "{self.what}" was {found}' if found != self.what else f'. That was "{self.what}"'
        if not (ROOT / "tools/launch/local").exists():  # these files are part of an installed package
            return f"{which}: start the script with a Python that has it. Poseidon is installed for {sys.executable}"
        if missing[1] == "poseidon":
            return (f"{which}, and there is no library in {' or '.join(self.options.roots)}: tools/build poseidon builds it "
                    "(build/release/lib/libposeidon.so); or install Poseidon")
        return (f"{which}: tools/dependencies --python installs PyTorch and NumPy for /usr/bin/python3. Start the script with a Python "
                "that has them")


# -- the run ----------------------------------------------------------------------------------------------

class ScriptRun(Run):
    """A worker that has trained with others is started again, up to max_restarts times. The first other one that fails ends all."""

    def __init__(self, workers, token, grace, form="{}: {}"):
        super().__init__(workers, token, grace, speaks=False, survives=False)
        self.max_restarts = workers[0].options.max_restarts
        self.survives = self.max_restarts > 0
        self.form = form
        self.failures = {}  # by worker, code and reason of the failure after which it has not joined again, in order

    def start_all(self):
        for worker in self.nodes:
            worker.start(self.token, self.events)

    @property
    def goes_on(self):
        return super().goes_on or bool(self.adds and self.away)

    def reachable(self):
        """Where workers join a run that others have begun, the members that they have been told, too."""
        given = self.nodes[0].options.add.split(",") if self.adds else []
        return list(dict.fromkeys([*super().reachable(), *given]))

    def on_line(self, worker, is_error, line):
        line = line.split("\r")[-1]  # of a bar that a terminal writes over and over, its last state
        with contextlib.suppress(BrokenPipeError):
            print(self.form.format(worker.name, line), file=sys.stderr if is_error else sys.stdout, flush=True)
        if is_error and line:
            worker.last_error = line
        ours, prefix, said = line.partition("poseidon: ")
        if prefix and not ours:
            self.hear(worker, said)

    def hear(self, node, line):
        super().hear(node, line)
        if node.member:
            self.failures.pop(node, None)

    def on_end(self, worker):
        took_part = worker.member or worker.deaths > 0
        if worker.member:
            self.done = worker.code == 0  # the last member's end is that of the run: one that leaves ends well before the others
        worker.member, worker.address = False, None
        if worker.code != 0:
            self.failures.setdefault(worker, (worker.code, worker.why()))
        if took_part and self.may_come_back(worker):
            return self.send_for(worker)
        others_train = self.adds or any(n.trains for n in self.nodes)
        if self.survives and not others_train:
            self.send_for_nobody()
        if worker.code == 0 or self.ending:
            return
        if self.adds or self.survives and took_part and others_train:
            say(f"{worker.name}: {worker.why()}. The others go on without it")
        else:
            self.term_all()

    def on_signal(self, number):
        if self.asked is not None:
            self.kill_all()
            return
        self.asked = number
        self.away.clear()
        say(f"{signal_name(number)}: the workers end; once more kills them all")
        self.tell_all("INT" if number == signal.SIGINT else "TERM")  # Python's KeyboardInterrupt, for its `finally`
        self.steps = [(time.monotonic() + self.grace, self.kill_all)]

    def verdict(self):
        if self.asked is not None:
            say(f"stopped by {signal_name(self.asked)}")
            return 128 + self.asked
        if not self.failures:
            return 0
        if self.survives and self.done:
            for worker, (_, why) in self.failures.items():
                say(f"{worker.name}: {why}. The others have gone on, and have ended well")
            return 0
        worker, (code, why) = next(iter(self.failures.items()))
        say(f"{worker.name}: {why}")
        return code


def say_threads(workers):
    """OMP_NUM_THREADS, as torchrun does."""
    if any("OMP_NUM_THREADS" in w.defaults for w in workers) and "OMP_NUM_THREADS" not in os.environ:
        say(f"OMP_NUM_THREADS=1 for workers that share a machine and have none, as torchrun does; this one has {os.cpu_count()} cores")
