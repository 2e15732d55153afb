// layout.js - computes the place of every actor. A generic layered layout would be about fifteen thousand pixels wide, because
// every layer points at the same few shards and links. This layout uses what it knows of nets instead. A layer, the layers
// that work in place on its blob, and the actor that exchanges its gradient form one card. A card's column in its module is
// the length of the longest path to it. Modules fill rows as words fill lines, and the actors that serve all layers stand
// below. The test nets have a panel of their own at the bottom, which is left out while it is closed. The same graph always
// gives the same layout, and 500 actors take a few milliseconds.

import { shortened } from './text.js';

const CARD = 140, MAIN = 23, CHIP = 16, GAP = 16, MODULE_PAD = 9, MODULE_HEAD = 18, ROW_GAP = 46, MODULE_GAP = 26;
const STRIP_WIDTH = 124, STRIP_HEIGHT = 24, PANEL_PAD = 30, PANEL_HEAD = 40;
const EXCHANGES = new Set(['gradient_push', 'factor_broadcast', 'lowrank_exchange']);
const GLYPH = 6.2;  // average width of a letter on a card, whose font has 10.5 px

/** "layer conv1 [0]" of a test net or not: {core: "conv1", replica: 0}. */
export function partsOf(name) {
  const m = /^(?:test (?:\d+ )?)?(?:layer|data_source|gradient_push|factor_broadcast|lowrank_exchange) (.*?)(?: \[(\d+)\])?$/.exec(name);
  return m ? { core: m[1], replica: m[2] === undefined ? null : +m[2] } : { core: name, replica: null };
}

const fitted = (text, width) => shortened(text, Math.floor(width / GLYPH));

/** One card: its actors with their places relative to the card's corner. */
function makeCard(key, nodes, module) {
  const title = nodes[0].card.replace(/^test (\d+ )?/, '');
  const short = text => text.startsWith(module + '/') ? text.slice(module.length + 1) : text;
  const of = n => ({ node: n, ...partsOf(n.name) });
  const all = nodes.map(of);
  const mains = all.filter(a => a.node.kind === 'layer' && a.core === title);
  const chips = all.filter(a => !mains.includes(a));
  const places = [];
  const main = CARD / Math.max(1, mains.length);
  mains.forEach((a, i) => places.push({ id: a.node.id, x: i * main, y: 0, w: main - (i + 1 < mains.length ? 2 : 0), h: MAIN,
    label: i === 0 ? fitted(short(title), Math.max(main - 8, 20)) : String(a.replica), more: '' }));
  let x = 0, y = mains.length ? MAIN + 3 : 0;
  for (const a of chips) {
    const exchange = EXCHANGES.has(a.node.kind);
    const route = a.node.kind === 'gradient_push' ? 'push' : 'factors';
    // A card without a layer is a program's parameter.
    const text = exchange ? (mains.length ? route : route + ' ' + short(title)) : a.node.kind === 'data_source' ? 'source' : short(a.core);
    const label = a.replica > 0 ? '·' + a.replica : fitted(text, CARD - 10);
    const w = Math.min(CARD, label.length * GLYPH + 9);
    if (x > 0 && x + w > CARD) { x = 0; y += CHIP + 3; }
    places.push({ id: a.node.id, x, y, w, h: CHIP, label, small: true, exchange });
    x += w + 3;
  }
  const h = (chips.length ? y + CHIP : MAIN);
  return { key, module, title, places, w: CARD, h, nodes, exchange: chips.some(a => EXCHANGES.has(a.node.kind)) };
}

/** The cards by column. A card's column is the length of the longest path from a source; `into` has the sources of each card. */
function columnsOf(cards, into) {
  const column = new Map();
  const visit = key => {
    if (column.has(key)) return column.get(key);
    column.set(key, 0);  // ends the recursion on a cycle; a net has none
    let c = 0;
    for (const from of into.get(key) ?? []) c = Math.max(c, visit(from) + 1);
    column.set(key, c);
    return c;
  };
  for (const c of cards) visit(c.key);
  const columns = [];
  for (const c of cards) (columns[column.get(c.key)] ??= []).push(c);
  return columns.filter(Boolean);
}

/** Gives the cards of a module their places relative to its corner. No card reaches further right than `most`. */
function arrange(module, links, most) {
  const inside = new Set(module.cards.map(c => c.key));
  const into = new Map();
  for (const [from, to] of links) if (inside.has(from) && inside.has(to)) into.set(to, [...(into.get(to) ?? []), from]);
  let columns = columnsOf(module.cards, into);
  if (module.cards.length <= 1.5 * columns.length) {
    // A chain of layers runs down and continues at the top of the next column, as in a newspaper.
    const high = Math.max(2, Math.min(5, Math.ceil(Math.sqrt(module.cards.length))));
    const chain = columns.flat();
    columns = [];
    for (let i = 0; i < chain.length; i += high) columns.push(chain.slice(i, i + high));
  } else {
    const row = new Map();
    for (const column of columns) {
      const wish = c => { const rows = (into.get(c.key) ?? []).map(k => row.get(k)).filter(r => r !== undefined); return rows.length ? rows.reduce((a, b) => a + b) / rows.length : 0; };
      const order = column.map((c, i) => [wish(c), i, c]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      column.splice(0, column.length, ...order.map(o => o[2]));
      column.forEach((c, i) => row.set(c.key, i));
    }
  }
  let x = MODULE_PAD, top = MODULE_HEAD, bottom = top, right = 0;
  for (const column of columns) {
    if (x > MODULE_PAD && x + CARD + MODULE_PAD > most) { x = MODULE_PAD; top = bottom + GAP; }
    let y = top;
    for (const c of column) { c.x = x; c.y = y; y += c.h + 10; }
    bottom = Math.max(bottom, y - 10);
    right = Math.max(right, x + CARD);
    x += CARD + GAP;
  }
  module.w = right + MODULE_PAD;
  module.h = bottom + MODULE_PAD;
}

/** The links without those that a longer path replaces. */
function reduced(links) {
  const next = new Map();
  for (const [a, b] of links) next.set(a, [...(next.get(a) ?? []), b]);
  const reaches = (from, to, skip) => {
    const seen = new Set([from]), open = (next.get(from) ?? []).filter(n => n !== skip);
    while (open.length) {
      const n = open.pop();
      if (n === to) return true;
      if (!seen.has(n)) { seen.add(n); open.push(...(next.get(n) ?? [])); }
    }
    return false;
  };
  return links.filter(([a, b]) => !reaches(a, b, b));
}

/** A test net, and a net whose layers have no slash in their names, comes as one module. A big one is split by the beginnings of
 *  the names (res2a in res2a_branch1, inception_3a in inception_3a/pool). Neighbouring layers stay in one part if no other layer
 *  shares their beginnings. */
function cut(module) {
  if (module.cards.length <= 24) return [module];
  const beginning = c => c.title.split(c.title.includes('/') ? '/' : '_')[0], sizes = new Map();
  for (const c of module.cards) sizes.set(beginning(c), (sizes.get(beginning(c)) ?? 0) + 1);
  const parts = [], byName = new Map();
  for (const c of module.cards) {
    const name = beginning(c), alone = sizes.get(name) === 1, last = parts.at(-1);
    let part = alone ? (last?.alone ? last : null) : byName.get(name);
    if (!part) {
      parts.push(part = { ...module, id: `${module.id} ${parts.length}`, label: name, cards: [], alone });
      if (!alone) byName.set(name, part);
    }
    part.cards.push(c);
    if (alone && part.cards.length > 1) part.label = `${beginning(part.cards[0])} … ${name}`;
  }
  if (parts.length < 3) return [module];
  for (const part of parts) for (const c of part.cards) c.module = part.id;
  return parts;
}

/** Puts modules into rows that are not wider than `wrap`, with their first corner at (left, top). */
function pack(modules, links, wrap, left = 0, top = 0) {
  const rows = [];
  let row = null;
  for (const m of modules) {
    arrange(m, links, wrap);
    if (!row || (row.w + MODULE_GAP + m.w > wrap && row.modules.length)) rows.push(row = { modules: [], w: 0, h: 0 });
    m.x = left + (row.w ? row.w + MODULE_GAP : 0);
    row.modules.push(m);
    row.w = m.x - left + m.w;
    row.h = Math.max(row.h, m.h);
  }
  let y = top;
  for (const r of rows) { r.x = left; r.y = y; for (const m of r.modules) { m.y = y; m.row = r; } y += r.h + ROW_GAP; }
  return { rows, w: Math.max(0, ...rows.map(r => r.w)), h: y - top };
}

/** The boxes of the actors that serve all layers, with at most `width` in a row, from `y` on. */
function makeStrip(groups, nodes, width, y) {
  const boxes = [];
  let x = 0, top = y, high = 0;
  for (const g of groups) {
    const of = nodes.filter(n => n.group === g.id);
    if (!of.length) continue;
    const columns = Math.min(of.length, Math.max(2, Math.ceil(Math.sqrt(of.length * 1.6))));
    const w = columns * (STRIP_WIDTH + 8) - 8 + 2 * MODULE_PAD, h = Math.ceil(of.length / columns) * (STRIP_HEIGHT + 6) - 6 + MODULE_HEAD + MODULE_PAD;
    if (x > 0 && x + w > width) { x = 0; top += high + 18; high = 0; }
    boxes.push({ id: g.id, label: g.label, x, y: top, w, h, strip: true, places: of.map((n, i) => ({ id: n.id, w: STRIP_WIDTH, h: STRIP_HEIGHT,
      x: x + MODULE_PAD + i % columns * (STRIP_WIDTH + 8), y: top + MODULE_HEAD + Math.floor(i / columns) * (STRIP_HEIGHT + 6),
      label: fitted(n.name, STRIP_WIDTH - 8), more: '' })) });
    x += w + MODULE_GAP;
    high = Math.max(high, h);
  }
  return { boxes, bottom: top + high };
}

/** The panel of the open test nets, below everything else; null if it is closed or there are none. */
function makePanel(tests, links, wrap, y) {
  if (!tests.length) return null;
  const packed = pack(tests, links, Math.max(CARD, wrap - 2 * PANEL_PAD), PANEL_PAD, y + PANEL_HEAD);
  return { x: 0, y, w: Math.max(packed.w + 2 * PANEL_PAD, 240), h: PANEL_HEAD + packed.h - ROW_GAP + PANEL_PAD };
}

/** The cards of a graph by key, in the modules to which they belong. */
function cardsOf(graph) {
  const cards = new Map(), modules = new Map(), byCard = new Map(), cardOf = new Map();
  for (const g of [...graph.groups].sort((a, b) => a.order - b.order)) modules.set(g.id, { id: g.id, label: g.label, cards: [], test: isTest(g.id) });
  for (const n of graph.nodes) if (n.card) byCard.set(n.group + '\n' + n.card, [...(byCard.get(n.group + '\n' + n.card) ?? []), n]);
  for (const [key, nodes] of byCard) {
    const c = makeCard(key, nodes, nodes[0].group);
    cards.set(key, c);
    modules.get(c.module).cards.push(c);
    for (const n of nodes) cardOf.set(n.id, c);
  }
  return { cards, cardOf, modules: [...modules.values()].flatMap(cut).filter(m => m.cards.length) };
}

/** Which cards, and which modules, send data to which others. */
function linksOf(graph, cardOf) {
  const seen = new Set(), links = [], between = [];
  for (const e of graph.edges) {
    const a = cardOf.get(e.src), b = cardOf.get(e.dst);
    if (e.kind !== 'data' || !a || !b || a === b || seen.has(a.key + '\t' + b.key)) continue;
    seen.add(a.key + '\t' + b.key);
    links.push([a.key, b.key]);
    const pair = a.module + '\t' + b.module;
    if (a.module !== b.module && !seen.has(pair)) { seen.add(pair); between.push([a.module, b.module]); }
  }
  return { links, between };
}

const isTest = group => /^test( \d+)?$/.test(group);

/** Whether an actor belongs to a test net. */
export const isOfTest = node => isTest(node.group);

/** The layout for a window of width x height: {modules, rows, strip, panel, places: id -> {x,y,w,h,label,..}, cardEdges,
 *  moduleEdges, w, h}. Without `withTests` the actors of the test nets have no place. */
export function layout(graph, width, height, withTests) {
  const { cards, cardOf, modules } = cardsOf(graph), { links, between } = linksOf(graph, cardOf);
  const flow = modules.filter(m => !m.test), tests = withTests ? modules.filter(m => m.test) : [];
  const shown = [...flow, ...tests], loose = graph.nodes.filter(n => !n.card);
  // The lines from the layers above end at the shards and the links, so these stand first.
  const first = ['shards', 'links', 'streams', 'control'];
  const strips = graph.groups.filter(g => loose.some(n => n.group === g.id)).sort((a, b) => first.indexOf(a.id) - first.indexOf(b.id));
  const attempt = wrap => {
    const packed = pack(flow, links, wrap), strip = makeStrip(strips, loose, Math.max(packed.w, wrap), packed.h + 14);
    const panel = makePanel(tests, links, wrap, strip.bottom + 24);
    const w = Math.max(packed.w, panel?.w ?? 0, ...strip.boxes.map(b => b.x + b.w)), h = panel ? panel.y + panel.h : strip.bottom;
    return { packed, strip, panel, w, h, wrap, scale: Math.min(width / (w + 70), height / h) };
  };
  // Of a dozen widths, the layout takes the one at which everything is drawn largest.
  let best = null;
  const area = shown.reduce((sum, m) => { arrange(m, links, 1e9); return sum + (m.w + MODULE_GAP) * (m.h + ROW_GAP); }, 1);
  for (let i = 0; i < 14; ++i) {
    const next = attempt(Math.max(300, Math.sqrt(area * width / height) * (0.6 + i * 0.11)));
    if (!best || next.scale > best.scale) best = next;
  }
  const { packed, strip, panel, w, h } = attempt(best.wrap);  // again, because an attempt moves the modules
  const places = new Map(), ids = new Set(shown.map(m => m.id));
  for (const m of shown) for (const c of m.cards) { c.x += m.x; c.y += m.y; for (const p of c.places) places.set(p.id, { ...p, x: c.x + p.x, y: c.y + p.y, card: c }); }
  for (const b of strip.boxes) for (const p of b.places) places.set(p.id, p);
  return { modules: shown, rows: packed.rows, strip: strip.boxes, panel, places, cards, w, h,
    cardEdges: links.filter(([a, b]) => cards.get(a).module === cards.get(b).module && ids.has(cards.get(a).module)),
    moduleEdges: reduced(between.filter(([a, b]) => ids.has(a) && ids.has(b))) };
}
