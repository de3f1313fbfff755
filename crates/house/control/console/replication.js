// A share as a replica of another server's, and the servers that replicate it.

import * as api from './api.js';
import { may } from './api.js';
import { badge, button, facts, h, section, table } from './dom.js';
import * as format from './format.js';
import { attempt, dialog, field, tell } from './forms.js';
import { head, watch } from './page.js';
import { shareLink } from './shares.js';
import { bytes, number, sizeField } from './sizes.js';
import { t } from './texts.js';
import './share-texts.js';

const where = (share) => `/shares${api.path(share)}/replication`;
const MINUTE = 60;
const KINDS = { mirrored: 'good', broken: 'warn', resync: 'warn' };

function begin(share, again) {
  dialog({
    title: t('replication.begin'), text: t('replication.begin-ask'), action: t('replication.begin'),
    fields: [
      field({ name: 'from', label: t('replication.from'), hint: t('replication.from-hint'), required: true }),
      field({ name: 'token', label: t('replication.token'), kind: 'password', hint: t('replication.token-hint'), required: true }),
      field({ name: 'certificate', label: t('replication.certificate'), kind: 'area', hint: t('replication.certificate-hint') }),
      field({ name: 'minutes', label: t('replication.minutes'), value: '10', inputmode: 'decimal', required: true }),
      sizeField({ name: 'bandwidth', label: t('replication.bandwidth'), hint: t('size.or-none') }),
      field({ name: 'reverse', label: t('replication.reverse'), kind: 'check', hint: t('replication.reverse-hint') }),
    ],
    submit: async ({ from, token, certificate, minutes, bandwidth, reverse }) => {
      const every = Math.round(number(minutes, 'replication.minutes') * MINUTE);
      const pem = certificate.trim() ? { certificate } : {};
      await api.post(where(share), { from: from.trim(), token: token.trim(), ...pem, every_seconds: every, bandwidth: bytes(bandwidth), reverse });
      tell(t('replication.begun', { name: share }));
      again();
    },
  });
}

/** Asks before something is done to the replica, and says that it was. */
function ask(share, what, again, act) {
  dialog({
    title: t(`replication.${what}`), text: t(`replication.${what}-ask`), action: t(`replication.${what}`), kind: what === 'resync' ? 'primary' : 'danger',
    submit: async () => {
      await act();
      tell(t(`replication.${what}-done`, { name: share }));
      again();
    },
  });
}

/** What can be done to the replica, in the state that it is in. */
function actionsOf(share, { state }, again) {
  if (!may('shares')) return null;
  const order = (action) => api.change(where(share), { action });
  const asked = (what, act, kind) => button(t(`replication.${what}`), () => ask(share, what, again, act), { kind });
  const now = () => attempt(async () => {
    await order('now');
    again();
  });
  const ofState = state === 'broken'
    ? [asked('resync', () => order('resync'))]
    : [button(t('replication.now'), now), asked('break', () => order('break'), 'danger')];
  return [...ofState, asked('stop', () => api.remove(where(share)), 'danger')];
}

const age = (at) => t('replication.age', { date: format.date(at), age: format.duration(Math.max(0, Math.round(Date.now() / 1000 - at))) });

function replica(share, known, again) {
  if (known === null) return null;
  const { state, transferring, problem } = known;
  return section(t('replication.replica'), { actions: actionsOf(share, known, again) },
    facts([
      [t('share.state'), h('span', {}, badge(KINDS[state] ?? 'plain', t(`replication.state.${state}`)), transferring ? [' ', badge('plain', t('replication.transferring'))] : null)],
      problem ? [t('restore.problem'), problem] : null,
      [t('replication.from'), h('span', { class: 'path' }, known.from)],
      [t('replication.as-of'), known.as_of === null ? t('replication.nothing-yet') : age(known.as_of)],
      [t('replication.every'), format.duration(known.every_seconds)],
      known.bandwidth === null ? null : [t('replication.bandwidth'), format.throughput(known.bandwidth)],
      [t('replication.transfers'), t('replication.counted', { transfers: format.count(known.transfers), failures: format.count(known.failures) })],
      [t(transferring ? 'replication.present' : 'replication.last'), t('replication.progress', { directories: format.count(known.directories), files: format.count(known.files), bytes: format.bytes(known.bytes) })],
    ]));
}

function forget(share, { id }, again) {
  dialog({
    title: t('replication.forget'), text: t('replication.forget-ask', { id }), action: t('replication.forget'), kind: 'danger',
    submit: async () => {
      await api.remove(`/shares${api.path(share, 'destinations', id)}`);
      tell(t('replication.forgotten', { id }));
      again();
    },
  });
}

function destinations(share, all, again) {
  return section(t('replication.destinations'), {}, table({
    caption: t('replication.destinations'), rows: all, key: ({ id }) => id, empty: t('replication.no-destinations'),
    columns: [
      { title: t('replication.destination'), cell: ({ id }) => id },
      { title: t('replication.has'), cell: ({ completed }) => h('span', { class: 'path' }, completed ?? '–') },
      { title: t('replication.gets'), cell: ({ pending }) => h('span', { class: 'path' }, pending ?? '–') },
      { title: t('replication.seen'), cell: ({ seen }) => format.date(seen) },
      may('shares') ? { title: t('app.actions'), cell: (one) => button(t('replication.forget'), () => forget(share, one, again), { kind: 'danger', label: `${t('replication.forget')}: ${one.id}` }) } : null,
    ].filter(Boolean),
  }));
}

/** None, if the share is no replica. Whether there is such a share, the other question tells. */
async function askReplica(share) {
  try {
    return await api.get(where(share));
  } catch (refused) {
    if (refused.status === 404) return null;
    throw refused;
  }
}

export function page(main, share) {
  const body = h('div', { class: 'stack-of-cards' });
  const beginning = button(t('replication.begin'), () => begin(share, () => again()), { kind: 'primary', glyph: 'add' });
  beginning.hidden = true;
  main.append(head(t('replication.of', { name: share }), beginning), h('p', { class: 'row' }, shareLink(share)), body);
  const both = () => Promise.all([askReplica(share), api.get(`/shares${api.path(share)}/destinations`)]);
  const { again, stop } = watch(body, 2, both, ([known, { destinations: all }]) => {
    beginning.hidden = known !== null || !may('shares');
    return [replica(share, known, () => again()), destinations(share, all, () => again())].filter(Boolean);
  });
  return stop;
}
