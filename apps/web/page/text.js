// text.js - writes numbers, colours and elements for the other modules.

/** 12.3 MB. The units are powers of 1000, as usual for networks. */
export function bytes(n) {
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]])
    if (n >= size) return (n / size).toFixed(n >= 100 * size ? 0 : 1) + ' ' + unit;
  return Math.round(n) + ' B';
}

export const count = n => Math.round(n).toLocaleString('en');

/** A number with its first four digits. */
export function figure(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return '–';
  if (v !== 0 && (Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3)) return v.toExponential(2);
  return String(+v.toPrecision(4));
}

export function duration(seconds) {
  const s = Math.round(seconds);
  if (s >= 3600) return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, '0')} min`;
  return s >= 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s} s`;
}

/** A time given in microseconds, as milliseconds. */
export const ms = us => us === 0 ? '0' : us >= 1e5 ? (us / 1e3).toFixed(0) : us >= 1e3 ? (us / 1e3).toFixed(1) : (us / 1e3).toFixed(3);

export const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** An HTML element with attributes and children. Text is never read as markup. */
export function h(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== false) e.setAttribute(name, value);
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

/** A text of at most `most` letters. It is never cut inside a number, because the rest would be another number. */
export function shortened(text, most) {
  if (text.length <= most) return text;
  let end = Math.max(1, most - 1);
  while (end > 0 && /[\d.]/.test(text[end - 1]) && /[\d.]/.test(text[end])) --end;
  return text.slice(0, end).replace(/[ …]+$/, '') + '…';
}

const SVG = 'http://www.w3.org/2000/svg';
export function s(tag, attributes = {}, parent, text) {
  const e = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  if (text !== undefined) e.textContent = text;
  parent?.append(e);
  return e;
}

/** The smallest of 1, 2, 5, 10, 20, ... (or 0.1, 0.2, ...) that is not less than x. */
export function step(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 5, 10].find(f => f * power >= x * 0.9999) * power;
}
