# tests/cluster/failures_test.py - wrong use, bad files, bad peers and dying nodes: the message, the exit code, no half files.
import re
import signal
import socket
import struct
import unittest

import cluster
import small_run


HELLO_BYTES = 80  # messages/wire/handshake.hpp: "POSEIDON", version, token set, zeros, build, random bytes


def hello_from(peer):
    return peer.recv(HELLO_BYTES, socket.MSG_WAITALL)


def version_of(hello):
    assert hello[:8] == b"POSEIDON" and len(hello) == HELLO_BYTES, hello
    return struct.unpack_from("<I", hello, 8)[0]


def hello_of(version):
    return b"POSEIDON" + struct.pack("<I", version) + bytes(HELLO_BYTES - 12)


class Failures(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder

    def ends(self, code, *options, says=()):
        node = self.cluster.node(*options)
        self.assertEqual(node.wait(), code, node)
        for text in says:
            self.assertIn(text, node.output)
        return node

    def test_wrong_options_exit_with_2_and_one_line(self):
        node = self.ends(2, says=["--solver", "--join"])
        self.assertEqual(len(node.lines), 1, node)
        self.ends(2, "--no-such-option", says=["--no-such-option", "--help"])
        self.ends(2, "--solver", "x", "--join", "y:1", says=["need --listen"])
        self.ends(2, "--solver", "x", "--devices", "tpu", says=["--devices tpu", "cpu:R"])

    def test_listening_for_strangers_needs_a_token(self):
        solver = small_run.solver(self.folder, "s")
        self.ends(2, "--solver", solver, "--listen", "0.0.0.0:0", "--nodes", 2, says=["0.0.0.0", "--token-file"])

    def test_missing_and_damaged_files(self):
        self.ends(2, "--solver", self.folder / "none.prototxt", says=["none.prototxt"])
        solver = small_run.solver(self.folder, "s")
        damaged = self.folder / "w.caffemodel"
        damaged.write_bytes(b"\xa2\x06\xff\xff\x03abc")
        self.ends(2, "--solver", solver, "--weights", damaged, says=["w.caffemodel"])
        images = self.folder / "made-images-idx3-ubyte"
        images.write_bytes(images.read_bytes()[:5000])
        self.ends(2, "--solver", solver, says=["made-images-idx3-ubyte"])
        self.assertEqual(list(self.folder.glob("*_iter_*")), [])

    def test_a_spec_mistake_has_file_line_layer_and_a_suggestion(self):
        solver = small_run.solver(self.folder, "s")
        net = self.folder / "s.net.prototxt"
        net.write_text(net.read_text().replace('bottom: "pool1"', 'bottom: "poll1"'))
        line = next(i for i, text in enumerate(net.read_text().splitlines(), 1) if "poll1" in text)
        self.ends(2, "--solver", solver, says=[f"{net}:{line}", "ip1", "poll1", "pool1"])

    def test_a_label_that_the_net_has_no_class_for_is_said_in_words(self):
        solver = small_run.solver(self.folder, "s", classes=3)
        node = self.cluster.node("--solver", solver, "--devices", "cpu:1")
        self.assertEqual(node.wait(), 1, node)
        self.assertRegex(node.errors[-1], r'^stream compute \[0\]: layer "loss" .*: a label is [\d.]+, the prediction has 3 classes')

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.ends(2, "--solver", small_run.solver(self.folder, "s"), "--listen", address, "--nodes", 2,
                      says=[address])

    def test_a_wrong_token_is_refused_on_both_sides_and_does_no_harm(self):
        right, wrong = self.cluster.token_file("right"), self.cluster.token_file("wrong")
        solver = small_run.solver(self.folder, "s", iterations=3)
        first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--token-file", right)
        address = first.wait_for(cluster.LISTENING)[1]
        self.ends(2, "--join", address, "--token-file", wrong, says=["token"])
        first.wait_for("refused.*token")
        self.ends(0, "--join", address, "--token-file", right)
        self.assertEqual(first.wait(), 0, first)

    def test_garbage_on_the_port_does_no_harm(self):
        solver = small_run.solver(self.folder, "s", iterations=3)
        first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2)
        address = first.wait_for(cluster.LISTENING)[1]
        host, port = address.split(":")
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + b"\xff" * 4096)
            first.wait_for("refused")
        self.ends(0, "--join", address)
        self.assertEqual(first.wait(), 0, first)

    def test_a_node_does_not_join_a_cluster_of_another_version(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            node = self.cluster.node("--join", f"127.0.0.1:{listener.getsockname()[1]}")
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(cluster.DEADLINE_S)
                hello = hello_from(peer)
                newer = version_of(hello) + 6
                peer.sendall(hello_of(newer) + b"and whatever that version says next")
                self.assertEqual(node.wait(), 2, node)
        self.assertEqual(len(node.errors), 1, node.output)
        self.assertRegex(node.errors[0], rf"^127\.0\.0\.1:\d+ speaks protocol version {newer}, this node speaks version "
                                         rf"{version_of(hello)} \(build [\d.]+\)\. Run the same release")

    def test_a_node_of_another_version_is_refused_with_both_versions_and_does_no_harm(self):
        solver = small_run.solver(self.folder, "s", iterations=3)
        first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2)
        address = first.wait_for(cluster.LISTENING)[1]
        with socket.create_connection(("127.0.0.1", int(address.split(":")[1]))) as peer:
            peer.settimeout(cluster.DEADLINE_S)
            ours = version_of(hello_from(peer))
            peer.sendall(hello_of(ours + 6))
            self.assertEqual(peer.recv(2, socket.MSG_WAITALL), bytes([3, 3]))  # refused: other_version
            first.wait_for(rf"^refused: 127\.0\.0\.1:\d+ speaks protocol version {ours + 6}, "
                           rf"this node speaks version {ours} \(build")
        self.ends(0, "--join", address)
        self.assertEqual(first.wait(), 0, first)

    def test_a_node_that_is_told_why_it_is_refused_says_so(self):
        # An acceptor that speaks our version, so that the refusal is heard and not concluded.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            node = self.cluster.node("--join", f"127.0.0.1:{listener.getsockname()[1]}")
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(cluster.DEADLINE_S)
                peer.sendall(hello_of(version_of(hello_from(peer))) + bytes([3, 3]))
                self.assertEqual(node.wait(), 2, node)
        self.assertRegex(node.errors[0], r"refused this node: it speaks protocol version \d+, this node speaks version \d+")

    def test_ctrl_c_is_heard_while_a_node_dials(self):
        # The exit code tells that it did not give up by itself.
        with cluster.reserved_address() as address:
            node = self.cluster.node("--join", address, "--log-level", "debug")
            node.wait_for("no program listens there yet")
            node.signal(signal.SIGINT)
            self.assertEqual(node.wait(), 130, node)

    def test_ctrl_c_is_heard_during_a_handshake_with_a_silent_peer(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            node = self.cluster.node("--join", f"127.0.0.1:{silent.getsockname()[1]}", "--log-level", "debug")
            node.wait_for("sent hello")
            node.signal(signal.SIGTERM)
            self.assertEqual(node.wait(), 143, node)

    def test_a_diverging_run_names_the_layer_and_leaves_the_last_snapshot(self):
        solver = small_run.solver(self.folder, "s", iterations=200, lr=1e18, more="snapshot: 1000")
        self.ends(4, "--solver", solver, "--devices", "cpu:1", says=["diverged at iteration", 'layer "', "learning rate"])
        self.assertEqual(list(self.folder.glob("*_iter_*")), [])

    def test_a_run_that_diverges_in_its_last_clock_ends_so_in_the_test_phase(self):
        solver = small_run.solver(self.folder, "s", iterations=1, lr=1e30,
                                  more="test_iter: 1 test_interval: 1 test_initialization: false")
        self.ends(4, "--solver", solver, "--devices", "cpu:1", says=["diverged", 'layer "'])

    def test_a_killed_node_is_named_and_a_snapshot_is_left(self):
        solver = small_run.solver(self.folder, "s", iterations=cluster.ENDLESS)
        nodes = self.cluster.first_and_others(solver, 3, "--devices", "cpu:1", first=["--resume", "auto", "--survive", 0])
        nodes[0].wait_for(r"^iteration 20/")
        nodes[2].kill()
        for node in nodes[:2]:
            self.assertEqual(node.wait(), 3, node)
            self.assertRegex("\n".join(node.errors), r"worker [012] \(127.0.0.1:\d+\)")
        self.assertRegex(nodes[0].output, r"snapshot .*s_iter_\d+\.caffemodel")
        written = list(self.folder.glob("s_iter_*"))
        self.assertEqual(len(written), 1, written)
        self.assertTrue(cluster.weights(written[0]))
        kept = re.search(r"Kept: weights of iteration (\d+) \((\S+)\); solver state is gone: .* Go on with: poseidon-node (.*) --weights (\S+)$", nodes[0].errors[-1])
        self.assertTrue(kept, nodes[0].errors)
        self.assertEqual((kept[2], kept[4], kept[1]), (str(written[0]), str(written[0]), written[0].stem.split("_iter_")[1]))
        self.assertIn(f"--solver {solver} --listen", kept[3])
        self.assertNotIn("--resume", kept[3])
        self.assertRegex(nodes[1].errors[-1], r"worker 0 \(127\.0\.0\.1:\d+\) keeps what was trained, and says how to go on\.$")

    def test_a_signal_does_not_cut_off_the_snapshot_after_a_lost_peer(self):
        solver = small_run.solver(self.folder, "s", iterations=cluster.ENDLESS, hidden=8192)
        first, second = self.cluster.first_and_others(solver, 2, "--devices", "cpu:1", first=["--routes", "ps", "--log-level", "debug", "--survive", 0])
        first.wait_for(r"^iteration 3/")
        second.kill()
        first.wait_for("link lost")
        first.signal(signal.SIGTERM)
        self.assertEqual(first.wait(), 3, first)
        self.assertEqual(len(list(self.folder.glob("s_iter_*.caffemodel"))), 1, first)

    def test_a_frozen_node_is_noticed_by_its_silence(self):
        solver = small_run.solver(self.folder, "s", iterations=cluster.ENDLESS)
        first, second = self.cluster.first_and_others(solver, 2, "--devices", "cpu:1", "--silence-limit", 2, first=["--survive", 0])
        first.wait_for(r"^iteration 20/")
        second.signal(signal.SIGSTOP)
        self.assertEqual(first.wait(), 3, first)
        self.assertIn("no word from worker 1", first.output)
        second.kill()

    def test_ctrl_c_anywhere_ends_all_nodes_in_order_with_a_snapshot(self):
        for victim in (0, 1):
            with self.subTest(worker=victim):
                solver = small_run.solver(self.folder, f"s{victim}", iterations=cluster.ENDLESS)
                nodes = self.cluster.first_and_others(solver, 2, "--devices", "cpu:1")
                nodes[0].wait_for(r"^iteration 20/")
                nodes[victim].signal(signal.SIGINT)
                self.assertEqual(nodes[victim].wait(), 130, nodes[victim])
                self.assertEqual(nodes[1 - victim].wait(), 0, nodes[1 - victim])
                self.assertEqual(len(list(self.folder.glob(f"s{victim}_iter_*.solverstate"))), 1)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
