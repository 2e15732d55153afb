# tests/cluster/losses_test.py - nodes are killed while all train, and the others train on, bit for bit.
import json
import unittest

import cluster
import small_run
import view_oracle


class Losses(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def begin(self, nodes, *options, **of_solver):
        """Nodes in the order of their numbers, which train; each tells its events."""
        self.solver = small_run.solver(self.cluster.folder, "s", **{"iterations": cluster.ENDLESS, "lr": 0.002, **of_solver})
        first = self.cluster.node("--solver", self.solver, "--listen", "127.0.0.1:0", "--nodes", nodes, "--devices", "cpu:1", "--json",
                                  "--routes", "ps", "--survive", 1, *options)
        self.address = first.wait_for(r"listening on (127.0.0.1:\d+)")[1]
        all_nodes = [first]
        for worker in range(1, nodes):
            all_nodes.append(self.join(self.address))
            first.wait_for(f"worker {worker} joined from")
        first.wait_for('"event": ?"progress"')
        return all_nodes

    def join(self, address):
        return self.cluster.node("--join", address, "--devices", "cpu:1", "--json")

    def view(self, node, members):
        """Waits until a view of these members has begun. Returns the event."""
        wanted = r"\[" + ", ?".join(map(str, members)) + r"\]"
        return json.loads(node.wait_for(rf'^(.*"event": ?"view".*"members": ?{wanted}.*)$')[1])

    def stop_and_check(self, node):
        """`node` has been there from the beginning, and ends the run with its snapshot."""
        node.stop()
        newest = max(self.cluster.folder.glob("s_iter_*.caffemodel"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
        view_oracle.check(self.cluster, self.solver, view_oracle.views_of(node), newest)

    def test_any_of_three_is_killed_and_the_others_train_on(self):
        for killed in range(3):
            with self.subTest(killed=killed):
                nodes = self.begin(3)
                nodes[killed].kill()
                others = [n for n in range(3) if n != killed]
                for n in others:
                    self.assertRegex(self.view(nodes[n], others)["changed"], rf"^worker {killed} \(.*\) is lost$")
                self.stop_and_check(nodes[others[0]])
                self.assertEqual(nodes[others[1]].wait(), 0, nodes[others[1]])
                for file in self.cluster.folder.glob("s_iter_*"):
                    file.unlink()

    def test_of_two_either_is_killed_and_the_other_trains_on(self):
        for killed in range(2):
            with self.subTest(killed=killed):
                nodes = self.begin(2, rule='type: "Adam" lr_policy: "fixed" momentum: 0.9')
                nodes[killed].kill()
                self.view(nodes[1 - killed], [1 - killed])
                self.stop_and_check(nodes[1 - killed])
                for file in self.cluster.folder.glob("s_iter_*"):
                    file.unlink()

    def test_after_a_loss_another_node_joins_and_one_more_is_lost(self):
        nodes = self.begin(3, more="snapshot: 50")
        nodes[0].kill()
        self.view(nodes[1], [1, 2])
        at = nodes[1].wait_for("this node listens on (\\S+?)\"?,?$")[1].rstrip('"}')
        newcomer = self.join(at)
        self.view(nodes[1], [1, 2, 3])
        nodes[2].kill()
        self.view(newcomer, [1, 3])
        self.stop_and_check(nodes[1])
        self.assertEqual(newcomer.wait(), 0, newcomer)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
