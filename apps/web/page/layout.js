// layout.js - where everything stands. A generic layered layout of a net's actors is some fifteen thousand pixels wide,
// because every layer points at a few shards and links. So this one knows the domain: a layer, those that work in its
// blob and its exchange are one card; cards stand in their module by their longest path from its beginning; modules
// flow in rows like text; what serves all layers stands below. Deterministic, and a few milliseconds for 500 actors.

const CARD = 132, MAIN = 22, CHIP = 14, PAD = 5, GAP = 16, MODULE_PAD = 9, MODULE_HEAD = 18, ROW_GAP = 46, MODULE_GAP = 26;
const STRIP_WIDTH = 118, STRIP_HEIGHT = 24;
const GLYPH = 5.7;  // of the 10 px font, on average

/** "layer conv1 [0]" of a test net or not: {core: "conv1", replica: 0}. */
export function partsOf(name) {
  const m = /^(?:test (?:\d+ )?)?(?:layer|data_source|gradient_push|factor_broadcast) (.*?)(?: \[(\d+)\])?$/.exec(name);
  return m ? { core: m[1], replica: m[2] === undefined ? null : +m[2] } : { core: name, replica: null };
}

const fitted = (text, width) => text.length * GLYPH <= width ? text : text.slice(0, Math.max(1, Math.floor(width / GLYPH) - 1)) + '…';

/** One card: its actors with places relative to its corner. */
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
    const exchange = a.node.kind === 'gradient_push' || a.node.kind === 'factor_broadcast';
    const text = exchange ? (a.node.kind === 'gradient_push' ? 'push' : 'factors') : a.node.kind === 'data_source' ? 'source' : short(a.core);
    const label = a.replica > 0 ? '·' + a.replica : fitted(text, CARD - 10);
    const w = Math.min(CARD, label.length * GLYPH + 10);
    if (x > 0 && x + w > CARD) { x = 0; y += CHIP + 3; }
    places.push({ id: a.node.id, x, y, w, h: CHIP, label, small: true, exchange });
    x += w + 3;
  }
  const h = (chips.length ? y + CHIP : MAIN);
  return { key, module, title, places, w: CARD, h, nodes, exchange: chips.some(a => a.node.kind === 'gradient_push' || a.node.kind === 'factor_broadcast') };
}

/** Longest path from the sources, over edges among `keys`. */
function columnsOf(cards, out, into) {
  const column = new Map();
  const visit = key => {
    if (column.has(key)) return column.get(key);
    column.set(key, 0);  // a circle, which no net has, would end here
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

/** Gives a module's cards their places relative to its corner, none further right than `most`. */
function arrange(module, links, most) {
  const inside = new Set(module.cards.map(c => c.key));
  const into = new Map();
  for (const [from, to] of links) if (inside.has(from) && inside.has(to)) into.set(to, [...(into.get(to) ?? []), from]);
  let columns = columnsOf(module.cards, null, into);
  if (module.cards.length <= 1.5 * columns.length) {
    // A chain runs down and then right, like newspaper columns.
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

/** Without the links that a longer way says as well. */
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

/** A net whose names have no slashes is one module. A big one is cut by what its layers' names begin with (res2a_branch1), and
    layers whose name no other shares stay together with their neighbours of that kind. */
function cut(module) {
  if (module.cards.length <= 24) return [module];
  const beginning = c => c.title.split('_')[0], sizes = new Map();
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

function pack(modules, links, wrap) {
  const rows = [];
  let row = null;
  for (const m of modules) {
    arrange(m, links, wrap);
    if (!row || (row.w + MODULE_GAP + m.w > wrap && row.modules.length)) rows.push(row = { modules: [], w: 0, h: 0 });
    m.x = row.w ? row.w + MODULE_GAP : 0;
    row.modules.push(m);
    row.w = m.x + m.w;
    row.h = Math.max(row.h, m.h);
  }
  let y = 0;
  for (const r of rows) { r.y = y; for (const m of r.modules) { m.y = y; m.row = r; } y += r.h + ROW_GAP; }
  return { rows, w: Math.max(0, ...rows.map(r => r.w)), h: y };
}

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

/** {modules, rows, strip, places: id -> {x,y,w,h,label,..}, cardEdges, moduleEdges, w, h}; for a window of width x height. */
export function layout(graph, width, height) {
  const cards = new Map(), modules = new Map();
  for (const g of [...graph.groups].sort((a, b) => a.order - b.order)) modules.set(g.id, { id: g.id, label: g.label, cards: [], test: /^test( \d+)?$/.test(g.id) });
  const byCard = new Map();
  for (const n of graph.nodes) if (n.card) byCard.set(n.group + '\n' + n.card, [...(byCard.get(n.group + '\n' + n.card) ?? []), n]);
  const cardOf = new Map();
  for (const [key, nodes] of byCard) {
    const c = makeCard(key, nodes, nodes[0].group);
    cards.set(key, c);
    modules.get(c.module).cards.push(c);
    for (const n of nodes) cardOf.set(n.id, c);
  }
  for (const m of [...modules.values()]) {
    const parts = cut(m);
    if (parts.length === 1) continue;
    modules.delete(m.id);
    for (const part of parts) modules.set(part.id, part);
  }
  const seen = new Set(), links = [], between = [];
  for (const e of graph.edges) {
    const a = cardOf.get(e.src), b = cardOf.get(e.dst);
    if (e.kind !== 'data' || !a || !b || a === b || seen.has(a.key + '\t' + b.key)) continue;
    seen.add(a.key + '\t' + b.key);
    links.push([a.key, b.key]);
    const pair = a.module + '\t' + b.module;
    if (a.module !== b.module && !seen.has(pair)) { seen.add(pair); between.push([a.module, b.module]); }
  }
  const flow = [...modules.values()].filter(m => m.cards.length);
  flow.sort((a, b) => a.test - b.test);
  const loose = graph.nodes.filter(n => !n.card);
  // Where the lines from above end stands first.
  const first = ['shards', 'links', 'streams', 'control'];
  const strips = graph.groups.filter(g => loose.some(n => n.group === g.id)).sort((a, b) => first.indexOf(a.id) - first.indexOf(b.id));
  // Of a dozen widths the one at which everything is largest in the window.
  let best = null;
  const area = flow.reduce((sum, m) => { arrange(m, links, 1e9); return sum + (m.w + MODULE_GAP) * (m.h + ROW_GAP); }, 1);
  for (let i = 0; i < 14; ++i) {
    const wrap = Math.max(420, Math.sqrt(area * width / height) * (0.6 + i * 0.11));
    const p = pack(flow, links, wrap);
    const strip = makeStrip(strips, loose, Math.max(p.w, wrap), p.h + 14);
    const w = Math.max(p.w, ...strip.boxes.map(b => b.x + b.w)), scale = Math.min(width / (w + 70), height / strip.bottom);
    if (!best || scale > best.scale) best = { wrap, scale };
  }
  const packed = pack(flow, links, best.wrap);
  const strip = makeStrip(strips, loose, Math.max(packed.w, best.wrap), packed.h + 14);
  const places = new Map();
  for (const m of flow) for (const c of m.cards) { c.x += m.x; c.y += m.y; for (const p of c.places) places.set(p.id, { ...p, x: c.x + p.x, y: c.y + p.y, card: c }); }
  for (const b of strip.boxes) for (const p of b.places) places.set(p.id, p);
  return { modules: flow, rows: packed.rows, strip: strip.boxes, places, cards,
    cardEdges: links.filter(([a, b]) => cards.get(a).module === cards.get(b).module), moduleEdges: reduced(between),
    w: Math.max(packed.w, ...strip.boxes.map(b => b.x + b.w)), h: strip.bottom };
}
