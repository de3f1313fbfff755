// The snapshots of a share, and what is restored from them.

import * as api from './api.js';
import { may } from './api.js';
import { badge, button, facts, h, section, table } from './dom.js';
import * as format from './format.js';
import { attempt, dialog, field, tell } from './forms.js';
import { head, watch } from './page.js';
import { shareLink } from './shares.js';
import { t } from './texts.js';
import './share-texts.js';

const takenBy = ({ own, policy, period }) => (policy ? `${policy} (${period})` : t(own ? 'snapshots.by-command' : 'snapshots.by-others'));

function take(share, again) {
  dialog({
    title: t('snapshots.take'), action: t('snapshots.take'),
    fields: [field({ name: 'label', label: t('snapshots.label'), hint: t('snapshots.label-hint') })],
    submit: async ({ label }) => {
      const { name } = await api.post(`/shares${api.path(share)}/snapshots`, label.trim() ? { label: label.trim() } : {});
      tell(t('snapshots.taken', { name }));
      again();
    },
  });
}

function restore(share, { name, taken }, again) {
  dialog({
    title: t('restore.title'), text: t('restore.from', { date: format.date(taken) }), action: t('restore.begin'),
    fields: [
      field({ name: 'path', label: t('restore.path'), hint: t('restore.path-hint'), required: true }),
      field({ name: 'to', label: t('restore.to'), hint: t('restore.to-hint') }),
      field({ name: 'replace', label: t('restore.replace'), kind: 'check', hint: t('restore.replace-hint') }),
    ],
    submit: async ({ path, to, replace }) => {
      await api.post(`/shares${api.path(share)}/restore`, { from: name, path, replace, ...(to.trim() ? { to } : {}) });
      tell(t('restore.begun', { path }));
      again();
    },
  });
}

function revert(share, { name, taken }, again) {
  dialog({
    title: t('revert.title'), text: t('revert.text', { name: share, date: format.date(taken) }), action: t('revert.go'), kind: 'danger',
    submit: async () => {
      const before = await api.post(`/shares${api.path(share)}/revert`, { to: name });
      tell(t('revert.done', { name: share, before: before.name }));
      again();
    },
  });
}

function clone(share, { name: snapshot }) {
  dialog({
    title: t('clone.title'), text: snapshot, action: t('form.create'),
    fields: [
      field({ name: 'name', label: t('share.name'), required: true }),
      field({ name: 'directory', label: t('share.directory'), hint: t('clone.directory-hint'), required: true }),
    ],
    submit: async ({ name, directory }) => {
      const made = await api.post('/shares', { name: name.trim(), directory: directory.trim(), from: `${share}@${snapshot}` });
      tell(t('share.created', { name: made.name }));
    },
  });
}

function remove(share, { name }, again) {
  dialog({
    title: t('snapshots.remove'), text: t('snapshots.remove-ask', { name }), action: t('snapshots.remove'), kind: 'danger',
    submit: async () => {
      await api.remove(`/shares${api.path(share, 'snapshots', name)}`);
      tell(t('snapshots.removed', { name }));
      again();
    },
  });
}

/** What can be done with a snapshot. */
function actions(share, one, again) {
  const of = (text, act, kind) => button(t(text), () => act(share, one, again), { kind, label: `${t(text)}: ${one.name}` });
  return h('div', { class: 'row' }, of('restore.ask', restore), of('clone.ask', clone), of('revert.ask', revert, 'danger'),
    one.own ? of('snapshots.remove', remove, 'danger') : null);
}

const cancel = (share, again) => attempt(async () => {
  await api.remove(`/shares${api.path(share)}/restore`);
  again();
});

const STATES = { running: 'plain', waiting: 'warn', done: 'good', cancelled: 'warn', failed: 'bad' };

function lastRestore(share, known, again) {
  if (!known) return null;
  const of = (some, all) => (all === null ? some : t('restore.of', { some, all }));
  const isGoingOn = known.ended === null;
  const actions = isGoingOn && may('shares') ? button(t('restore.cancel'), () => cancel(share, again), { kind: 'danger' }) : null;
  return section(t('restore.last'), { actions },
    facts([
      [t('share.state'), badge(STATES[known.state] ?? 'plain', t(`restore.${known.state}`))],
      known.problem ? [t('restore.problem'), known.problem] : null,
      [t('restore.path'), known.path === known.to ? known.path : t('restore.elsewhere', known)],
      [t('snapshots.name'), known.from],
      [t('restore.files'), of(format.count(known.restored + known.unchanged), known.files_total === null ? null : format.count(known.files_total))],
      [t('restore.bytes'), of(format.bytes(known.bytes), known.bytes_total === null ? null : format.bytes(known.bytes_total))],
      [t('restore.unchanged'), format.count(known.unchanged)],
      [t('restore.left'), format.count(known.left)],
    ]),
    known.left_alone.length ? h('ul', {}, known.left_alone.map(({ path, why }) => h('li', {}, h('span', { class: 'path' }, `/${path}`), `: ${why}`))) : null);
}

/** None, if nothing was ever restored. */
async function askRestore(share) {
  try {
    return await api.get(`/shares${api.path(share)}/restore`);
  } catch (refused) {
    if (refused.status === 404) return null;
    throw refused;
  }
}

export function page(main, share) {
  const body = h('div', { class: 'stack-of-cards' });
  const taking = may('shares') ? button(t('snapshots.take'), () => take(share, () => again()), { kind: 'primary', glyph: 'add' }) : null;
  main.append(head(t('snapshots.of', { name: share }), taking), h('p', { class: 'row' }, shareLink(share)), body);
  const ask = () => Promise.all([api.get(`/shares${api.path(share)}/snapshots`), askRestore(share)]);
  const { again, stop } = watch(body, 2, ask, ([{ snapshots: all }, known]) => [
    lastRestore(share, known, () => again()),
    section(t('snapshots.title'), {}, table({
      caption: t('snapshots.title'), rows: [...all].reverse(), key: ({ name }) => name, empty: t('snapshots.none'),
      columns: [
        { title: t('snapshots.name'), cell: ({ name }) => name },
        { title: t('snapshots.when'), cell: ({ taken }) => format.date(taken) },
        { title: t('snapshots.by'), cell: takenBy },
        { title: t('snapshots.protected'), cell: ({ protected_until: until }) => (until === null ? '–' : format.date(until)) },
        may('shares') ? { title: t('app.actions'), cell: (one) => actions(share, one, () => again()) } : null,
      ].filter(Boolean),
    })),
  ].filter(Boolean));
  return stop;
}
