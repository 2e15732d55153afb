# tests/cluster/attach_test.py - poseidon-graph --attach: the page of a node, served elsewhere, and the actors of this moment.
import json
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
import xml.etree.ElementTree

import browser
import cluster
import small_run
from web_page import PAGE, text_of


def status_of(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=cluster.DEADLINE_S) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


class Attach(small_run.Trained):
    def trained(self, *options, web="127.0.0.1:0"):
        path = small_run.solver(self.cluster.folder, "attached", iterations=cluster.ENDLESS, lr=0.0001)
        node = self.cluster.node("--solver", path, "--devices", "cpu:1", "--web", web, *options)
        self.at = node.wait_for(r"page at http://(\S+)/")[1]
        return node

    def attached(self, *words):
        viewer = self.cluster.start(cluster.BIN / "poseidon-graph", *words)
        return viewer, viewer.wait_for(PAGE)[1]

    def graph(self, *words):
        return subprocess.run([cluster.BIN / "poseidon-graph", *words], capture_output=True, text=True, timeout=cluster.DEADLINE_S)

    def clock(self, page):
        return json.loads(text_of(page + "/healthz")).get("clock", 0)

    def test_what_the_node_answers_comes_through_and_the_page_is_the_same(self):
        self.trained()
        viewer, page = self.attached("attach", self.at)
        cluster.wait_until(lambda: self.clock(page) > 3, "the clock rises")
        node = f"http://{self.at}"
        for path in ("/", "/app.js", "/style.css", "/api/recording"):
            self.assertEqual(text_of(page + path), text_of(node + path), path)
        names = [{n["name"] for n in json.loads(text_of(where + "/api/graph"))["nodes"]} for where in (page, node)]
        self.assertEqual(*names)
        self.assertIn("poseidon_", text_of(page + "/metrics"))
        self.assertIn("workers", json.loads(text_of(page + "/api/status.json")))
        self.assertIn("traceEvents", text_of(page + "/api/trace?iters=3"))
        with urllib.request.urlopen(page + "/api/csv", timeout=cluster.DEADLINE_S) as answer:
            self.assertIn("poseidon.csv", answer.headers["Content-Disposition"])
        self.assertEqual(status_of(page + "/api/dot?node=7"), 404)
        self.assertEqual(status_of(page + "/nothing"), 404)
        self.assertEqual(status_of(page + "/", Host="evil.example"), 421)
        viewer.signal(signal.SIGTERM)
        self.assertEqual(viewer.wait(), 0)

    def test_a_node_that_goes_away_is_shown_as_such_and_its_next_run_again(self):
        node = self.trained(web=self.enterContext(cluster.reserved_address()))
        viewer, page = self.attached("--attach", self.at, "--web", "127.0.0.1:0")
        b = browser.Browser()
        self.addCleanup(b.close)
        b.open(page + "/")
        pill = "document.getElementById('state').textContent"
        b.wait_for("poseidon.store.ticks > 2 && poseidon.graph.elements.size > 10 && poseidon.store.spans.size > 10 "
                   f"&& poseidon.store.points.length > 3 && {pill} === 'training'", "the run is shown")
        self.assertIn(f"small at {self.at}", b.value("document.getElementById('model').textContent"))
        node.kill()
        b.wait_for(f"{pill} === '{self.at} is away'", "it is said that the node is away")
        self.assertEqual(b.value("document.getElementById('state').className"), "pill bad")
        b.wait_for("/no page at .*refused.* was known before$/.test(document.getElementById('verdict').textContent)", "and why")
        self.assertGreater(b.value("poseidon.graph.elements.size"), 10, "what was known stays")
        before = b.value("poseidon.store.points.at(-1)[0]")
        # A browser that opens the page now gets it, with the same message.
        self.assertEqual(status_of(page + "/"), 200)
        self.assertEqual(status_of(page + "/api/graph"), 502)
        self.trained(web=self.at)
        b.wait_for(f"{pill} === 'training' && poseidon.store.points.length > 0 && poseidon.store.points[0][0] === 0 "
                   "&& poseidon.graph.elements.size > 10", "the next run is shown")
        self.assertGreater(before, 0)
        self.assertTrue(b.value("document.getElementById('verdict').hidden"))
        self.assertEqual([c for c in b.complaints() if "502" not in c], [])

    def test_a_token_is_wanted_by_both_pages(self):
        token = self.cluster.folder / "web_token"
        token.write_text("only-for-friends\n")
        self.trained("--web-token-file", token)
        said = self.graph("--attach", self.at)
        self.assertEqual(said.returncode, 1)
        self.assertIn("wants a token: give --web-token-file FILE", said.stderr)
        viewer, page = self.attached("attach", self.at, "--web-token-file", token)
        for path in ("/", "/api/graph", "/events"):
            self.assertEqual(status_of(page + path), 401, path)
        self.assertIn("nodes", text_of(page + "/api/graph", Authorization="Bearer only-for-friends"))
        # The page is served before the node has started its actors.
        cluster.wait_until(lambda: "digraph" in self.graph("--attach", self.at, "--web-token-file", token, "-o", "-").stdout,
                           "whoever knows the token gets the actors drawn")

    def test_mistakes_are_said_at_once(self):
        with cluster.reserved_address() as address:
            said = self.graph("attach", address)
            self.assertEqual(said.returncode, 1)
            self.assertIn(f"no page at {address}", said.stderr)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            at = f"127.0.0.1:{silent.getsockname()[1]}"
            self.assertIn(f"{at} does not answer. Is it the address of a page", self.graph("attach", at, "-o", "-").stderr)
        self.trained()
        for words, text in [(["attach"], "poseidon-graph attach --help"), (["attach", "nowhere"], "nowhere"),
                            (["--attach", self.at, "--web", "0.0.0.0:0"], "tunnel with ssh -L"),
                            (["--attach", self.at, "--worker", "1"], "--worker belongs to -o"),
                            (["--attach", self.at, "-o", "x.png"], "it has to be .dot, .svg or .json"),
                            (["--attach", self.at, "--web", self.at], "in use by another process")]:
            said = self.graph(*words)
            self.assertEqual((said.returncode, said.stdout), (2, ""), words)
            self.assertIn(text, said.stderr, words)

    def test_the_actors_of_this_moment_are_drawn(self):
        """What is drawn is what lives: after a change of routes the actors of the new ones, and no others."""
        (routes := self.cluster.folder / "routes").write_text("@20 ip1 sfb\n")
        path = small_run.solver(self.cluster.folder, "drawn", iterations=cluster.ENDLESS, lr=0.0001)
        first = self.cluster.node("--solver", path, "--devices", "cpu:1", "--listen", "127.0.0.1:0", "--nodes", 2,
                                  "--web", "127.0.0.1:0", "--routes", routes)
        at = first.wait_for(r"page at http://(\S+)/")[1]
        self.cluster.node("--join", first.wait_for(cluster.LISTENING)[1], "--devices", "cpu:1")
        drawn = {suffix: self.cluster.folder / f"now.{suffix}" for suffix in ("json", "dot", "svg")}

        def draw(suffix, *more):
            said = self.graph("--attach", at, "-o", drawn[suffix], *more)
            self.assertEqual(said.returncode, 0, said.stderr)
            return drawn[suffix].read_text()

        def changed():
            self.names = {n["name"] for n in json.loads(draw("json"))["nodes"]}
            return "factor_broadcast ip1" in self.names and "gradient_push ip1" not in self.names
        cluster.wait_until(changed, "the actors of the changed routes are listed")
        self.assertTrue({"node", "protocol_selector", "layer conv1 [0]", "gradient_push ip2", "network_link 1 in"} <= self.names, self.names)
        dot = draw("dot")
        self.assertIn(f": {len(self.names)} actors, ", dot)
        self.assertEqual((dot.count("factor_broadcast"), dot.count("gradient_push")), (1, 2))
        cluster.wait_until(lambda: self.graph("--attach", at, "-o", drawn["json"], "--worker", "1").returncode == 0
                           and "layer conv1 [0]" in drawn["json"].read_text(), "the other node has reported")
        self.assertNotIn("protocol_selector", {n["name"] for n in json.loads(drawn["json"].read_text())["nodes"]})
        if shutil.which("dot"):
            xml.etree.ElementTree.fromstring(draw("svg"))
            self.assertFalse(drawn["dot"].read_text() != dot, "the file beside it is the user's own")


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-graph")
    cluster.main()
