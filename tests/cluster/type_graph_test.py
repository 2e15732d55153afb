# tests/cluster/type_graph_test.py - the graph of actor classes (poseidon-graph --types, docs/architecture.md) has no edge that does not exist: runs of
# all kinds are made, and each edge has been used by one of them or is listed here with what it takes.
import json
import re
import signal
import socket
import subprocess
import unittest

import cluster
import gpu_test
import programs
import small_run
from web_page import PAGE, Events, text_of

# Edges that the runs here need not use, and what they take.
RARE = {
    ("data_source", "training_failed", "node"): "a record that cannot be read in the middle of training",
    ("solver", "training_failed", "node"): "a loss that is no number",
    ("stream", "nonfinite_found", "solver"): "the same",
    ("copy_out", "nonfinite_found", "solver"): "the same on a GPU",
    ("solver", "stop_decided", "node"): "a goal, or a signal",
    ("node", "send_rate_measured", "protocol_selector"): "a line whose rate is looked at",
    ("network_link", "link_flow", "node"): "the same",
    ("network_link", "older_frames_ended", "network_link"): "a large frame under way as the view changes",
    ("caller", "clocks_given_up", "node"): "a worker of programs that is lost while others need its gradient",
    ("node", "give_up_clocks", "caller"): "the same",
    ("node", "go_back", "caller"): "the same",
    ("caller", "goes_on_without", "node"): "a program that leaves while others train on",
    ("node", "training_failed", "node"): "a program whose state is another one than the others', as a newcomer needs it",
    ("caller", "write_snapshot", "checkpointer"): "a program that reads the optimizer's state from the shards",
    ("checkpointer", "snapshot_copied", "caller"): "the same",
    ("caller", "training_done", "node"): "the end of a program, whose page has gone then",
    ("node", "shut_down", "caller"): "the same",
}
# A witness writes no graph. tests/cluster/witness_test.py makes its members freeze, go and come.
OF_WITNESS = {
    *((source, message, "witness") for source, message in (("link_acceptor", "link_accepted"), ("link_acceptor", "peer_refused"), ("network_link", "control_arrived"),
                                                          ("network_link", "link_lost"), ("seeker", "sought"))),
    *(("witness", message, to) for message, to in (("bind_link", "network_link"), ("close_link", "network_link"), ("send_frame", "network_link"),
                                                   ("stop_accepting", "link_acceptor"), ("seek", "seeker"), ("stop_seeking", "seeker"))),
}
# Two losses: the layers of the lower one need not wait for the parameters of the other.
NET = """
name: "two heads"
layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ scale: 0.00390625 }}
  data_param {{ source: "{images}" batch_size: {batch} }} }}
layer {{ name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {{ num_output: 4 kernel_size: 5 stride: 4 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "ip1" type: "InnerProduct" bottom: "conv" top: "ip1" inner_product_param {{ num_output: {hidden} weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "side1" type: "InnerProduct" bottom: "conv" top: "side1" inner_product_param {{ num_output: {hidden} weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "side2" type: "InnerProduct" bottom: "side1" top: "side2" inner_product_param {{ num_output: {classes} weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "side_loss" type: "SoftmaxWithLoss" bottom: "side2" bottom: "label" top: "side_loss" loss_weight: 0.3 }}
{norm}
layer {{ name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param {{ num_output: {hidden} weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "ip3" type: "InnerProduct" bottom: "ip2" top: "ip3" inner_product_param {{ num_output: {classes} weight_filler {{ type: "xavier" }} }} }}
{head}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip3" bottom: "label" top: "loss" }}
"""
PROGRAM = """
import os, sys, time, torch
import poseidon.torch as poseidon
torch.manual_seed(os.getpid())
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 64))
net.end = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD(net.parameters(), 1e-4)
poseidon.join(net, optimizer, routes=sys.argv[2], **({"web": "127.0.0.1:0"} if "POSEIDON_LISTEN" in os.environ else {}))
while net.end.grad is None or not net.end.grad.any():
    time.sleep(0.02)  # as long as an iteration of a larger net: the processors are others'
    optimizer.zero_grad(set_to_none=True)
    (net(torch.randn(16, 64)).square().mean() + net.end.sum() * os.path.exists(sys.argv[1])).backward()
    optimizer.step()
poseidon.leave()
"""


class TypeGraph(unittest.TestCase):
    def setUp(self):
        self.used = set()
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.graphs = []

    def graph(self):
        self.graphs.append(self.cluster.folder / f"graph{len(self.graphs)}.json")
        return "--graph", self.graphs[-1]

    def nodes(self, number, solver, *options, devices=("--devices", "cpu:2"), first=()):
        options = (*(devices or ()), *options)
        nodes = [self.cluster.node("--solver", solver, "--listen", "127.0.0.1:0", "--nodes", number, *options, *first, *self.graph())]
        self.address = nodes[0].wait_for(cluster.LISTENING)[1]
        return nodes + [self.cluster.node("--join", self.address, *options, *self.graph()) for _ in range(number - 1)]

    def to_their_end(self, nodes, *codes):
        self.assertEqual([node.wait() for node in nodes], list(codes) or [0] * len(nodes), nodes[0])

    def routes(self, text):
        path = self.cluster.folder / f"routes{len(self.graphs)}"
        path.write_text(text)
        return "--routes", path

    def solver(self, name, **more):
        return small_run.solver(self.cluster.folder, name, **{"text": NET, "lr": 0.001, "more": "snapshot: 4 test_iter: 2 test_interval: 4", **more})

    def test_each_edge_is_used_by_some_run(self):
        mixed = "conv ps\nip1 sfb\nip2 lowrank\nip3 ps\nside1 sfb\nside2 lowrank\n"
        with self.subTest("routes of all kinds, tests, snapshots, the page"):
            self.to_their_end(self.nodes(2, self.solver("mixed"), first=("--web", "127.0.0.1:0", *self.routes(mixed))))
        with self.subTest("resumed"):
            state = self.cluster.folder / "mixed_iter_4.solverstate"
            self.to_their_end(self.nodes(2, self.solver("mixed"), first=("--snapshot", state, *self.routes(mixed))))
        with self.subTest("simulated GPUs, stale parameters, clipped gradients"):
            of_gpu = gpu_test.gpu(logical=2)
            self.to_their_end(self.nodes(2, self.solver("stale", more="poseidon { staleness: 2 }"), *of_gpu, devices=None, first=self.routes(mixed)))
            self.to_their_end(self.nodes(2, self.solver("clipped", more="clip_gradients: 5"), *of_gpu, devices=None, first=("--routes", "ps")))
        with self.subTest("routes that are chosen"):
            self.to_their_end(self.nodes(2, self.solver("auto")))
        with self.subTest("nodes come, leave, and are lost, and routes change"):
            self.views(self.routes(mixed))
            self.views(self.routes("".join(f"@{clock} ip1 {'ps' if clock % 20 else 'sfb'}\n" for clock in range(10, 500, 10))))
        with self.subTest("a node is lost, and with it the run"):
            first, second = self.nodes(2, self.solver("lost", iterations=cluster.ENDLESS), first=("--survive", 0))
            first.wait_for("^iteration 2/")
            second.kill()
            self.to_their_end([first], 3)
        for routes, workers in (("sfb", 3), ("lowrank", 2)):
            with self.subTest("programs", routes=routes):
                self.programs(routes, workers)
        self.assertEqual(self.unused() - set(RARE) - OF_WITNESS, set())

    def test_what_is_listed_here_is_in_the_graph(self):
        self.assertEqual((set(RARE) | OF_WITNESS) - self.declared(), set())
        self.assertEqual({edge for edge in self.declared() if "witness" in edge}, OF_WITNESS)

    def views(self, routes):
        nodes = self.nodes(3, self.solver("views", iterations=cluster.ENDLESS, more="snapshot: 1000"), "--no-rejoin",
                           first=("--survive", 1, "--web", "127.0.0.1:0", *routes))
        page = nodes[0].wait_for(PAGE)[1]
        with socket.create_connection(self.address.rsplit(":", 1)) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n" * 100)
            nodes[0].wait_for("^refused: ")
        newcomer = self.cluster.node("--join", self.address, "--devices", "cpu:2", *self.graph())
        newcomer.wait_for(r"^view \d+: ")
        witness = self.cluster.node("--witness", "--join", self.address)
        witness.wait_for("and this witness votes")
        self.heard(page, 2)
        nodes[1].signal(signal.SIGTERM)
        self.assertEqual(nodes[1].wait(), 143, nodes[1])
        nodes[0].signal(signal.SIGHUP)
        nodes[2].kill()
        newcomer.wait_for(r"^view \d+: .*2 nodes train")
        nodes[0].stop()
        self.assertEqual([newcomer.wait(), witness.wait()], [0, 0])

    def heard(self, page, worker):
        """Waits until the page has a report of this worker."""
        for kind, tick in Events(page):
            if kind == "tick" and any(m["id"] == worker and m.get("clock", 0) > 0 for m in tick["members"]):
                return

    def programs(self, routes, number):
        """So many workers, two or three; the third one is killed."""
        with programs.Programs() as c:
            over = c.folder / "over"
            workers = c.workers(PROGRAM, number, over, routes)
            page = workers[0].wait_for(PAGE)[1]
            self.heard(page, 1)
            self.used_by_workers(page, number)
            if number > 2:
                workers[2].kill()
                workers[0].wait_for("2 workers")
                self.used_by_workers(page, 2)
            over.touch()
            self.assertEqual([w.wait() for w in workers[:2]], [0, 0], workers[0])

    def used_by_workers(self, page, number):
        for worker in range(number):
            graph = json.loads(text_of(f"{page}/api/graph?node={worker}"))
            kinds, edges = {n["id"]: n["kind"] for n in graph["nodes"]}, {e["id"]: e for e in graph["edges"]}
            tick = next(data for kind, data in Events(page, f"?node={worker}") if kind == "tick")
            for edge, messages, _ in tick["e"]:
                if messages > 0 and edge in edges:
                    e = edges[edge]
                    self.used.add((kinds[e["src"]], e["message"], kinds[e["dst"]]))

    def unused(self):
        for path in self.graphs:
            if path.exists():
                run = json.loads(path.read_text())
                types = {a["name"]: a["type"] for a in run["actors"]}
                self.used |= {(types[e["from"]], e["message"], types[e["to"]]) for e in run["edges"] if e["from"] in types and e["to"] in types}
        return self.declared() - self.used

    @staticmethod
    def declared():
        text = subprocess.run([cluster.BIN / "poseidon-graph", "--types"], check=True, capture_output=True, text=True).stdout
        return {(source, message, to) for source, messages, to in re.findall(r'^  (\w+) -- "(.*)" --> (\w+)$', text, re.M) for message in messages.split("<br/>")}


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-graph")
    programs.need("torch")
    cluster.main()
