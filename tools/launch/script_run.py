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

from host_file import WrongUse
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

def torchruns(rank, world, local_rank, local_world, group, groups, address, port, run):
    """What torchrun sets. There is no agent with a store, so worker 0 opens one at MASTER_PORT. Workers are not started again."""
    return {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": local_world, "GROUP_RANK": group,
            "GROUP_WORLD_SIZE": groups, "ROLE_NAME": "default", "ROLE_RANK": rank, "ROLE_WORLD_SIZE": world, "MASTER_ADDR": address,
            "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": run, "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0,
            "TORCHELASTIC_USE_AGENT_STORE": False}


def poseidons(rank, world, listen, join):
    if world == 1:
        return {}
    if rank == 0:
        return {"POSEIDON_LISTEN": listen, "POSEIDON_NODES": world, "POSEIDON_JOIN": ""}
    return {"POSEIDON_LISTEN": "", "POSEIDON_NODES": "", "POSEIDON_JOIN": join}


def workers_of(hosts, words, options, address, port, listen, named):
    """A worker for each slot: those of one host are neighbours. `listen`: the first one's address; `named(host, place, slots, rank)`."""
    slots = collections.Counter()  # in the order of the file
    for host in hosts:
        slots[host.address] += host.slots
    by_address = {host.address: host for host in reversed(hosts)}
    run, world = f"poseidon-{secrets.token_hex(4)}", sum(slots.values())
    bracketed = f"[{address}]" if ":" in address else address
    out = []
    for group, (name, count) in enumerate(slots.items()):
        for place in range(count):
            rank = len(out)
            sets = torchruns(rank, world, place, count, group, len(slots), address, port, run)
            sets.update(poseidons(rank, world, f"{listen}:{port + 1}", f"{bracketed}:{port + 1}"))
            defaults = dict(DEFAULTS)
            if count > 1:
                defaults["OMP_NUM_THREADS"] = "1"
            if all(h.local for h in hosts):
                defaults["GLOO_SOCKET_IFNAME"] = "lo"  # else gloo asks what this machine's name means
            out.append(Worker(named(by_address[name], place, count, rank), by_address[name], words, options,
                              {key: str(value) for key, value in sets.items()}, defaults))
    return out


class Worker(Node):
    """One process of a script. Its output is seen through the agent that runs it, and on other machines through ssh."""

    def __init__(self, name, host, words, options, sets, defaults):
        super().__init__(name, host, words, [], options)
        self.sets, self.defaults = sets, defaults
        self.what = words[0]

    def command(self):
        plan = {"directory": self.options.directory, "grace": self.options.grace, "set": self.sets, "default": self.defaults,
                "roots": self.options.roots, "words": self.words}
        here = [sys.executable if self.host.local else "python3", "-c", AGENT.read_text(encoding="utf-8"), json.dumps(plan)]
        return here if self.host.local else [*shlex.split(self.options.ssh), self.host.destination, "exec " + shlex.join(here)]

    def shown(self):
        assigned = [f"{name}={value}" for name, value in self.sets.items() if not name.startswith("TORCHELASTIC_")]
        token = ["POSEIDON_TOKEN=TOKEN"] if int(self.sets["WORLD_SIZE"]) > 1 else []
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
    """No worker of a script is started again: the first one that fails ends all."""

    def __init__(self, workers, token, grace, form="{}: {}"):
        super().__init__(workers, token, grace, speaks=False, survives=False)
        self.form = form

    def start_all(self):
        for worker in self.nodes:
            worker.start(self.token, self.events)

    def on_line(self, worker, is_error, line):
        line = line.split("\r")[-1]  # of a bar that a terminal writes over and over, its last state
        with contextlib.suppress(BrokenPipeError):
            print(self.form.format(worker.name, line), file=sys.stderr if is_error else sys.stdout, flush=True)
        if is_error and line:
            worker.last_error = line

    def on_end(self, worker):
        if worker.code != 0:
            self.failed.append(worker)
            if not self.ending:
                self.term_all()

    def on_signal(self, number):
        if self.asked is not None:
            self.kill_all()
            return
        self.asked = number
        say(f"{signal_name(number)}: the workers end; once more kills them all")
        self.tell_all("INT" if number == signal.SIGINT else "TERM")  # Python's KeyboardInterrupt, for its `finally`
        self.steps = [(time.monotonic() + self.grace, self.kill_all)]

    def verdict(self):
        if self.asked is not None:
            say(f"stopped by {signal_name(self.asked)}")
            return 128 + self.asked
        if not self.failed:
            return 0
        say(f"{self.failed[0].name}: {self.failed[0].why()}")
        return self.failed[0].code


def say_threads(workers):
    """OMP_NUM_THREADS, as torchrun does."""
    if any("OMP_NUM_THREADS" in w.defaults for w in workers) and "OMP_NUM_THREADS" not in os.environ:
        say(f"OMP_NUM_THREADS=1 for workers that share a machine and have none, as torchrun does; this one has {os.cpu_count()} cores")
