// app.js - builds the page from its parts. Tests and curious readers reach them as window.poseidon.
import { LEGENDS } from './colours.js';
import { Curves } from './curves.js';
import { Graph } from './graph.js';
import { Members } from './members.js';
import { Panels } from './panels.js';
import { Store } from './store.js';
import { count, h } from './text.js';
import { PHASES, Timeline } from './timeline.js';

const $ = id => document.getElementById(id);
const store = new Store();
const panels = new Panels(store), members = new Members(store, choose);
const graph = new Graph($('graph'), store, id => {
  panels.show(id);
  const node = store.graph?.byId.get(id);
  timeline.layer = node?.card?.replace(/^test (\d+ )?/, '') ?? null;
  timeline.ask();
});
const timeline = new Timeline($('time'), $('tip'), store);
const curves = new Curves($('curves'), store);

function choose(worker) {
  if (worker === store.graph?.run.worker || store.replay || !store.moving) return;  // the server has to send the other actors
  graph.select(null);
  timeline.setFollow(true);
  timeline.span = null;
  store.choose(worker);
}

function swatches(parent, entries) {
  parent.replaceChildren(...entries.map(([text, colour]) => {
    const swatch = h('i');
    swatch.style.background = `var(${colour})`;
    return h('span', {}, swatch, text);
  }));
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** The test nets are closed at first: they repeat the training net, and would take almost half of the picture. */
function showTests(open) {
  graph.showTests(open);
  $('tests').setAttribute('aria-expanded', open);
}

function describeTests() {
  const actors = graph.tests, rate = actors.reduce((sum, n) => sum + (store.actors[n.id]?.rate ?? 0), 0);
  $('tests').hidden = !actors.length;
  $('tests').textContent = `Test net: ${count(actors.length)} actors` + (rate >= 1 ? `, ${count(rate)} messages/s` : '');
}

graph.onTests = showTests;
$('tests').addEventListener('click', () => showTests(!graph.testsOpen));
for (const kind of ['graph', 'tick']) store.addEventListener(kind, describeTests);
swatches($('legend'), LEGENDS.type);
swatches($('phases'), PHASES);
$('colour').addEventListener('change', e => { graph.setColour(e.target.value); swatches($('legend'), LEGENDS[e.target.value]); });
$('fit').addEventListener('click', () => graph.view.fit());
$('svg').addEventListener('click', () => save('actors.svg', 'image/svg+xml', graph.exported()));
$('worker').addEventListener('change', e => choose(+e.target.value));
$('follow').addEventListener('change', e => { timeline.span = null; timeline.setFollow(e.target.checked); });
timeline.onFollow = on => { $('follow').checked = on; };
$('find').addEventListener('keydown', e => {
  if (e.key === 'Escape') return e.target.blur();
  if (e.key !== 'Enter') return;
  const id = graph.find(e.target.value);
  if (id === null) return;
  graph.focus(id);
  graph.select(id);
});
addEventListener('keydown', e => {
  if (e.target.matches?.('input, select')) return;
  if (e.key === '/') { e.preventDefault(); $('find').focus(); }
  if (e.key === 'Escape') graph.select(null);
});

let summedAt = 0, sumLater = null;
function sumUp() {
  summedAt = performance.now();
  // Only whole iterations count, because a part of one could have its computing without its waiting.
  const inside = [...store.spans.clocks.values()].filter(([begin, end]) => begin >= timeline.window[0] && end <= timeline.window[1]);
  if (inside.length < 2) return;
  const from = inside[0][0], to = inside.at(-1)[0];
  panels.overlap(store.spans.summary(from, to), inside.length - 1);
}
/** Sums up what the timeline shows, at most once in 0.4 s, and always after the last change. */
timeline.onDraw = () => {
  clearTimeout(sumLater);
  const wait = summedAt + 400 - performance.now();
  if (wait <= 0) sumUp(); else sumLater = setTimeout(sumUp, wait);
};
store.addEventListener('graph', () => {
  $('dot').href = 'api/dot?node=' + store.graph.run.worker;
  for (const id of ['dot', 'trace', 'csv']) $(id).hidden = store.replay;
});

window.poseidon = { store, graph, timeline, curves, panels, members };
// Counts the frames that the browser draws; tools/bench/page_drawing reads it.
let frames = 0;
(function frame() { ++frames; window.poseidon.frames = frames; requestAnimationFrame(frame); })();
store.start();
