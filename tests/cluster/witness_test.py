# tests/cluster/witness_test.py - two nodes that train and one that only votes: either of the two can be frozen, killed or cut off.
import json
import signal
import unittest

import cluster
import loss_run


class Witness(loss_run.LossRun):
    OPTIONS = ()

    def witness(self, *options):
        return self.cluster.node("--witness", "--join", self.address, "--json", *cluster.HASTY, *options)

    def begin_with_witness(self, *options):
        """Nodes 0 and 1, which train, and witness 2, in view 2."""
        nodes = self.begin(2, *options)
        nodes.append(self.witness())
        for node in nodes[:2]:
            event = self.voted(node, [0, 1], [2])
            self.assertRegex(event["changed"], r"^witness 2 \(127\.0\.0\.1:\d+\) joined$")
            self.assertIn("2 nodes train from iteration", event["text"])
            self.assertIn("with 1 witness", event["text"])
        nodes[2].wait_for("view 2: worker 0 .*, worker 1 .* train from iteration .* and this witness votes")
        return nodes

    def voted(self, node, members, witnesses):
        """Waits until a view of these members and witnesses has begun that is not the first one. Returns the event."""
        def lists(name, seats):
            return rf'"{name}": ?\[' + ", ?".join(map(str, seats)) + r"\]"
        pattern = lists("members", members) + (", ?" + lists("witnesses", witnesses) if witnesses else r', ?"changed": ?"[^"]')
        return json.loads(node.wait_for(rf'^(.*"event": ?"view".*{pattern}.*)$')[1])

    def freeze(self, node):
        node.signal(signal.SIGSTOP)
        self.addCleanup(node.signal, signal.SIGCONT)

    def test_a_frozen_node_of_two_is_left_out_whichever_it_is_and_comes_back(self):
        for seat in (0, 1):
            with self.subTest(seat=seat), cluster.Cluster() as self.cluster:
                nodes = self.begin_with_witness()
                other = 1 - seat
                self.freeze(nodes[seat])
                event = self.voted(nodes[other], [other], [2])
                self.assertRegex(event["changed"], rf"^worker {seat} \(.*\) is lost$")
                nodes[seat].signal(signal.SIGCONT)
                nodes[seat].wait_for("joining them again")
                self.voted(nodes[other], [other, 3], [2])
                self.voted(nodes[seat], [other, 3], [2])
                self.stop_and_check(nodes[other], since=nodes[0])
                self.assertEqual(nodes[seat].wait(), 0, nodes[seat])
                self.assertEqual(nodes[2].wait(), 0, nodes[2])

    def test_a_killed_first_node_is_survived(self):
        nodes = self.begin_with_witness()
        nodes[0].kill()
        self.voted(nodes[1], [1], [2])
        self.stop_and_check(nodes[1])
        self.assertEqual(nodes[2].wait(), 0, nodes[2])

    def test_the_others_go_on_without_the_witness_and_a_frozen_one_comes_back(self):
        nodes = self.begin_with_witness()
        self.freeze(nodes[2])
        for node in nodes[:2]:
            self.assertRegex(self.voted(node, [0, 1], [])["changed"], r"^witness 2 \(.*\) is lost$")
        nodes[2].signal(signal.SIGCONT)
        nodes[2].wait_for("joining them again")
        self.voted(nodes[0], [0, 1], [3])
        nodes[2].kill()
        self.voted(nodes[1], [0, 1], [])
        self.stop_and_check(nodes[0])
        self.assertEqual(nodes[1].wait(), 0, nodes[1])

    def test_it_leaves_when_it_is_asked_to_and_is_listed_while_it_is_there(self):
        nodes = self.begin_with_witness("--web", "127.0.0.1:0")
        page = nodes[0].wait_for(r"page at http://(127\.0\.0\.1:\d+)")[1]
        listed = cluster.run("poseidon-node", "members", "--attach", page)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertRegex(listed.stdout, r"^view 2: 2 nodes and 1 witness, worker 0 leads\n")
        self.assertRegex(listed.stdout, r"\nwitness 2 +127\.0\.0\.1:\d+ +votes")
        at = nodes[2].wait_for(r"this node listens on ([\d.]+:\d+)")[1]
        asked = cluster.run("poseidon-node", "leave", "--at", at)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertRegex(asked.stdout, r"^witness 2 at .* has been asked to leave")
        self.assertEqual(nodes[2].wait(), 0, nodes[2])
        for node in nodes[:2]:
            self.assertRegex(self.voted(node, [0, 1], [])["changed"], r"^witness 2 \(.*\) left$")
        self.stop_and_check(nodes[0])

    def test_a_run_that_no_loss_can_be_survived_in_refuses_it(self):
        first = self.begin(2, survive=0)[0]
        witness = self.witness()
        self.assertEqual(witness.wait(), 2, witness)
        self.assertIn("this run has --survive 0, with which the loss of any node ends it", "\n".join(witness.errors))
        first.stop()


class Words(unittest.TestCase):
    def refused(self, *options):
        done = cluster.run("poseidon-node", "--witness", *options)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        return done.stderr

    def test_what_a_witness_cannot_have_is_refused(self):
        self.assertIn("--witness needs --join HOST:PORT: a witness joins a run, and begins none.", self.refused())
        text = self.refused("--join", "127.0.0.1:1", "--devices", "cpu:2", "--solver", "s.prototxt")
        self.assertRegex(text, r"--witness does not go with --solver, --devices: a witness trains nothing")
        self.assertIn("Leave out that option, or --witness where the node is to train.", self.refused("--join", "127.0.0.1:1", "--web"))


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
