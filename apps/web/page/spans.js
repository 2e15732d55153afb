// spans.js - holds the spans of one worker: each lane has one sorted array per column, so a binary search finds the
// visible ones among a hundred thousand.

const KEPT = 150000;

/** The lane of the timeline that shows an actor's spans: {order, key, label}. The lane `exchange` holds the times of updates
 * and is drawn as the overlap strip. */
export function laneOf(name) {
  let m;
  if ((m = /^stream compute \[(\d+)\]/.exec(name))) return { order: 0, key: name, label: 'compute ' + m[1] };
  if ((m = /^network_link (\d+) out/.exec(name))) return { order: 1, key: 'out', label: 'links out' };
  if ((m = /^network_link (\d+) in/.exec(name))) return { order: 3, key: 'in', label: 'links in' };
  if (name === 'program') return { order: 0, key: name, label: name };
  if (name === 'server_shard') return { order: 2, key: name, label: 'shard' };
  if (/^(test.* )?data_source /.test(name)) return { order: 4, key: 'data', label: 'data' };
  if (/^(gradient_push|factor_broadcast|lowrank_exchange) /.test(name)) return { order: 9, key: 'exchange', label: 'overlap' };
  return { order: 5, key: name, label: name };
}

class Lane {
  constructor(info) { Object.assign(this, info, { begin: [], end: [], name: [], phase: [], clock: [], bytes: [], longest: 0, sorted: true }); }
  push(begin, end, name, phase, clock, bytes) {
    if (this.begin.length && begin < this.begin.at(-1)) this.sorted = false;
    this.begin.push(begin); this.end.push(end); this.name.push(name); this.phase.push(phase); this.clock.push(clock); this.bytes.push(bytes);
    if (end - begin > this.longest) this.longest = end - begin;
  }
  /** The server sends spans in the order of their ends, but drawing needs the order of their beginnings. */
  sort() {
    if (this.sorted) return;
    const order = this.begin.map((_, i) => i).sort((a, b) => this.begin[a] - this.begin[b]);
    for (const column of ['begin', 'end', 'name', 'phase', 'clock', 'bytes']) { const old = this[column]; this[column] = order.map(i => old[i]); }
    this.sorted = true;
  }
  forget(n) {
    for (const column of ['begin', 'end', 'name', 'phase', 'clock', 'bytes']) this[column] = this[column].slice(n);
  }
  /** Index of the first span that may still run at time `t`. */
  from(t) { return lower(this.begin, t - this.longest); }
}

/** Index of the first value in a sorted list that is not less than v. */
export function lower(list, v) {
  let low = 0, high = list.length;
  while (low < high) { const middle = (low + high) >> 1; list[middle] < v ? low = middle + 1 : high = middle; }
  return low;
}

export class Spans {
  lanes = new Map();
  clocks = new Map();   // number of the iteration -> [begin, end] of its kernels
  names = []; laneNames = [];
  size = 0; end = 0; begin = Infinity; leftOut = 0;

  add(x) {
    for (const [at, text] of x.names) this.names[at] = text;
    for (const [at, text] of x.lanes) this.laneNames[at] = text;
    this.leftOut += x.left_out ?? 0;
    for (const [lane, name, phase, begin, took, clock, size] of x.rows)
      this.#put(this.laneNames[lane], this.names[name], this.names[phase], begin, begin + took, clock, size);
    this.#tidy();
  }

  addTrace(file, worker = 0) {
    const lanes = new Map();
    for (const e of file.traceEvents) {
      if (e.pid !== worker) continue;
      if (e.ph === 'M' && e.name === 'thread_name') lanes.set(e.tid, e.args.name);
      if (e.ph === 'X') this.#put(lanes.get(e.tid) ?? 'lane ' + e.tid, e.name, e.cat, e.ts, e.ts + e.dur, e.args?.clock ?? 0, e.args?.bytes ?? 0);
    }
    for (const lane of this.lanes.values()) lane.sort();
  }

  #put(laneName, name, phase, begin, end, clock, size) {
    const info = laneOf(laneName);
    let lane = this.lanes.get(info.key);
    if (!lane) this.lanes.set(info.key, lane = new Lane(info));
    lane.push(begin, end, name, phase, clock, size);
    ++this.size;
    if (end > this.end) this.end = end;
    if (begin < this.begin) this.begin = begin;
    if (info.order !== 0 || phase === 'stall') return;
    const c = this.clocks.get(clock);
    if (!c) this.clocks.set(clock, [begin, end]);
    else { c[0] = Math.min(c[0], begin); c[1] = Math.max(c[1], end); }
  }

  #tidy() {
    if (this.size > KEPT) {
      this.size = 0;
      for (const lane of this.lanes.values()) { lane.forget(lane.begin.length >> 1); this.size += lane.begin.length; }
      const compute = this.drawn()[0];
      this.begin = compute?.begin[0] ?? this.begin;
      for (const [clock, [, end]] of this.clocks) if (end < this.begin) this.clocks.delete(clock);
    }
    for (const lane of this.lanes.values()) lane.sort();
  }

  /** The lanes from top to bottom, without the lane of the overlap strip. */
  drawn() { return [...this.lanes.values()].filter(l => l.key !== 'exchange').sort((a, b) => a.order - b.order || (a.label < b.label ? -1 : 1)); }

  /** Disjoint intervals within [from, to] in which at least one update was travelling. */
  exchanges(from, to) {
    const lane = this.lanes.get('exchange'), out = [];
    if (!lane) return out;
    for (let i = lane.from(from); i < lane.begin.length && lane.begin[i] < to; ++i) {
      const begin = Math.max(from, lane.begin[i]), end = Math.min(to, lane.end[i]);
      if (end <= begin) continue;
      const last = out.at(-1);
      if (last && begin <= last[1]) last[1] = Math.max(last[1], end); else out.push([begin, end]);
    }
    return out;
  }

  /** When the run began, in the spans' clock, computed from its points [iteration, seconds, ...]; null without any. A node
   *  reports an iteration just after its forward pass, so the report that came soonest gives the time best. */
  startOf(points) {
    const ends = new Map();
    for (const lane of this.lanes.values())
      if (lane.order === 0) lane.phase.forEach((phase, i) => { if (phase === 'forward') ends.set(lane.clock[i], Math.max(ends.get(lane.clock[i]) ?? 0, lane.end[i])); });
    const starts = points.filter(p => ends.has(p[0])).map(p => ends.get(p[0]) - 1e6 * p[1]);
    return starts.length ? Math.max(...starts) : null;
  }

  /** {compute, exposed, communication} in microseconds: means over the compute lanes of the time they computed and the time
   *  they waited, and the time in which updates were travelling. */
  summary(from, to) {
    let compute = 0, exposed = 0, lanes = 0;
    for (const lane of this.lanes.values()) {
      if (lane.order !== 0) continue;
      ++lanes;
      for (let i = lane.from(from); i < lane.begin.length && lane.begin[i] < to; ++i) {
        const took = Math.min(to, lane.end[i]) - Math.max(from, lane.begin[i]);
        if (took > 0) lane.phase[i] === 'stall' ? exposed += took : compute += took;
      }
    }
    const communication = this.exchanges(from, to).reduce((sum, [a, b]) => sum + b - a, 0);
    lanes = Math.max(1, lanes);
    return { compute: compute / lanes, exposed: exposed / lanes, communication };
  }
}
