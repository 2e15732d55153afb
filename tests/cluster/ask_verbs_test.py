# tests/cluster/ask_verbs_test.py - leave, go-on and members where nobody can answer, or the one who is asked does not do it.
import socket
import unittest

import cluster
import small_run

ASKS = {"leave": "--at", "go-on": "--at", "members": "--attach", "status": "--attach"}


class AskVerbs(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.token = self.cluster.folder / "token"
        self.token.write_text("of this cluster\n")
        self.token.chmod(0o600)

    def begin(self, *options):
        solver = small_run.solver(self.cluster.folder, "s", iterations=cluster.ENDLESS, lr=0.002)
        node = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0", "--devices", "cpu:1", *options)
        address = node.wait_for(cluster.LISTENING)[1]
        page = node.wait_for(r"^page at http://(\S+)/")[1]
        node.wait_for("loss")
        return node, address, page

    def asked(self, verb, at, said, *words):
        with self.subTest(verb=verb, said=said):
            done = cluster.run("poseidon-node", verb, ASKS[verb], at, *words)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(f"poseidon-node {verb}: ", done.stderr)
            self.assertIn(said, done.stderr)
            self.assertNotIn("Start the first node", done.stderr)  # words for a node that joins
            self.assertNotIn("Give every node", done.stderr)

    def test_a_dead_address(self):
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            at = f"127.0.0.1:{reserved.getsockname()[1]}"
            for verb in ("leave", "go-on"):
                self.asked(verb, at, f"no node listens at {at}")
            for verb in ("members", "status"):
                self.asked(verb, at, f"no page at {at}")

    def test_a_wrong_token_and_the_wrong_kind_of_address(self):
        node, address, page = self.begin("--token-file", self.token)
        other = self.cluster.folder / "other"
        other.write_text("of another cluster\n")
        for verb in ("leave", "go-on"):
            self.asked(verb, address, f"the node at {address} has another token. --token-file names", "--token-file", other)
            self.asked(verb, address, f"the node at {address} wants a token. --token-file names")
            self.asked(verb, page, f"what listens at {page} is no node of a run", "--token-file", self.token)
        for verb in ("members", "status"):
            self.asked(verb, address, address)
        node.stop()

    def test_a_node_that_does_not_do_it_says_why(self):
        node, address, _ = self.begin("--token-file", self.token)
        self.asked("leave", address, f"worker 0 at {address} does not leave: this node cannot leave: it is the last one",
                   "--token-file", self.token)
        self.asked("go-on", address, f"worker 0 at {address} does not go on: this node waits for no lost member", "--token-file", self.token)
        self.assertIsNone(node.process.poll(), node)
        node.stop()

    def test_a_machines_own_name_that_only_it_can_reach_is_said(self):
        name = socket.gethostname()
        try:
            bound = socket.gethostbyname(name)
        except OSError:
            self.skipTest("this machine does not know its own name")
        if not bound.startswith("127."):
            self.skipTest("this machine's name is an address that others reach")
        solver = small_run.solver(self.cluster.folder, "s", iterations=2)
        node = self.cluster.node("--solver", solver, "--listen", f"{name}:0", "--token-file", self.token, "--devices", "cpu:1")
        self.assertEqual(node.wait(), 0, node)
        self.assertRegex(node.output, rf"listening on {name}:\d+ \({bound}\); others may join")
        self.assertIn(f"the name {name} means {bound}, so no other machine can reach this node", node.output)


if __name__ == "__main__":
    cluster.main()
