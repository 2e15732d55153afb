# tests/cluster/gpu_views_test.py - nodes with GPUs, simulated ones, that join and leave: a GPU has the newest values of layers that send factors.
import re
import signal
import unittest

import cluster
import small_run
import view_oracle

PLUGIN = cluster.BIN / "libposeidon_gpu_simulated.so"
DEVICES = ("0", "--math", "fp32", "--gpu-plugin", PLUGIN)
LONG = 60  # micro-batches of an iteration: some tenths of a second
MOST_TRIES = 20


@unittest.skipUnless(PLUGIN.exists(), "the plug-in for simulated GPUs has not been built")
class GpuViews(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def join(self):
        return self.cluster.node("--join", self.address, "--devices", *DEVICES)

    def test_who_leaves_as_another_one_joins_gives_it_its_newest_values(self):
        solver = small_run.solver(self.cluster.folder, "s", iterations=cluster.ENDLESS, iter_size=LONG, lr=0.002)
        first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 3, "--json", "--routes", "sfb", "--devices", *DEVICES)
        self.address = first.wait_for(r"listening on (127.0.0.1:\d+)")[1]
        others = [self.join() for _ in range(2)]
        first.wait_for('"event": ?"progress"')
        seats, seen = 2, r'"event": ?"view".*"changed": ?"[^"]* joined, [^"]* left"'
        for _ in range(MOST_TRIES):
            # Who comes and goes is settled when the iteration under way has ended: both are, if the node hears of it in time.
            others.append(self.join())
            seats += 1
            first.wait_for(f"worker {seats} is ready to join")
            others.pop(0).signal(signal.SIGTERM)
            first.wait_for(rf'"event": ?"view".*worker {seats} [^"]* joined')
            if re.search(seen, first.output):
                break
        self.assertRegex(first.output, seen)
        views = view_oracle.views_of(first)
        first.wait_for(f'"clock": ?{views[-1][0] + 2},')
        first.stop()
        newest = max(self.cluster.folder.glob("s_iter_*.caffemodel"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
        view_oracle.check(self.cluster, solver, view_oracle.views_of(first), newest, DEVICES, True, routes="sfb")


if __name__ == "__main__":
    cluster.main()
