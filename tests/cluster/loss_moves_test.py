# tests/cluster/loss_moves_test.py - a node is killed or frozen while others join, leave or recover; the others go on, and no bit is lost.
#
# A loss that comes a little later, on a busy machine, meets the next phase, and has to end as well.
import signal

import cluster
import loss_run
import view_oracle
from loss_run import FROZEN, KILLED, LONG, LossRun


class LossMoves(LossRun):
    def test_while_nodes_gather_and_another_one_comes(self):
        for survive in (0, 1):
            for how in (KILLED, FROZEN):
                with self.subTest(how=how, survive=survive), cluster.Cluster() as self.cluster:
                    first = self.first(3, survive=survive)
                    lost = self.join(self.address)
                    first.wait_for("worker 1 joined from")
                    loss_run.lose(lost, how)
                    first.wait_for("worker 1 has gone before the run began: .*; waiting for 2 more nodes")
                    others = [self.join(self.address) for _ in range(2)]
                    first.wait_for('"event": ?"progress"')
                    self.assertEqual(view_oracle.views_of(first), [(0, 3)])
                    self.stop_and_check(first)
                    self.assertEqual([node.wait() for node in others], [0, 0], first)
                    lost.kill()

    def test_while_the_first_view_forms(self):
        for how in (KILLED, FROZEN):
            with self.subTest(how=how), cluster.Cluster() as self.cluster:
                first = self.first(3)
                lost = self.join(self.address, rejoins=True)
                first.wait_for("worker 1 joined from")
                lost.signal(signal.SIGSTOP)  # so that the view with it cannot begin
                other = self.join(self.address)
                first.wait_for("results: ")  # it has told the view, and builds its part
                if how == KILLED:
                    lost.signal(signal.SIGKILL)
                first.wait_for("worker 1, which was about to join, has gone")
                first.wait_for('"event": ?"progress"')
                self.assertEqual(view_oracle.views_of(first), [(0, 2)])
                if how == FROZEN:
                    lost.signal(signal.SIGCONT)  # it comes back by itself
                back = self.join(self.address) if how == KILLED else lost
                first.wait_for('"event": ?"view".*"members": ?.0, ?2, ?3.')
                self.stop_and_check(first)
                self.assertEqual([node.wait() for node in (other, back)], [0, 0], first)

    def test_while_a_node_joins_the_member_dies_or_freezes(self):
        def body(how, seat):
            nodes = self.begin(3, iter_size=LONG)
            newcomer = self.join(self.address)
            nodes[0].wait_for("worker 3 is ready to join")
            loss_run.lose(nodes[seat], how)  # in the iteration that all finish first
            others = [n for n in range(3) if n != seat]
            leader = nodes[others[0]]
            joined = newcomer.wait_for(r"joined: worker (\d+) of (\d), from iteration (\d+)").groups()
            self.assertIn(joined[1], ("3", "4"))  # 4: on a busy machine the view with all of them has begun before the loss
            after = self.view(leader, [*others, int(joined[0])])
            self.trained(leader, after["first_clock"])
            self.stop_and_check(leader, as_nodes=True)
            self.assertEqual(newcomer.wait(), 0, newcomer)
        self.in_each_way(body)

    def test_while_a_node_joins_it_freezes_and_a_member_is_lost(self):
        def body(how, seat):
            nodes = self.begin(4, iter_size=LONG)
            newcomer = self.join(self.address)
            nodes[0].wait_for("worker 4 is ready to join")
            newcomer.signal(signal.SIGSTOP)  # so that the view with it cannot begin
            self.others_go_on(nodes, how, seat, as_nodes=True)
        self.in_each_way(body)

    def test_while_a_node_leaves(self):
        def body(how, seat):
            nodes = self.begin(4, iter_size=LONG)
            nodes[3].signal(signal.SIGTERM)
            nodes[3].wait_for("leaving: the other nodes go on without this one")
            loss_run.lose(nodes[seat], how)
            others = [n for n in range(3) if n != seat]
            leader = nodes[others[0]]
            after = self.view(leader, others)
            self.assertEqual(nodes[3].wait(), 143, nodes[3])
            self.trained(leader, after["first_clock"])
            self.stop_and_check(leader, as_nodes=True)
        self.in_each_way(body)

    def test_two_neighbours_at_once_with_two_copies_of_the_state(self):
        for lost in ((1, 2), (0, 1)):
            with self.subTest(lost=lost), cluster.Cluster() as self.cluster:
                nodes = self.begin(5, survive=2)
                for seat in lost:
                    nodes[seat].kill()
                others = [n for n in range(5) if n not in lost]
                view = self.view(nodes[others[0]], others)
                self.trained(nodes[others[0]], view["first_clock"] + 1)
                self.stop_and_check(nodes[others[0]])

    def test_another_one_is_lost_while_the_others_recover(self):
        def body(how, seat):
            nodes = self.begin(5, iter_size=LONG)
            nodes[2].kill()  # its copies are on worker 3, those of worker 0 on worker 1, those of worker 4 on worker 0
            nodes[1].wait_for("worker 2 .*(closed the connection|is lost)")
            loss_run.lose(nodes[seat], how)
            others = [n for n in range(5) if n not in (2, seat)]
            leader = nodes[others[0]]
            view = self.view(leader, others)
            self.trained(leader, view["first_clock"])
            self.stop_and_check(leader, as_nodes=True)
        self.in_each_way(body, seats=(0, 4))


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
