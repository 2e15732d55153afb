# tests/cluster/loss_phases_test.py - a node is killed or frozen in each phase of a run; the others go on, and no bit is lost.
#
# What is hit lasts long enough to be seen: a test phase of thousands of batches, an iteration of hundreds of micro-batches, a snapshot
# after each iteration. A loss that comes a little later meets the next phase, and has to end as well.
import json
import signal

import cluster
import loss_run
import small_run
import view_oracle
from loss_run import FROZEN, KILLED, LossRun
from web_page import PAGE, text_of

LONG = 200            # micro-batches of an iteration: some tenths of a second
TEST_BATCHES = 6000   # likewise
# Nothing in it jumps, so that a last bit stays one (routes_test.py).
SMOOTH = small_run.NET.replace("pool: MAX", "pool: AVE").replace('"ReLU"', '"TanH"')


class LossPhases(LossRun):
    def others_go_on(self, nodes, how, seat, as_nodes=False, wakes=False, check=None):
        """The node in this seat is lost, and the others train on to an end that `check` compares; without it the oracle does."""
        loss_run.lose(nodes[seat], how)
        others = [n for n in range(len(nodes)) if n != seat]
        views = [self.view(nodes[n], others) for n in others]
        self.assertEqual(len({(v["epoch"], v["first_clock"], v["first_sample"]) for v in views}), 1, views)
        leader, last = nodes[others[0]], nodes[others[-1]]
        self.trained(leader, views[0]["first_clock"])
        if check is None:
            self.stop_and_check(leader, as_nodes)
        else:
            leader.stop()
            check(leader)
        self.assertEqual(last.wait(), 0, last)
        if how == FROZEN and wakes:
            self.wakes_and_ends(nodes[seat])

    def all_compute(self, nodes):
        """Waits until each node computes in its first iteration: so each has the first values."""
        for node in nodes:
            node.wait_for('"event": ?"view"')
        before = [loss_run.cpu_seconds(node) for node in nodes]
        cluster.wait_until(lambda: all(loss_run.cpu_seconds(n) > b + 0.1 for n, b in zip(nodes, before)), "all nodes compute")

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

    def test_while_all_train_and_the_frozen_node_wakes(self):
        self.in_each_way(lambda how, seat: self.others_go_on(self.begin(3), how, seat, wakes=True))

    def test_in_the_first_iteration(self):
        def body(how, seat):
            nodes = self.begin(3, trains=False, iter_size=LONG)
            self.all_compute(nodes)
            self.others_go_on(nodes, how, seat, as_nodes=True)
        self.in_each_way(body)

    def begin_to_test(self, **of_solver):
        """Three nodes that have begun the test phase before iteration 20."""
        more = f"test_iter: {TEST_BATCHES} test_interval: 20 test_initialization: false"
        nodes = self.begin(3, "--web", "127.0.0.1:0", more=more, **of_solver)
        page = nodes[0].wait_for(PAGE)[1]
        cluster.wait_until(lambda: json.loads(text_of(page + "/api/status.json"))["testing"] is not None, "a test phase")
        return nodes

    def test_in_a_test_phase_which_is_run_again(self):
        def body(how, seat):
            nodes = self.begin_to_test()
            loss_run.lose(nodes[seat], how)
            others = [n for n in range(3) if n != seat]
            leader = nodes[others[0]]
            self.assertIn(self.view(leader, others)["first_clock"], (19, 20))  # 19: one of them had not all of version 20
            found = json.loads(leader.wait_for(r'^(.*"event": ?"test".*)$', since=len(leader.lines) if seat else 0)[1])
            self.assertEqual(found["clock"], 20)
            self.trained(leader, 20)
            self.stop_and_check(leader)
        self.in_each_way(body)

    def test_where_a_snapshot_follows_each_iteration(self):
        def body(how, seat):
            nodes = self.begin(3, more="snapshot: 1")
            self.trained(nodes[0], 3)
            self.others_go_on(nodes, how, seat)
            files = sorted(self.cluster.folder.glob("s_iter_*.caffemodel"))
            for file in files:
                self.assertTrue(cluster.weights(file), file)
            # Not the last one alone is of the run: none is of an iteration that was trained again. The oracle writes each, too.
            for file in files:
                right = list(self.cluster.folder.glob(f"chain*_iter_{file.stem.rsplit('_', 1)[1]}.caffemodel"))
                self.assertEqual(len(right), 1, file)
                cluster.assert_same_weights(right[0], file)
            # The first node may have been killed between the two files of one snapshot.
            self.assertLessEqual(sum(not file.with_suffix(".solverstate").exists() for file in files), 1 if seat == 0 else 0, files)
        self.in_each_way(body)

    def test_where_routes_change_at_each_iteration(self):
        def body(how, seat):
            routes = self.cluster.folder / "routes"
            routes.write_text("".join(f"@{clock} ip1 {'sfb' if clock % 2 else 'ps'}\n" for clock in range(1, 2000)))
            self.ROUTES = routes
            nodes = self.begin(3, text=SMOOTH)
            self.trained(nodes[0], 5)
            self.others_go_on(nodes, how, seat, check=self.equal_to_rounding)
        self.in_each_way(body)

    def equal_to_rounding(self, node):
        snapshot = self.newest()
        end = int(snapshot.stem.rsplit("_", 1)[1])
        views = view_oracle.views_of(node)
        views = [v for before, v in zip([(0, 0), *views], views) if v[0] < end and v[1] != before[1]]  # other members, not other routes
        apart = small_run.deviations(view_oracle.chain(self.cluster, self.solver, views, end), snapshot, 1e-30)
        self.assertLess(max(apart.values()), 1e-4, apart)

    def test_while_a_node_joins_the_member_dies_or_freezes(self):
        def body(how, seat):
            nodes = self.begin(3, iter_size=LONG)
            newcomer = self.join(self.address)
            nodes[0].wait_for("worker 3 is ready to join")
            loss_run.lose(nodes[seat], how)  # in the iteration that all finish first
            others = [n for n in range(3) if n != seat]
            leader = nodes[others[0]]
            joined = newcomer.wait_for(r"joined: worker (\d+) of (\d), from iteration (\d+)").groups()
            self.assertEqual(joined[1], "3")
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

    def ends(self, nodes, how, seat, iterations, as_nodes=False):
        loss_run.lose(nodes[seat], how)
        others = [nodes[n] for n in range(len(nodes)) if n != seat]
        self.assertEqual([node.wait() for node in others], [0] * len(others), others[0])
        self.assertEqual(self.newest(), small_run.snapshot_of(self.cluster.folder, "s", iterations))
        self.check(others[0], as_nodes)

    def test_in_the_last_iteration(self):
        def body(how, seat):
            nodes = self.begin(3, iter_size=LONG, iterations=3)
            self.trained(nodes[0], 1)
            self.ends(nodes, how, seat, 3, as_nodes=True)
        self.in_each_way(body)

    def test_in_the_test_after_the_last_iteration(self):
        self.in_each_way(lambda how, seat: self.ends(self.begin_to_test(iterations=20), how, seat, 20))

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
