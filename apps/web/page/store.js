// store.js - what the page knows, and how it hears of it. Totals come in, rates are made here. Modules listen for:
//   graph (a new one), tick (counts have changed), spans, history, state (connection or run), reset (all from the beginning)
// A live page reads /api/graph and /events; where the server has a recording (/api/recording) it is read instead. A server
// that passes on what another machine's node says (poseidon-graph --attach) tells of that node with events of its own (source).
import { Spans } from './spans.js';

const RATE_OVER_S = 1.5;  // rates are means over about so long

export class Store extends EventTarget {
  worker = null;         // whose actors are shown; null: the node that serves the page
  graph = null;          // as /api/graph has it, plus byId, edgeById, routeOf
  actors = [];           // by id: {queue, handled, rate, peak}
  edges = [];            // by id: {messages, bytes, rate, byteRate}
  members = [];
  doctor = null;         // who stands still and why, who is slow: {text, stall, stragglers}
  spans = new Spans();
  points = []; tests = []; lines = []; traffic = []; outputs = []; lastClock = 0;
  connection = 'connecting';
  node = '';             // host:port of the node where the page comes from elsewhere
  away = '';             // why that node cannot be asked; empty: it can
  phase = '';
  ticks = 0;
  replay = false;

  async start() {
    const recording = await fetch('api/recording').then(r => r.ok ? r.json() : null).catch(() => null);
    if (recording) return this.#show(recording);
    document.addEventListener('visibilitychange', () => document.hidden ? this.#close() : this.#open());
    this.#open();
  }

  choose(worker) {
    this.worker = worker;
    this.#forget();
    if (!this.replay) this.#open();
  }

  #say(kind) { this.dispatchEvent(new Event(kind)); }

  #forget() {
    this.actors = []; this.edges = []; this.spans = new Spans();
    this.points = []; this.tests = []; this.lines = []; this.traffic = [];
    this.lastTick = null;
    this.#say('reset');
  }

  #close() {
    this.source?.close();
    this.source = null;
  }

  // A hidden tab gives its connection back: browsers have six for one host.
  #open() {
    this.#close();
    this.#forget();
    const source = this.source = new EventSource('events' + this.#query());
    const on = (kind, f) => source.addEventListener(kind, e => { if (source === this.source) f(JSON.parse(e.data)); });
    // Also after the browser has connected again by itself, perhaps to another run.
    source.onopen = () => this.#anew();
    source.onerror = () => {
      if (source !== this.source) return;
      this.#connected('reconnecting');
      if (source.readyState === EventSource.CLOSED) setTimeout(() => source === this.source && this.#open(), 3000);
    };
    on('source', x => this.#source(x));
    on('tick', t => this.#tick(t));
    on('spans', x => { this.spans.add(x); this.#say('spans'); });
    on('history', x => this.#history(x));
  }

  #anew() { this.#forget(); this.away = ''; this.#connected('live'); this.#fetchGraph(); }

  /** What is known of a node that is away stays in sight until it, or its next run, is there again. */
  #source({ node, away }) {
    this.node = node;
    if (!away) return this.#anew();
    this.away = away;
    this.#connected('away');
  }

  #query() { return this.worker === null ? '' : '?node=' + this.worker; }

  #connected(how) { this.connection = how; this.#say('state'); }

  async #fetchGraph() {
    if (this.fetching) return;
    this.fetching = true;
    try {
      const answer = await fetch('api/graph' + this.#query());
      if (answer.ok) this.#graph(await answer.json());
    } catch { /* the stream says that the server is gone, and its first tick brings us back here */ }
    this.fetching = false;
  }

  #graph(g) {
    this.graph = g;
    g.byId = new Map(g.nodes.map(n => [n.id, n]));
    g.routeOf = new Map(g.routes.map(r => [r.layer, r]));
    this.phase = g.run.phase;
    this.#say('graph');
    this.#say('state');
  }

  #tick(t) {
    if (this.graph && t.rev !== this.graph.rev) {
      // New actors come in bursts while a run forms: once a second is enough to follow them.
      clearTimeout(this.later);
      this.later = setTimeout(() => this.#fetchGraph(), this.graph.nodes.length < 4 ? 0 : 700);
    }
    const dt = this.lastTick ? (t.t - this.lastTick) / 1e6 : 0;
    this.lastTick = t.t;
    const share = dt > 0 ? Math.min(1, dt / RATE_OVER_S) : 0;
    const changed = new Set();
    const smooth = (o, key, now, rate) => {
      if (dt > 0 && o[key] !== undefined) o[rate] = (o[rate] ?? 0) * (1 - share) + share * (now - o[key]) / dt;
      o[key] = now;
    };
    for (const [id, queue, handled] of t.n) {
      const a = this.actors[id] ??= { queue: 0, rate: 0, depth: [] };
      a.queue = queue;
      smooth(a, 'handled', handled, 'rate');
      changed.add(a);
    }
    for (const [id, messages, total] of t.e) {
      const e = this.edges[id] ??= { rate: 0, byteRate: 0 };
      smooth(e, 'messages', messages, 'rate');
      smooth(e, 'bytes', total, 'byteRate');
      changed.add(e);
    }
    for (const o of [...this.actors, ...this.edges]) {
      if (!o) continue;
      if (!changed.has(o) && dt > 0) { o.rate *= 1 - share; if (o.byteRate) o.byteRate *= 1 - share; }
      if (o.depth) { o.depth.push(o.queue); if (o.depth.length > 150) o.depth.shift(); }
    }
    this.members = t.members;
    this.doctor = t.doctor;
    if (t.phase !== this.phase) { this.phase = t.phase; this.#say('state'); }
    ++this.ticks;
    this.#say('tick');
  }

  #history(x) {
    this.outputs = x.outputs ?? this.outputs;
    this.lastClock = x.last_clock ?? this.lastClock;
    this.points.push(...x.points);
    this.tests.push(...x.tests);
    this.lines.push(...x.lines);
    this.traffic.push(...(x.traffic ?? []));
    this.#say('history');
  }

  /** A trace file: its spans, and what the run left beside them. */
  #show(file) {
    this.replay = true;
    this.connection = 'recording';
    const extra = file.poseidon;
    if (extra?.graph) this.#graph(extra.graph);
    if (extra?.tick) this.#tick(extra.tick);
    if (extra?.history) this.#history(extra.history);
    this.spans.addTrace(file, extra?.graph?.run.node);
    this.#say('spans');
    this.#say('state');
  }
}
