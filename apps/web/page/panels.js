// panels.js - the texts around the graph: the figures of the run, the selected actor, the log.
import { bytes, count, duration, figure, h, ms, s } from './text.js';

const row = (name, ...value) => h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, ...value));

export class Panels {
  selected = null;

  constructor(store) {
    this.store = store;
    this.figures = document.getElementById('figures');
    this.details = document.getElementById('details');
    this.log = document.getElementById('log');
    store.addEventListener('tick', () => this.#often());
    store.addEventListener('graph', () => this.#detail());
    store.addEventListener('history', () => { this.#log(); this.#figures(); });
    store.addEventListener('state', () => this.#state());
    store.addEventListener('reset', () => { this.seenLines = -1; this.log.replaceChildren(); });
    this.seenLines = -1;
  }

  #often() { this.#figures(); this.#verdict(); if (!this.details.matches(':hover') || this.store.ticks % 5 === 0) this.#detail(); }

  #state() {
    const pill = document.getElementById('state'), { connection, stage, why, graph, node } = this.store, ended = stage === 'ended';
    const gone = !ended && (connection === 'reconnecting' || connection === 'away');
    pill.textContent = connection === 'live' || ended ? why || stage || 'live' : connection === 'away' ? `${node} is away` : connection;
    pill.title = this.store.away || pill.textContent;
    pill.className = 'pill ' + (why || gone ? 'bad' : connection === 'live' || ended ? 'good' : '');
    document.getElementById('model').textContent = [graph?.run.model, node && 'at ' + node].filter(Boolean).join(' ');
    this.#figures();
    this.#verdict();
    document.title = (graph?.run.model ? graph.run.model + ' – ' : '') + 'poseidon';
  }

  overlap(summary, iterations) {
    this.summary = summary;
    const out = document.getElementById('overlap'), { compute, communication, exposed } = summary;
    const each = v => ms(v / Math.max(1, iterations)) + ' ms';
    // The most important value comes first, because a narrow window breaks the line.
    out.replaceChildren();
    if (communication > 0) out.append(h('b', { class: 'good' }, (100 * Math.max(0, 1 - exposed / communication)).toFixed(0) + ' % hidden'), ', ', h('b', { class: exposed > 0 ? 'bad' : 'faint' }, each(exposed) + ' waited'), ', ');
    out.append('compute ', each(compute));
    if (communication > 0) out.append(', updates ', each(communication));
    out.append(' per iteration');
  }

  #verdict() {
    const line = document.getElementById('verdict'), { away, doctor, stage } = this.store;
    const gone = away && stage !== 'ended';
    const text = gone ? [`${away.replace(/\.$/, '')}. What follows was known before`] : doctor?.text ?? [];
    line.hidden = text.length === 0;
    line.textContent = line.title = text.join(' · ');
    line.className = gone || doctor?.stall ? 'bad' : '';
  }

  #figures() {
    const { points, members, graph, lastClock, leftS, moving } = this.store, last = points.at(-1), me = members.find(m => m.id === graph?.run.worker);
    const clock = me?.clock ?? last?.[0], total = lastClock || graph?.run.last_clock;
    const all = [['iteration', clock === undefined ? '–' : count(clock), total ? '/ ' + count(total) : ''], ['loss', figure(last?.[2]), '']];
    if (moving) all.push(['images/s', last?.[4] ? count(last[4]) : '–', '']);
    if (last && last[5] >= 0) all.push(['hidden', (100 * last[5]).toFixed(0), '% of updates']);
    if (members.length > 1) {
      all.push(['lag', count(Math.max(...members.map(m => m.lag ?? 0))), `/ ${graph?.run.staleness ?? 0} allowed`]);
      all.push(['sent', bytes(members.reduce((sum, m) => sum + m.bytes_out - (m.probe_bytes_out ?? 0), 0)), 'by all']);
    }
    if (moving && leftS !== null) all.push(['left', duration(leftS), '']);
    this.figures.replaceChildren(...all.map(([name, value, unit]) => h('div', {}, h('dt', {}, name), h('dd', { 'data-figure': name }, value, ' ', h('small', {}, unit)))));
  }

  show(id) { this.selected = id; this.#detail(); }

  #detail() {
    const { graph, actors } = this.store, n = graph?.byId.get(this.selected);
    if (!graph) return;
    if (!n) return this.#overview();
    const a = actors[n.id] ?? {}, table = [row('kind', n.type ? `${n.kind}, ${n.type}` : n.kind)];
    if (n.tops) table.push(row('top', n.tops));
    if (n.params) table.push(row('parameters', `${count(n.params)} (${bytes(4 * n.params)})`));
    if (n.chunk_bytes) table.push(row('owns', bytes(n.chunk_bytes)));
    const route = graph.routeOf.get((n.card ?? '').replace(/^test (\d+ )?/, ''));
    if (route && (n.params || n.kind !== 'layer')) {
      const factors = route.route !== 'parameter_server';
      table.push(row('route', h('span', { class: 'tag ' + (factors ? 'factors' : 'push') }, route.route)));
      table.push(row('why', route.why));
      table.push(row('an iteration sends', `${bytes(route.bytes)} one way` + (route.wire !== 'float32' ? `, ${route.wire}` : '')));
      if (route.server_ms !== undefined) table.push(row('predicted', `server ${figure(route.server_ms)} ms, factors ${figure(route.factors_ms)} ms`));
    }
    table.push(row('waiting', h('b', {}, String(a.queue ?? 0)), ' messages'), row('handled', `${count(a.handled ?? 0)} (${figure(+(a.rate ?? 0).toFixed(1))}/s)`));
    const flows = (mine, theirs) => graph.edges.filter(e => e[mine] === n.id && e.id >= 0).map(e => [e, this.store.edges[e.id] ?? { rate: 0, byteRate: 0, messages: 0 }])
      .sort((p, q) => (q[1].byteRate || 0) - (p[1].byteRate || 0) || q[1].rate - p[1].rate).slice(0, 8)
      .map(([e, x]) => h('tr', {}, h('th', { scope: 'row' }, e.message), h('td', {}, graph.byId.get(e[theirs])?.name ?? '?', h('br'), h('span', { class: 'faint' }, `${x.rate.toFixed(1)}/s` + (x.bytes ? `, ${bytes(x.byteRate)}/s, ${bytes(x.bytes)} in all` : '')))));
    const part = (title, rows) => rows.length ? [h('h4', {}, title), h('table', {}, ...rows)] : [];
    this.details.replaceChildren(h('h3', {}, n.name), h('table', {}, ...table), ...this.#depth(a), ...part('comes from', flows('dst', 'src')), ...part('goes to', flows('src', 'dst')));
  }

  #depth(a) {
    if (!a.depth?.some(d => d > 0)) return [];
    const most = Math.max(4, ...a.depth), svg = s('svg', { width: 300, height: 28, role: 'img', 'aria-label': `mailbox, at most ${most}` });
    s('polyline', { points: a.depth.map((d, i) => `${2 * i},${26 - 24 * d / most}`).join(' '), fill: 'none', stroke: 'currentColor', 'stroke-width': 1.2 }, svg);
    return [h('h4', {}, `mailbox, last ${Math.round(a.depth.length / 5)} s`), svg];
  }

  #overview() {
    const { graph } = this.store, taken = new Map([['parameter_server', 0], ['factor_broadcast', 0]]);
    for (const { route } of graph.routes) taken.set(route, (taken.get(route) ?? 0) + 1);
    const list = [row('actors', count(graph.nodes.length)), row('edges', count(graph.edges.length)), row('routes', [...taken].map(([route, layers]) => `${layers} ${route}`).join(', '))];
    if (graph.run.promise) list.push(row('results', graph.run.promise.replace(/^results: /, '')));
    this.details.replaceChildren(h('h3', {}, `Worker ${graph.run.worker}`), h('table', {}, ...list), h('p', { class: 'faint' }, 'Choose an actor to see its mailbox, its messages, and the route of its gradient with the reason for it.'));
  }

  #log() {
    for (const [number, seconds, text, bad] of this.store.lines) {
      if (number <= this.seenLines) continue;
      this.seenLines = number;
      this.log.prepend(h('li', { class: bad ? 'bad' : '' }, h('time', {}, seconds.toFixed(1) + ' s'), text));
    }
    while (this.log.children.length > 300) this.log.lastChild.remove();
  }
}
