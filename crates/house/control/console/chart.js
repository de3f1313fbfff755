// Charts: lines over the last minutes, bars, and meters.

import { h } from './dom.js';

const WIDTH = 600;
const HEIGHT = 120;
const POINTS = 90;

/** The next round figure above a value: 1, 2 or 5 times a power of the base. */
function roundUp(value, base) {
  if (value <= 0) return 1;
  if (base === 1024) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((times) => times * power).find((candidate) => candidate >= value);
}

/**
 * Lines over time. `lines`: [{ title, kind, of }], where `of` reads a point. `format` writes a value. The figures beside the title say
 * what the picture shows, so the picture itself is hidden from screen readers.
 */
export function lines({ points, lines, format, base = 10, title }) {
  const values = points.flatMap((point) => lines.map(({ of }) => of(point))).filter((value) => value !== null);
  const top = roundUp(Math.max(...values, 0), base);
  const x = (n) => ((n + POINTS - points.length) * WIDTH) / (POINTS - 1);
  const y = (value) => HEIGHT - (value / top) * (HEIGHT - 6);
  const path = (of) => {
    let isDrawing = false;
    return points.map((point, n) => {
      const value = of(point);
      if (value === null) {
        isDrawing = false;
        return '';
      }
      const step = `${isDrawing ? 'L' : 'M'}${x(n).toFixed(1)} ${y(value).toFixed(1)}`;
      isDrawing = true;
      return step;
    }).join('');
  };
  const area = (of) => (points.length > 1 ? `${path((point) => of(point) ?? 0)}L${WIDTH} ${HEIGHT}L${x(0).toFixed(1)} ${HEIGHT}Z` : '');
  const latest = points.at(-1);
  return h('figure', { class: 'chart' },
    h('figcaption', {}, h('span', { class: 'chart-title' }, title), lines.map(({ title: name, kind, of }) =>
      h('span', { class: name ? `key ${kind}` : kind }, name ? `${name} ` : null, h('b', {}, latest && of(latest) !== null ? format(of(latest)) : '–')))),
    h('div', { class: 'plot', 'aria-hidden': 'true' },
      h('span', { class: 'top' }, points.length ? format(top) : ''),
      h('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none' },
        [0, 0.5, 1].map((part) => h('line', { class: 'grid', x1: 0, x2: WIDTH, y1: y(top * part), y2: y(top * part) })),
        lines.length === 1 ? h('path', { class: `area ${lines[0].kind}`, d: area(lines[0].of) }) : null,
        lines.map(({ kind, of }) => h('path', { class: `line ${kind}`, d: path(of) })))));
}

/** How much of something is used. */
export function meter(label, part, { warn = 0.9 } = {}) {
  const bounded = Math.min(1, Math.max(0, part || 0));
  return h('svg', { class: `meter ${bounded >= warn ? 'near' : ''}`, viewBox: '0 0 100 6', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    h('rect', { class: 'rest', width: 100, height: 6, rx: 1 }),
    bounded > 0 ? h('rect', { class: 'used', width: Math.max(bounded * 100, 1.500), height: 6, rx: 1 }) : null);
}

/** Parts of a whole, side by side. `parts`: [{ kind, value }]. */
export function stack(parts, label) {
  const whole = parts.reduce((sum, { value }) => sum + value, 0);
  let from = 0;
  const bars = parts.filter(({ value }) => value > 0).map(({ kind, value }) => {
    const width = (value / whole) * 100;
    const bar = h('rect', { class: `part ${kind}`, x: from, width, height: 8 });
    from += width;
    return bar;
  });
  return h('svg', { class: 'stack', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    h('rect', { class: 'rest', width: 100, height: 8 }), bars);
}

/** Bars with a name and a figure each. `bars`: [{ name, value, text }]. */
export function bars(rows, kind) {
  const most = Math.max(...rows.map(({ value }) => value), 1);
  return h('ul', { class: 'bars' }, rows.map(({ name, value, text }) =>
    h('li', {}, h('span', { class: 'bar-name' }, name),
      h('svg', { class: 'bar', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
        h('rect', { class: 'rest', width: 100, height: 8 }),
        h('rect', { class: `part ${kind}`, width: (value / most) * 100, height: 8 })),
      h('span', { class: 'bar-text' }, text))));
}
