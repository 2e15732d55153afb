# tests/cluster/page_test.py - what a node serves while it trains: figures that are true, of every node, and nothing else.
import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess

import cluster
import small_run
from web_page import PAGE, Events, text_of

HEALTH = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def fetch(page, path, as_json=True):
    text = text_of(page + path)
    return json.loads(text) if as_json else text


class Page(small_run.Trained):
    def two_nodes(self, *options, iterations=cluster.ENDLESS, joiner=(), **of_solver):
        path = small_run.solver(self.cluster.folder, "page", iterations=iterations, lr=0.0001, **of_solver)
        first = self.cluster.node("--solver", path, "--devices", "cpu:1", "--listen", "127.0.0.1:0", "--nodes", 2,
                                  "--web", "127.0.0.1:0", "--survive", 0, *options)
        self.page = first.wait_for(PAGE)[1]
        address = first.wait_for(cluster.LISTENING)[1]
        second = self.cluster.node("--join", address, "--devices", "cpu:1", *joiner)
        return first, second

    def until(self, condition, what):
        cluster.wait_until(condition, what)

    def last_tick(self, first, second, enough, events=None):
        """Ends the run when `enough` holds of a tick. The last events are those of a run that has ended: nothing moves any more."""
        last, told, ended = None, False, False
        for kind, data in events or Events(self.page):
            if kind == "tick" and len(data["members"]) == 2:
                last = data
                if not told and enough(data):
                    told = True
                    first.signal(signal.SIGINT)
            ended = ended or (kind == "history" and any("ended" in line[2] for line in data["lines"]))
        self.assertTrue(told and ended, last)
        self.assertEqual((first.wait(), second.wait()), (130, 0), first.output)
        return last

    def tick(self):
        return next(data for kind, data in Events(self.page) if kind == "tick")

    def clock_of(self, worker):
        return next((m.get("clock", 0) for m in self.tick()["members"] if m["id"] == worker), 0)  # none yet while the cluster forms

    def test_bytes_on_the_page_are_those_of_the_sockets_and_actors_those_that_run(self):
        """Rows 1, 2 and 7 of what the page is held to: every actor, bytes within 1 %, members."""
        measured = self.cluster.folder / "measured.json"
        first, second = self.two_nodes("--graph", measured, "--routes", "ps", hidden=512, batch=8)
        last = self.last_tick(first, second, lambda tick: all(m.get("clock", 0) >= 700 for m in tick["members"]))
        for member in last["members"]:
            self.assertGreater(member["bytes_out"], 4e6, member)
            self.assertLess(abs(member["edge_bytes_out"] / member["bytes_out"] - 1), 0.01, member)
            self.assertGreaterEqual(member["clock"], 700)
        self.assertLess(abs(last["members"][1]["offset_us"]), 100 + last["members"][1]["uncertain_us"],
                        "two processes of one machine have one clock")

    def test_the_graph_is_that_of_each_node(self):
        first, second = self.two_nodes()
        self.until(lambda: self.clock_of(1) > 3, "the second node has reported")
        for worker in (0, 1):
            def graph_complete():
                self.graph = fetch(self.page, f"/api/graph?node={worker}")
                flowed = {e["message"] for e in self.graph["edges"] if e["id"] >= 0}
                return {"backward_done", "send_frame", "gradient_arrived", "parameters_fresh"} <= flowed
            self.until(graph_complete, "all messages of the dataflow have been sent")
            kinds = {n["name"]: n for n in self.graph["nodes"]}
            self.assertEqual(len(kinds), len(self.graph["nodes"]), "a name for two actors")
            self.assertIn("layer conv1 [0]", kinds)
            self.assertEqual(kinds["layer conv1 [0]"]["type"], "Convolution")
            self.assertEqual(kinds["gradient_push conv1"]["card"], "conv1")
            self.assertIn(f"network_link {1 - worker}", kinds)
            self.assertEqual("protocol_selector" in kinds, worker == 0)
            ids = {n["id"] for n in self.graph["nodes"]}
            self.assertTrue(all(e["src"] in ids and e["dst"] in ids for e in self.graph["edges"]))
            self.assertEqual({e["kind"] for e in self.graph["edges"] if e["message"] == "bottom_ready"}, {"data"})
            groups = {g["id"] for g in self.graph["groups"]}
            self.assertEqual({n["group"] for n in self.graph["nodes"]} - groups, set())

    def test_each_layer_says_its_route_and_why(self):
        first, second = self.two_nodes("--routes", "sfb", joiner=["--web", "127.0.0.1:0"])
        self.until(lambda: self.clock_of(0) > 0, "training")
        routes = {r["layer"]: r for r in fetch(self.page, "/api/graph")["routes"]}
        self.assertEqual(routes["ip1"]["why"], "as --routes sfb says")
        others = fetch(second.wait_for(PAGE)[1], "/api/graph")["routes"]
        self.assertEqual({r["layer"]: r["why"] for r in others}, {name: r["why"] for name, r in routes.items()})
        self.assertEqual({name: r["route"] for name, r in routes.items()},
                         {"conv1": "parameter_server", "ip1": "factor_broadcast", "ip2": "factor_broadcast"})
        self.assertIn("Convolution", routes["conv1"]["why"])
        self.assertTrue(all(r["why"] for r in routes.values()))
        self.assertEqual(routes["ip1"]["bytes"], 4 * 16 * (64 + 8 * 12 * 12))

    def test_after_a_change_of_routes_the_page_shows_what_runs_now(self):
        measured, routes = self.cluster.folder / "measured.json", self.cluster.folder / "routes"
        routes.write_text("@20 ip1 sfb\n@300 ip1 ps\n")
        first, second = self.two_nodes("--routes", routes, "--graph", measured, hidden=256, batch=8, joiner=["--web", "127.0.0.1:0"])
        self.until(lambda: self.clock_of(1) > 320, "both changes are behind")
        for worker in (0, 1):
            def shows_the_change():
                graph = fetch(self.page, f"/api/graph?node={worker}")
                self.names = [n["name"] for n in graph["nodes"]]
                self.routes = {r["layer"]: r for r in graph["routes"]}
                ids = {n["id"] for n in graph["nodes"]}
                self.assertTrue(all(e["src"] in ids and e["dst"] in ids for e in graph["edges"]))
                return "gradient_push ip1" in self.names and len(set(self.names)) == len(self.names)
            self.until(shows_the_change, f"worker {worker} shows the actors of its routes")
            self.assertNotIn("factor_broadcast ip1", self.names)
            self.assertIn("solver", self.names)
            dot = fetch(self.page, f"/api/dot?node={worker}", as_json=False)
            self.assertNotIn("factor_broadcast", dot)
        self.assertEqual(self.routes["ip1"]["route"], "parameter_server")
        self.assertEqual(self.routes["ip1"]["why"], f"changed at iteration 300: as --routes {routes} asks")
        self.assertNotIn("changed", self.routes["conv1"]["why"])
        others = fetch(second.wait_for(PAGE)[1], "/api/graph")["routes"]
        self.assertEqual({r["layer"]: r["why"] for r in others}, {name: r["why"] for name, r in self.routes.items()})
        last = self.last_tick(first, second, lambda tick: True)
        for member in last["members"]:
            self.assertLess(abs(member["edge_bytes_out"] / member["bytes_out"] - 1), 0.01, member)
        # The measured graph of the whole run has the actors of earlier routes, too.
        names = [a["name"] for a in json.loads(measured.read_text())["actors"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("factor_broadcast ip1", names)

    def status(self, *options):
        address = self.page.removeprefix("http://")
        return subprocess.run([cluster.BIN / "poseidon-node", "status", "--attach", address, *options], capture_output=True, text=True,
                              timeout=cluster.DEADLINE_S)

    def test_status_says_how_far_the_run_is_and_how_each_node_is(self):
        first, second = self.two_nodes()
        self.until(lambda: self.clock_of(1) > 3, "both train")
        said = self.status()
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        lines = said.stdout.splitlines()
        self.assertRegex(lines[0], r"^small, training: iteration \d+ of 1000000000, loss [\d.]+, [\d.e+]+ images/s, \d+ % of the communication hidden$")
        for worker in (0, 1):
            self.assertRegex(lines[1 + worker], rf"^worker {worker} +127\.0\.0\.1:\d+ +up +iteration \d+ +lag \d+ +heard [\d.]+ s ago, sent [\d.]+ MB")
        self.assertGreaterEqual(len(lines), 4, said.stdout)  # the verdict has a line, or several on a busy machine

    def test_status_where_no_page_is_and_without_the_token_says_what_to_do(self):
        token = self.cluster.folder / "web_token"
        token.write_text("only-for-friends\n")
        self.two_nodes("--web-token-file", token)
        said = self.status()
        self.assertEqual(said.returncode, 2)
        self.assertIn("wants a token: give --web-token-file FILE", said.stderr)
        self.assertEqual(self.status("--web-token-file", token).returncode, 0)
        with socket.create_server(("127.0.0.1", 0)) as other:
            self.page = f"http://127.0.0.1:{other.getsockname()[1]}"
        said = self.status()
        self.assertEqual(said.returncode, 2)
        self.assertIn(self.page.removeprefix("http://"), said.stderr)

    def test_a_stopped_node_is_shown_as_lost_and_the_end_is_said(self):
        first, second = self.two_nodes("--staleness", "3", *cluster.HASTY)
        self.until(lambda: self.clock_of(1) > 3, "both train")
        events = Events(self.page)
        second.signal(signal.SIGSTOP)
        # Until its links are given up the page says which worker is silent, and since when.
        states = set()
        try:
            for kind, data in events:
                if kind == "tick":
                    states |= {m["state"] for m in data["members"] if m["id"] == 1}
                if kind == "history" and any("worker 1" in line[2] and line[3] for line in data["lines"]):
                    break
            else:
                self.fail(f"the end was not said: {states}")
        finally:
            second.signal(signal.SIGCONT)
        self.assertEqual(first.wait(), 3)
        self.assertIn("lost", states)

    def test_who_waits_for_a_stopped_peer_is_said_before_the_peer_is_given_up(self):
        first, second = self.two_nodes("--routes", "ps", *cluster.HASTY)
        self.until(lambda: self.clock_of(1) > 5, "both train")
        self.until(lambda: "stall" not in self.tick()["doctor"], "no worker waits")
        events = Events(self.page)
        second.signal(signal.SIGSTOP)
        try:
            self.assertEqual(first.wait(), 3)  # it has given that peer up
        finally:
            second.signal(signal.SIGCONT)
        line = r"stall: worker 0 .*: the update of (\w+) of iteration (\d+) .*waits for worker 1"
        said = re.findall("(?m)^" + line, first.output)
        self.assertTrue(said, first.output)
        told, noted = [], []  # by the page, until its last event
        for kind, data in events:
            told += [data["doctor"]] if kind == "tick" and data["doctor"].get("stall") else []
            noted += [text[2] for text in data["lines"]] if kind == "history" else []
        doctor = told[-1]  # on a busy machine training may have paused before
        stall = doctor["stall"]
        self.assertEqual((stall["worker"], stall["peer"], stall["phase"], stall["route"], (stall["layer"], str(stall["clock"]))),
                         (0, 1, "update", "parameter_server", said[-1]))
        self.assertGreaterEqual(stall["since_ms"], 500)
        self.assertIn("the update of " + stall["layer"], doctor["text"][0])
        self.assertTrue(any(re.match(line, text) for text in noted), noted)
        said = re.findall(r"(?m)^stall: worker 0 .* of iteration (\d+) ", first.output)
        self.assertEqual(len(said), len(set(said)), first.output)  # once, not at each look

    def test_exports_are_what_their_readers_read(self):
        """Row 12: DOT that dot reads, metrics line by line, a trace without partial overlaps, a CSV with a line a point."""
        first, second = self.two_nodes()
        self.until(lambda: len(fetch(self.page, "/api/history")["points"]) > 4 and self.clock_of(1) > 4, "some clocks")
        for line in fetch(self.page, "/metrics", as_json=False).splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) poseidon_\w+ .*|poseidon_\w+(\{(\w+="([^"\\]|\\.)*",?)*\})? -?[\d.e+-]+)$')
        self.assertRegex(fetch(self.page, "/metrics", as_json=False), r'(?m)^poseidon_output\{output="loss"\} [\d.]+$')
        trace = self.cluster.folder / "trace.json"

        def of_both_nodes():
            trace.write_text(fetch(self.page, "/api/trace?iters=50", as_json=False))
            return {e["pid"] for e in cluster.Trace(trace).spans} == {0, 1}
        self.until(of_both_nodes, "the trace has spans of both nodes")
        spans = cluster.Trace(trace)
        self.assertEqual(spans.partial_overlaps(), [])
        self.assertTrue(spans.find(cat="forward", name="conv1", lane="stream"))
        csv = fetch(self.page, "/api/csv", as_json=False).splitlines()
        self.assertRegex(csv[0], r"^NumIters,Seconds,LearningRate,loss,")
        self.assertTrue(all(len(line.split(",")) == len(csv[0].split(",")) for line in csv))
        for worker in (0, 1):
            dot = fetch(self.page, f"/api/dot?node={worker}", as_json=False)
            self.assertIn("digraph", dot)
            if shutil.which("dot"):
                subprocess.run(["dot", "-Tsvg"], input=dot.encode(), stdout=subprocess.DEVNULL, check=True)

    def test_the_dashboard_asks_for_metrics_that_there_are(self):
        """tools/launch/grafana.json: Grafana would show an empty panel, and no error."""
        board = json.loads((cluster.ROOT / "tools/launch/grafana.json").read_text())
        queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        queries += [variable["definition"] for variable in board["templating"]["list"]]
        asked = {name for query in queries for name in re.findall(r"poseidon_\w+", query)}
        self.two_nodes(more="test_iter: 1 test_interval: 5")

        def missing():
            there = set(re.findall(r"(?m)^(poseidon_\w+)[ {]", fetch(self.page, "/metrics", as_json=False)))
            return asked - there
        self.until(lambda: not missing(), f"all of {sorted(asked)}")

    def test_requests_that_are_not_allowed_are_refused(self):
        """Row 11."""
        first, second = self.two_nodes()
        host, port = re.fullmatch(r"http://(.*):(\d+)", self.page).groups()

        def status(head):
            with socket.create_connection((host, int(port)), timeout=cluster.DEADLINE_S) as s:
                s.sendall(head.encode())
                return int(s.recv(100).split()[1])
        self.assertEqual(status("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421)
        self.assertEqual(status("POST /api/graph HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"), 405)
        self.assertEqual(status("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + "x" * 9000 + "\r\n\r\n"), 431)

        def one_too_many():  # opened for each look: an idle one is closed after some seconds
            with contextlib.ExitStack() as many:
                for _ in range(64):
                    many.enter_context(socket.create_connection((host, int(port)), timeout=cluster.DEADLINE_S))
                return status(HEALTH) == 503
        self.until(one_too_many, "a connection too many is told so")
        self.until(lambda: status(HEALTH) == 200, "the others are answered again")

    def test_an_open_page_without_a_token_is_not_served(self):
        path = small_run.solver(self.cluster.folder, "open")
        node = self.cluster.node("--solver", path, "--web", "0.0.0.0:0")
        self.assertEqual(node.wait(), 2)
        self.assertIn("Give --web-token-file FILE", node.output)
        token = self.cluster.token_file("a-token-of-the-page")
        node = self.cluster.node("--solver", path, "--web", "0.0.0.0:0", "--web-token-file", token)
        self.assertEqual(node.wait(), 0, node.output)


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
