// store.js - holds everything that the page knows of the run. The server sends totals, and the store computes rates from
// them. Other modules listen for its events:
//   graph    a new actor graph has arrived
//   tick     counts have changed
//   spans    new spans have arrived
//   history  new points of curves, test results or log lines have arrived
//   state    the connection, or where the node stands, has changed
//   reset    the store has dropped everything, because it reads the run from the beginning again
// A live page reads /api/graph and /events. If the server shows a recording, the page reads /api/recording instead. A
// server that forwards the page of another machine's node (poseidon-graph --attach) adds the event `source`, which says
// whether that node can be reached.
import { Spans } from './spans.js';

const RATE_OVER_S = 1.5;  // a rate is a mean over about this time

const KEPT = 20000, KEPT_LINES = 2000, KEPT_VIEWS = 500;

/**
 * The histories of a run and of those that it was resumed from, the first one first, as one: each ends where the next begins, and the
 * seconds go on. Bytes on the links are the last run's.
 */
export function joined(histories) {
  return histories.filter(Boolean).reduce((before, next) => {
    const first = Math.min(next.points[0]?.[0] ?? Infinity, next.tests[0]?.clock ?? Infinity);
    const points = before.points.filter(p => p[0] < first), tests = before.tests.filter(t => t.clock < first);
    const at = Math.max(0, points.at(-1)?.[1] ?? 0, tests.at(-1)?.seconds ?? 0);
    const later = row => row.map((x, i) => i === 1 ? x + at : x);
    return {
      ...next,
      points: [...points, ...next.points.map(later)],
      tests: [...tests, ...next.tests.map(t => ({ ...t, seconds: t.seconds + at }))],
      lines: [...before.lines, ...next.lines.map(later)],
      views: [...(before.views ?? []), ...(next.views ?? []).map(later)],
      traffic: (next.traffic ?? []).map(([s, ...bytes]) => [s + at, ...bytes]),
    };
  });
}

/**
 * `list`, whose `at` does not fall. Of a long one only those in the first place of each step, of which there are at most half as many
 * as are allowed, and those in the newest place. So a page may stay open as long as the run lasts.
 */
export function thinned(list, at, most = KEPT) {
  if (list.length <= most) return list;
  const newest = at(list.at(-1));
  // A power of two: steps lie within later ones, so that what is thinned again and again stays even.
  const step = 2 ** Math.ceil(Math.log2(2 * (newest - at(list[0])) / most));
  let kept = -Infinity;
  return list.filter(x => {
    const here = at(x);
    if (here !== kept && here !== newest && Math.floor(here / step) === Math.floor(kept / step)) return false;
    kept = here;
    return true;
  });
}

export class Store extends EventTarget {
  worker = null;         // the worker whose actors the page shows; null: the node that serves the page
  graph = null;          // the answer of /api/graph, with two maps added: byId and routeOf
  actors = [];           // by id: {queue, handled, rate, depth}
  edges = [];            // by id: {messages, bytes, rate, byteRate}
  members = [];
  witnesses = [];
  doctor = null;         // says which worker waits for which and which worker is slow: {text, stall, stragglers}
  spans = new Spans();
  points = []; tests = []; lines = []; traffic = []; views = []; outputs = []; lastClock = 0; leftS = null;
  connection = 'connecting';
  node = '';             // host:port of the node, if another machine serves the page
  away = '';             // the reason why that node does not answer; empty if it answers
  stage = '';            // where the node stands: training, frozen, ...
  why = '';              // it waits or has ended; empty: there is nothing to say
  began = null;          // when the run began, in microseconds of the spans' clock; null: the server has not said it
  ticks = 0;
  replay = false;

  /** The run has ended or failed, and its last values are final. */
  get over() { return this.stage === 'ended'; }

  /** The values that the page shows still change. */
  get moving() { return this.connection === 'live' && !this.over; }

  /** The time from which the log and the timeline count, in microseconds of the spans' clock. */
  get zero() { return this.began ?? this.spans.begin; }

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
    this.asked = null;  // an answer to what was asked for before is of another worker, or of another run,
    this.wanted = true; // and so is the graph that is shown
    this.actors = []; this.edges = []; this.spans = new Spans();
    this.points = []; this.tests = []; this.lines = []; this.traffic = []; this.views = [];
    this.lastTick = this.began = this.leftS = null;
    this.#say('reset');
  }

  #close() {
    this.source?.close();
    this.source = null;
  }

  // A hidden tab closes its connection, because a browser opens only six to one host.
  #open() {
    this.#close();
    this.#forget();
    const source = this.source = new EventSource('events' + this.#query());
    const on = (kind, f) => source.addEventListener(kind, e => { if (source === this.source) f(JSON.parse(e.data)); });
    // The browser also calls this when it has reconnected by itself, perhaps to another run.
    source.onopen = () => this.#restart();
    source.onerror = () => {
      if (source !== this.source) return;
      this.#connected('reconnecting');
      if (source.readyState === EventSource.CLOSED) setTimeout(() => source === this.source && this.#open(), 3000);
    };
    on('source', x => this.#source(x));
    on('start', x => { this.began = x.began_us; });
    on('tick', t => this.#tick(t));
    on('spans', x => { this.spans.add(x); this.#say('spans'); });
    on('history', x => this.#history(x));
  }

  #restart() { this.#forget(); this.away = ''; this.#connected('live'); this.#fetchGraph(); }

  /** While a node does not answer, the page keeps what it knows, until the node or its next run answers. */
  #source({ node, away }) {
    this.node = node;
    if (!away) return this.#restart();
    this.away = away;
    this.#connected('away');
  }

  #query() { return this.worker === null ? '' : '?node=' + this.worker; }

  #connected(how) { this.connection = how; this.#settle(); this.#say('state'); }

  /** A rate that no longer changes would look as if the run continued, so all rates become 0. */
  #settle() {
    if (this.moving || this.replay) return;
    for (const o of [...this.actors, ...this.edges]) if (o) { o.rate = 0; if (o.byteRate) o.byteRate = 0; }
    if (this.graph) this.#say('tick');
  }

  async #fetchGraph() {
    if (this.asked) return;
    const asked = this.asked = {};
    try {
      const answer = await fetch('api/graph' + this.#query()), graph = answer.ok ? await answer.json() : null;
      if (graph && asked === this.asked) this.#graph(graph);
    } catch { /* the stream reports that the server has gone; once it is back, the graph is fetched again */ }
    if (asked === this.asked) this.asked = null;
  }

  #graph(g) {
    this.graph = g;
    this.wanted = false;
    g.byId = new Map(g.nodes.map(n => [n.id, n]));
    g.routeOf = new Map(g.routes.map(r => [r.layer, r]));
    // A tick may have overtaken this answer, and tells the newer stage.
    if (this.lastTick === null) { this.stage = g.run.stage; this.why = g.run.why ?? ''; }
    this.#say('graph');
    this.#say('state');
  }

  #tick(t) {
    // Revisions are of the whole run: another worker's graph often has the same one.
    this.wanted ||= t.rev !== this.graph?.rev;
    // While a run forms, new actors come in bursts, so the page fetches the graph at most once in 0.7 s.
    if (this.wanted && !this.replay) this.later ??= setTimeout(() => { this.later = null; if (this.wanted) this.#fetchGraph(); }, this.graph?.nodes.length < 4 ? 0 : 700);
    const dt = this.lastTick ? (t.t - this.lastTick) / 1e6 : 0;
    this.lastTick = t.t;
    const share = dt > 0 ? Math.min(1, dt / RATE_OVER_S) : 0;
    const changed = new Set();
    const smooth = (o, key, now, rate) => {
      if (dt > 0 && o[key] !== undefined) o[rate] = (o[rate] ?? 0) * (1 - share) + share * Math.max(0, now - o[key]) / dt; // a link that has ended leaves its place to another one
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
    this.witnesses = t.witnesses ?? [];
    this.doctor = t.doctor;
    ++this.ticks;
    const why = t.why ?? '';
    if (t.stage !== this.stage || why !== this.why) { this.stage = t.stage; this.why = why; this.#say('state'); }
    if (this.over && !this.replay) this.#settle(); else this.#say('tick');
  }

  #history(x) {
    this.outputs = x.outputs ?? this.outputs;
    this.lastClock = x.last_clock ?? this.lastClock;
    this.leftS = x.left_s ?? null;
    this.points = thinned([...this.points, ...x.points], p => p[0]);
    this.tests = thinned([...this.tests, ...x.tests], t => t.clock);
    this.lines = [...this.lines, ...x.lines].slice(-KEPT_LINES);
    this.traffic = thinned([...this.traffic, ...(x.traffic ?? [])], t => t[0]);
    this.views = [...this.views, ...(x.views ?? [])].slice(-KEPT_VIEWS);
    this.#say('history');
  }

  /** Shows a trace file: its spans, and the last state of the run, which the file also holds. `earlier`: files of the runs that
   *  this one was resumed from, the first one first. */
  #show({ earlier = [], last, ...only }) {
    this.replay = true;
    this.connection = 'recording';
    const file = last ?? only, extra = file.poseidon;
    if (extra?.history) extra.history = joined([...earlier.map(f => f.poseidon?.history), extra.history]);
    if (extra?.graph) this.#graph(extra.graph);
    if (extra?.tick) this.#tick(extra.tick);
    if (extra?.history) this.#history(extra.history);
    // Without --web and --trace a node does not follow its clocks; the curves know how far it came.
    for (const m of this.members) m.clock ||= (this.points.at(-1)?.[0] ?? -1) + 1;
    this.spans.addTrace(file, extra?.graph?.run.node);
    this.began = this.spans.startOf(this.points);
    this.#say('spans');
    this.#say('state');
  }
}
