# tests/cluster/stall_test.py - why training pauses: a slow disk, a slow link, a dead peer. The page, the log of the node that
# serves it, and `poseidon-node status` give the same reason.
import random
import re
import subprocess
import time

import cluster
import faulty_wire
import slow_disk
import small_run
from web_page import PAGE, Events

IMAGES = 48


class Stalls(small_run.Trained):
    def ticks(self):
        return (data for kind, data in Events(self.page) if kind == "tick")

    def stall(self, found, what):
        """The first verdict for which found(stall) holds, or None as stall."""
        deadline, tick = time.monotonic() + cluster.DEADLINE_S, None
        for tick in self.ticks():
            verdict = tick["doctor"].get("stall")
            if found(verdict):
                return verdict, tick["doctor"]["text"]
            if time.monotonic() > deadline:
                break
        self.fail(f"not seen: {what}; last {tick}")

    def status(self):
        return subprocess.run([cluster.BIN / "poseidon-node", "status", "--attach", self.page.removeprefix("http://")],
                              capture_output=True, text=True, timeout=cluster.DEADLINE_S, check=True).stdout

    def trains(self, clocks):
        """Waits until both nodes have computed more than `clocks`, and neither pauses."""
        for tick in self.ticks():
            if len(tick["members"]) == 2 and all(m.get("clock", 0) > clocks for m in tick["members"]) and "stall" not in tick["doctor"]:
                return
        self.fail(f"the run ended before clock {clocks}")

    def first(self, solver, *options):
        node = self.cluster.node("--solver", solver, "--devices", "cpu:1", "--listen", "127.0.0.1:0", "--nodes", 2,
                                 "--web", "127.0.0.1:0", "--routes", "ps", "--survive", 0, *options)
        self.page = node.wait_for(PAGE)[1]
        return node, node.wait_for(cluster.LISTENING)[1]

    def image_folders(self):
        """Two folders with the same list and pictures, one for each node: a disk of its own."""
        dice = random.Random(4)
        pictures = [b"P5 28 28 255\n" + dice.randbytes(784) for _ in range(IMAGES)]
        folders = [self.cluster.folder / name for name in ("disk0", "disk1")]
        for folder in folders:
            folder.mkdir()
            (folder / "list.txt").write_text("".join(f"{n}.pgm {n % 10}\n" for n in range(IMAGES)))
            for n, picture in enumerate(pictures):
                (folder / f"{n}.pgm").write_bytes(picture)
        return folders

    def test_a_slow_disk_is_named_with_its_node_and_data_layer(self):
        folders = self.image_folders()
        solver = small_run.solver(self.cluster.folder, "disk", iterations=cluster.ENDLESS, lr=0.0001, batch=4)
        net = self.cluster.folder / "disk.net.prototxt"
        net.write_text(re.sub(r'type: "Data"(.*)\n  data_param .*', r'type: "ImageData"\1'
                              '\n  image_data_param { source: "list.txt" batch_size: 4 is_color: false } }', net.read_text()))
        first, address = self.first(solver, "--data-root", folders[0])
        self.cluster.node("--join", address, "--devices", "cpu:1", "--data-root", folders[1])
        self.trains(20)
        disk = slow_disk.SlowDisk(sorted(folders[1].glob("*.pgm")))
        disk.stop()
        try:
            verdict, text = self.stall(lambda v: v and v["phase"] == "data", "a worker waits for a disk")
            self.assertEqual((verdict["worker"], verdict["layer"], verdict.get("peer")), (1, "data", None))
            self.assertRegex(text[0], r"^worker 1 has been stalled for [\d.]+ s: the source of data layer data gives no batch$")
            first.wait_for(r"^stall: worker 1 has been stalled for .* the source of data layer data gives no batch$")
            said = r"(?m)^stall: worker 1 has been stalled for .* the source of data layer data gives no batch$"
            cluster.wait_until(lambda: re.search(said, self.status()), "the status names the disk")  # not while a report is late
        finally:
            disk.go_on()
        self.stall(lambda v: v is None, "the disk answers again")
        cluster.wait_until(lambda: "stall: " not in self.status(), "the status has no stall any more")
        # Worker 0, which waited for worker 1's gradients meanwhile, was not said to wait for a disk.
        blamed = re.findall(r"(?m)^stall: (worker \d) .*data layer", first.output)
        self.assertEqual(set(blamed), {"worker 1"})

    def test_a_slow_link_is_named_with_layer_peer_and_what_waits_in_it(self):
        solver = small_run.solver(self.cluster.folder, "link", iterations=cluster.ENDLESS, lr=0.0001, batch=8, hidden=1500)
        first, address = self.first(solver)
        wire = faulty_wire.FaultyWire(address)
        self.addCleanup(wire.cut)
        self.cluster.node("--join", wire.address, "--devices", "cpu:1")
        self.trains(20)
        wire.pace(300e3)
        verdict, text = self.stall(lambda v: v and v["bytes"] > 0, "a worker waits for a link")
        self.assertEqual((verdict["phase"], verdict["route"]), ("update", "parameter_server"))
        self.assertEqual({verdict["worker"], verdict["peer"]}, {0, 1})
        self.assertIn(verdict["layer"], ("conv1", "ip1", "ip2"))
        line = (r"worker (\d) has been stalled for [\d.]+ s: the update of (\w+) of iteration (\d+) \(parameter_server\) has not arrived; "
                r"it waits for worker (\d)(?:, which has not computed its part yet)?; [\d.]+ MB wait in the link between them$")
        self.assertRegex(text[0], "^" + line)
        self.assertEqual(re.search(line, text[0]).group(1, 2, 3, 4),
                         (str(verdict["worker"]), verdict["layer"], str(verdict["clock"]), str(verdict["peer"])))
        first.wait_for("^stall: " + line.replace("; [", "(; [").replace("them$", "them)?$"))
        # With each iteration one pause ends and the next one begins; between them, `status` rightly says that nobody is stalled.
        cluster.wait_until(lambda: re.search("(?m)^stall: " + line, self.status()), "the status names the slow link")
        wire.pace(None)
        self.stall(lambda v: v is None, "the link is fast again")
        self.assertIsNone(first.process.poll(), first.output)

    def test_a_killed_worker_is_shown_as_lost_because_its_socket_is_closed_not_because_it_is_silent(self):
        first, address = self.first(small_run.solver(self.cluster.folder, "killed", iterations=cluster.ENDLESS, lr=0.0001))
        second = self.cluster.node("--join", address, "--devices", "cpu:1")
        self.trains(20)
        ticks = self.ticks()
        next(ticks)
        second.kill()
        for tick in ticks:
            member = tick["members"][1]
            if member["state"] == "lost":
                break
        else:
            self.fail(f"the page never said that worker 1 is lost: {tick['members']}")
        self.assertIn("worker 1", member["why"])
        self.assertNotIn("no word", member["why"])
        self.assertEqual(first.wait(), 3)

    def test_a_slow_worker_lags_by_no_more_than_it_may(self):
        staleness = 3
        profile = self.cluster.folder / "quick.profile"
        layers = ("conv1", "pool1", "ip1", "relu1", "drop1", "ip2", "loss")
        for name, ms in (("quick", 2), ("slow", 12)):
            (self.cluster.folder / f"{name}.profile").write_text(
                'net: "small" measured: "made up" batch: 16 gflop_s: 10\n'
                + "".join(f'layer {{ name: "{n}" forward_ms: {ms} backward_ms: {ms} }}\n' for n in layers))
        solver = small_run.solver(self.cluster.folder, "lag", iterations=cluster.ENDLESS)
        node = self.cluster.node("--solver", solver, "--devices", f"replay:{profile}", "--listen", "127.0.0.1:0", "--nodes", 2,
                                 "--web", "127.0.0.1:0", "--routes", "ps", "--staleness", staleness)
        self.page = node.wait_for(PAGE)[1]
        self.cluster.node("--join", node.wait_for(cluster.LISTENING)[1], "--devices", f"replay:{self.cluster.folder}/slow.profile")
        lags = []
        for tick in self.ticks():
            if len(tick["members"]) < 2:
                continue
            lags.append([m.get("lag", 0) for m in tick["members"]])
            if len([1 for _, lag in lags if lag > 0]) >= 5:
                break
        self.assertLessEqual(max(lag for _, lag in lags), staleness + 1, lags)
        self.assertEqual([ours for ours, theirs in lags if theirs > 0 and ours > 0], [], lags)
        cluster.wait_until(lambda: re.search(r"(?m)^worker 1 .* lag [1-4] ", self.status()), "the status says its lag")
        node.stop()


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
