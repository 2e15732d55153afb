# tests/cluster/tls_test.py - nodes with TLS: the same bits, nothing readable on the way, and one clear line for whoever does not fit.
import shutil
import socket
import ssl
import unittest
import urllib.error
import urllib.request

import certificates
import cluster
import faulty_wire
import programs
import small_run

GIVE = "--tls-cert, --tls-key and --tls-ca"

PROGRAM = """
import numpy as np
import poseidon.numpy
with poseidon.numpy.Worker({"a": np.zeros(100000, np.float32)}) as worker:
    worker.push("a", np.full(100000, 1 + worker.rank, np.float32))
    print("mean", worker.mean("a")[7], flush=True)
"""


class Tls(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.folder = self.cluster.folder
        self.authority = certificates.Authority(self.folder)
        self.token = ["--token-file", self.cluster.token_file()]

    def first(self, *options, iterations=3):
        solver = small_run.solver(self.folder, "s", iterations=iterations)
        first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:1", *self.token, *options)
        return first, first.wait_for(cluster.LISTENING)[1]

    def joins(self, address, *options):
        return self.cluster.node("--join", address, "--devices", "cpu:1", *self.token, *options)

    def assert_trains(self, *nodes):
        for node in nodes:
            self.assertEqual(node.wait(), 0, node)

    def assert_refused(self, node, text):
        """One line, and the exit code of wrong use."""
        self.assertEqual(node.wait(), 2, node)
        self.assertEqual(len(node.errors), 1, node.output)
        self.assertIn(text, node.errors[0])

    def test_two_nodes_train_to_the_same_bits_as_without(self):
        snapshots = []
        for name, options in (("plain", [[], []]), ("encrypted", [self.authority.options("one"), self.authority.options("two")])):
            solver = small_run.solver(self.folder, name, iterations=12, norm=True)
            first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:1", *self.token,
                                      "--routes", "ps", *options[0])
            second = self.joins(first.wait_for(cluster.LISTENING)[1], *options[1])
            self.assert_trains(first, second)
            snapshots.append(small_run.snapshot_of(self.folder, name, 12))
        cluster.assert_same_weights(*snapshots)
        self.assertIn("--tls-cert FILE --tls-key FILE --tls-ca FILE", first.output)

    def test_what_travels_cannot_be_read(self):
        first, address = self.first(*self.authority.options("one"), iterations=6)
        seen = []
        with faulty_wire.FaultyWire(address) as wire:
            wire.look = seen.append
            second = self.joins(wire.address, *self.authority.options("two"))
            self.assert_trains(first, second)
        sent = b"".join(seen)
        self.assertGreater(len(sent), 100000)
        for known in b"POSEIDON", b"127.0.0.1:":  # of a hello, of an identity
            self.assertEqual(sent.count(known), 0, f"{known} is among {len(sent)} bytes")

    def test_a_byte_changed_on_the_way_costs_the_link_and_the_node_comes_back(self):
        first, address = self.first(*self.authority.options("one"), iterations=cluster.ENDLESS)
        with faulty_wire.FaultyWire(address) as wire:
            self.joins(wire.address, *self.authority.options("two"))
            first.wait_for(r"^iteration 10/")
            wire.flip()
            first.wait_for(r"^view \d+: worker 1 .* is lost; 1 node trains")
            first.wait_for(r"^view \d+: worker 2 .* joined; 2 nodes train")
            first.stop()

    def test_a_byte_changed_on_the_way_ends_a_run_that_survives_nothing_with_a_line(self):
        first, address = self.first(*self.authority.options("one"), "--survive", 0, iterations=cluster.ENDLESS)
        with faulty_wire.FaultyWire(address) as wire:
            second = self.joins(wire.address, *self.authority.options("two"))
            first.wait_for(r"^iteration 10/")
            wire.flip()
            self.assertEqual(sorted(node.wait() for node in (first, second)), [3, 3])
        self.assertRegex(first.output + second.output, r"broke TLS: .* something on the way has changed")

    def test_another_authority_is_refused_on_both_sides_and_does_no_harm(self):
        first, address = self.first(*self.authority.options("one"))
        other = certificates.Authority(self.folder, "other")
        self.assert_refused(self.joins(address, *other.options("foreign")), "does not chain to this node's --tls-ca: ")
        first.wait_for(r"^refused: 127\.0\.0\.1:\d+ refused this node's certificate: it does not chain to its --tls-ca \(TLS alert 48\)")
        second = self.joins(address, *self.authority.options("two"))
        self.assert_trains(first, second)

    def test_an_expired_certificate_is_refused_on_both_sides(self):
        certificate, key = self.authority.sign_expired("old")
        node = self.cluster.node("--join", "127.0.0.1:1", "--tls-cert", certificate, "--tls-key", key, "--tls-ca", self.authority.file)
        self.assert_refused(node, f"--tls-cert {certificate}: has expired: it was valid until 2021-01-02 03:04 UTC.")
        # A node whose certificate expires while it runs is one that no node of ours would start as.
        first, address = self.first(*self.authority.options("one"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.authority.file)
        context.load_cert_chain(certificate, key)
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=cluster.DEADLINE_S) as plain, \
                context.wrap_socket(plain) as stranger:
            with self.assertRaisesRegex(ssl.SSLError, "(?i)certificate.expired"):
                stranger.recv(1)
        first.wait_for(r"^refused: 127\.0\.0\.1:\d+ has a certificate that has expired: it was valid until 2021-01-02 03:04 UTC")
        self.assert_trains(first, self.joins(address, *self.authority.options("two")))

    def test_a_plain_node_is_refused_by_one_with_tls(self):
        first, address = self.first(*self.authority.options("one"))
        self.assert_refused(self.joins(address), f"refused this node: it has TLS, this node has none. Give this node the cluster's {GIVE}")
        first.wait_for(r"^refused: 127\.0\.0\.1:\d+ speaks Poseidon's protocol without TLS, and this node has TLS\. Give it the cluster's")
        self.assert_trains(first, self.joins(address, *self.authority.options("two")))

    def test_a_node_with_tls_is_refused_by_a_plain_one(self):
        first, address = self.first()
        self.assert_refused(self.joins(address, *self.authority.options("two")),
                            f"speaks Poseidon's protocol without TLS, and this node has TLS. Give it the cluster's {GIVE}")
        first.wait_for(r"^refused: 127\.0\.0\.1:\d+ speaks TLS, and this node has none\. Give this node the cluster's")
        self.assert_trains(first, self.joins(address))

    def test_the_token_is_asked_for_with_tls_too(self):
        first, address = self.first(*self.authority.options("one"))
        wrong = self.cluster.token_file("another")
        node = self.cluster.node("--join", address, "--token-file", wrong, *self.authority.options("stranger"))
        self.assertEqual(node.wait(), 2, node)
        self.assertIn("token", node.errors[0])
        self.assert_trains(first, self.joins(address, *self.authority.options("two")))

    def test_wrong_files_are_errors_of_the_command_line(self):
        certificate, key = self.authority.sign("one")
        other_certificate, _ = self.authority.sign("two")
        join = ["--join", "127.0.0.1:1"]
        self.assert_refused(self.cluster.node(*join, "--tls-cert", certificate), "--tls-cert needs --tls-key FILE and --tls-ca FILE: both sides of a link prove who they are.")
        missing = self.folder / "nothing.pem"
        self.assert_refused(self.cluster.node(*join, "--tls-cert", missing, "--tls-key", key, "--tls-ca", self.authority.file),
                            f"--tls-cert {missing}: cannot be read: No such file or directory")
        self.assert_refused(self.cluster.node(*join, "--tls-cert", other_certificate, "--tls-key", key, "--tls-ca", self.authority.file),
                            f"--tls-key {key}: is not the key of the certificate in {other_certificate} (--tls-cert)")

    def test_a_silent_stranger_does_not_keep_nodes_out(self):
        first, address = self.first(*self.authority.options("one"))
        host, port = address.split(":")
        with socket.create_connection((host, int(port))), socket.create_connection((host, int(port))) as half:
            half.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            self.assert_trains(first, self.joins(address, *self.authority.options("two")))

    def test_the_page_by_https_and_the_verbs(self):
        options = self.authority.options("one")
        first, address = self.first(*options, "--web", "127.0.0.1:0", iterations=cluster.ENDLESS)
        second = self.joins(address, *self.authority.options("two"))
        url = first.wait_for(r"^page at (https://\S+)")[1]
        at = url.removeprefix("https://").removesuffix("/")
        first.wait_for(r"^iteration 3/")
        # As a browser does it: with the authority, the name checked, and without a certificate. As strict as Python since 3.13.
        context = ssl.create_default_context(cafile=self.authority.file)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        with urllib.request.urlopen(url, timeout=cluster.DEADLINE_S, context=context) as answer:
            self.assertIn(b"<html", answer.read())
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{at}/", timeout=cluster.DEADLINE_S)
        self.assertEqual(refused.exception.code, 400)
        self.assertIn(f"this page is encrypted: open {url} ".encode(), refused.exception.read())
        authority = ["--tls-ca", self.authority.file]
        for verb in "status", "members":
            done = cluster.run("poseidon-node", verb, "--attach", at, *authority)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(address, done.stdout)
        done = cluster.run("poseidon-node", "status", "--attach", at)
        self.assertEqual(done.returncode, 2)
        self.assertIn("this page is encrypted", done.stderr)
        done = cluster.run("poseidon-graph", "attach", at, *authority, "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("network_link", done.stdout)
        viewer = self.cluster.start(cluster.BIN / "poseidon-graph", "attach", at, *authority)
        here = viewer.wait_for(r"^page at (http://\S+/)")[1]
        with urllib.request.urlopen(here + "api/status", timeout=cluster.DEADLINE_S) as answer:
            self.assertIn(b"training", answer.read())
        # A node is asked to leave at its link, where both sides show certificates.
        done = cluster.run("poseidon-node", "leave", "--at", address, *self.token)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("refused this node: it has TLS, this node has none", done.stderr)
        done = cluster.run("poseidon-node", "leave", "--at", address, *self.token, *self.authority.options("tool"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(first.wait(), 0, first)
        second.stop()

    @unittest.skipUnless(shutil.which(programs.PYTHON) and programs.LIBRARY.exists(), "no libposeidon.so")
    def test_programs_take_the_files_from_their_environment(self):
        programs.need("numpy")
        files = [self.authority.sign(f"worker{i}") for i in range(2)]
        with programs.Programs() as c:
            for worker in c.workers(PROGRAM, 2, each=lambda i: {
                    "POSEIDON_TLS_CERT": files[i][0], "POSEIDON_TLS_KEY": files[i][1], "POSEIDON_TLS_CA": self.authority.file}):
                self.assertEqual(worker.wait(), 0, worker)
                self.assertIn("mean 1.5", worker.output, worker)


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-graph")
    cluster.main()
