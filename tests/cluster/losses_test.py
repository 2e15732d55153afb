# tests/cluster/losses_test.py - nodes are killed while all train, and the others train on, bit for bit.
import cluster
import loss_run


class Losses(loss_run.LossRun):
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
        newcomer = self.join(self.address_of(nodes[1]))
        self.view(nodes[1], [1, 2, 3])
        nodes[2].kill()
        self.view(newcomer, [1, 3])
        self.stop_and_check(nodes[1])
        self.assertEqual(newcomer.wait(), 0, newcomer)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
