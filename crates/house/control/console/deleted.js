// Shares that were removed: they are brought back, or forgotten.

import * as api from './api.js';
import { Refused, may } from './api.js';
import { button, h, section, table } from './dom.js';
import * as format from './format.js';
import { dialog, field, tell } from './forms.js';
import * as live from './live.js';
import { head, watch } from './page.js';
import { t } from './texts.js';
import './share-texts.js';

function undelete({ id, name: before }, again) {
  dialog({
    title: t('deleted.undelete-of', { name: before }), action: t('deleted.undelete'),
    fields: [field({ name: 'name', label: t('share.name'), hint: t('deleted.name-hint'), value: before, required: true })],
    submit: async ({ name }) => {
      const back = await api.post(`/deleted-shares/${id}/undelete`, name.trim() === before ? {} : { name: name.trim() });
      tell(t('deleted.back', back));
      live.ask();
      again();
    },
  });
}

/** What is forgotten cannot be brought back: so its name is asked for. */
function purge({ id, name, pool, directory }, again) {
  dialog({
    title: t('deleted.purge-of', { name }), text: t(pool ? 'deleted.purge-ask-pool' : 'deleted.purge-ask', { name, directory }), action: t('deleted.purge'), kind: 'danger',
    fields: [
      field({ name: 'typed', label: t('deleted.typed'), hint: t('deleted.typed-hint', { name }), required: true }),
      pool ? field({ name: 'keep', label: t('deleted.keep'), kind: 'check', hint: directory }) : null,
    ].filter(Boolean),
    submit: async ({ typed, keep = false }) => {
      if (typed.trim() !== name) throw new Refused(0, { error: 'wrong-name', message: t('deleted.not-the-name', { name }) });
      await api.remove(`/deleted-shares/${id}${keep ? '?keep-files=true' : ''}`);
      tell(t('deleted.purged', { name }));
      again();
    },
  });
}

function removing(pools) {
  const rows = pools.flatMap((pool) => pool.removing.map((one) => ({ pool: pool.name, ...one })));
  return rows.length === 0 ? null : section(t('deleted.removing'), {}, table({
    caption: t('deleted.removing'), rows, key: ({ directory }) => directory, empty: '',
    columns: [
      { title: t('share.directory'), cell: ({ directory }) => h('span', { class: 'path' }, directory) },
      { title: t('share.pool'), cell: ({ pool }) => pool },
      { title: t('restore.problem'), cell: ({ problem }) => problem ?? '–' },
    ],
  }));
}

export function page(main) {
  const body = h('div', { class: 'stack-of-cards' });
  main.append(head(t('page.deleted-shares')), h('p', { class: 'row' }, h('a', { href: '#/shares' }, t('page.shares'))), body);
  const actions = (one) => h('div', { class: 'row' },
    button(t('deleted.undelete'), () => undelete(one, () => again()), { label: `${t('deleted.undelete')}: ${one.name}` }),
    button(t('deleted.purge'), () => purge(one, () => again()), { kind: 'danger', label: `${t('deleted.purge')}: ${one.name}` }));
  const ask = () => Promise.all([api.get('/deleted-shares'), api.get('/pools')]);
  const { again, stop } = watch(body, 2, ask, ([{ shares }, { pools }]) => [
    section(t('page.deleted-shares'), {}, table({
      caption: t('page.deleted-shares'), rows: shares, key: ({ id }) => String(id), empty: t('deleted.none'),
      columns: [
        { title: t('share.name'), cell: ({ name }) => name },
        { title: t('deleted.when'), cell: ({ deleted }) => format.date(deleted) },
        { title: t('deleted.until'), cell: ({ until }) => format.date(until) },
        { title: t('share.directory'), cell: ({ directory }) => h('span', { class: 'path' }, directory) },
        { title: t('share.pool'), cell: ({ pool }) => pool ?? '–' },
        { title: t('share.plan'), cell: ({ plan }) => h('span', { class: 'plan' }, plan) },
        may('shares') ? { title: t('app.actions'), cell: actions } : null,
      ].filter(Boolean),
    })),
    removing(pools),
  ].filter(Boolean));
  return stop;
}
