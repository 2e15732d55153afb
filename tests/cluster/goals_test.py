# tests/cluster/goals_test.py - --keep-best and --stop-at: what tests find decides which model is kept, and when training ends.
import json
import unittest

import cluster
import small_run

TESTED = "test_iter: 8 test_interval: 2 snapshot: 2"


class Goals(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.cluster.__enter__()
        self.folder = self.cluster.folder

    def train(self, solver, *options, nodes=1):
        """The events of the first node."""
        of_several = ("--listen", "127.0.0.1:0", "--nodes", nodes) if nodes > 1 else ()
        all_nodes = [self.cluster.node("--solver", solver, "--devices", "cpu:1", "--json", *options, *of_several)]
        if nodes > 1:
            address = all_nodes[0].wait_for(r'"text":"listening on (\S+);')[1]
            all_nodes += [self.cluster.node("--join", address, "--devices", "cpu:1") for _ in range(nodes - 1)]
        for node in all_nodes:
            self.assertEqual(node.wait(), 0, node)
        return [json.loads(line) for line in all_nodes[0].output.splitlines()]

    def found_by(self, events):
        return {e["clock"]: e["outputs"]["loss"] for e in events if e["event"] == "test"}

    def test_the_kept_model_is_the_one_that_was_tested_best(self):
        for nodes in (1, 2):
            with self.subTest(nodes=nodes):
                name = f"best{nodes}"
                solver = small_run.solver(self.folder, name, iterations=8, lr=0.2, more=TESTED)
                found = self.found_by(self.train(solver, "--keep-best", "loss", nodes=nodes))
                self.assertEqual(sorted(found), [0, 2, 4, 6, 8])
                best = min(found, key=found.get)
                kept = sorted(p.name for p in self.folder.glob(f"{name}_best*"))
                self.assertEqual(kept, [f"{name}_best_iter_{best}.{kind}" for kind in ("caffemodel", "solverstate")])
                if best > 0:
                    cluster.assert_same_weights(self.folder / f"{name}_iter_{best}.caffemodel", self.folder / kept[0])

    def test_training_ends_when_a_test_has_found_enough_with_the_model_that_was_tested(self):
        free = small_run.solver(self.folder, "free", iterations=8, lr=0.2, more=TESTED)
        found = self.found_by(self.train(free))
        goal = sorted(found.values())[2]  # in the middle of those that are found
        end = next(clock for clock in sorted(found) if found[clock] <= goal)
        solver = small_run.solver(self.folder, "goal", iterations=8, lr=0.2, more=TESTED)
        events = self.train(solver, "--stop-at", f"loss={goal}")
        self.assertEqual(max(self.found_by(events)), end)
        says = [e["text"] for e in events if e["event"] == "note" and "loss is" in e["text"]]
        self.assertRegex(says[0], r"which is at most .*; training took [\d.]+ s, tests included$")
        if end > 0:
            cluster.assert_same_weights(self.folder / f"free_iter_{end}.caffemodel", self.folder / f"goal_iter_{end}.caffemodel")

    def test_a_goal_that_no_test_can_reach_is_refused_before_training(self):
        solver = small_run.solver(self.folder, "s", more=TESTED)
        untested = small_run.solver(self.folder, "u")
        for path, options, says in [(solver, ("--keep-best", "los"), 'no test net has an output "los". There are loss. Did you mean "loss"?'),
                                    (solver, ("--stop-at", "loss"), 'stop_at "loss" is no goal'),
                                    (untested, ("--stop-at", "loss=1"), 'stop_at "loss=1" needs tests')]:
            node = self.cluster.node("--solver", path, "--devices", "cpu:1", *options)
            self.assertEqual(node.wait(), 2, node)
            self.assertIn(says, "\n".join(node.errors))


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
