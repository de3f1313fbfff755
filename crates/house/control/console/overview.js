// Overview: is all well, what goes on, and in which share.

import { badge, h, icon, section, show } from './dom.js';
import { lines } from './chart.js';
import * as format from './format.js';
import * as live from './live.js';
import { head } from './page.js';
import { problem } from './forms.js';
import { sharesTable } from './shares.js';
import { t } from './texts.js';

const KINDS = { ok: 'good', degraded: 'warn', stuck: 'bad' };

/** What is wrong, for people who look and for those who listen. */
export function health(status) {
  return h('div', { class: `health ${KINDS[status.health] ?? 'warn'}` },
    icon(status.health === 'ok' ? 'good' : 'alarm'),
    h('div', {}, h('p', {}, h('strong', {}, t(`health.${status.health}`))),
      status.reasons.length ? h('ul', {}, status.reasons.map((reason) => h('li', {}, reason))) : null));
}

const tile = (title, figure, ...notes) =>
  h('div', { class: 'tile' }, h('dt', {}, title), h('dd', {}, h('span', { class: 'figure' }, figure), notes.map((note) => h('span', { class: 'note' }, note))));

function tiles(status) {
  const now = live.last();
  const waiting = status.shares.reduce((sum, { activity }) => sum + (activity?.waiting ?? 0), 0);
  const none = '–';
  return h('dl', { class: 'tiles' },
    tile(t('overview.throughput'), now ? format.throughput(now.bytes) : none),
    tile(t('overview.operations'), now ? t('overview.per-second', { rate: format.rate(now.calls) }) : none),
    tile(t('overview.latency'), now ? format.latency(now.p50) : none, now ? `${format.latency(now.p99)} ${t('overview.p99')}` : t('overview.p50')),
    tile(t('overview.waiting'), format.count(waiting), t('overview.waiting-for')),
    tile(t('overview.clients'), format.count(status.smb_sessions + status.nfs_clients),
      t('overview.smb', { sessions: format.count(status.smb_sessions), channels: format.count(status.smb_channels) }),
      t('overview.nfs', { clients: format.count(status.nfs_clients), connections: format.count(status.nfs_connections) })));
}

/** The charts of one share, or of all. */
export function charts(share = '') {
  const points = live.points(share);
  return h('div', { class: 'charts' },
    lines({
      title: t('overview.throughput'), points, base: 1024, format: format.throughput,
      lines: [
        { title: t('overview.reads'), kind: 'one', of: (point) => point.reads },
        { title: t('overview.writes'), kind: 'two', of: (point) => point.writes },
      ],
    }),
    lines({
      title: t('overview.operations'), points, format: format.rate,
      lines: [{ title: '', kind: 'one', of: (point) => point.calls }],
    }),
    lines({
      title: t('overview.latency'), points, format: format.latency,
      lines: [
        { title: t('overview.p50'), kind: 'one', of: (point) => point.p50 },
        { title: t('overview.p99-short'), kind: 'three', of: (point) => point.p99 },
      ],
    }));
}

function sinceStart(status) {
  const counts = [
    ['overview.failed-logons', status.failed_logons],
    ['overview.refused', status.refused_connections],
    ['overview.lost', status.lost_log_lines],
  ];
  return h('p', { class: 'since note' }, `${t('overview.since-start')}: `,
    counts.map(([key, value], n) => [n ? ', ' : '', value ? badge('warn', format.count(value)) : '0', ` ${t(key)}`]), '.');
}

export function overview(main) {
  const state = h('div', { role: 'status', 'aria-live': 'polite' });
  const body = h('div', { class: 'stack-of-cards' });
  const note = h('span', { class: 'note' });
  main.append(head(t('page.overview'), note), state, body);
  const draw = () => {
    const { status, trouble } = live;
    show(state, trouble ? problem(trouble) : status ? health(status) : h('p', { class: 'empty' }, t('app.loading')));
    if (!status) return;
    show(note, t('overview.version', { version: status.version, time: format.duration(status.uptime_seconds) }));
    show(body, tiles(status),
      section(t('overview.last-minutes').replace(/^./, (first) => first.toUpperCase()), {}, charts()),
      section(t('page.shares'), {}, sharesTable(status.shares, t('page.shares'))),
      sinceStart(status));
  };
  draw();
  return live.onChange(draw);
}
