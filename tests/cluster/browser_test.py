# tests/cluster/browser_test.py - the page in a real browser, of a real run of two nodes, and of runs that are made up.
import json
import re
import signal
import xml.etree.ElementTree

import cluster
import faulty_wire
from shown_page import READY, ShownPage, deep_net
from web_page import PAGE

LOG = "document.getElementById('log').textContent"


class Shown(ShownPage):
    CALM = False

    def test_a_run_of_two_nodes_is_seen_as_it_is(self):
        self.two_nodes(self.small(hidden=256), "--routes", "auto:1000")
        b = self.look()
        b.open(self.page)
        b.wait_for(READY, "the graph is drawn")
        b.wait_for("poseidon.store.members.length === 2 && poseidon.store.members.every(m => m.clock > 5)", "both nodes have reported")
        with self.subTest("every actor of the node is one element, with a name, and none covers another"):
            b.wait_for("poseidon.graph.elements.size === poseidon.store.graph.nodes.length", "all are drawn")
            self.assertTrue(b.value("poseidon.store.graph.nodes.every(n => document.querySelectorAll(`.actor[data-id='${n.id}']`).length === 1)"))
            self.assertTrue(b.value("[...document.querySelectorAll('.actor')].every(g => g.getAttribute('role') === 'button' && g.getAttribute('aria-label'))"))
            self.assertEqual(self.overlaps(b), [])
        with self.subTest("counts rise"):
            before = b.value("poseidon.store.edges.reduce((sum, e) => sum + (e?.messages ?? 0), 0)")
            b.wait_for(f"poseidon.store.edges.reduce((sum, e) => sum + (e?.messages ?? 0), 0) > {before}", "messages flow")
            b.wait_for("/[1-9].* [kM]?B\\/s/.test(document.querySelector('.bus-rate.push').textContent)", "the push bus says a rate")
        with self.subTest("a click says which route, and why"):
            b.value("poseidon.graph.select(null)")
            b.click(".actor[aria-label^='gradient_push conv1']")
            b.wait_for("document.querySelector('#details h3').textContent === 'gradient_push conv1'", "the actor is shown")
            text = b.value("document.getElementById('details').textContent")
            self.assertIn("parameter_server", text)
            self.assertIn("only an InnerProduct has factors", text)
            self.assertGreater(b.value("document.querySelectorAll('.chosen').length"), 0)
            self.keep(b, "selected")
        with self.subTest("keys alone do it as well"):
            b.press("Escape")
            b.wait_for("poseidon.graph.selected === null", "Escape lets go")
            b.press("/", "/")
            b.wait_for("document.activeElement.id === 'find'", "/ finds")
            b.type("ip2")
            b.press("Enter")
            focused = "document.activeElement.getAttribute('aria-label')?.startsWith('layer ip2 [0]')"
            b.wait_for(focused, "found and focused")
            b.value("poseidon.graph.draw()")  # as after each change of the routes
            self.assertTrue(b.value(focused), "a new drawing keeps the focus")
            b.press("ArrowLeft")
            b.wait_for("!document.activeElement.getAttribute('aria-label')?.startsWith('layer ip2')", "arrows walk")
            b.press("Enter")
            b.wait_for("poseidon.graph.selected === +document.activeElement.dataset.id", "Enter selects")
            b.press("Escape")
        with self.subTest("the timeline has the kernels, and whose update stood in the way"):
            b.wait_for("poseidon.store.spans.clocks.size > 4 && poseidon.timeline.drawMs > 0", "clocks are drawn")
            labels = b.value("poseidon.store.spans.drawn().map(l => l.label)")
            self.assertEqual(labels[0], "compute 0")
            self.assertTrue({"links out", "links in", "shard"} <= set(labels), labels)
            b.wait_for("document.getElementById('overlap').textContent.includes('hidden')", "the overlap is said")
        with self.subTest("curves"):
            b.wait_for("poseidon.store.points.length > 3", "points")
            b.wait_for("/loss: [\\d.]+/.test(document.querySelector('#curves canvas').getAttribute('aria-label'))", "a curve says its value")
        with self.subTest("the other node"):
            b.click("#members tr[data-worker='1'] td")
            b.wait_for("poseidon.store.graph.run.worker === 1 && poseidon.graph.elements.size > 10 && poseidon.store.spans.size > 50", "worker 1 is shown")
            self.assertEqual(b.value("poseidon.store.graph.nodes.some(n => n.kind === 'protocol_selector')"), False)
            self.keep(b, "other-node")
        with self.subTest("after a reload the curves begin where the run did"):
            b.open(self.page)
            b.wait_for("poseidon.store.points.length > 3", "points")
            self.assertEqual(b.value("poseidon.store.points[0][0]"), 0)
        with self.subTest("light and dark"):
            light = b.value("getComputedStyle(document.body).backgroundColor")
            b.wait_for(READY, "the graph is drawn")
            b.wait_for("document.querySelector('#curves canvas').getAttribute('aria-label') && poseidon.store.traffic.length > 3", "the curves are drawn")
            self.keep(b, "light")
            b.look(dark=True)
            self.assertNotEqual(b.value("getComputedStyle(document.body).backgroundColor"), light)
            b.wait_until_drawn()
            self.keep(b, "dark")
            b.look(calm=True)
            self.assertEqual(b.value("getComputedStyle(document.querySelector('.actor rect')).transitionDuration"), "0s")
        with self.subTest("the exported SVG stands alone"):
            svg = b.value("poseidon.graph.exported()")
            xml.etree.ElementTree.fromstring(svg)
            self.assertIn("<style", svg)
            self.assertEqual(set(re.findall(r"var\((--[\w-]+)\)", svg)) - set(re.findall(r"(--[\w-]+):", svg)), set())
        self.assertEqual(b.complaints(), [])

    def test_five_hundred_actors_have_one_element_each_and_can_be_told_apart(self):
        """Row 1; how long it takes is tools/bench/page_drawing's to say."""
        self.two_nodes(deep_net(self.cluster.folder, 27), "--routes", "ps")
        b = self.look(1600, 1000)
        b.open(self.page)
        b.wait_for("poseidon.store.graph?.nodes.length > 400 && poseidon.graph.elements.size === poseidon.store.graph.nodes.length", "all are drawn")
        self.assertEqual(self.overlaps(b), [])
        self.assertGreater(b.value("poseidon.graph.view.scale"), 0.3)
        with self.subTest("every actor is one element, and no two of them are on the screen where the other is"):
            ids = b.value("poseidon.store.graph.nodes.map(n => n.id)")
            self.assertEqual(sorted(b.value("[...document.querySelectorAll('.actor')].map(g => +g.dataset.id)")), sorted(ids))
            drawn = b.value("[...document.querySelectorAll('.actor > rect')].map(r => { const b = r.getBoundingClientRect(); "
                            "return [r.parentNode.getAttribute('aria-label'), b.x, b.y, b.width, b.height]; })")
            self.assertEqual(len(drawn), len(ids))
            self.assertEqual(self.overlapping(drawn, border=0.5), [])
            self.assertEqual(b.value("(() => { const box = document.getElementById('graph').getBoundingClientRect(); return "
                                     "[...document.querySelectorAll('.actor > rect')].filter(r => { const b = r.getBoundingClientRect(); "
                                     "return b.left < box.left || b.right > box.right || b.top < box.top || b.bottom > box.bottom; }).length; })()"), 0)
        with self.subTest("from far away modules say what their actors do, near by the actors do"):
            b.wait_for("poseidon.graph.view.scale < 0.7 && document.getElementById('graph').classList.contains('far')", "the modules are far away")
            b.wait_for("[...document.querySelectorAll('.module > text.sum')].every(t => /^\\d+ actors?(, [\\d,]+\\/s)?(, \\d+ wait)?$/.test(t.textContent))", "sums")
            b.wait_for("[...document.querySelectorAll('.module > text.sum')].some(t => t.textContent.includes('/s'))", "rates")
            # In one step: a graph that changes in between is drawn anew, and its sums are empty until the next tick.
            b.wait_for("[...document.querySelectorAll('.module > text.sum')].reduce((all, t) => all + parseInt(t.textContent), 0) "
                       f"=== {len(ids)}", "every actor is in one of the sums")
            wide = b.value("[...document.querySelectorAll('.module')].map(g => { const [r, ...t] = [g.querySelector('rect'), ...g.querySelectorAll('text.far')]"
                           ".map(e => e.getBBox()); return [g.textContent, r.width - Math.max(...t.map(b => b.width)), r.height - t.reduce((h, b) => h + b.height, 0)]; })")
            self.assertEqual([w for w in wide if w[1] < 0], [], "texts that are wider than their module")
            # In one step: a graph that changes in between is fitted into the page again.
            near = b.value("(() => { poseidon.graph.focus(poseidon.graph.find('m3/1x1')); return [document.getElementById('graph').classList"
                           ".contains('far'), getComputedStyle(document.querySelector('.module > text.sum')).display]; })()")
            self.assertEqual(near, [False, "none"])
            b.value("poseidon.graph.view.fit()")
        b.wait_for("poseidon.store.spans.clocks.size > 3", "clocks")
        self.keep(b, "deep")
        self.assertEqual(b.complaints(), [])

    def test_of_a_hundred_thousand_spans_no_more_is_drawn_than_there_are_pixels(self):
        """Row 3: what keeps it quick; how quick it is, is tools/bench/page_drawing's to say."""
        self.two_nodes(self.small())
        b = self.look()
        b.open(self.page)
        b.wait_for(READY, "the graph is drawn")
        width, drawn = b.value("""(async () => {
          const { Spans } = await import('./spans.js'), spans = new Spans(), rows = [], timeline = poseidon.timeline, pen = timeline.pen;
          for (let i = 0; i < 100000; ++i) rows.push([i % 3, 3 + i % 50, 53 + i % 3, 100 * i, 90, Math.floor(i / 600), 0]);
          spans.add({ names: [...Array(60)].map((_, i) => [i, i === 53 ? 'forward' : i === 54 ? 'push' : i === 55 ? 'stall' : 'layer' + i]),
            lanes: [[0, 'stream compute [0]'], [1, 'network_link 1 out'], [2, 'gradient_push layer7']], rows });
          poseidon.store.spans = spans;
          timeline.follow = false;
          const fill = pen.fillRect, counts = [];
          let count = 0;
          pen.fillRect = (...place) => { ++count; fill.apply(pen, place); };
          for (const wide of [1e7, 1e6, 1e5, 1e4]) { timeline.window = [0, wide]; count = 0; timeline.draw(); counts.push(count); }
          pen.fillRect = fill;
          return [timeline.canvas.clientWidth, counts]; })()""")
        lanes_and_strip = 4  # two lanes; green and red
        for count in drawn:
            self.assertLess(count, width * lanes_and_strip + 200, drawn)  # and the clocks above
        self.assertGreater(drawn[0], width)  # all of them are there, each pixel of each lane
        self.assertGreater(drawn[3], 60)     # one for each of the hundred that are in sight, or the gaps between

    def test_the_overlap_is_what_can_be_counted_by_hand(self):
        """Row 4: against times that were made up, and so are known."""
        self.two_nodes(self.small())
        b = self.look()
        b.open(self.page)
        got = b.value("""(async () => {
          const { Spans } = await import('./spans.js'), s = new Spans();
          s.add({ names: [[0, 'a'], [1, 'forward'], [2, 'backward'], [3, 'stall'], [4, 'exchange'], [5, 'b']], lanes: [[0, 'stream compute [0]'], [1, 'gradient_push a'], [2, 'factor_broadcast b']],
            rows: [[0, 0, 1, 0, 100, 0, 0], [0, 0, 2, 100, 200, 0, 0], [1, 0, 4, 200, 150, 0, 0], [2, 5, 4, 300, 100, 0, 0], [0, 0, 3, 320, 80, 1, 0], [0, 0, 1, 400, 100, 1, 0]] });
          return [s.summary(0, 500), s.summary(0, 330), [...s.clocks]]; })()""")
        self.assertEqual(got[0], {"compute": 400, "exposed": 80, "communication": 200})
        self.assertEqual(got[1], {"compute": 300, "exposed": 10, "communication": 130})
        self.assertEqual(got[2], [[0, [0, 300]], [1, [400, 500]]])

    def test_a_single_spike_among_thousands_of_points_is_drawn(self):
        self.two_nodes(self.small())
        b = self.look()
        b.open(self.page)
        kept = b.value("""(async () => {
          const { byColumn } = await import('./curves.js');
          const all = [...Array(10000).keys()].map(x => [x, x === 3333 ? 9 : x === 3334 ? -9 : x % 7 / 7]);
          return [byColumn(all, x => x / 100), byColumn(all.slice(0, 5), x => 20 * x), byColumn([], x => x)]; })()""")
        self.assertEqual(kept[0][0], [0, 0])
        self.assertEqual(kept[0][-1], [9999, 9999 % 7 / 7])
        self.assertTrue([3333, 9] in kept[0] and [3334, -9] in kept[0])
        self.assertLessEqual(len(kept[0]), 4 * 100)
        self.assertEqual([x for x, _ in kept[0]], sorted({x for x, _ in kept[0]}))
        self.assertEqual([len(k) for k in kept[1:]], [5, 0])

    def test_a_page_that_stays_open_for_a_million_iterations_keeps_some_thousand_points(self):
        self.two_nodes(self.small())
        b = self.look()
        b.open(self.page)
        length, first, last, widest, pairs = b.value("""(async () => {
          const { thinned } = await import('./store.js');
          let list = [], pairs = [];
          for (let x = 0; x < 1000000; x += 10) list = thinned([...list, [x]], p => p[0], 500);
          for (let x = 0; x < 1000; ++x) pairs = thinned([...pairs, [x], [x]], p => p[0], 500);
          const gaps = list.slice(1).map((p, i) => p[0] - list[i][0]);
          return [list.length, list[0][0], list.at(-1)[0], Math.max(...gaps), new Set(pairs.map(p => p[0])).size * 2 - pairs.length]; })()""")
        self.assertLessEqual(length, 500)
        self.assertGreater(length, 100)
        self.assertEqual((first, last, pairs), (0, 999990, 0))
        self.assertLess(widest, 8 * 1000000 / 500)

    def test_the_page_says_that_a_run_is_over_and_shows_the_next_one(self):
        solver = self.small()
        first, second = self.two_nodes(solver, web=self.enterContext(cluster.reserved_address()))
        b = self.look()
        b.open(self.page)
        b.wait_for(READY + " && poseidon.store.members[0]?.clock > 2", "both nodes train")
        first.stop()
        b.wait_for("document.getElementById('state').textContent === 'ended'", "the page says that the run has ended")
        b.wait_for(LOG + ".includes('ending after iteration')", "the log says so", shown=LOG)
        again = self.cluster.node("--solver", solver, "--devices", "cpu:1", "--web", re.fullmatch(r"http://(.*)/", self.page)[1])
        b.wait_for("poseidon.store.connection === 'live' && poseidon.store.graph.run.nodes === 1 && poseidon.store.members[0]?.clock > 2 "
                   "&& document.getElementById('state').textContent === 'training'", "the new run is shown")
        again.stop()

    def test_nodes_that_join_and_leave_are_marks_on_the_curves(self):
        first, second = self.two_nodes(self.small(), "--routes", "ps")
        b = self.look(1600, 1000)
        b.open(self.page)
        b.wait_for("poseidon.curves.loss.marked?.length === 0", "the curves are drawn")
        third = self.cluster.node("--join", second.wait_for(r"this node listens on (\S+)")[1], "--devices", "cpu:1")
        b.wait_for("poseidon.curves.loss.marked.map(m => m.text).join() === '3 nodes'", "the first mark is drawn")
        began = int(third.wait_for(r"^view \d+: 3 nodes train from iteration (\d+) on")[1])
        b.wait_for(f"poseidon.curves.speed.marked?.[0]?.x === {began}", "the other curves have it", shown="poseidon.curves.speed.marked")
        third.signal(signal.SIGTERM)
        self.assertEqual(third.wait(), 143, third)
        b.wait_for("poseidon.curves.loss.marked.map(m => m.text).join() === '3 nodes,2 nodes'", "the second mark is drawn")
        b.wait_for(LOG + ".includes('worker 2')", "the log names it", shown=LOG)
        self.keep(b, "views")
        self.assertEqual(b.complaints(), [])
        first.stop()

    def test_who_waits_for_a_slow_link_stands_below_the_header(self):
        def way(address):
            self.wire = faulty_wire.FaultyWire(address)
            self.addCleanup(self.wire.cut)
            return self.wire.address
        self.two_nodes(self.small(hidden=512), "--routes", "ps", way=way)
        b = self.look()
        b.open(self.page)
        b.wait_for(READY, "the graph is drawn")
        b.wait_for("poseidon.store.members.length === 2 && poseidon.store.members.every(m => m.clock > 5)", "both nodes train")
        b.wait_for("!poseidon.store.doctor?.stall", "no worker waits")
        self.wire.pace(100e3)  # an update takes a quarter of a minute
        b.wait_for("!document.getElementById('verdict').hidden && /the update of .* waits for worker [01]/.test(document.getElementById('verdict').textContent)", "it is said")
        self.keep(b, "verdict")
        self.wire.pace(None)
        b.wait_for("!poseidon.store.doctor?.stall", "training continues, or has ended")

    def test_a_finished_run_is_shown_again(self):
        """Row 13: the trace file alone brings back actors, counts, curves and timeline."""
        trace = self.cluster.folder / "trace.json"
        first, second = self.two_nodes(self.small(iterations=40), "--trace", trace)
        self.assertEqual(self.cluster.wait_all(), [0, 0], first.output)
        self.assertEqual(cluster.Trace(trace).partial_overlaps(), [])
        viewer = self.cluster.start(cluster.BIN / "poseidon-graph", "view", trace, "--web", "127.0.0.1:0")
        b = self.look()
        b.open(viewer.wait_for(PAGE)[1] + "/")
        b.wait_for("poseidon.store.replay && poseidon.graph.elements.size > 10 && poseidon.store.spans.clocks.size >= 38", "the recording is shown")
        self.assertEqual(b.value("poseidon.store.points.at(-1)[0]"), 39)
        recorded = json.loads(trace.read_text())["poseidon"]["tick"]["e"]
        self.assertEqual(b.value("poseidon.store.edges.reduce((sum, e) => sum + e.messages, 0)"), sum(m for _, m, _ in recorded))
        b.wait_until_drawn()
        self.keep(b, "recording")
        self.assertEqual(b.complaints(), [])
        viewer.signal(15)
        self.assertEqual(viewer.wait(), 0)

    def test_a_folder_with_snapshots_shows_the_curves_of_a_run_and_of_the_one_that_it_was_resumed_from(self):
        solver = self.small(iterations=6, more="snapshot: 4")
        first = self.cluster.node("--solver", solver, "--devices", "cpu:1")
        self.assertEqual(first.wait(), 0, first)
        state = next(self.cluster.folder.glob("*_iter_4.solverstate"))
        resumed = self.cluster.node("--solver", self.small(iterations=9, more="snapshot: 4"), "--devices", "cpu:1", "--snapshot", state)
        self.assertEqual(resumed.wait(), 0, resumed)
        viewer = self.cluster.start(cluster.BIN / "poseidon-graph", "view", self.cluster.folder, "--web", "127.0.0.1:0")
        b = self.look()
        b.open(viewer.wait_for(PAGE)[1] + "/")
        b.wait_for("poseidon.store.replay && poseidon.graph.elements.size > 10", "the recording is shown")
        # Iterations 4 and 5 were trained twice: those of the resumed run count.
        self.assertEqual(b.value("poseidon.store.points.map(p => p[0])"), list(range(9)))
        self.assertTrue(b.value("poseidon.store.points.every((p, i, all) => i === 0 || p[1] > all[i - 1][1])"))
        b.wait_for("document.querySelector('[data-figure=iteration]').textContent.startsWith('9 ')", "how far it came")
        b.wait_until_drawn()
        self.keep(b, "folder")
        self.assertEqual(b.complaints(), [])


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-graph")
    cluster.main()
