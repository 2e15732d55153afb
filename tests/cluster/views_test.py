# tests/cluster/views_test.py - nodes join and leave while training, and what is trained stays what one process trains.
import json
import signal
import unittest

import cluster
import small_run
import view_oracle


class Views(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def begin(self, *options, nodes=1, devices="cpu:1", **of_solver):
        """The first node, which tells events, and where others join it. It trains until it is stopped, but for `iterations`.

        Returns the others, each with the number of its place in the list, from 1 on."""
        of_solver.setdefault("iterations", cluster.ENDLESS)
        of_solver.setdefault("lr", 0.002)  # images are noise: it must not diverge however long a run lasts
        self.solver = small_run.solver(self.cluster.folder, "s", **of_solver)
        words = [*([] if "--routes" in options else ["--routes", "ps"]), "--devices", devices]
        self.first = self.cluster.node("--solver", self.solver, "--listen", "127.0.0.1:0", "--nodes", nodes, "--json", *words, *options)
        self.address = self.first.wait_for(r"listening on (127.0.0.1:\d+)")[1]
        others = []
        for worker in range(1, nodes):
            others.append(self.join(devices=devices))
            self.first.wait_for(f"worker {worker} joined from")
        return others

    def join(self, *options, to=None, devices="cpu:1"):
        return self.cluster.node("--join", to or self.address, "--devices", devices, *options)

    def view(self, node, members):
        """Waits until a view of so many members has begun on a node that tells events. Returns the event."""
        line = node.wait_for(rf'^(.*"event": ?"view".*"members": ?\[(\d+, ?){{{members - 1}}}\d+\].*)$')[1]
        return json.loads(line)

    def stop_and_check(self, as_nodes=False, devices="cpu:1"):
        """Ends the run with its snapshot, which has to be that of the chain of its views."""
        self.first.stop()
        newest = max(self.cluster.folder.glob("s_iter_*.caffemodel"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
        view_oracle.check(self.cluster, self.solver, view_oracle.views_of(self.first), newest,
                          devices, as_nodes)

    def test_a_run_of_one_node_is_joined_by_a_second_and_a_third(self):
        self.begin()
        self.first.wait_for('"event": ?"progress"')
        for members in (2, 3):
            joiner = self.join()
            joiner.wait_for(r"^joined: worker \d of \d, from iteration \d+ on")
            event = self.view(self.first, members)
            self.assertIn("joined", event["changed"])
            joiner.wait_for(rf"^view {members}: ")
        self.stop_and_check()
        for node in self.cluster.nodes[1:3]:
            self.assertEqual(node.wait(), 0, node)

    def test_three_nodes_that_join_at_the_same_time_train_with_the_others(self):
        self.begin(nodes=2)
        self.first.wait_for('"event": ?"progress"')
        for node in [self.join() for _ in range(3)]:
            node.wait_for("^joined: ")
        self.view(self.first, 5)
        self.stop_and_check()

    def leaves(self, ask, code):
        """One of three nodes leaves; `ask` is given it and its address."""
        one, two = self.begin(nodes=3)
        self.first.wait_for('"event": ?"progress"')
        worker, address = one.wait_for(r"^joined: worker (\d) of 3; this node listens on (\S+)").groups()
        ask(one, address)
        self.assertEqual(one.wait(), code, one)
        one.wait_for(r"^left the run before iteration \d+; 2 nodes go on")
        self.assertRegex(self.view(self.first, 2)["changed"], rf"^worker {worker} \(.*\) left$")
        two.wait_for(rf"^view 2: worker {worker} .* left; 2 nodes train")
        self.stop_and_check()

    def test_a_member_that_gets_sigterm_leaves_and_the_others_go_on(self):
        self.leaves(lambda node, address: node.signal(signal.SIGTERM), 143)

    def test_a_member_that_is_asked_to_leave_by_a_verb_leaves(self):
        def ask(node, address):
            asked = cluster.run("poseidon-node", "leave", "--at", address)
            self.assertEqual(asked.returncode, 0, asked.stderr)
            self.assertRegex(asked.stdout, r"worker \d at .* has been asked to leave")
        self.leaves(ask, 0)

    def test_the_first_node_leaves_and_the_second_leads(self):
        others = self.begin(nodes=3, more="snapshot: 20")
        one, two = sorted(others, key=lambda n: n.wait_for(r"^joined: worker (\d)")[1])
        self.first.wait_for('"event": ?"progress"')
        self.first.signal(signal.SIGTERM)
        self.assertEqual(self.first.wait(), 143, self.first)
        one.wait_for("^this node leads from now on")
        one.wait_for("^view 2: worker 0 .* left; 2 nodes train")
        one.wait_for("^iteration .*loss")
        one.stop()
        self.assertEqual(two.wait(), 0, two)

    def test_a_newcomer_may_dial_any_member_and_comes_while_another_leaves(self):
        one, two = self.begin(nodes=3)
        self.first.wait_for('"event": ?"progress"')
        at = one.wait_for("this node listens on (\\S+)")[1]
        newcomer = self.join(to=f"127.0.0.1:1,{at}")
        newcomer.wait_for("is a member; the leader listens at " + self.address)
        two.signal(signal.SIGTERM)
        newcomer.wait_for("^joined: worker [34] of ")  # where it has dialed the one that leaves it tries again, under the next number
        self.assertEqual(two.wait(), 143, two)
        newcomer.wait_for(r"^view \d+: ")
        self.stop_and_check()

    def test_newcomers_that_die_before_the_view_with_them_cost_nobody_anything(self):
        schedule = self.cluster.folder / "views"
        schedule.write_text(f"{cluster.ENDLESS - 1} 3\n")  # so that none of them is in time
        self.begin("--views", schedule, nodes=2)
        for seat in (2, 3, 4):
            newcomer = self.join()
            self.first.wait_for(f'"worker {seat} is ready to join"')
            newcomer.kill()
            self.first.wait_for(f'"worker {seat}, which was about to join, has gone')
        self.stop_and_check()

    def test_a_newcomer_that_dies_when_the_view_with_it_was_told_is_waited_for_no_longer(self):
        schedule = self.cluster.folder / "views"
        schedule.write_text("5 4\n")
        self.begin("--views", schedule, nodes=2)
        frozen = self.join()
        self.first.wait_for("worker 2 is ready to join")
        frozen.signal(signal.SIGSTOP)  # so that it can be told the view, and cannot get ready for it
        self.join().wait_for("^joined: worker 3 of 4")
        frozen.kill()
        self.first.wait_for("worker 2, which was about to join, has gone")
        self.join()
        self.assertEqual(self.view(self.first, 4)["members"], [0, 1, 3, 4])
        self.stop_and_check()

    def grows_and_shrinks(self, *options, check=True, as_nodes=False, devices="cpu:1", **of_solver):
        """1 -> 2 -> 3 -> 2 nodes. What the options and the solver ask for has to survive it."""
        self.begin(*options, devices=devices, **of_solver)
        self.first.wait_for('"event": ?"progress"')
        one = self.join(devices=devices)
        self.view(self.first, 2)
        two = self.join(devices=devices)
        self.view(self.first, 3)
        one.signal(signal.SIGTERM)
        self.assertEqual(one.wait(), 143, one)
        last = two.wait_for(r"^view \d+: worker 1 .* left; 2 nodes train from iteration (\d+)")
        self.first.wait_for(f'"clock": ?{int(last[1]) + 3},')
        if check:
            self.stop_and_check(as_nodes, devices)
        else:
            self.first.stop()
        self.assertEqual(two.wait(), 0, two)

    def test_running_statistics_and_clipped_gradients_survive_changes(self):
        self.grows_and_shrinks(norm=True, more="clip_gradients: 1.5")

    def test_adam_and_its_two_arrays_of_state_survive_changes(self):
        self.grows_and_shrinks(rule='type: "Adam" lr_policy: "fixed" momentum: 0.9 momentum2: 0.999', lr=0.001)

    def test_copies_of_solver_state_change_nothing(self):
        self.grows_and_shrinks("--survive", "1", norm=True, more="clip_gradients: 1.5 snapshot: 7")

    def test_two_copies_of_two_arrays_of_state_change_nothing(self):
        self.grows_and_shrinks("--survive", "2", rule='type: "Adam" lr_policy: "fixed" momentum: 0.9 momentum2: 0.999', lr=0.001)

    def test_copies_of_solver_state_are_kept_with_factors_and_staleness(self):
        self.grows_and_shrinks("--survive", "2", "--staleness", "1", "--routes", "sfb", check=False, hidden=256)

    def test_micro_batches_survive_changes(self):
        # A node adds its own micro-batches first, so one process with twice as many adds in another order.
        self.grows_and_shrinks(iter_size=2, as_nodes=True)

    def test_several_replicas_survive_changes(self):
        self.grows_and_shrinks(devices="cpu:2")

    def test_snapshots_are_written_through_changes(self):
        self.grows_and_shrinks(more="snapshot: 7")

    def test_factors_survive_changes(self):
        self.grows_and_shrinks("--routes", "sfb", check=False, hidden=256)
        self.assertIn("ip1 to factor_broadcast", self.first.output)

    def test_staleness_survives_changes(self):
        self.grows_and_shrinks("--staleness", "1", check=False)

    def test_the_same_views_from_a_file_train_the_same_bits_again(self):
        schedule = self.cluster.folder / "views"
        schedule.write_text("0 1\n5 3 # two join\n12 2\n20 4\n33 1\n")
        others = {}

        def run(prefix, *options):
            solver = small_run.solver(self.cluster.folder, prefix, iterations=40, lr=0.002, more="snapshot: 8")
            first = self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--views", schedule, "--json", "--devices", "cpu:1", *options)
            address = first.wait_for(r"listening on (127.0.0.1:\d+)")[1]
            others[prefix] = [self.cluster.node("--join", address, "--devices", "cpu:1") for _ in range(4)]
            self.assertEqual(first.wait(), 0, first)
            for other in others[prefix]:
                other.wait()
            self.assertEqual(view_oracle.views_of(first), [(0, 1), (5, 3), (12, 2), (20, 4), (33, 1)])
            return solver, small_run.snapshot_of(self.cluster.folder, prefix, 40)

        (solver, one), (_, two) = run("a", "--routes", "ps", "--survive", 1), run("b", "--routes", "sfb")
        view_oracle.check(self.cluster, solver, [(0, 1), (5, 3), (12, 2), (20, 4), (33, 1)], one)
        _, again = run("c", "--routes", "sfb", "--survive", 2)
        cluster.assert_same_weights(two, again)
        cluster.assert_same_state(two.with_suffix(".solverstate"), again.with_suffix(".solverstate"))
        self.assertEqual(sum("left the run before iteration" in node.output for node in others["a"]), 4)

    def test_ctrl_c_ends_a_run_that_waits_for_nodes_of_its_schedule(self):
        schedule = self.cluster.folder / "views"
        schedule.write_text("3 2\n")
        self.begin("--views", schedule)
        self.first.wait_for('"event": ?"progress".*"clock": ?2,')
        self.first.stop()
        self.assertEqual(small_run.snapshot_of(self.cluster.folder, "s", 3).suffix, ".caffemodel")

    def joins_and_leaves(self, *options):
        """2 -> 3 -> 2 nodes, of which a first one leaves."""
        others = self.begin(*options, nodes=2)
        self.first.wait_for('"event": ?"progress"')
        newcomer = self.join()
        newcomer.wait_for("^joined: ")
        event = self.view(self.first, 3)
        self.first.wait_for(f'"clock": ?{event["first_clock"] + 2},')
        others[0].signal(signal.SIGTERM)
        self.assertEqual(others[0].wait(), 143, others[0])
        newcomer.wait_for("^view 3: ")
        self.first.stop()

    def test_reduced_formats_survive_changes(self):
        for wire in "bfloat16", "int8", "int4":
            with self.subTest(wire):
                self.joins_and_leaves("--wire", wire)
                self.assertIn("--wire rounds what travels", self.first.output)

    def test_shares_of_the_batch_survive_changes(self):
        self.joins_and_leaves("--batch-share", "2,1")

    def test_all_nodes_leave_together_which_is_the_end_of_the_run_with_its_snapshot(self):
        others = self.begin(nodes=3)
        self.first.wait_for('"event": ?"progress"')
        for node in [*others, self.first]:
            node.signal(signal.SIGTERM)
        for node in [self.first, *others]:
            self.assertEqual(node.wait(), 143, node)
        self.assertTrue(list(self.cluster.folder.glob("s_iter_*.solverstate")), self.first)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
