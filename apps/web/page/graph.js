// graph.js - the actors as SVG: each is one element with a name for people who do not see it. What a tick changes is
// painted into the elements that are there; only a new graph draws anew.
import { layout } from './layout.js';
import { bytes, count, css, s } from './text.js';
import { View } from './view.js';

const TYPES = [[/Convolution/, '--conv'], [/Pooling|SPP/, '--pool'], [/InnerProduct|Embed/, '--inner'], [/Loss|Accuracy/, '--loss'],
  [/Norm|LRN|MVN|Scale|Bias/, '--norm'], [/Data|Input/, '--data'], [/ReLU|ELU|Sigmoid|TanH|AbsVal|BNLL|Power|Exp|Log|Dropout|Threshold|Swish|Clip/, '--act'],
  [/Concat|Eltwise|Split|Slice|Flatten|Reshape|Silence/, '--join']];
const KINDS = { gradient_push: '--push', factor_broadcast: '--factors', data_source: '--data', server_shard: '--apply', network_link: '--pull', link_acceptor: '--pull', stream: '--forward' };
export const LEGENDS = {
  type: [['convolution', '--conv'], ['pooling', '--pool'], ['inner product', '--inner'], ['norm', '--norm'], ['join', '--join'], ['loss', '--loss'], ['push', '--push'], ['factors', '--factors']],
  route: [['parameter_server', '--push'], ['factor_broadcast', '--factors'], ['learns nothing', '--run']],
  rate: [['quiet', '--run'], ['few', '--data'], ['many', '--push'], ['most', '--stall']],
  queue: [['empty', '--run'], ['1', '--data'], ['some', '--push'], ['8 and more', '--stall']],
};

export class Graph {
  constructor(svg, store, onSelect) {
    Object.assign(this, { svg, store, onSelect, colour: 'type', selected: null, elements: new Map() });
    this.view = new View(svg, () => this.#distance());
    svg.addEventListener('click', e => { if (!this.view.moved) this.select(this.#idOf(e.target)); });
    svg.addEventListener('keydown', e => this.#key(e));
    store.addEventListener('graph', () => this.draw());
    store.addEventListener('tick', () => this.paint());
    new ResizeObserver(() => this.store.graph && this.draw()).observe(svg);
  }

  /** From far away names cannot be read: a module says in a few words what its actors do. */
  #distance() {
    const far = this.view.scale < FAR;
    if (far === this.svg.classList.contains('far')) return;
    this.svg.classList.toggle('far', far);
    if (far) this.#sums();
  }

  #idOf(target) { const g = target.closest?.('.actor'); return g ? +g.dataset.id : null; }

  draw() {
    const started = performance.now();
    const { svg, store } = this, box = svg.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const L = this.layout = layout(store.graph, box.width - 24, box.height - 20);
    svg.textContent = '';
    this.elements.clear();
    this.sums = [];
    const marker = s('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: 'auto' }, s('defs', {}, svg));
    s('path', { d: 'M0 0L8 4L0 8z', class: 'arrow' }, marker);
    const ground = s('g', { id: 'ground' }, svg);
    for (const m of [...L.modules, ...L.strip]) this.#module(m, ground);
    this.#wires(s('g', {}, ground));
    this.#buses(s('g', {}, ground));
    this.chosen = s('g', {}, ground);
    const actors = s('g', {}, ground);
    for (const n of store.graph.nodes) this.#actor(n, L.places.get(n.id), actors);
    this.view.show(ground, { x: -22, y: -8, w: L.w + 62, h: L.h + 16 });
    this.drawMs = performance.now() - started;
    this.paint();
    this.select(this.selected !== null && store.graph.byId.has(this.selected) ? this.selected : null);
  }

  #module(m, parent) {
    const g = s('g', { class: 'module' }, parent);
    s('rect', { x: m.x, y: m.y, width: m.w, height: m.h, rx: 7 }, g);
    s('text', { class: 'near', x: m.x + 9, y: m.y + 13 }, g, m.label);
    const size = Math.max(11, Math.min(30, 1.6 * m.w / Math.max(4, m.label.length), m.h / 2.2)), x = m.x + m.w / 2, y = m.y + m.h / 2;
    s('text', { class: 'far', x, y: y + size * 0.1 }, g, m.label).style.setProperty('font-size', size + 'px');
    const sum = s('text', { class: 'far sum', x }, g, '');
    this.sums.push({ text: sum, shown: '', y: y + size * 0.1, w: m.w, most: 0.6 * size, ids: m.cards ? m.cards.flatMap(c => c.nodes.map(n => n.id)) : m.places.map(p => p.id) });
  }

  /** What the actors of each module handle a second together, and how many messages wait for them. */
  #sums() {
    for (const m of this.sums) {
      let waiting = 0, rate = 0;
      for (const id of m.ids) { const a = this.store.actors[id]; waiting += a?.queue ?? 0; rate += a?.rate ?? 0; }
      const said = [`${m.ids.length} actor${m.ids.length === 1 ? '' : 's'}`, rate >= 1 && `${count(rate)}/s`, waiting > 0 && `${waiting} wait`].filter(Boolean).join(', ');
      if (said === m.shown) continue;
      const size = Math.min(m.most, 1.6 * m.w / said.length);
      m.text.textContent = m.shown = said;
      m.text.style.setProperty('font-size', size + 'px');
      m.text.setAttribute('y', m.y + 1.2 * size);
    }
  }

  #actor(n, p, parent) {
    const g = s('g', { class: 'actor', id: 'actor-' + n.id, 'data-id': n.id, tabindex: -1, role: 'button' }, parent);
    if (!p) return;
    s('rect', { x: p.x, y: p.y, width: p.w, height: p.h, rx: p.small ? 3 : 4 }, g);
    s('text', p.small ? { x: p.x + 5, y: p.y + 10.2, class: 'more' } : { x: p.x + 6, y: p.y + p.h / 2 + 3.5 }, g, p.label);
    s('title', {}, g, n.name + (n.type ? ', ' + n.type : '') + (n.tops ? ', ' + n.tops : ''));
    const badge = s('circle', { class: 'badge', cx: p.x + p.w - 1, cy: p.y + 1, r: 6.5, visibility: 'hidden' }, g);
    const queue = s('text', { class: 'queue', x: p.x + p.w - 1, y: p.y + 4, visibility: 'hidden' }, g, '');
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

  /** From module to module through the gaps between rows, never through a third one. */
  #road(a, b) {
    const x1 = a.x + a.w, y1 = a.y + Math.min(a.h, a.row.h) / 2, x2 = b.x, y2 = b.y + b.h / 2;
    const row = a.row.modules;
    if (a.row === b.row && row.indexOf(b) === row.indexOf(a) + 1) { const y = Math.min(y1, b.y + b.h - 6); return `M${x1} ${y}L${x2 - 1} ${y}`; }
    if (a.row === b.row && b.x > a.x) { const y = a.row.y - 7; return `M${x1} ${y1}H${x1 + 8}V${y}H${x2 - 12}V${y2}H${x2 - 1}`; }
    const down = a.row.y + a.row.h + ROAD, above = b.row.y - 7;
    const left = b.row.modules[0] === b ? '' : `V${above}H${x2 - 12}`;
    return `M${x1} ${y1}H${x1 + 9}V${down}H-12${left}V${y2}H${x2 - 1}`;
  }

  /** Gradients out, parameters back, factors: three lines that gather what hundreds of edges would say. */
  #buses(parent) {
    this.buses = {};
    const L = this.layout, kinds = [['push', n => n.kind === 'gradient_push'], ['pull', n => n.kind === 'gradient_push'], ['factors', n => n.kind === 'factor_broadcast']];
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
        text: s('text', { class: 'bus-rate ' + kind, x: L.w + 6 - 220 * (2 - k), y: Math.min(...L.strip.map(b => b.y)) - 25, 'text-anchor': 'end' }, parent, '') };
    });
  }

  /** What a tick has changed. */
  paint() {
    if (!this.layout) return;
    for (const [id, e] of this.elements) {
      const a = this.store.actors[id], queue = a?.queue ?? 0;
      if (queue !== e.shown) {
        e.shown = queue;
        e.badge.setAttribute('visibility', queue > 0 ? 'visible' : 'hidden');
        e.queue.setAttribute('visibility', queue > 0 ? 'visible' : 'hidden');
        e.queue.textContent = queue > 99 ? '99' : queue;
        e.g.setAttribute('aria-label', `${e.node.name}, ${e.node.type ?? e.node.kind}, ${queue} waiting`);
      }
      const colour = this.#colourOf(e.node, a);
      if (colour !== e.colour) e.g.style.setProperty('--c', `var(${e.colour = colour})`);
    }
    if (this.svg.classList.contains('far')) this.#sums();
    const rates = { push: 0, pull: 0, factors: 0 };
    for (const e of this.store.graph.edges) {
      const flow = this.store.edges[e.id], rate = (this.store.replay ? flow?.bytes : flow?.byteRate) ?? 0;
      if (e.id < 0 || !rate) continue;
      const exchange = this.store.graph.byId.get(e.kind === 'pull' ? e.dst : e.src)?.kind;
      if (exchange === 'factor_broadcast' && e.message !== 'parameters_fresh') rates.factors += rate;
      else if (e.kind === 'push' || e.message === 'chunk_landed') rates[e.kind === 'push' ? 'push' : 'pull'] += rate;
    }
    for (const [kind, bus] of Object.entries(this.buses)) {
      bus.line.setAttribute('stroke-width', (1.2 + 1.1 * Math.log10(1 + rates[kind] / (this.store.replay ? 1e7 : 1e5))).toFixed(2));
      bus.text.textContent = `${kind} ${bytes(rates[kind])}${this.store.replay ? '' : '/s'}`;
    }
  }

  #colourOf(n, a) {
    const grade = (v, limits) => ['--run', '--data', '--push', '--stall'][limits.filter(l => v >= l).length];
    if (this.colour === 'queue') return grade(a?.queue ?? 0, [1, 2, 8]);
    if (this.colour === 'rate') return grade(a?.rate ?? 0, [1, 50, 500]);
    if (n.kind !== 'layer') return KINDS[n.kind] ?? '--run';
    if (this.colour === 'route') {
      const route = this.store.graph.routeOf.get(n.card);
      return !route || !n.params ? '--run' : route.route === 'factor_broadcast' ? '--factors' : '--push';
    }
    return TYPES.find(([pattern]) => pattern.test(n.type ?? ''))?.[1] ?? '--run';
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
    const e = this.elements.get(id);
    if (!e) return;
    for (const x of this.elements.values()) x.g.setAttribute('tabindex', x === e ? 0 : -1);
    this.view.reveal(e.place);
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

  /** The first actor whose name has `text`, by what fits best. */
  find(text) {
    const names = this.store.graph?.nodes ?? [], t = text.toLowerCase();
    return (names.find(n => n.name === text) ?? names.find(n => n.name.startsWith('layer ' + text)) ?? names.find(n => n.name.toLowerCase().includes(t)))?.id ?? null;
  }

  /** Stands alone: with the rules that draw it, and its colours resolved. */
  exported() {
    const copy = this.svg.cloneNode(true), { x, y, w, h } = this.view.whole;
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    copy.setAttribute('viewBox', `${x} ${y} ${w} ${h}`);
    copy.querySelector('#ground').removeAttribute('transform');
    copy.classList.remove('far');
    const rules = [...document.styleSheets[0].cssRules].filter(r => r.selectorText && /\.(module|actor|wire|bus|chosen|arrow|push|pull|factors|data|grad|net|control|far)\b/.test(r.selectorText)).map(r => r.cssText);
    const colours = [...new Set(rules.join(' ').concat(copy.outerHTML).match(/var\((--[\w-]+)\)/g))].map(v => v.slice(4, -1));
    const style = document.createElementNS('http://www.w3.org/2000/svg', 'style');
    style.textContent = `svg{font:13px sans-serif;background:${css('--panel')};${colours.filter(c => c !== '--c').map(c => `${c}:${css(c)}`).join(';')}}\n` + rules.join('\n');
    copy.prepend(style);
    return new XMLSerializer().serializeToString(copy);
  }
}

const ROAD = 26;  // below a row, under its buses
const FAR = 0.7;  // a scale below which the text on cards is too small
