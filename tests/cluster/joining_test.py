# tests/cluster/joining_test.py - what a node hears and says while it joins, and who is kept out without harm to the others.
import os
import re
import signal
import socket
import time
import unittest

import cluster
import small_run


def listening_addresses(pid):
    """The local addresses, as the kernel writes them, at which a process listens for TCP."""
    inodes = set()
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{entry}")
        except FileNotFoundError:
            continue
        if found := re.fullmatch(r"socket:\[(\d+)\]", target):
            inodes.add(found[1])
    found = []
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}") as lines:
            for words in map(str.split, list(lines)[1:]):
                if words[3] == "0A" and words[9] in inodes:
                    found.append(words[1].split(":")[0])
    return found


class Joining(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def first(self, *options, nodes=2, **of_solver):
        of_solver.setdefault("iterations", cluster.ENDLESS)
        of_solver.setdefault("lr", 0.002)  # images are noise: it must not diverge however long a run lasts
        solver = small_run.solver(self.cluster.folder, "s", **of_solver)
        node = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", nodes, *options)
        return node, node.wait_for(cluster.LISTENING)[1]

    def test_a_node_that_comes_late_to_nodes_with_data_of_their_own_is_refused_alone_and_hears_why(self):
        first, address = self.first("--devices", "cpu:1", "--own-data")
        self.cluster.node("--join", address, "--devices", "cpu:1", "--own-data")
        first.wait_for("loss")
        late = self.cluster.node("--join", address)
        self.assertEqual(late.wait(), 2, late)
        self.assertIn("training runs already with 2 nodes", late.errors[-1])
        first.wait_for("refused .*: training runs already with 2 nodes")
        first.stop()

    def test_a_node_with_other_replicas_is_refused_alone_and_another_takes_its_place(self):
        first, address = self.first("--devices", "cpu:1", iterations=4)
        other = self.cluster.node("--join", address, "--devices", "cpu:2")
        self.assertEqual(other.wait(), 2, other)
        self.assertIn("it splits its batch over 2 replicas (its --devices), the run has 1 on each node", other.errors[-1])
        right = self.cluster.node("--join", address, "--devices", "cpu:1")
        right.wait_for("^joined: worker 1 of 2")
        self.assertEqual(first.wait(), 0, first)
        self.assertEqual(right.wait(), 0, right)

    def data_of(self, name, *of_images):
        """A folder of that name with a data set, for --data-root."""
        (self.cluster.folder / name).mkdir(exist_ok=True)
        small_run.images(self.cluster.folder / name, *of_images)
        return self.cluster.folder / name

    def first_with_data(self, nodes, *options):
        solver = small_run.solver(self.cluster.folder, "s", iterations=cluster.ENDLESS, lr=0.002)
        net = self.cluster.folder / "s.net.prototxt"
        net.write_text(net.read_text().replace(f"{self.cluster.folder}/", ""))
        first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", nodes, "--devices", "cpu:1",
                                  "--data-root", self.data_of("right"), *options)
        return first, first.wait_for(cluster.LISTENING)[1]

    OTHER_DATA = {"few": ((96,), "reads 96 records on this node, and 192 on the run's first node"),
                  "many": ((193,), "reads 193 records on this node, and 192 on the run's first node"),
                  "small": ((192, 20), "reads samples of 1x20x20 and one value on this node, and of 1x28x28 and one value on")}

    def test_a_newcomer_with_other_data_is_refused_before_it_is_ready_and_the_run_goes_on_without_a_view(self):
        first, address = self.first_with_data(1)
        first.wait_for("loss")
        for name, (made, words) in self.OTHER_DATA.items():
            with self.subTest(name):
                late = self.cluster.node("--join", address, "--devices", "cpu:1", "--data-root", self.data_of(name, *made))
                self.assertEqual(late.wait(), 2, late)
                self.assertIn(words, late.errors[-1])
        self.assertFalse([line for line in first.lines if "is ready to join" in line or line.startswith("view 2")], first)
        right = self.cluster.node("--join", address, "--devices", "cpu:1", "--data-root", self.cluster.folder / "right")
        right.wait_for("^joined: worker 4 of 2")
        first.stop()

    def test_a_node_with_other_data_does_not_begin_a_run(self):
        for name, (made, words) in self.OTHER_DATA.items():
            with self.subTest(name):
                first, address = self.first_with_data(2)
                second = self.cluster.node("--join", address, "--devices", "cpu:1", "--data-root", self.data_of(name, *made))
                self.assertEqual(second.wait(), 2, second)
                self.assertIn(words, second.errors[-1])
                self.assertEqual(first.wait(), 3, first)
                self.assertIn(words, first.errors[-1])

    def test_with_own_data_parts_may_have_other_numbers_of_records_but_no_other_shape(self):
        for name, (made, words) in self.OTHER_DATA.items():
            with self.subTest(name):
                first, address = self.first_with_data(2, "--own-data")
                second = self.cluster.node("--join", address, "--devices", "cpu:1", "--own-data",
                                           "--data-root", self.data_of(name, *made))
                if name == "small":
                    self.assertEqual(second.wait(), 2, second)
                    self.assertIn(words, second.errors[-1])
                else:
                    second.wait_for("^joined: worker 1 of 2")
                    first.wait_for("loss")
                    first.stop()

    def test_the_first_node_prints_the_command_and_a_joiner_that_is_early_says_so(self):
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            port = reserved.getsockname()[1]
        early = self.cluster.node("--join", f"127.0.0.1:{port}", "--devices", "cpu:1")
        early.wait_for(rf"^nobody listens at 127.0.0.1:{port} yet; trying for \d+ s more$")
        solver = small_run.solver(self.cluster.folder, "s", iterations=2)
        first = self.cluster.node("--solver", solver, "--listen", f"127.0.0.1:{port}", "--nodes", 3, "--devices", "cpu:1")
        command = first.wait_for(r"^others join with: poseidon-node (.*)$")[1]
        self.cluster.node(*command.split(), "--devices", "cpu:1")
        self.assertEqual(self.cluster.wait_all(), [0, 0, 0], early)

    def test_a_joiner_listens_where_it_was_reached_from_and_strangers_do_not_keep_it_out(self):
        first, address = self.first(nodes=3)
        host, port = address.split(":")
        strangers = [socket.create_connection((host, int(port))) for _ in range(100)]
        try:
            began = time.monotonic()
            joiner = self.cluster.node("--join", address)
            joiner.wait_for("^reached the first node")
            self.assertEqual(set(listening_addresses(joiner.pid)), {"0100007F"})  # 127.0.0.1 alone
            self.assertLess(sum("refused" in line for line in first.lines), 2 + (time.monotonic() - began) / 5)
        finally:
            for stranger in strangers:
                stranger.close()

    def test_a_joiner_that_freezes_before_its_first_word_is_noticed(self):
        first, address = self.first(*cluster.HASTY, nodes=3)
        joiner = self.cluster.node("--join", address)
        first.wait_for("joined from")
        joiner.signal(signal.SIGSTOP)
        limit = first.wait_for(r"^worker 1 has gone before the run began: no word from .* \(limit ([\d.]+) s\).*; waiting for 2 more nodes")[1]
        self.assertLessEqual(float(limit), 7)

    def test_a_joiner_of_another_machine_needs_a_token(self):
        node = self.cluster.node("--join", "10.255.255.1:7600")
        self.assertEqual(node.wait(), 2, node)
        self.assertIn("--token-file", node.output)


if __name__ == "__main__":
    cluster.main()
