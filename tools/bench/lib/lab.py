# tools/bench/lib/lab.py - hosts that are network namespaces of this machine, each on a link of its own rate.
"""Each host has one interface, eth0, on a bridge that stands for the switch. Two token buckets limit its link, one per
direction: on eth0 what it sends, on the bridge's end what it receives. Nothing is made in, or can be reached from, the
machine's own network. Needs root, iproute2 (ip, tc) and a kernel with network namespaces, veth, bridge and sch_tbf.
"""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

SUBNET = "10.87.0"
SWITCH_BUFFER = 1 << 20  # bytes per port, of the network that is meant


class LabError(Exception):
    """Something that this machine lacks; the text says what, and what to do."""


def run(*words, check=True):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        raise LabError(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def need():
    """Raises LabError for the first thing that is missing."""
    if os.geteuid() != 0:
        raise LabError("network namespaces need root: run this with sudo")
    for program in ("ip", "tc"):
        if not shutil.which(program):
            raise LabError(f"{program} is not installed: it is in Debian's package iproute2")
    name = f"poseidon-probe-{os.getpid()}"
    try:
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "add", "name", "probe0", "type", "veth", "peer", "name", "probe1")
        run("ip", "-n", name, "link", "add", "name", "probe2", "type", "bridge")
        run("tc", "-n", name, "qdisc", "add", "dev", "probe0", "root", "tbf", "rate", "1mbit", "burst", "72000", "limit", "72000")
    except LabError as e:
        raise LabError(f"this machine makes no shaped links ({e}); a container needs the capabilities NET_ADMIN and "
                       "SYS_ADMIN, and the kernel veth, bridge and sch_tbf") from None
    finally:
        run("ip", "netns", "del", name, check=False)


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Lab:
    """with Lab(hosts) as lab: lab.shape(1e9); lab.start(0, "program", ...)"""

    def __init__(self, hosts):
        self.hosts = hosts
        self.prefix = f"poseidon-{os.getpid()}"
        self.hub = f"{self.prefix}-hub"
        self.processes = []

    def name(self, host):
        return f"{self.prefix}-{host}"

    @staticmethod
    def address(host):
        return f"{SUBNET}.{host + 1}"

    def __enter__(self):
        try:
            run("ip", "netns", "add", self.hub)
            run("ip", "-n", self.hub, "link", "add", "name", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0")
            run("ip", "-n", self.hub, "link", "set", "br0", "up")
            for host in range(self.hosts):
                self._add(host)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _add(self, host):
        ns = self.name(host)
        run("ip", "netns", "add", ns)
        run("ip", "-n", ns, "link", "set", "lo", "up")
        run("ip", "link", "add", "name", f"h{host}", "netns", self.hub, "type", "veth", "peer", "name", "eth0", "netns", ns)
        run("ip", "-n", ns, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        run("ip", "-n", ns, "link", "set", "eth0", "up")
        run("ip", "-n", self.hub, "link", "set", f"h{host}", "master", "br0", "up")
        # The same plain algorithm for all hosts, whatever this machine prefers.
        run("ip", "netns", "exec", ns, "sh", "-c",
            "for c in cubic reno; do echo $c > /proc/sys/net/ipv4/tcp_congestion_control && exit; done 2> /dev/null", check=False)

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()
        for ns in [self.name(h) for h in range(self.hosts)] + [self.hub]:
            run("ip", "netns", "del", ns, check=False)

    def shape(self, bits_per_s, scale=1.0):
        """Every link, both directions. `scale` is that of rate and bytes: queues shrink alike, or they would hold
        what is urgent for 1 / scale as long as those of the network that is meant."""
        for host in range(self.hosts):
            for ns, device in ((self.name(host), "eth0"), (self.hub, f"h{host}")):
                # A millisecond of it, but never less than one offloaded packet, which would be cut into frames at
                # ten times the cost.
                burst = max(72000, int(bits_per_s / 8000))
                run("tc", "-n", ns, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{bits_per_s:.0f}bit",
                    "burst", burst, "limit", max(int(SWITCH_BUFFER * scale), 2 * burst))

    def cut(self, host):
        """The host's cable is pulled out."""
        run("ip", "-n", self.hub, "link", "set", f"h{host}", "down")

    def silence(self, host):
        """Nothing arrives at the host or comes from it, and no end notices: the cable stays, nothing is refused."""
        run("tc", "-n", self.name(host), "qdisc", "replace", "dev", "eth0", "root", "blackhole")
        run("tc", "-n", self.hub, "qdisc", "replace", "dev", f"h{host}", "root", "blackhole")

    def heal(self, host):
        """Undoes cut and silence. The link has no limit then."""
        for ns, device in ((self.name(host), "eth0"), (self.hub, f"h{host}")):
            run("tc", "-n", ns, "qdisc", "del", "dev", device, "root", check=False)
        run("ip", "-n", self.hub, "link", "set", f"h{host}", "up")

    def bytes(self, host):
        """(sent, received) at the host's interface since it is there. An offloaded packet counts one header."""
        (link,) = json.loads(run("ip", "-n", self.name(host), "-s", "-j", "link", "show", "eth0"))
        return link["stats64"]["tx"]["bytes"], link["stats64"]["rx"]["bytes"]

    def start(self, host, *words, output):
        """A program on a host; its output goes to the file `output`."""
        with open(output, "wb") as out:
            process = subprocess.Popen(["ip", "netns", "exec", self.name(host), *map(str, words)], stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, preexec_fn=_die_with_parent)
        process.output = pathlib.Path(output)
        self.processes.append(process)
        return process


def end_on_sigterm():
    """So that the namespaces go when this program is told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
