# tests/cluster/loss_phases_test.py - a node is killed or frozen in each phase of a run; the others go on, and no bit is lost.
#
# What is hit lasts long enough to be seen: a test phase of thousands of batches, an iteration of many micro-batches, a snapshot
# after each iteration. A loss that comes a little later meets the next phase, and has to end as well.
import http.client
import json
import re

import cluster
import loss_run
import small_run
import view_oracle
from loss_run import LONG, LossRun
from web_page import PAGE, text_of

TEST_BATCHES = 2500  # a tenth of a second
# Nothing in it jumps, so that a last bit stays one (routes_test.py).
SMOOTH = small_run.NET.replace("pool: MAX", "pool: AVE").replace('"ReLU"', '"TanH"')


class LossPhases(LossRun):
    def all_compute(self, nodes):
        """Waits until each node computes in its first iteration: so each has the first values."""
        for node in nodes:
            node.wait_for('"event": ?"view"')
        before = [loss_run.cpu_seconds(node) for node in nodes]
        cluster.wait_until(lambda: all(loss_run.cpu_seconds(n) > b + 0.1 for n, b in zip(nodes, before)), "all nodes compute")

    def test_while_all_train_and_the_frozen_node_wakes(self):
        self.in_each_way(lambda how, seat: self.others_go_on(self.begin(3), how, seat, wakes=True))

    def test_in_the_first_iteration(self):
        def body(how, seat):
            nodes = self.begin(3, trains=False, iter_size=LONG)
            self.all_compute(nodes)
            self.others_go_on(nodes, how, seat, as_nodes=True)
        self.in_each_way(body)

    def begin_to_test(self, **of_solver):
        """Three nodes that have begun the test phase before iteration 20. On a busy machine a short one is over before it is seen: then
        they begin once more, with a longer one."""
        for batches in (TEST_BATCHES, 5 * TEST_BATCHES, 25 * TEST_BATCHES):
            more = f"test_iter: {batches} test_interval: 20 test_initialization: false"
            nodes = self.begin(3, "--web", "127.0.0.1:0", more=more, **of_solver)
            if self.is_seen_to_test(nodes[0]):
                return nodes
            self.cluster.end()
            self.cluster.nodes.clear()
            for file in self.cluster.folder.glob("s_iter_*"):
                file.unlink()
        self.fail(f"a test phase of {batches} batches was over before it was seen")

    def is_seen_to_test(self, node):
        """Whether the page shows the first test phase before it is over."""
        page = node.wait_for(PAGE)[1]
        def is_over():
            return re.search('"event": ?"test"', node.output) or node.process.poll() is not None
        def is_tested():
            try:
                return json.loads(text_of(page + "/api/status.json"))["testing"] is not None
            except (OSError, http.client.HTTPException):  # the run is over, or about to be
                return False
        cluster.wait_until(lambda: is_over() or is_tested(), "a test phase")
        return not is_over()

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


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
