# tests/cluster/losses_test.py - nodes are killed while all train, and the others train on, bit for bit.
import unittest

import cluster
import loss_run
import small_run
import view_oracle
from loss_phases_test import SMOOTH


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

    def test_where_values_travel_rounded_any_is_killed_and_another_one_joins(self):
        for killed, wire in loss_run.crossed(self.id(), range(3), ("bfloat16", "int8", "int4")):
            with self.subTest(wire, killed=killed):
                rounded = ("--wire", wire)
                nodes = self.begin(3, *rounded, norm=True, rule='type: "Adam" lr_policy: "fixed" momentum: 0.9')
                nodes[killed].kill()
                others = [n for n in range(3) if n != killed]
                leader = nodes[others[0]]
                self.trained(leader, self.view(leader, others)["first_clock"] + 2)
                newcomer = self.join(self.address_of(nodes[1]) if killed != 1 else self.address)
                self.trained(leader, self.view(leader, [*others, 3])["first_clock"] + 2)
                leader.stop()
                self.assertEqual([newcomer.wait(), nodes[others[1]].wait()], [0, 0], newcomer)
                view_oracle.check(self.cluster, self.solver, view_oracle.views_of(leader), self.newest(),
                                  self.DEVICES, as_nodes=True, options=rounded)
                for file in self.cluster.folder.glob("s_iter_*"):
                    file.unlink()

    def test_where_values_travel_rounded_one_of_two_goes_on_alone(self):
        for killed, wire in loss_run.crossed(self.id(), range(2), ("bfloat16", "int8", "int4")):
            with self.subTest(wire, killed=killed):
                nodes = self.begin(2, "--wire", wire)
                nodes[killed].kill()
                left = nodes[1 - killed]
                self.trained(left, self.view(left, [1 - killed])["first_clock"] + 2)
                left.stop()


PLUGIN = cluster.BIN / "libposeidon_gpu_simulated.so"


@unittest.skipUnless(PLUGIN.exists(), "the plug-in for simulated GPUs has not been built")
class LossesOnGpus(loss_run.LossRun):
    DEVICES = ("0", "--math", "fp32", "--gpu-plugin", PLUGIN)

    def test_any_of_three_is_killed_and_another_one_joins(self):
        for killed in 0, 2:
            with self.subTest(killed=killed):
                nodes = self.begin(3, norm=True, more="snapshot: 20")
                nodes[killed].kill()
                others = [n for n in range(3) if n != killed]
                self.view(nodes[others[0]], others)
                newcomer = self.join(self.address_of(nodes[1]))
                self.view(nodes[others[0]], [*others, 3])
                self.trained(nodes[others[0]], self.view(newcomer, [*others, 3])["first_clock"] + 2)
                self.stop_and_check(nodes[others[0]])
                self.assertEqual([newcomer.wait(), nodes[others[1]].wait()], [0, 0], newcomer)
                for file in self.cluster.folder.glob("s_iter_*"):
                    file.unlink()

    def test_layers_that_send_factors_go_on_too(self):
        self.ROUTES = "sfb"
        nodes = self.begin(3, text=SMOOTH)
        nodes[1].kill()
        self.view(nodes[0], [0, 2])
        self.trained(nodes[0], self.view(nodes[2], [0, 2])["first_clock"] + 2)
        nodes[0].stop()
        self.assertEqual(nodes[2].wait(), 0, nodes[2])
        views = view_oracle.views_of(nodes[0])
        end = int(self.newest().stem.rsplit("_", 1)[1])
        chain = view_oracle.chain(self.cluster, self.solver, views, end, self.DEVICES)
        self.assertLess(max(small_run.deviations(chain, self.newest(), 1e-2).values()), 1e-4)

    def test_without_the_option_a_lost_node_ends_the_run(self):
        nodes = self.begin(2, survive=None)
        nodes[1].kill()
        self.assertEqual(nodes[0].wait(), 3, nodes[0])


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
