// curves.js - small line charts of the run: loss, accuracy, images/s, network. They are drawn again when new values arrive.
import { bytes, css, figure, h, step } from './text.js';

/**
 * The points ([x, y], x rising) that a line needs when X(x) is a place in pixels: the first, the least, the greatest and the last
 * of each column of pixels, in their order. So one spike among thousands of points stays visible.
 */
export function byColumn(points, X) {
  const kept = [];
  for (let i = 0; i < points.length;) {
    const column = Math.floor(X(points[i][0])), begin = i;
    let least = i, most = i;
    for (; i < points.length && Math.floor(X(points[i][0])) === column; ++i) {
      if (points[i][1] < points[least][1]) least = i;
      if (points[i][1] > points[most][1]) most = i;
    }
    for (const at of new Set([begin, Math.min(least, most), Math.max(least, most), i - 1])) kept.push(points[at]);
  }
  return kept;
}

class Chart {
  constructor(parent, title, unit = '') {
    this.value = h('span');
    this.canvas = h('canvas', { role: 'img' });
    this.box = h('div', { class: 'curve' }, h('h3', {}, title, this.value), this.canvas);
    Object.assign(this, { title, unit });
    parent.append(this.box);
  }

  /** series: [{colour, points: [[x, y]], dots}]; format writes a y as text; marks: [[x, text]], where something changed. */
  draw(series, label, format, marks = []) {
    const { canvas } = this, dpr = devicePixelRatio, W = canvas.clientWidth, H = canvas.clientHeight, pen = canvas.getContext('2d');
    if (canvas.width !== Math.round(W * dpr)) { canvas.width = Math.round(W * dpr); canvas.height = Math.round(H * dpr); }
    pen.setTransform(dpr, 0, 0, dpr, 0, 0);
    pen.clearRect(0, 0, W, H);
    this.value.textContent = label;
    canvas.setAttribute('aria-label', `${this.title}: ${label}`);
    const all = series.flatMap(x => x.points).filter(p => Number.isFinite(p[1]));
    if (!all.length) return;
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [x, y] of all) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y); }
    if (x1 === x0) x1 = x0 + 1;
    const spread = y1 - y0 || Math.abs(y1) || 1;
    y0 = y0 >= 0 && y0 < spread ? 0 : y0 - 0.05 * spread;
    y1 += 0.06 * spread;
    const left = 50, bottom = H - 14, X = x => left + (x - x0) / (x1 - x0) * (W - left - 4), Y = y => bottom - (y - y0) / (y1 - y0) * (bottom - 4);
    pen.font = '10px Inter, "DejaVu Sans", sans-serif';
    pen.strokeStyle = css('--line');
    pen.lineWidth = 0.7;
    const faint = css('--faint');
    for (let every = step((y1 - y0) / 2.5), y = Math.ceil(y0 / every) * every; y <= y1; y += every) {
      pen.beginPath(); pen.moveTo(left, Y(y)); pen.lineTo(W, Y(y)); pen.stroke();
      pen.fillStyle = faint; pen.textAlign = 'right'; pen.fillText(format(y), left - 5, Y(y) + 3);
    }
    pen.textAlign = 'center';
    for (let every = step((x1 - x0) / 4), x = Math.ceil(x0 / every) * every; x <= x1; x += every) { pen.fillStyle = faint; pen.fillText(figure(x) + this.unit, Math.min(W - 12, X(x)), H - 3); }
    pen.textAlign = 'left';
    this.marked = [];
    let free = left;
    for (const [x, text] of marks) {
      if (x < x0 || x > x1) continue;
      pen.strokeStyle = pen.fillStyle = faint;
      pen.setLineDash([2, 3]); pen.beginPath(); pen.moveTo(X(x), 0); pen.lineTo(X(x), bottom); pen.stroke(); pen.setLineDash([]);
      this.marked.push({ x, text });
      const end = X(x) + pen.measureText(text).width + 6;
      if (X(x) < free || end > W) continue;  // there is no room for its text
      pen.fillText(text, X(x) + 3, 9);
      free = end;
    }
    for (const { colour, points, dots } of series) {
      pen.strokeStyle = pen.fillStyle = css(colour);
      pen.lineWidth = 1.5;
      pen.beginPath();
      for (const [x, y] of byColumn(points.filter(p => Number.isFinite(p[1])), X)) pen.lineTo(X(x), Y(y));
      pen.stroke();
      if (dots || points.length === 1) for (const [x, y] of points) { pen.beginPath(); pen.arc(X(x), Y(y), 2.2, 0, 7); pen.fill(); }
    }
  }
}

export class Curves {
  constructor(parent, store) {
    this.store = store;
    this.loss = new Chart(parent, 'loss');
    this.score = new Chart(parent, 'accuracy in tests');
    this.speed = new Chart(parent, 'images/s');
    this.network = new Chart(parent, 'network of this node', ' s');
    const ask = () => { if (!this.asked) { this.asked = true; requestAnimationFrame(() => { this.asked = false; this.draw(); }); } };
    for (const kind of ['history', 'state']) store.addEventListener(kind, ask);
    new ResizeObserver(ask).observe(parent);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', ask);
  }

  /** The accuracy in each test: [iteration, value]. */
  static scores(tests) {
    const out = [];
    for (const t of tests) {
      const i = t.names.findIndex(n => /acc/i.test(n));
      if (i >= 0) out.push([t.clock, t.means[i]]);
    }
    return out;
  }

  /** Where the members changed: [iteration, "3 nodes"]. The first view of a run that never changed needs no mark. */
  static marks(views) {
    return views.flatMap(([clock, , nodes], i) => i > 0 && nodes !== views[i - 1][2] ? [[clock, `${nodes} ${nodes === 1 ? 'node' : 'nodes'}`]] : []);
  }

  draw() {
    const { points, tests, traffic, moving, views } = this.store, last = points.at(-1), marks = Curves.marks(views);
    const newest = moving ? '' : 'at the end ';
    const testLoss = tests.flatMap(t => { const i = t.names.findIndex(n => /loss/i.test(n)); return i >= 0 ? [[t.clock, t.means[i]]] : []; });
    this.loss.draw([{ colour: '--accent', points: points.map(p => [p[0], p[2]]) }, { colour: '--push', points: testLoss, dots: true }], last ? figure(last[2]) + (testLoss.length ? `, in tests ${figure(testLoss.at(-1)[1])}` : '') : 'none yet', figure, marks);
    const scores = Curves.scores(tests);
    this.score.box.hidden = !scores.length;
    if (scores.length) this.score.draw([{ colour: '--good', points: scores, dots: true }], figure(scores.at(-1)[1]), figure, marks);
    this.speed.draw([{ colour: '--apply', points: points.filter(p => p[4] > 0).map(p => [p[0], p[4]]) }], points.length > 1 ? newest + figure(last[4]) : 'none yet', figure, marks);
    const rates = [[], []];
    for (let i = 1; i < traffic.length; ++i) { const dt = traffic[i][0] - traffic[i - 1][0]; for (const k of [0, 1]) rates[k].push([traffic[i][0], (traffic[i][k + 1] - traffic[i - 1][k + 1]) / dt]); }
    this.network.box.hidden = traffic.length < 2;
    if (rates[0].length) this.network.draw([{ colour: '--push', points: rates[0] }, { colour: '--pull', points: rates[1] }], `${newest}out ${bytes(rates[0].at(-1)[1])}/s, in ${bytes(rates[1].at(-1)[1])}/s`, bytes);
  }
}
