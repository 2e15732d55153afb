// view.js - moves and zooms an SVG group with mouse, touchpad and touch.
export class View {
  scale = 1; x = 0; y = 0; moved = false;

  constructor(svg, changed) {
    this.svg = svg;
    this.changed = changed;
    svg.addEventListener('wheel', e => {
      e.preventDefault();
      const r = svg.getBoundingClientRect();
      this.zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - r.left, e.clientY - r.top);
    }, { passive: false });
    svg.addEventListener('pointerdown', e => { if (e.button === 0) { this.from = [e.clientX - this.x, e.clientY - this.y]; this.start = [e.clientX, e.clientY]; this.moved = false; } });
    svg.addEventListener('pointermove', e => {
      if (!this.from) return;
      if (!this.moved && Math.hypot(e.clientX - this.start[0], e.clientY - this.start[1]) < 4) return;
      if (!this.moved) svg.setPointerCapture(e.pointerId);
      this.moved = true;
      this.x = e.clientX - this.from[0];
      this.y = e.clientY - this.from[1];
      this.apply();
    });
    for (const end of ['pointerup', 'pointercancel']) svg.addEventListener(end, () => { this.from = null; });
  }

  /** Shows a new drawing; `whole` is its rectangle in the group's own units. A view that the reader has moved stays as it is. */
  show(group, whole) {
    this.group = group;
    const same = this.whole && Math.abs(this.whole.w - whole.w) < 1 && Math.abs(this.whole.h - whole.h) < 1;
    this.whole = whole;
    same && this.kept ? this.apply() : this.fit();
  }

  fit() {
    const r = this.svg.getBoundingClientRect(), { x, y, w, h } = this.whole;
    this.scale = Math.min(1.6, r.width / w, r.height / h);
    this.x = (r.width - w * this.scale) / 2 - x * this.scale;
    this.y = (r.height - h * this.scale) / 2 - y * this.scale;
    this.apply();
    this.kept = false;
  }

  zoom(by, cx, cy) {
    const scale = Math.max(0.1, Math.min(6, this.scale * by));
    this.x = cx - (cx - this.x) * scale / this.scale;
    this.y = cy - (cy - this.y) * scale / this.scale;
    this.scale = scale;
    this.apply();
  }

  /** Moves the view to a place `p` if the reader cannot see it, and zooms if its text is too small to be read. */
  reveal(p) {
    const r = this.svg.getBoundingClientRect();
    if (this.scale < 0.9) this.scale = 1;
    const x = p.x * this.scale + this.x, y = p.y * this.scale + this.y;
    if (x < 10 || y < 10 || x + p.w * this.scale > r.width - 10 || y + p.h * this.scale > r.height - 10) {
      this.x = r.width / 2 - (p.x + p.w / 2) * this.scale;
      this.y = r.height / 2 - (p.y + p.h / 2) * this.scale;
    }
    this.apply();
  }

  apply() {
    this.kept = true;
    this.group.setAttribute('transform', `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.scale.toFixed(4)})`);
    this.changed();
  }
}
