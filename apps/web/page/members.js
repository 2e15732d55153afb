// members.js - the table of the workers, and of those that only vote. A click on a row, or Enter on the row with the focus, shows that worker's actors.
// The arrow keys move the focus. A row stays the same element for the whole run, so it keeps the focus and loses no click.
import { bytes, count, figure, h } from './text.js';

export class Members {
  constructor(store, choose) {
    Object.assign(this, { store, choose, lines: new Map() });
    this.table = document.getElementById('members');
    this.choice = document.getElementById('worker');
    this.table.addEventListener('keydown', e => this.#key(e));
    store.addEventListener('tick', () => this.#show());
    store.addEventListener('state', () => this.#show());
  }

  #show() {
    const { members, graph, moving } = this.store, now = performance.now(), dt = (now - (this.shownAt ?? 0)) / 1000;
    this.#select(members);
    const same = members.length === this.lines.size && members.every(m => this.lines.has(m.id));
    if (!members.length || (same && moving && dt < 1)) return;
    const shares = members.some(m => m.share), before = this.before ?? new Map();
    const voters = this.store.witnesses.map(w => w.witness).join();
    if (!same || shares !== this.shares || voters !== this.voters) this.#build(members, shares, voters);
    const rate = (m, key) => moving && before.has(m.id) ? bytes(Math.max(0, m[key] - before.get(m.id)[key]) / dt) + '/s' : '–';
    for (const m of members) {
      const { line, name, tag, cells } = this.lines.get(m.id), shown = m.id === graph?.run.worker;
      line.className = shown ? 'shown' : '';
      line.setAttribute('aria-selected', shown);
      line.title = this.#tip(m);
      name.textContent = m.leads ? `${m.id}, leads` : `${m.id}`;
      // Whether the other nodes still work is not known after the end of the run.
      tag.textContent = this.store.over && m.state === 'up' ? 'ended' : m.state;
      tag.className = 'tag ' + (m.state === 'lost' || m.state === 'silent' ? 'bad' : m.state === 'up' && moving ? 'good' : 'faint');
      const values = [m.clock === undefined ? '–' : count(m.clock), m.lag === undefined ? '–' : count(m.lag), rate(m, 'bytes_out'), rate(m, 'bytes_in'), m.share ?? '–'];
      cells.forEach((cell, i) => { cell.textContent = values[i]; });
    }
    this.shownAt = now;
    this.before = new Map(members.map(m => [m.id, m]));
  }

  #select(members) {
    const { choice } = this;
    const known = [...choice.options].map(o => +o.value);
    if (known.length !== members.length || members.some((m, i) => m.id !== known[i])) choice.replaceChildren(...members.map(m => h('option', { value: m.id }, `worker ${m.id}`)));
    choice.value = this.store.graph?.run.worker ?? 0;
    choice.disabled = !this.store.moving;
    choice.parentElement.hidden = members.length < 2;
  }

  #build(members, shares, voters) {
    Object.assign(this, { shares, voters });
    this.lines.clear();
    const heads = ['worker', 'state', 'iteration', 'lag', 'out', 'in', ...(shares ? ['share'] : [])];
    this.table.replaceChildren(h('tr', {}, ...heads.map((t, i) => h('th', { scope: 'col', class: i > 1 ? 'n' : '' }, t))), ...members.map((m, i) => {
      const name = h('td', {}, `${m.id}`), tag = h('span'), cells = heads.slice(2).map(() => h('td', { class: 'n' }));
      const line = h('tr', { 'data-worker': m.id, tabindex: i ? -1 : 0 }, name, h('td', {}, tag), ...cells);
      line.addEventListener('click', () => this.choose(m.id));
      this.lines.set(m.id, { line, name, tag, cells });
      return line;
    }), ...this.store.witnesses.map(w => h('tr', { 'data-witness': w.witness, title: w.address }, h('td', {}, `${w.witness}`),
      h('td', { colspan: heads.length - 1 }, 'witness: it votes, and trains nothing'))));
  }

  #tip(m) {
    const other = m.uncertain_us !== undefined && m.id !== this.store.graph?.run.node;
    return [m.address, m.leads && 'leads the others', m.why, other && `its time is ${figure(m.offset_us)} µs ahead, ± ${figure(m.uncertain_us)} µs`, `${m.actors} actors`,
      m.replicas && `${m.replicas} replica${m.replicas === 1 ? '' : 's'}`].filter(Boolean).join('\n');
  }

  #key(e) {
    const rows = [...this.lines.values()].map(x => x.line), at = rows.indexOf(e.target.closest('tr'));
    if (at < 0) return;
    if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); return this.choose(+rows[at].dataset.worker); }
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    const next = rows[Math.max(0, Math.min(rows.length - 1, to))];
    for (const row of rows) row.tabIndex = row === next ? 0 : -1;
    next.focus();
  }
}
