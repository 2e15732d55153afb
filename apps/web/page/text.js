// text.js - numbers and colours as people read them.

/** 12.3 MB; powers of 1000, as network people count. */
export function bytes(n) {
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]])
    if (n >= size) return (n / size).toFixed(n >= 100 * size ? 0 : 1) + ' ' + unit;
  return Math.round(n) + ' B';
}

export const count = n => Math.round(n).toLocaleString('en');

/** Four digits that matter. */
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

/** Milliseconds of a span given in microseconds. */
export const ms = us => us >= 1e5 ? (us / 1e3).toFixed(0) : us >= 1e3 ? (us / 1e3).toFixed(1) : (us / 1e3).toFixed(3);

export const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** An element with attributes and children; text is never read as markup. */
export function h(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== false) e.setAttribute(name, value);
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

const SVG = 'http://www.w3.org/2000/svg';
export function s(tag, attributes = {}, parent, text) {
  const e = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  if (text !== undefined) e.textContent = text;
  parent?.append(e);
  return e;
}

/** 1, 2 or 5 times a power of ten, not below x. */
export function step(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 5, 10].find(f => f * power >= x * 0.9999) * power;
}
