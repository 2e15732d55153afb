# tests/cluster/graph_test.py - the actor graph that poseidon-graph plans is the one that nodes run.
import json
import subprocess
import unittest

import cluster

NET = """
name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 } } }
layer { name: "hidden" type: "InnerProduct" bottom: "data" top: "hidden" inner_product_param { num_output: 5 } }
layer { name: "relu" type: "ReLU" bottom: "hidden" top: "hidden" }
layer { name: "scores" type: "InnerProduct" bottom: "hidden" top: "scores" inner_product_param { num_output: 3 } }
layer { name: "accuracy" type: "Accuracy" bottom: "scores" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }
"""
SOLVER = 'train_net: "{0}/net.prototxt"\ntest_net: "{0}/net.prototxt"\ntest_net: "{0}/net.prototxt"\nbase_lr: 0.1\n' \
         'lr_policy: "fixed"\nmax_iter: 4\ntest_iter: 8\ntest_iter: 8\ntest_interval: 2\n' \
         'snapshot_prefix: "{0}/small"\n'
DATAFLOW = {"start_pass", "batch_ready", "bottom_ready", "top_diff_ready", "issue_work", "work_done", "outputs_ready",
            "pass_issued", "backward_done", "gradient_arrived", "factors_landed", "parameters_fresh", "layer_fresh"}


class Graph(unittest.TestCase):
    def planned_and_run(self, routes):
        with cluster.Cluster() as c:
            (c.folder / "net.prototxt").write_text(NET)
            solver = c.folder / "solver.prototxt"
            solver.write_text(SOLVER.format(c.folder))
            measured, planned = c.folder / "measured.json", c.folder / "planned.json"
            first = c.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", 2, "--devices", "cpu:2",
                           "--routes", routes, "--graph", measured)
            c.node("--join", first.wait_for(cluster.LISTENING)[1], "--devices", "cpu:2")
            self.assertEqual(c.wait_all(), [0, 0], first.output)
            subprocess.run([cluster.BIN / "poseidon-graph", solver, "--nodes", "2", "--devices", "cpu:2",
                            "--routes", routes, "-o", planned], check=True)
            return json.loads(planned.read_text()), json.loads(measured.read_text())

    def test_planned_actors_are_those_that_run_and_messages_flow_only_along_planned_edges(self):
        for routes, exchange in (("ps", "gradient_push"), ("sfb", "factor_broadcast")):
            with self.subTest(routes):
                plan, run = self.planned_and_run(routes)
                names = {node["id"]: node["name"] for node in plan["nodes"]}
                self.assertEqual(len(names), len(set(names.values())), "a name for two actors")
                self.assertIn("test 1 layer hidden [0]", names.values())
                self.assertIn(f"{exchange} hidden", names.values())
                self.assertEqual({actor["name"] for actor in run["actors"]}, set(names.values()))
                edges = {(names[e["src"]], e["message"], names[e["dst"]]) for e in plan["edges"]}
                flowed = {(e["from"], e["message"], e["to"]) for e in run["edges"] if e["message"] in DATAFLOW}
                self.assertEqual(flowed - edges, set(), "sent, but not planned")
                self.assertEqual({e for e in edges if e[1] in DATAFLOW} - flowed, set(), "planned, but never sent")


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-graph")
    cluster.main()
