// timeline.js - draws the spans of one worker over time, on a canvas. Each lane is a row. The strip below shows how much of the
// communication was hidden behind computing. At most one rectangle is drawn per column of pixels, so a hundred thousand
// spans take milliseconds.
import { bytes, css, ms, shortened, step } from './text.js';
import { lower } from './spans.js';

export const PHASES = [['forward', '--forward'], ['backward', '--backward'], ['push', '--push'], ['apply', '--apply'], ['pull', '--pull'], ['factors', '--factors'], ['stall', '--stall']];
const COLOUR = { forward: '--forward', backward: '--backward', push: '--push', receive: '--push', apply: '--apply', send: '--pull', pull: '--pull',
  broadcast: '--factors', collect: '--factors', reconstruct: '--factors', stall: '--stall', read: '--read', exchange: '--exchange' };
const LEFT = 88, TOP = 38, FOOT = 6;

export class Timeline {
  follow = true; window = null; layer = null; hover = null; drawMs = 0;

  constructor(canvas, tip, store) {
    Object.assign(this, { canvas, tip, store });
    this.pen = canvas.getContext('2d');
    const changed = () => this.ask();
    store.addEventListener('spans', changed);
    new ResizeObserver(changed).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
    canvas.addEventListener('wheel', e => { e.preventDefault(); e.shiftKey ? this.move(e.deltaY / 600) : this.zoom(Math.exp(e.deltaY * 0.0015), this.timeAt(e.offsetX)); }, { passive: false });
    canvas.addEventListener('pointerdown', e => { this.drag = { x: e.offsetX, window: [...(this.window ?? [0, 1])] }; });
    canvas.addEventListener('pointermove', e => this.#pointer(e));
    canvas.addEventListener('pointerup', () => { this.drag = null; });
    canvas.addEventListener('pointerleave', () => { this.hover = null; this.tip.hidden = true; this.drag = null; this.ask(); });
    canvas.addEventListener('keydown', e => this.#key(e));
  }

  /** Draws with the next frame: once, even after several calls. */
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  setFollow(on) { this.follow = on; this.onFollow?.(on); this.ask(); }

  zoom(by, at) {
    if (!this.window) return;
    const [a, b] = this.window, wide = Math.max(50, Math.min((b - a) * by, 1.2 * (this.store.spans.end - this.store.spans.begin))), share = (at - a) / (b - a);
    this.span = wide;
    if (this.follow) return this.ask();
    this.window = [at - share * wide, at + (1 - share) * wide];
    this.ask();
  }

  move(share) {
    if (!this.window) return;
    const by = share * (this.window[1] - this.window[0]);
    this.window = [this.window[0] + by, this.window[1] + by];
    this.setFollow(false);
  }

  #key(e) {
    const middle = this.window ? (this.window[0] + this.window[1]) / 2 : 0;
    const act = { ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), '+': () => this.zoom(0.7, middle), '=': () => this.zoom(0.7, middle), '-': () => this.zoom(1.4, middle), f: () => this.setFollow(!this.follow) }[e.key];
    if (act) { e.preventDefault(); act(); }
  }

  timeAt(x) { const [a, b] = this.window ?? [0, 1]; return a + (x - LEFT) / (this.canvas.clientWidth - LEFT) * (b - a); }

  /** Shows the newest three iterations, or the newest time of the length that the reader has chosen. */
  #follows() {
    const { spans } = this.store;
    if (!this.span) {
      // The length is how long iterations take. The distance between them would include the times without spans.
      const took = [...spans.clocks.values()].slice(-8, -1).map(([begin, end]) => end - begin).sort((a, b) => a - b);
      this.window = took.length < 2 ? [spans.begin, spans.end] : [spans.end - 3.6 * took[took.length >> 1], spans.end];
    } else this.window = [spans.end - this.span, spans.end];
  }

  draw() {
    const started = performance.now(), { canvas, pen } = this, { spans } = this.store;
    const dpr = devicePixelRatio, W = canvas.clientWidth, H = canvas.clientHeight;
    if (canvas.width !== Math.round(W * dpr) || canvas.height !== Math.round(H * dpr)) { canvas.width = Math.round(W * dpr); canvas.height = Math.round(H * dpr); }
    pen.setTransform(dpr, 0, 0, dpr, 0, 0);
    pen.clearRect(0, 0, W, H);
    this.colours = Object.fromEntries(Object.entries(COLOUR).map(([phase, name]) => [phase, css(name)]));
    this.text = css('--text'); this.faint = css('--faint'); this.line = css('--line');
    pen.font = '10.5px Inter, "DejaVu Sans", sans-serif';
    pen.textBaseline = 'middle';
    if (!spans.size) {
      pen.fillStyle = this.faint;
      pen.fillText(this.store.replay ? 'This run has kept no spans: poseidon-node --trace FILE keeps them.' : 'There are no spans yet. They come with the first iteration.', 12, 24);
      return;
    }
    if (this.follow || !this.window) this.#follows();
    const lanes = this.rows = spans.drawn();
    const row = this.row = Math.min(30, (H - TOP - FOOT) / (lanes.length + 1));
    const X = this.X = t => LEFT + (t - this.window[0]) / (this.window[1] - this.window[0]) * (W - LEFT);
    this.#scale(W, H);
    lanes.forEach((lane, i) => this.#lane(lane, TOP + i * row + 1.5, row - 3, W));
    this.#strip(lanes, TOP + lanes.length * row + 1.5, row - 3, W);
    pen.fillStyle = css('--panel');
    pen.fillRect(0, TOP, LEFT - 1, H);
    pen.fillStyle = this.faint;
    lanes.forEach((lane, i) => pen.fillText(shortened(lane.label, 14), 8, TOP + (i + 0.5) * row));
    pen.fillText('overlap', 8, TOP + (lanes.length + 0.5) * row);
    this.#chain(lanes, row);
    this.drawMs = performance.now() - started;
    this.onDraw?.();
  }

  /** The text of a time on the scale, counted from the start of the run as in the log; `every`: the distance to the next one. */
  stamp(t, every) {
    const since = (t - this.store.zero) / 1e6;
    return since.toFixed(Math.max(1, Math.min(6, Math.ceil(-Math.log10(every / 1e6) - 1e-9)))) + ' s';
  }

  #scale(W, H) {
    const { pen } = this, [a, b] = this.window, every = step((b - a) / Math.max(2, (W - LEFT) / 110));
    const { zero } = this.store;
    pen.strokeStyle = this.line;
    pen.lineWidth = 1;
    for (let t = Math.ceil((a - zero) / every) * every + zero; t < b; t += every) {
      const x = Math.round(this.X(t)) + 0.5;
      pen.beginPath(); pen.moveTo(x, 16); pen.lineTo(x, H); pen.stroke();
      pen.fillStyle = this.faint;
      if (x > LEFT - 6) pen.fillText(this.stamp(t, every), x + 3, 8);
    }
    for (const [clock, [begin, end]] of this.store.spans.clocks) {
      if (end < a || begin > b) continue;
      const x = Math.max(LEFT, this.X(begin)), right = this.X(end);
      if (right - x < 2) continue;
      pen.fillStyle = this.line; pen.globalAlpha = 0.55; pen.fillRect(x, 17, right - x - 1.5, 17); pen.globalAlpha = 1;
      pen.fillStyle = this.text;
      const label = `iteration ${clock}, ${ms(end - begin)} ms`;
      if (right - x > 6 * label.length) pen.fillText(label, x + 6, 26);
      else if (right - x > 44) pen.fillText(String(clock), x + 4, 26);
    }
  }

  /** Returns a function that gives the pixels [left, right] of a row's next span: at least one pixel, or null if that pixel
   *  has been drawn already. */
  #columns(W) {
    let drawn = LEFT;  // everything to the left of this pixel has been drawn
    return (begin, end) => {
      let x = Math.max(LEFT, this.X(begin)), right = Math.min(W, this.X(end));
      if (right - x < 1) { if (right <= drawn) return null; x = Math.max(x, drawn); right = x + 1; }
      drawn = Math.max(drawn, right);
      return [x, right];
    };
  }

  #lane(lane, y, h, W) {
    const { pen } = this, [a, b] = this.window, columns = this.#columns(W);
    for (let i = lane.from(a); i < lane.begin.length && lane.begin[i] < b; ++i) {
      const place = lane.end[i] < a ? null : columns(lane.begin[i], lane.end[i]);
      if (!place) continue;
      const [x, right] = place;
      const other = this.layer && lane.name[i] !== this.layer;
      pen.globalAlpha = other ? 0.3 : 1;
      pen.fillStyle = this.colours[lane.phase[i]] ?? this.faint;
      pen.fillRect(x, y, right - x - (right - x > 3 ? 0.7 : 0), h);
      if (right - x > 34) {
        pen.fillStyle = '#0b0f15';
        const room = Math.floor((right - x - 8) / 6), text = lane.phase[i] === 'stall' ? 'waits for ' + lane.name[i] : lane.name[i];
        if (room > 3) pen.fillText(shortened(text, room), x + 4, y + h / 2);
      }
    }
    pen.globalAlpha = 1;
  }

  /** Green: updates travelled while the streams computed. Red: a stream waited for an update. */
  #strip(lanes, y, h, W) {
    const { pen } = this, [a, b] = this.window;
    const fill = (columns, begin, end) => { const place = columns(begin, end); if (place) pen.fillRect(place[0], y, place[1] - place[0], h); };
    const green = this.#columns(W);
    pen.fillStyle = this.colours.exchange;
    for (const [begin, end] of this.store.spans.exchanges(a, b)) fill(green, begin, end);
    pen.fillStyle = this.colours.stall;
    for (const lane of lanes) {
      if (lane.order !== 0) continue;
      const red = this.#columns(W);
      for (let i = lane.from(a); i < lane.begin.length && lane.begin[i] < b; ++i)
        if (lane.phase[i] === 'stall' && lane.end[i] > a) fill(red, lane.begin[i], lane.end[i]);
    }
  }

  /** Outlines all spans of one layer in one iteration and joins them with lines. */
  #chain(lanes, row) {
    if (!this.hover) return;
    const { pen, X } = this, places = [];
    lanes.forEach((lane, r) => {
      for (let i = lane.from(this.window[0]); i < lane.begin.length && lane.begin[i] < this.window[1]; ++i)
        if (lane.name[i] === this.hover.name && lane.clock[i] === this.hover.clock) places.push([lane.begin[i], lane.end[i], TOP + r * row + 1.5]);
    });
    places.sort((p, q) => p[0] - q[0]);
    pen.strokeStyle = this.text;
    pen.lineWidth = 1.3;
    let last = null;
    for (const [begin, end, y] of places) {
      const x = Math.max(LEFT, X(begin)), w = Math.max(2, X(end) - x);
      if (w > 0) pen.strokeRect(x - 0.5, y, w + 1, row - 3);
      if (last && last[1] !== y) { pen.globalAlpha = 0.6; pen.beginPath(); pen.moveTo(last[0], last[1] + row / 2 - 1.5); pen.bezierCurveTo(last[0] + 12, last[1] + row / 2, x - 12, y + row / 2, x, y + row / 2 - 1.5); pen.stroke(); pen.globalAlpha = 1; }
      last = [x + w, y];
    }
  }

  #pointer(e) {
    if (this.drag && this.window) {
      const [a, b] = this.drag.window, by = (e.offsetX - this.drag.x) / (this.canvas.clientWidth - LEFT) * (b - a);
      if (Math.abs(e.offsetX - this.drag.x) < 3) return;
      this.window = [a - by, b - by];
      return this.setFollow(false);
    }
    const found = this.at(e.offsetX, e.offsetY);
    this.hover = found;
    this.tip.hidden = !found;
    if (found) {
      const rate = found.bytes ? `\n${bytes(found.bytes)}, ${bytes(found.bytes / Math.max(1, found.end - found.begin) * 1e6)}/s` : '';
      this.tip.textContent = `${found.name}  ${found.phase}\niteration ${found.clock}, ${ms(found.end - found.begin)} ms${rate}`;
      this.tip.style.left = Math.min(e.offsetX + 14, this.canvas.clientWidth - 210) + 'px';
      this.tip.style.top = Math.max(2, Math.min(e.offsetY - 12, this.canvas.clientHeight - 66)) + 'px';
    }
    this.ask();
  }

  /** The span at a place of the canvas, or null. */
  at(x, y) {
    const lane = this.rows?.[Math.floor((y - TOP) / this.row)];
    if (!lane || x < LEFT || y < TOP) return null;
    const t = this.timeAt(x), near = (this.window[1] - this.window[0]) / this.canvas.clientWidth * 2;
    for (let i = lower(lane.begin, t + near) - 1, tries = 0; i >= 0 && tries < 8; --i, ++tries)
      if (lane.begin[i] - near <= t && t <= lane.end[i] + near)
        return { name: lane.name[i], phase: lane.phase[i], clock: lane.clock[i], bytes: lane.bytes[i], begin: lane.begin[i], end: lane.end[i] };
    return null;
  }
}
