// Elements, and how a page is brought up to date without losing focus, open details or what somebody types.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'path', 'g', 'rect', 'line', 'circle', 'text', 'title', 'polyline']);

/** An element. Attributes that begin with `on` are handlers; false, null and undefined leave an attribute out. */
export function h(tag, attributes = {}, ...children) {
  const isSvg = SVG_TAGS.has(tag) && tag !== 'title';
  const element = isSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  element.handlers = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) {
      handle(element, name.slice(2), value);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function handle(element, type, handler) {
  element.handlers[type] = handler;
  element.addEventListener(type, (event) => element.handlers[type]?.(event));
}

/** Makes the content of an element equal to these nodes, and keeps what is there already. */
export function show(element, ...nodes) {
  const wanted = document.createElement('div');
  wanted.append(...nodes.flat(9).filter(Boolean));
  patchChildren(element, wanted);
}

const keyOf = (node) => (node.nodeType === 1 ? node.getAttribute('data-key') : null);
const isAlike = (one, other) =>
  one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

function patchChildren(present, wanted) {
  const keyed = new Map();
  for (const child of present.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = present.firstChild;
  for (const want of [...wanted.childNodes]) {
    const known = keyOf(want) ? keyed.get(keyOf(want)) : at;
    if (known && isAlike(known, want)) {
      if (known === at) at = at.nextSibling;
      else present.insertBefore(known, at);
      patch(known, want);
    } else {
      present.insertBefore(want, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function patch(present, wanted) {
  if (present.nodeType !== 1) {
    if (present.nodeValue !== wanted.nodeValue) present.nodeValue = wanted.nodeValue;
    return;
  }
  // People open and close details, so an update does not.
  const isTheirs = (name) => name === 'open' && present.nodeName === 'DETAILS';
  for (const { name, value } of wanted.attributes) {
    if (present.getAttribute(name) !== value && !isTheirs(name)) present.setAttribute(name, value);
  }
  for (const { name } of [...present.attributes]) {
    if (!wanted.hasAttribute(name) && !isTheirs(name)) present.removeAttribute(name);
  }
  for (const type of Object.keys(wanted.handlers ?? {})) {
    if (present.handlers?.[type]) present.handlers[type] = wanted.handlers[type];
    else handle(present, type, wanted.handlers[type]);
  }
  patchChildren(present, wanted);
}

const ICONS = {
  overview: 'M4 15a8 8 0 1 1 16 0M12 15l4-5M4 19h16',
  shares: 'M3 7a2 2 0 0 1 2-2h4l2 2h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z',
  clients: 'M4 5h16v11H4zM9 20h6M12 16v4',
  files: 'M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6',
  users: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4 4-6 8-6s8 2 8 6',
  tokens: 'M14 10a4 4 0 1 0-3.5 4L13 16.5h2.500V19H18v2h3v-3l-7-7z',
  advice: 'M9 17h6M10 21h4M12 3a6 6 0 0 0-3.500 10.900c.7.5 1 1.300 1 2.100h5c0-.8.3-1.600 1-2.100A6 6 0 0 0 12 3z',
  log: 'M4 6h16M4 10h10M4 14h16M4 18h10',
  leave: 'M10 4H5v16h5M15 8l4 4-4 4M19 12H9',
  add: 'M12 5v14M5 12h14',
  alarm: 'M12 4l9 16H3zM12 10v4M12 17v.5',
  good: 'M5 12.500l4.500 4.500L19 7.500',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
};

export const icon = (name) =>
  h('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, h('path', { d: ICONS[name] }));

/** The mark of the project: a channel that leaves the river and joins it again. */
export const mark = () =>
  h('svg', { class: 'mark', viewBox: '0 0 32 32', 'aria-hidden': 'true' },
    h('rect', { width: 32, height: 32, rx: 8 }),
    h('path', { d: 'M16 4v4c0 4-7 4-7 8s7 4 7 8v4M16 8c0 4 7 4 7 8s-7 4-7 8' }));

/** A table that becomes a list of cards where there is no room. Columns: { title, cell, numeric, wide }. */
export function table({ caption, columns, rows, key, empty }) {
  if (!rows.length) return h('p', { class: 'empty' }, empty);
  const cell = (column, row, first) => {
    const value = column.cell(row);
    const attributes = { role: first ? 'rowheader' : 'cell', 'data-label': column.title, class: column.numeric ? 'numeric' : null };
    return first ? h('th', { ...attributes, scope: 'row' }, value) : h('td', attributes, value);
  };
  return h('div', { class: 'scroll' },
    h('table', { role: 'table' },
      h('caption', { class: 'unseen' }, caption),
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, columns.map((column) =>
        h('th', { scope: 'col', role: 'columnheader', class: column.numeric ? 'numeric' : null }, column.title)))),
      h('tbody', { role: 'rowgroup' }, rows.map((row) =>
        h('tr', { role: 'row', 'data-key': key(row) }, columns.map((column, n) => cell(column, row, n === 0)))))));
}

/** A part of a page under a heading. */
export function section(title, { actions = null, note = null } = {}, ...content) {
  return h('section', { class: 'card', 'aria-label': title },
    h('header', { class: 'card-head' }, h('h2', {}, title), actions ? h('div', { class: 'actions' }, actions) : null),
    note ? h('p', { class: 'note' }, note) : null,
    content);
}

/** Names with values. */
export const facts = (pairs) =>
  h('dl', { class: 'facts' }, pairs.filter(Boolean).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));

export const badge = (kind, text) => h('span', { class: `badge ${kind}` }, text);

export const button = (text, onclick, { kind = 'quiet', glyph = null, label = null, ...more } = {}) =>
  h('button', { type: 'button', class: `button ${kind}`, onclick, 'aria-label': label, ...more }, glyph ? icon(glyph) : null, text);
