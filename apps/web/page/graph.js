// graph.js - draws the actors as SVG. Each actor is one element with a name that a screen reader can read. A tick changes
// only the existing elements; a new graph is drawn from the beginning.
import { colourOf } from './colours.js';
import { isOfTest, layout } from './layout.js';
import { bytes, count, css, s, shortened } from './text.js';
import { View } from './view.js';

export class Graph {
  constructor(svg, store, onSelect) {
    Object.assign(this, { svg, store, onSelect, colour: 'type', selected: null, elements: new Map(), testsOpen: false });
    this.view = new View(svg, () => this.#distance());
    svg.addEventListener('click', e => { if (!this.view.moved) this.select(this.#idOf(e.target)); });
    svg.addEventListener('keydown', e => this.#key(e));
    store.addEventListener('graph', () => this.draw());
    store.addEventListener('tick', () => this.paint());
    new ResizeObserver(() => this.store.graph && this.draw()).observe(svg);
  }

  /** At a small scale the names of actors cannot be read, so each module shows a summary of its actors instead. */
  #distance() {
    if (this.drawnAt === this.view.scale) return;
    this.drawnAt = this.view.scale;
    const far = this.view.scale < FAR;
    this.svg.classList.toggle('far', far);
    if (far) this.#sums();
    this.#titles();
  }

  /** Opens or closes the panel of the test nets. */
  showTests(open) {
    this.testsOpen = open;
    this.draw();
  }

  /** The actors of the test nets, open or not. */
  get tests() { return this.store.graph?.nodes.filter(isOfTest) ?? []; }

  #idOf(target) { const g = target.closest?.('.actor'); return g ? +g.dataset.id : null; }

  draw() {
    const started = performance.now();
    const { svg, store } = this, box = svg.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const L = this.layout = layout(store.graph, box.width - 24, box.height - 20, this.testsOpen);
    const hadFocus = this.#idOf(document.activeElement);  // its element is about to go
    svg.textContent = '';
    this.elements.clear();
    this.sums = [];
    this.drawnAt = this.panelTitle = null;
    const marker = s('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: 'auto' }, s('defs', {}, svg));
    s('path', { d: 'M0 0L8 4L0 8z', class: 'arrow' }, marker);
    const ground = s('g', { id: 'ground' }, svg);
    if (L.panel) this.#panel(L.panel, ground);
    for (const m of [...L.modules, ...L.strip]) this.#module(m, ground);
    this.#wires(s('g', {}, ground));
    this.#buses(s('g', {}, ground));
    this.chosen = s('g', {}, ground);
    const actors = s('g', {}, ground);
    this.badges = s('g', { class: 'badges', 'aria-hidden': true }, ground);  // the names of the actors say their queues
    for (const n of store.graph.nodes) if (L.places.has(n.id)) this.#actor(n, L.places.get(n.id), actors);
    this.view.show(ground, { x: -22, y: -8, w: L.w + 62, h: L.h + 16 });
    this.drawMs = performance.now() - started;
    this.paint();
    this.select(this.elements.has(this.selected) ? this.selected : null);
    if (this.elements.has(hadFocus)) this.#giveFocus(this.elements.get(hadFocus));
  }

  #panel(p, parent) {
    const g = s('g', { class: 'panel' }, parent);
    s('rect', { x: p.x, y: p.y, width: p.w, height: p.h, rx: 9 }, g);
    this.panelTitle = s('text', { x: p.x + 12, y: p.y + PANEL_TITLE }, g, 'Test net');
  }

  #module(m, parent) {
    const g = s('g', { class: 'module' }, parent);
    s('rect', { x: m.x, y: m.y, width: m.w, height: m.h, rx: 7 }, g);
    s('text', { class: 'near', x: m.x + 9, y: m.y + 13 }, g, m.label);
    const title = s('text', { class: 'far', x: m.x + m.w / 2 }, g, m.label), sum = s('text', { class: 'far sum', x: m.x + m.w / 2 }, g, '');
    this.sums.push({ m, title, sum, tip: s('title', {}, g, ''), ids: m.cards ? m.cards.flatMap(c => c.nodes.map(n => n.id)) : m.places.map(p => p.id) });
  }

  /** Writes what the actors of each module handle together, in letters that are as large on the screen at every scale. A part
   *  of the sentence that has no room in its module is left out; the tooltip has all parts. */
  #sums() {
    const px = 1 / this.view.scale;
    for (const { m, title, sum, tip, ids } of this.sums) {
      let waiting = 0, rate = 0;
      for (const id of ids) { const a = this.store.actors[id]; waiting += a?.queue ?? 0; rate += a?.rate ?? 0; }
      const parts = [`${ids.length} actor${ids.length === 1 ? '' : 's'}`, rate >= 1 && `${count(rate)}/s`, waiting > 0 && `${waiting} wait`].filter(Boolean);
      tip.textContent = `${m.label}: ${parts.join(', ')}`;
      const most = (m.w - 6 * px) / (SUM_PX * LETTER * px);
      while (parts.length > 1 && parts.join(', ').length > most) parts.pop();
      const said = parts.join(', '), fits = said.length <= most && m.h >= (SUM_PX + 12) * px;
      const name = shortened(m.label, Math.max(4, Math.floor(1.45 * m.w / (10 * px))));
      const size = Math.min(15 * px, 1.45 * m.w / Math.max(4, name.length), fits ? m.h - (SUM_PX + 4) * px : m.h / 1.4), middle = m.y + m.h / 2;
      title.textContent = name;
      title.style.setProperty('font-size', size.toFixed(2) + 'px');
      title.setAttribute('y', (fits ? middle : middle + size * 0.35).toFixed(2));
      sum.textContent = fits ? said : '';
      sum.style.setProperty('font-size', (SUM_PX * px).toFixed(2) + 'px');
      sum.setAttribute('y', (middle + (SUM_PX + 1) * px).toFixed(2));
    }
  }

  #actor(n, p, parent) {
    const g = s('g', { class: 'actor', id: 'actor-' + n.id, 'data-id': n.id, tabindex: -1, role: 'button' }, parent);
    if (!p) return;
    s('rect', { x: p.x, y: p.y, width: p.w, height: p.h, rx: p.small ? 3 : 4 }, g);
    s('text', p.small ? { x: p.x + 5, y: p.y + 11.6, class: 'more' } : { x: p.x + 6, y: p.y + p.h / 2 + 3.5 }, g, p.label);
    s('title', {}, g, n.name + (n.type ? ', ' + n.type : '') + (n.tops ? ', ' + n.tops : ''));
    const badge = s('circle', { class: 'badge', cx: p.x + p.w - 1, cy: p.y + 1, r: 6.5, visibility: 'hidden' }, this.badges);
    const queue = s('text', { class: 'queue', x: p.x + p.w - 1, y: p.y + 4, visibility: 'hidden' }, this.badges, '');
    this.elements.set(n.id, { g, badge, queue, node: n, place: p, shown: null, colour: null });
    if (this.elements.size === 1) g.setAttribute('tabindex', 0);
  }

  #wires(parent) {
    const { cards, cardEdges, moduleEdges, modules } = this.layout;
    for (const [from, to] of cardEdges) {
      const a = cards.get(from), b = cards.get(to);
      const below = b.x === a.x && b.y > a.y, back = b.x < a.x && b.y > a.y + a.h;
      const d = back ? `M${a.x + a.w / 2} ${a.y + a.h}V${b.y - 8}H${b.x + b.w / 2}V${b.y}` : below ? `M${a.x + a.w / 2} ${a.y + a.h}L${b.x + b.w / 2} ${b.y}`
        : (() => { const x1 = a.x + a.w, y1 = a.y + Math.min(a.h / 2, 11), x2 = b.x, y2 = b.y + 11, bend = x2 > x1 ? Math.max(8, (x2 - x1) / 2) : 14;
          return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`; })();
      s('path', { class: 'wire', d }, parent);
    }
    const of = new Map(modules.map(m => [m.id, m]));
    for (const [from, to] of moduleEdges) s('path', { class: 'wire between', 'marker-end': 'url(#arrow)', d: this.#road(of.get(from), of.get(to)) }, parent);
  }

  /** The way from one module to another. It runs through the gaps between rows and crosses no third module. */
  #road(a, b) {
    const x1 = a.x + a.w, y1 = a.y + Math.min(a.h, a.row.h) / 2, x2 = b.x, y2 = b.y + b.h / 2;
    const row = a.row.modules;
    if (a.row === b.row && row.indexOf(b) === row.indexOf(a) + 1) { const y = Math.min(y1, b.y + b.h - 6); return `M${x1} ${y}L${x2 - 1} ${y}`; }
    if (a.row === b.row && b.x > a.x) { const y = a.row.y - 7; return `M${x1} ${y1}H${x1 + 8}V${y}H${x2 - 12}V${y2}H${x2 - 1}`; }
    const down = a.row.y + a.row.h + ROAD, above = b.row.y - 7;
    const left = b.row.modules[0] === b ? '' : `V${above}H${x2 - 12}`;
    return `M${x1} ${y1}H${x1 + 9}V${down}H${b.row.x - 12}${left}V${y2}H${x2 - 1}`;
  }

  /** Three lines stand for hundreds of edges: gradients on the way out, parameters on the way back, and factors. */
  #buses(parent) {
    this.buses = {};
    const L = this.layout, kinds = [['push', n => n.kind === 'gradient_push'], ['pull', n => n.kind === 'gradient_push'], ['factors', n => n.kind === 'factor_broadcast' || n.kind === 'lowrank_exchange']];
    const ends = L.strip.filter(b => b.id === 'shards' || b.id === 'links');
    kinds.forEach(([kind, is], k) => {
      let d = '', lowest = null;
      const margin = L.w + 12 + 5 * k;
      for (const row of L.rows) {
        const ticks = row.modules.filter(m => m.cards.some(c => c.nodes.some(is))).map(m => [m.x + m.w / 2 - 6 + 5 * k, m.y + m.h]);
        if (!ticks.length) continue;
        const y = row.y + row.h + 7 + 4.5 * k;
        d += `M${Math.min(...ticks.map(t => t[0]))} ${y}H${margin}` + ticks.map(([x, top]) => `M${x} ${top}V${y}`).join('');
        lowest ??= y;
      }
      if (lowest === null || !ends.length) return;
      const strip = Math.min(...L.strip.map(b => b.y)) - 8 - 4.5 * k;
      d += `M${margin} ${lowest}V${strip}H${Math.min(...ends.map(b => b.x + b.w / 2 + 5 * k))}`;
      for (const b of ends) if (kind !== 'factors' || b.id === 'links') d += `M${b.x + b.w / 2 + 5 * k} ${strip}V${b.y}`;
      this.buses[kind] = { line: s('path', { class: 'bus ' + kind, d, 'stroke-width': 1.5 }, parent),
        text: s('text', { class: 'bus-rate ' + kind, y: Math.min(...L.strip.map(b => b.y)) - 25, 'text-anchor': 'end' }, parent, '') };
    });
    this.#titles();
  }

  /** Writes the rates of the buses, side by side, and the panel's title in letters that stay readable at every scale. */
  #titles() {
    if (!this.buses) return;
    const px = Math.max(1, 1 / this.view.scale);
    this.panelTitle?.style.setProperty('font-size', Math.min(15 * px, 1.4 * PANEL_TITLE) + 'px');
    Object.values(this.buses).reverse().forEach(({ text }, i) => {
      text.setAttribute('x', (this.layout.w + 6 - 105 * i * px).toFixed(1));
      text.style.setProperty('font-size', (11 * px).toFixed(2) + 'px');
    });
  }

  /** Shows what a tick has changed. */
  paint() {
    if (!this.layout) return;
    for (const [id, e] of this.elements) {
      const a = this.store.actors[id], queue = a?.queue ?? 0;
      if (queue !== e.shown) {
        const { name, type, kind } = e.node, visible = name.includes(e.place.label) ? '' : `, ${e.place.label}`;
        e.shown = queue;
        e.badge.setAttribute('visibility', queue > 0 ? 'visible' : 'hidden');
        e.queue.setAttribute('visibility', queue > 0 ? 'visible' : 'hidden');
        e.queue.textContent = queue > 99 ? '99' : queue;
        e.g.setAttribute('aria-label', `${name}, ${type ?? kind}${visible}, ${queue} waiting`);
      }
      const colour = colourOf(this.colour, this.store.graph, e.node, a);
      if (colour !== e.colour) e.g.style.setProperty('--c', `var(${e.colour = colour})`);
    }
    if (this.svg.classList.contains('far')) this.#sums();
    const rates = { push: 0, pull: 0, factors: 0 }, total = this.store.replay || this.store.over;  // a run that has ended has no rates
    for (const e of this.store.graph.edges) {
      const flow = this.store.edges[e.id], rate = (total ? flow?.bytes : flow?.byteRate) ?? 0;
      if (e.id < 0 || !rate) continue;
      const exchange = this.store.graph.byId.get(e.kind === 'pull' ? e.dst : e.src)?.kind;
      if ((exchange === 'factor_broadcast' || exchange === 'lowrank_exchange') && e.message !== 'parameters_fresh') rates.factors += rate;
      else if (e.kind === 'push' || e.message === 'chunk_landed' || e.message === 'chunk_fresh') rates[e.kind === 'push' ? 'push' : 'pull'] += rate;
    }
    for (const [kind, bus] of Object.entries(this.buses)) {
      bus.line.setAttribute('stroke-width', (1.2 + 1.1 * Math.log10(1 + rates[kind] / (total ? 1e7 : 1e5))).toFixed(2));
      bus.text.textContent = `${kind} ${bytes(rates[kind])}${total ? '' : '/s'}`;
    }
  }

  setColour(mode) { this.colour = mode; this.paint(); }

  select(id) {
    if (!this.layout) return;
    this.selected = id;
    this.svg.classList.toggle('picked', id !== null);
    this.chosen.textContent = '';
    for (const e of this.elements.values()) e.g.classList.remove('on', 'near');
    const me = this.elements.get(id);
    if (me) {
      me.g.classList.add('on');
      for (const e of this.store.graph.edges) {
        if (e.src !== id && e.dst !== id) continue;
        const other = this.elements.get(e.src === id ? e.dst : e.src);
        if (!other) continue;
        other.g.classList.add('near');
        const [a, b] = e.src === id ? [me.place, other.place] : [other.place, me.place];
        const x1 = a.x + a.w / 2, y1 = a.y + a.h / 2, x2 = b.x + b.w / 2, y2 = b.y + b.h / 2, bend = Math.min(120, Math.hypot(x2 - x1, y2 - y1) / 3);
        s('path', { class: 'chosen ' + e.kind, d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }, this.chosen);
      }
    }
    this.onSelect(id);
  }

  focus(id) {
    if (!this.elements.has(id) && this.tests.some(n => n.id === id)) this.onTests(true);
    const e = this.elements.get(id);
    if (!e) return;
    this.view.reveal(e.place);
    this.#giveFocus(e);
  }

  #giveFocus(e) {
    for (const x of this.elements.values()) x.g.setAttribute('tabindex', x === e ? 0 : -1);
    e.g.focus({ preventScroll: true });
  }

  #key(e) {
    const id = this.#idOf(e.target);
    if (e.key === 'Escape') return this.select(null);
    if (e.key === '0') return this.view.fit();
    if (id === null) return;
    if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); return this.select(id); }
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (!way) return;
    e.preventDefault();
    const middle = p => [p.x + p.w / 2, p.y + p.h / 2], [x, y] = middle(this.elements.get(id).place);
    let best = null;
    for (const [other, { place }] of this.elements) {
      const [ox, oy] = middle(place), ahead = (ox - x) * way[0] + (oy - y) * way[1], aside = Math.abs((ox - x) * way[1]) + Math.abs((oy - y) * way[0]);
      if (other !== id && ahead > 1 && (!best || ahead + 2 * aside < best.far)) best = { other, far: ahead + 2 * aside };
    }
    if (best) this.focus(best.other);
  }

  /** The actor whose name fits `text` best: exactly, then from its beginning, then anywhere. */
  find(text) {
    const names = this.store.graph?.nodes ?? [], t = text.toLowerCase();
    return (names.find(n => n.name === text) ?? names.find(n => n.name.startsWith('layer ' + text)) ?? names.find(n => n.name.toLowerCase().includes(t)))?.id ?? null;
  }

  /** The picture as a file of its own: with the style rules that draw it, and with the values of its colours. */
  exported() {
    const copy = this.svg.cloneNode(true), { x, y, w, h } = this.view.whole;
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    copy.setAttribute('viewBox', `${x} ${y} ${w} ${h}`);
    copy.querySelector('#ground').removeAttribute('transform');
    copy.classList.remove('far');
    const rules = [...document.styleSheets[0].cssRules].filter(r => r.selectorText && /\.(module|panel|actor|badges|wire|bus|chosen|arrow|push|pull|factors|data|grad|net|control|far)\b/.test(r.selectorText)).map(r => r.cssText);
    const colours = [...new Set(rules.join(' ').concat(copy.outerHTML).match(/var\((--[\w-]+)\)/g))].map(v => v.slice(4, -1));
    const style = document.createElementNS('http://www.w3.org/2000/svg', 'style');
    style.textContent = `svg{font:13px sans-serif;background:${css('--panel')};${colours.filter(c => c !== '--c').map(c => `${c}:${css(c)}`).join(';')}}\n` + rules.join('\n');
    copy.prepend(style);
    return new XMLSerializer().serializeToString(copy);
  }
}

const ROAD = 26;      // distance of a road below its row, under the buses of that row
const FAR = 0.9;      // a scale below which the text on cards is too small to be read
const SUM_PX = 11;    // size of a module's summary on the screen
const PANEL_TITLE = 27;  // where the panel's title stands, below the panel's upper edge
const LETTER = 0.62;  // width of a letter over the size of its font, generously
