# tests/cluster/loss_run.py - runs that lose members: begun, watched, and compared with what their views have to train.
import itertools
import json
import os
import pathlib
import re
import signal
import unittest
import zlib

import cluster
import small_run
import view_oracle

KILLED, FROZEN = "killed", "frozen"
LONG = 80  # micro-batches of an iteration: a tenth of a second
# What a node says that was frozen for so long that the others have gone on, whether it hears so or finds nobody.
LEFT_OUT = r"the other nodes (go on|have gone on) without this one|go on without it|paused: this node hears"


def lose(node, how):
    """kill -9, or SIGSTOP: then nothing comes from the process any more, and its connections stay."""
    node.signal(signal.SIGKILL if how == KILLED else signal.SIGSTOP)


def cpu_seconds(node):
    """The processor time that the node's process has used."""
    fields = pathlib.Path(f"/proc/{node.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def files_of(folder):
    """Name, size and time of all files: what changes when anything is written."""
    return {f.name: (f.stat().st_size, f.stat().st_mtime_ns) for f in folder.iterdir()}


def crossed(of, *axes):
    """Combinations of the axes' values: with cluster.ALL every one, else as few as have each value of each axis. `of`: the test's id(), by which tests
    take different ones."""
    if cluster.ALL:
        return list(itertools.product(*axes))
    turn = zlib.crc32(of.encode())
    return [tuple(axis[(n + turn * place) % len(axis)] for place, axis in enumerate(axes)) for n in range(max(map(len, axes)))]


class LossRun(unittest.TestCase):
    ROUTES = "ps"
    OPTIONS = ("--no-rejoin",)  # of all nodes
    DEVICES = ("cpu:1",)  # of all nodes: the value of --devices, and what else belongs to it

    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def begin(self, nodes, *options, survive=1, trains=True, **of_solver):
        """Nodes in the order of their numbers, each of which tells its events. `trains`: they have trained an iteration."""
        all_nodes = [first := self.first(nodes, *options, survive=survive, **of_solver)]
        for worker in range(1, nodes):
            all_nodes.append(self.join(self.address))
            first.wait_for(f"worker {worker} joined from")
        if trains:
            first.wait_for('"event": ?"progress"')
        return all_nodes

    def first(self, nodes, *options, survive=1, **of_solver):
        """The first of so many nodes, which waits for the others."""
        self.solver = small_run.solver(self.cluster.folder, "s", **{"iterations": cluster.ENDLESS, "lr": 0.002, **of_solver})
        node = self.cluster.node("--solver", self.solver, "--listen", "127.0.0.1:0", "--nodes", nodes, "--devices", *self.DEVICES, "--json",
                                 "--routes", self.ROUTES, *([] if survive is None else ["--survive", survive]), *cluster.HASTY, *self.OPTIONS, *options)
        self.address = node.wait_for(r"listening on (127.0.0.1:\d+)")[1]
        return node

    def join(self, address, rejoins=False):
        return self.cluster.node("--join", address, "--devices", *self.DEVICES, "--json", *cluster.HASTY, *(() if rejoins else self.OPTIONS))

    def address_of(self, node):
        """Where a node listens that has joined."""
        return node.wait_for(r"this node listens on ([\d.]+:\d+)")[1]

    def view(self, node, members):
        """Waits until a view of these members has begun. Returns the event."""
        wanted = r"\[" + ", ?".join(map(str, members)) + r"\]"
        return json.loads(node.wait_for(rf'^(.*"event": ?"view".*"members": ?{wanted}.*)$')[1])

    def trained(self, node, clock):
        """Waits until a node that leads has told of this iteration or of a later one."""
        def tells():
            told = re.findall(r'"event": ?"progress".*?"clock": ?(\d+)', node.output)
            return told and int(told[-1]) >= clock
        cluster.wait_until(tells, f"iteration {clock} of {node}")

    def newest(self):
        of_run = (p for p in self.cluster.folder.glob("s_iter_*.caffemodel") if "_paused_node" not in p.name)
        return max(of_run, key=lambda p: int(p.stem.rsplit("_", 1)[1]))

    def stop_and_check(self, node, as_nodes=False, since=None):
        """`node` ends the run with its snapshot, which has to be that of the chain of the views that it tells of. `since`: a node that
        was there before it; both tell of the views in which both took part."""
        node.stop()
        self.check(node, as_nodes, since)

    def check(self, node, as_nodes=False, since=None):
        views = view_oracle.views_of(node)
        if since is not None:
            views = [v for v in view_oracle.views_of(since) if v not in views] + views
        view_oracle.check(self.cluster, self.solver, views, self.newest(), self.DEVICES, as_nodes)

    def wakes_and_ends(self, node):
        """A node that was frozen goes on when the run is over."""
        node.signal(signal.SIGCONT)
        self.ends_left_out(node)

    def ends_left_out(self, node):
        """A node says that it is left out, or hears nobody and is told to end. It writes nothing of the run's names."""
        before = files_of(self.cluster.folder)
        cluster.wait_until(lambda: node.process.poll() is not None or "paused: this node hears" in node.output, f"the end of {node}")
        if node.process.poll() is None:
            node.signal(signal.SIGINT)
        self.assertEqual(node.wait(), 3, node)
        self.assertRegex("\n".join(node.errors), LEFT_OUT)
        after = files_of(self.cluster.folder)
        self.assertEqual({name: f for name, f in after.items() if "_paused_node" not in name}, before, node)

    def others_go_on(self, nodes, how, seat, as_nodes=False, wakes=False, check=None):
        """The node in this seat is lost, and the others train on to an end that `check` compares; without it the oracle does."""
        lose(nodes[seat], how)
        others = [n for n in range(len(nodes)) if n != seat]
        views = [self.view(nodes[n], others) for n in others]
        self.assertEqual(len({(v["epoch"], v["first_clock"], v["first_sample"]) for v in views}), 1, views)
        leader, last = nodes[others[0]], nodes[others[-1]]
        self.trained(leader, views[0]["first_clock"])
        if check is None:
            self.stop_and_check(leader, as_nodes)
        else:
            leader.stop()
            check(leader)
        self.assertEqual(last.wait(), 0, last)
        if how == FROZEN and wakes:
            self.wakes_and_ends(nodes[seat])

    def in_each_way(self, body, seats=(0, 2)):
        """Calls body(how, seat) for a loss of each kind and of each of these seats (crossed), each in a cluster of its own."""
        for how, seat in crossed(self.id(), (KILLED, FROZEN), seats):
            with self.subTest(how=how, seat=seat), cluster.Cluster() as self.cluster:
                body(how, seat)
