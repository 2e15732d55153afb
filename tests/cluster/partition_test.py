# tests/cluster/partition_test.py - nodes that are stopped or asked too late: one side goes on, the others wait or come back.
import signal

import cluster
import loss_run


class Partition(loss_run.LossRun):
    OPTIONS = ()

    def freeze(self, node):
        node.signal(signal.SIGSTOP)
        self.addCleanup(node.signal, signal.SIGCONT)

    def test_a_frozen_first_node_is_left_out_and_comes_back(self):
        nodes = self.begin(3)
        self.freeze(nodes[0])
        for n in (1, 2):
            self.assertRegex(self.view(nodes[n], [1, 2])["changed"], r"^worker 0 \(.*\) is lost$")
        nodes[0].signal(signal.SIGCONT)
        nodes[0].wait_for("joining them again")
        for node in nodes:
            self.view(node, [1, 2, 3])
        self.stop_and_check(nodes[1])
        for node in (nodes[0], nodes[2]):
            self.assertEqual(node.wait(), 0, node)

    def test_of_two_the_younger_one_waits_for_a_frozen_first_one_and_nothing_is_lost(self):
        nodes = self.begin(2)
        self.freeze(nodes[0])
        nodes[1].wait_for("paused: this node hears 1 of 2 members of view 1")
        nodes[0].signal(signal.SIGCONT)
        # Whoever hears first, both train on: in a view of both, or the younger one comes back.
        again = nodes[1].wait_for(r'"event": ?"view".*"epoch": ?[2-9].*"members": ?\[0, ?([12])\]')
        member = int(again[1])
        self.view(nodes[0], [0, member])
        self.stop_and_check(nodes[0])
        self.assertEqual(nodes[1].wait(), 0, nodes[1])

    def test_go_on_ends_the_wait_and_the_other_one_comes_back(self):
        nodes = self.begin(2)
        self.freeze(nodes[0])
        nodes[1].wait_for("paused: this node hears 1 of 2 members of view 1")
        done = cluster.run("poseidon-node", "go-on", "--at", self.address_of(nodes[1]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"worker 1 at .* has been told that the members it does not hear have ended")
        self.view(nodes[1], [1])
        nodes[0].signal(signal.SIGCONT)
        nodes[0].wait_for("joining them again")
        self.view(nodes[1], [1, 2])
        self.stop_and_check(nodes[1])
        self.assertEqual(nodes[0].wait(), 0, nodes[0])

    def test_with_no_rejoin_it_ends(self):
        nodes = self.begin(3, "--no-rejoin")
        self.freeze(nodes[0])
        self.view(nodes[1], [1, 2])
        nodes[0].signal(signal.SIGCONT)
        self.assertEqual(nodes[0].wait(), 3, nodes[0])
        self.assertIn("without", nodes[0].output)
        self.stop_and_check(nodes[1])


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
