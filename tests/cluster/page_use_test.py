# tests/cluster/page_use_test.py - what a reader does with the page: test nets, small windows, keys alone, runs that have failed.
import cluster
from shown_page import READY, ShownPage, deep_net
from web_page import PAGE

TESTED = "test_iter: 1 test_interval: 1000000000 test_initialization: false"
OUTSIDE = """[...document.querySelectorAll('body *')].filter(e => !e.closest('svg') && e.checkVisibility() && (e.getBoundingClientRect().right > innerWidth + 0.5
  || e.getBoundingClientRect().left < -0.5 || (e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX))))
  .map(e => e.tagName + '#' + e.id + '.' + e.className)"""
# Of texts in the graph: [text, height of the font on the screen, inside its box and the picture, contrast with the ground].
TEXTS = """(() => {
  const part = v => (v /= 255, v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(part); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const picture = document.getElementById('graph').getBoundingClientRect(), ground = getComputedStyle(document.querySelector('.module > rect')).fill;
  return [...document.querySelectorAll(SELECTOR)].filter(t => t.textContent && t.checkVisibility()).map(t => {
    const r = t.getBoundingClientRect(), of = t.closest('.module, .actor'), box = of ? of.querySelector('rect').getBoundingClientRect() : picture, style = getComputedStyle(t);
    return [t.textContent, parseFloat(style.fontSize) * poseidon.graph.view.scale,
      r.left >= Math.max(box.left, picture.left) - 0.5 && r.right <= Math.min(box.right, picture.right) + 0.5, contrast(style.fill, ground)]; }); })()"""
# From now on each answer waits until `held[i].go()` is called, and the graph is asked for: held[0]. `taken`: its reader has it.
HOLD_ANSWERS = """(window.held = [], window.asked = window.fetch, window.fetch = async (...what) => {
    const answer = await asked(...what), one = {};
    held.push(one);
    await new Promise(go => one.go = go);
    setTimeout(() => one.taken = true);
    return answer; }, poseidon.store.graph.rev = -1)"""
FIGURES = "[...document.querySelectorAll('[data-figure]')].map(e => e.dataset.figure)"


class Used(ShownPage):
    def shown(self, b):
        b.open(self.page)
        b.wait_for(READY, "the graph is drawn")
        b.wait_for("poseidon.store.members.length === 2 && poseidon.store.members.every(m => m.clock > 5) && poseidon.store.points.length > 3",
                   "both nodes train")

    def resize(self, b, width, height):
        b.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        # The window may get its size later, and the picture is fitted in the frame after that.
        b.wait_for(f"innerWidth === {width}", "the window has its new size")
        b.wait_until_drawn()

    def test_a_test_net_is_a_closed_panel_that_a_click_or_a_key_opens(self):
        self.two_nodes(self.small(more=TESTED))
        b = self.look()
        self.shown(b)
        of_tests = b.value("poseidon.store.graph.nodes.filter(n => n.group.startsWith('test')).length")
        every = b.value("poseidon.store.graph.nodes.length")
        self.assertGreater(of_tests, 5)
        drawn, state = "document.querySelectorAll('.actor').length", "document.getElementById('tests')?.getAttribute('aria-expanded')"
        self.assertEqual((b.value(state), b.value(drawn)), ("false", every - of_tests), "the graph shows the training net alone")
        self.assertRegex(b.value("document.getElementById('tests').textContent"), rf"^Test net: {of_tests} actors")
        self.keep(b, "tests-closed")
        b.click("#tests")
        b.wait_for(f"{state} === 'true' && {drawn} === {every}", "a click opens it")
        self.assertEqual(self.overlaps(b), [])
        self.assertEqual(b.value("(() => { const box = document.getElementById('graph').getBoundingClientRect(); return [...document.querySelectorAll('.actor > rect')]"
                                 ".filter(r => r.getBoundingClientRect().bottom > box.bottom || r.getBoundingClientRect().right > box.right).length; })()"), 0)
        self.keep(b, "tests-open")
        self.assertEqual(b.value("document.activeElement.id"), "tests")
        b.press("Enter")
        b.wait_for(f"{state} === 'false' && {drawn} === {every - of_tests}", "Enter closes it")
        b.press(" ", " ")
        b.wait_for(f"{state} === 'true' && {drawn} === {every}", "the space bar opens it")
        b.press(" ", " ")
        b.wait_for(f"{state} === 'false'", "and closes it")
        b.click("#find")
        b.type("test layer ip1")
        b.press("Enter")
        b.wait_for(f"{state} === 'true' && document.activeElement.getAttribute('aria-label')?.startsWith('test layer ip1')", "an actor that is searched for is shown")
        self.assertEqual(b.complaints(), [])

    def test_a_page_that_is_open_before_the_run_begins_shows_its_actors(self):
        first = self.cluster.node("--solver", self.small(), "--devices", "cpu:1", "--listen", "127.0.0.1:0", "--nodes", 2, "--web", "127.0.0.1:0")
        b = self.look()
        b.open(first.wait_for(PAGE)[1] + "/")
        address = first.wait_for(cluster.LISTENING)[1]
        b.wait_for("poseidon.store.graph && poseidon.store.ticks > 2", "the page shows the node that waits")
        self.assertLess(b.value("poseidon.store.graph.nodes.length"), 10)
        self.cluster.node("--join", address, "--devices", "cpu:1")
        b.wait_for("poseidon.store.graph.nodes.some(n => n.name === 'layer conv1 [0]')", "the actors of the run are shown")
        self.assertEqual(b.complaints(), [])

    def test_who_chooses_a_worker_while_the_graph_of_another_is_asked_for_sees_the_one_that_was_chosen(self):
        self.two_nodes(self.small())
        b = self.look()
        self.shown(b)
        b.value(HOLD_ANSWERS)
        b.wait_for("held.length === 1", "the first node's graph is asked for")
        b.click("#members tr[data-worker='1'] td")
        b.wait_for("held.length === 2", "worker 1's graph is asked for")
        for answer, arrives in ((1, "poseidon.store.graph.run.worker === 1"), (0, "held[0].taken")):
            b.value(f"held[{answer}].go()")
            b.wait_for(arrives, f"answer {answer} arrives")
        b.value("window.fetch = asked")
        ticks = b.value("poseidon.store.ticks")
        b.wait_for(f"poseidon.store.ticks > {ticks} + 3", "the run goes on")
        self.assertEqual(b.value("poseidon.store.graph.run.worker"), 1)
        self.assertEqual(b.complaints(), [])

    def test_subtitles_can_be_read_and_no_number_is_cut(self):
        self.two_nodes(deep_net(self.cluster.folder, 9), "--routes", "ps")
        b = self.look(1440, 900)
        self.shown(b)
        for width, height in ((1440, 900), (420, 800)):
            self.resize(b, width, height)
            with self.subTest(width=width):
                b.wait_for("poseidon.graph.view.scale < 0.7 && [...document.querySelectorAll('.module > text.sum')].some(t => t.textContent)", "modules are summed up")
                texts = b.value(TEXTS.replace("SELECTOR", "'.module > text.sum, .bus-rate'"))
                self.assertGreater(len(texts), 3)
                for text, size, inside, contrast in texts:
                    self.assertTrue(inside, f"{text}: is cut")
                    self.assertGreaterEqual(size, 10, text)
                    if " actor" in text:
                        self.assertGreaterEqual(contrast, 4.5, text)
                self.keep(b, f"far-{width}")
        with self.subTest("near by"):
            self.resize(b, 1440, 900)
            # In one step: a graph that changes in between is fitted into the page again.
            texts = b.value("(() => { poseidon.graph.focus(poseidon.graph.find('m3/1x1')); return %s; })()" % TEXTS.replace("SELECTOR", "'.actor > text'"))
            self.assertGreater(len(texts), 50)
            self.assertEqual([t for t in texts if t[1] < 9 or t[3] < 4.5], [])
        with self.subTest("names with numbers"):
            names = [("abcdefghi_" * 4)[:n] + "1234567890" for n in range(4, 30)]
            labels = b.value("(async () => { const { layout } = await import('./layout.js'); return %s.map(name => layout({ groups: [{ id: 'net', label: 'net', order: 0 }], edges: [], "
                             "nodes: [{ id: 0, name: `layer ${name} [0]`, kind: 'layer', group: 'net', card: name }] }, 800, 600).places.get(0).label); })()" % names)
            self.assertTrue(any(label.endswith("…") for label in labels))
            for name, label in zip(names, labels):
                self.assertTrue(label == name or (label.endswith("…") and not label[-2].isdigit()), (name, label))

    def test_in_a_narrow_window_nothing_scrolls_sideways(self):
        first, second = self.two_nodes(self.small(more=TESTED), "--survive", 0)
        b = self.look(420, 800)
        self.shown(b)
        def fits(state):
            with self.subTest(state):
                self.assertLessEqual(b.value("document.documentElement.scrollWidth"), 420)
                self.assertEqual(b.value(OUTSIDE), [])
                self.keep(b, f"narrow-{state}")
        b.wait_for("document.getElementById('overlap').textContent.includes('hidden')", "the timeline is summed up")
        fits("live")
        b.value("poseidon.graph.select(poseidon.graph.find('gradient_push conv1'))")
        fits("selected")
        b.value("document.getElementById('tests')?.click()")
        fits("tests")
        second.kill()
        b.wait_for("document.getElementById('state').textContent.startsWith('ended: ')", "the run has failed")
        fits("failed")

    def test_after_a_lost_node_the_reason_is_whole_and_nothing_looks_as_if_it_continued(self):
        first, second = self.two_nodes(self.small(), "--routes", "ps", "--survive", 0)
        b = self.look()
        self.shown(b)
        b.wait_for(f"{FIGURES}.includes('images/s') && {FIGURES}.includes('left')", "a run that continues has a rate and a time left")
        b.wait_for("/B\\/s/.test(document.getElementById('members').textContent)", "its members have rates")
        # An answer that was asked for before the end, and comes after it.
        b.value(HOLD_ANSWERS)
        b.wait_for("held.length === 1", "the graph is asked for")
        second.kill()
        b.wait_for("document.getElementById('state').textContent.startsWith('ended: ')", "the run has failed")
        b.value("(held[0].go(), poseidon.store.graph.rev)")
        b.wait_for("poseidon.store.graph.rev !== -1", "the graph has come")
        with self.subTest("the reason is shown to its end"):
            self.assertEqual(b.value("document.getElementById('state').textContent"), b.value("poseidon.store.why"))
            self.assertGreater(len(b.value("poseidon.store.why")), 50)
            self.assertEqual(b.value("(() => { const e = document.getElementById('state'), r = e.getBoundingClientRect(); return e.scrollWidth <= e.clientWidth + 1 "
                                     "&& e.scrollHeight <= e.clientHeight + 1 && r.left >= 0 && r.right <= innerWidth; })()"), True)
        with self.subTest("no rates, no time left"):
            b.wait_for(f"!{FIGURES}.some(f => ['images/s', 'left'].includes(f))", "they are gone", shown=FIGURES)
            b.wait_until_drawn()
            for rates in ("members", "tests", "graph"):
                self.assertNotRegex(b.value(f"document.getElementById('{rates}')?.textContent ?? ''"), r"[\d.] ?[kMG]?B?/s", rates)
            self.assertNotIn("up", b.value("[...document.querySelectorAll('#members .tag')].map(t => t.textContent)"))
            self.assertEqual(b.value("[...document.querySelectorAll('.curve')].filter(c => !c.hidden && /^(images|network)/.test(c.textContent) && !c.textContent.includes('at the end')).length"), 0)
        self.keep(b, "failed")
        self.assertEqual(first.wait(), 3, first.output)

    def test_a_node_that_is_killed_leaves_no_rates_on_its_page(self):
        first, second = self.two_nodes(self.small())
        b = self.look()
        self.shown(b)
        first.kill()
        b.wait_for("document.getElementById('state').textContent === 'reconnecting'", "the page has lost the node")
        b.wait_for(f"!{FIGURES}.some(f => ['images/s', 'left'].includes(f))", "the rates are gone", shown=FIGURES)

    def test_timeline_and_log_count_from_the_same_start(self):
        """Causes come before their effects, so their times show whether both scales have one zero."""
        first, second = self.two_nodes(self.small())
        b = self.look()
        self.shown(b)
        # The scale as it is drawn around a moment: its labels, turned back into the zero from which they count.
        zero = """(t => { const { timeline } = poseidon, write = timeline.pen.fillText, seen = [];
          timeline.setFollow(false);
          timeline.window = [t - 5000, t + 5000];
          timeline.pen.fillText = (text, x) => { const m = /^([\\d.]+) (s|ms)$/.exec(text); if (m) seen.push(timeline.timeAt(x - 3) - m[1] * (m[2] === 's' ? 1e6 : 1e3)); };
          timeline.draw();
          timeline.pen.fillText = write;
          return seen[0]; })"""
        joined = "poseidon.store.lines.find(l => l[2].startsWith('worker 1 joined'))[1]"
        b.wait_for("poseidon.store.lines.some(l => l[2].startsWith('worker 1 joined'))", "the log has it")
        early = b.value(f"(poseidon.store.spans.begin - {zero}(poseidon.store.spans.begin)) / 1e6")
        self.assertGreaterEqual(early, b.value(joined), "a node joins before the first kernel runs")
        first.stop()
        b.wait_for("poseidon.store.lines.some(l => l[2].startsWith('the run has ended'))", "the run has ended")
        late = b.value(f"(poseidon.store.spans.end - {zero}(poseidon.store.spans.end)) / 1e6")
        self.assertLessEqual(late, b.value("poseidon.store.lines.find(l => l[2].startsWith('the run has ended'))[1]") + 1e-4, "the last kernel ran before the run ended")

    def test_a_recording_knows_when_its_run_began(self):
        """Against times that were made up: the run began at 2 s of the spans' clock; a report comes 5 ms or more after a forward pass."""
        self.two_nodes(self.small())
        b = self.look()
        b.open(self.page)
        got = b.value("""(async () => {
          const { Spans } = await import('./spans.js'), s = new Spans(), rows = [];
          for (let c = 0; c < 4; ++c) rows.push([0, 0, 1, 2.1e6 + 1e5 * c, 40000, c, 0], [0, 0, 2, 2.14e6 + 1e5 * c, 50000, c, 0]);
          s.add({ names: [[0, 'a'], [1, 'forward'], [2, 'backward']], lanes: [[0, 'stream compute [0]']], rows });
          return [s.startOf([[0, 0.165], [1, 0.245], [2, 0.4], [9, 1]]), s.startOf([[9, 1]])]; })()""")
        self.assertEqual(got, [2.14e6 + 1e5 - 245000, None])

    def test_members_are_chosen_with_keys_alone(self):
        self.two_nodes(self.small())
        b = self.look()
        self.shown(b)
        row = "document.activeElement.closest('#members tr')?.dataset.worker"
        for _ in range(60):
            b.press("Tab")
            if b.value(row) is not None:
                break
        self.assertEqual(b.value(row), "0", "the Tab key reaches the members")
        self.assertNotEqual(b.value("getComputedStyle(document.activeElement).outlineStyle"), "none", "the focus is seen")
        self.assertGreaterEqual(b.value("parseFloat(getComputedStyle(document.activeElement).outlineWidth)"), 2)
        b.press("ArrowDown")
        self.assertEqual(b.value(row), "1")
        before = b.value("document.querySelectorAll('#members tr')[1].cells[2].textContent")
        b.wait_for(f"document.querySelectorAll('#members tr')[1].cells[2].textContent !== {before!r}", "the table has changed")
        self.assertEqual(b.value(row), "1", "the focus stays when the figures change")
        b.press("Enter")
        b.wait_for("poseidon.store.graph.run.worker === 1", "Enter chooses")
        b.wait_for("document.querySelector('#members tr[aria-selected=true]').dataset.worker === '1'", "the choice is shown")
        b.press("ArrowUp")
        b.press(" ", " ")
        b.wait_for("poseidon.store.graph.run.worker === 0", "the space bar chooses")
        self.assertEqual(b.value(row), "0")
        b.press("End")
        self.assertEqual(b.value(row), "1")
        b.press("Home")
        self.assertEqual(b.value(row), "0")

    def test_the_page_speaks_of_iterations(self):
        self.two_nodes(self.small())
        b = self.look()
        self.shown(b)
        b.value("poseidon.graph.select(poseidon.graph.find('gradient_push conv1'))")
        words = b.value("['header', 'h2', '#members', '#details', '#overlap', '#curves'].map(s => [...document.querySelectorAll(s)].map(e => e.innerText + e.title).join(' ')).join(' ')")
        self.assertIn("iteration", words)
        self.assertNotRegex(words, r"(?i)\bclock")


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-graph")
    cluster.main()
