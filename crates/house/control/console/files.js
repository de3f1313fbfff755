// Open files and byte-range locks.

import * as api from './api.js';
import { may } from './api.js';
import { badge, button, h, section, table } from './dom.js';
import * as format from './format.js';
import { dialog, field, tell } from './forms.js';
import { head, watch } from './page.js';
import { shareLink } from './shares.js';
import { t } from './texts.js';

const list = (names) => (names.length ? names.join(', ') : '–');

function opener({ user, uid, name, address, connected }) {
  const who = user ?? name ?? (uid === null ? null : `uid ${uid}`);
  return [who, who && address ? ' ' : null, address ? h('span', { class: 'note' }, address) : null, connected ? null : badge('warn', t('files.away'))];
}

const pathOf = (path) => path || t('files.root');

function close(file, again) {
  dialog({
    title: t('files.close'), text: t('files.close-ask', { path: pathOf(file.path) }), action: t('files.close'), kind: 'danger',
    submit: async () => {
      await api.remove(`/files${api.path(file.id)}`);
      tell(t('files.closed', { path: pathOf(file.path) }));
      again();
    },
  });
}

function filesTable(files, again) {
  const marks = ({ directory, delegation }) => [directory ? badge('plain', t('files.directory')) : null, delegation ? badge('plain', t('files.delegation')) : null];
  return table({
    caption: t('page.files'), rows: files, key: ({ id }) => id, empty: t('files.none'),
    columns: [
      { title: t('files.path'), cell: (file) => [h('span', { class: 'path' }, pathOf(file.path)), ' ', marks(file)] },
      { title: t('files.share'), cell: ({ share }) => shareLink(share) },
      { title: t('files.client'), cell: ({ client }) => opener(client) },
      { title: t('files.protocol'), cell: ({ protocol }) => protocol },
      { title: t('files.access'), cell: ({ access }) => list(access) },
      { title: t('files.sharing'), cell: ({ sharing }) => list(sharing) },
      { title: t('files.caching'), cell: ({ caching }) => list(caching) },
      { title: t('files.locks'), numeric: true, cell: ({ locks }) => format.count(locks) },
      may('all') ? { title: t('app.actions'), cell: (file) => button(t('files.close'), () => close(file, again), { label: `${t('files.close')}: ${pathOf(file.path)}` }) } : null,
    ].filter(Boolean),
  });
}

function locksTable(locks) {
  const range = ({ offset, length }) => (length === null ? t('files.range-to-end', { first: format.count(offset) }) : t('files.range-of', { first: format.count(offset), length: format.count(length) }));
  return table({
    caption: t('files.locks-title'), rows: locks, key: ({ file, offset, length }) => `${file} ${offset} ${length}`, empty: t('files.no-locks'),
    columns: [
      { title: t('files.path'), cell: ({ path }) => pathOf(path) },
      { title: t('files.share'), cell: ({ share }) => shareLink(share) },
      { title: t('files.client'), cell: ({ client }) => opener(client) },
      { title: t('files.range'), cell: range },
      { title: t('files.kind'), cell: ({ exclusive }) => t(exclusive ? 'files.exclusive' : 'files.shared') },
    ],
  });
}

export function files(main, [share, client]) {
  const body = h('div', { class: 'stack-of-cards' });
  const query = new URLSearchParams();
  if (share && share !== '*') query.set('share', share);
  if (client) query.set('client', client);
  const where = query.size ? `?${query}` : '';
  const filter = field({ name: 'filter', label: t('files.filter'), kind: 'search', oninput: () => again() });
  main.append(head(t('page.files'), h('span', { class: 'note' }, [...query.values()].join(', '))), filter, body);
  const ask = () => Promise.all([api.get(`/files${where}`), api.get(`/locks${where}`)]);
  const { again, stop } = watch(body, 4, ask, ([open, locked]) => {
    const text = filter.querySelector('input').value.toLowerCase();
    const isWanted = (entry) => JSON.stringify([entry.path, entry.share, entry.client, entry.protocol]).toLowerCase().includes(text);
    const leftOut = open.left_out ? h('p', { class: 'note' }, t('files.left-out', { count: format.count(open.left_out) })) : null;
    return [
      section(t('page.files'), {}, filesTable(open.files.filter(isWanted), () => again()), leftOut),
      section(t('files.locks-title'), {}, locksTable(locked.locks.filter(isWanted))),
    ];
  });
  return stop;
}
