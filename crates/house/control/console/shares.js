// Shares: the list.

import { may } from './api.js';
import { badge, button, h, section, show, table } from './dom.js';
import { meter } from './chart.js';
import * as format from './format.js';
import { attempt, problem } from './forms.js';
import * as live from './live.js';
import { head } from './page.js';
import { t } from './texts.js';

export const shareLink = (name) => h('a', { href: `#/shares/${encodeURIComponent(name)}` }, name);

export function shareState({ served, problem: why, alarms }) {
  if (!served) return [badge('bad', t('share.not-served')), why ? h('span', { class: 'note' }, why) : null];
  return alarms.length ? alarms.map((alarm) => badge('bad', alarm)) : badge('good', t('share.served'));
}

export function use(activity) {
  const { used_bytes: used, capacity_bytes: capacity } = activity;
  if (used === null) return capacity === null ? '–' : format.bytes(capacity);
  if (capacity === null) return format.bytes(used);
  const text = t('share.used-of', { used: format.bytes(used), all: format.bytes(capacity) });
  return h('span', { class: 'metered' }, text, meter(text, used / capacity));
}

/** What goes on in each share. */
export function sharesTable(shares, caption) {
  const of = (draw) => ({ name, activity }) => (activity ? draw(live.last(name), activity) : '–');
  const measured = (draw) => of((now) => (now ? draw(now) : '–'));
  return table({
    caption, rows: shares, key: ({ name }) => name, empty: t('share.none'),
    columns: [
      { title: t('share.name'), cell: ({ name }) => shareLink(name) },
      { title: t('share.state'), cell: shareState },
      { title: t('share.plan'), cell: of((_, { plan }) => h('span', { class: 'plan' }, plan)) },
      { title: t('overview.throughput'), numeric: true, cell: measured((now) => format.throughput(now.bytes)) },
      { title: `${t('overview.operations')}/s`, numeric: true, cell: measured((now) => format.rate(now.calls)) },
      { title: t('overview.latency'), numeric: true, cell: measured((now) => format.latency(now.p50)) },
      { title: t('share.waiting'), numeric: true, cell: of((_, { waiting, throttled }) => (waiting ? badge('warn', `${format.count(waiting)} ${throttled.join(', ')}`) : '0')) },
      { title: t('share.used'), cell: of((_, activity) => use(activity)) },
    ],
  });
}

export function shares(main) {
  const body = h('div', { class: 'stack-of-cards' });
  const create = () => attempt(async () => (await import('./new-share.js')).create());
  main.append(head(t('page.shares'), may('shares') ? button(t('share.create'), create, { kind: 'primary', glyph: 'add' }) : null), body,
    h('p', {}, h('a', { href: '#/deleted-shares' }, t('page.deleted-shares'))));
  const draw = () => {
    const { status, trouble } = live;
    show(body, trouble ? problem(trouble) : null,
      status ? section(t('share.list'), {}, sharesTable(status.shares, t('share.list'))) : h('p', { class: 'empty' }, t('app.loading')));
  };
  draw();
  return live.onChange(draw);
}
