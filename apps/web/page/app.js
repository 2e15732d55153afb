// app.js - puts the page together. window.poseidon is for tests and for the curious.
import { Curves } from './curves.js';
import { Graph, LEGENDS } from './graph.js';
import { Panels } from './panels.js';
import { Store } from './store.js';
import { h } from './text.js';
import { PHASES, Timeline } from './timeline.js';

const $ = id => document.getElementById(id);
const store = new Store();
const panels = new Panels(store, id => choose(id), id => graph.select(id));
const graph = new Graph($('graph'), store, id => {
  panels.show(id);
  const node = store.graph?.byId.get(id);
  timeline.layer = node?.card?.replace(/^test (\d+ )?/, '') ?? null;
  timeline.ask();
});
const timeline = new Timeline($('time'), $('tip'), store);
const curves = new Curves($('curves'), store);

function choose(worker) {
  if (worker === store.graph?.run.worker || store.replay) return;
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
  graph.select(id);
  graph.focus(id);
});
addEventListener('keydown', e => {
  if (e.target.matches?.('input, select')) return;
  if (e.key === '/') { e.preventDefault(); $('find').focus(); }
  if (e.key === 'Escape') graph.select(null);
});

let summedAt = 0;
timeline.onDraw = () => {
  const now = performance.now();
  if (now - summedAt < 400) return;
  summedAt = now;
  // Whole clocks only: a part of one would have its computing without its waiting.
  const inside = [...store.spans.clocks.values()].filter(([begin, end]) => begin >= timeline.window[0] && end <= timeline.window[1]);
  if (inside.length < 2) return;
  const from = inside[0][0], to = inside.at(-1)[0];
  panels.overlap(store.spans.summary(from, to), inside.length - 1);
};
store.addEventListener('graph', () => {
  $('dot').href = 'api/dot?node=' + store.graph.run.worker;
  for (const id of ['dot', 'trace', 'csv']) $(id).hidden = store.replay;
});

window.poseidon = { store, graph, timeline, curves, panels };
// Frames drawn per second, for the test that wants the page to stay fluent.
let frames = 0;
(function frame() { ++frames; window.poseidon.frames = frames; requestAnimationFrame(frame); })();
store.start();
