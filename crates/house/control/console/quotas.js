// The quotas of a share: who holds how much, and may hold.

import * as api from './api.js';
import { may } from './api.js';
import { button, h, section, table } from './dom.js';
import * as format from './format.js';
import { dialog, field, tell } from './forms.js';
import { head, watch } from './page.js';
import { shareLink } from './shares.js';
import { bytes, number, sizeField } from './sizes.js';
import { t } from './texts.js';
import './share-texts.js';

const DAY = 86400;
const NONE = '–';

const where = (share, subject) => `/shares${api.path(share)}/quotas${api.path(subject)}`;
const size = (bytes) => (bytes === null ? NONE : format.bytes(bytes));

const limit = (name, known) => sizeField({ name, label: t(`quotas.${name}`), hint: t('size.or-none'), value: known?.[name] ?? null });

function set(share, known, again) {
  dialog({
    title: known ? t('quotas.change-of', known) : t('quotas.add'), action: t('quotas.set'),
    fields: [
      known ? null : field({ name: 'subject', label: t('quotas.who'), hint: t('quotas.who-hint'), required: true }),
      limit('soft', known), limit('hard', known),
      field({ name: 'days', label: t('quotas.days'), hint: t('quotas.days-hint'), value: String((known?.grace ?? 7 * DAY) / DAY), inputmode: 'decimal', required: true }),
    ].filter(Boolean),
    submit: async ({ subject = known?.subject, soft, hard, days }) => {
      const whose = subject.trim();
      await api.put(where(share, whose), { soft: bytes(soft), hard: bytes(hard), grace: Math.round(number(days, 'quotas.days') * DAY) });
      tell(t('quotas.was-set', { subject: whose }));
      again();
    },
  });
}

function remove(share, { subject }, again) {
  dialog({
    title: t('quotas.remove'), text: t('quotas.remove-ask', { subject }), action: t('quotas.remove'), kind: 'danger',
    submit: async () => {
      await api.remove(where(share, subject));
      tell(t('quotas.removed', { subject }));
      again();
    },
  });
}

function grace({ soft, grace: allowed, over_since: since }) {
  if (since) return t('quotas.over-since', { date: format.date(since) });
  return soft === null ? NONE : t('quotas.some-days', { days: Math.round((allowed / DAY) * 10) / 10 });
}

const counted = ({ quotas: all, counted: at, counting }) =>
  all.length === 0 ? null : h('p', {}, at !== null ? t('quotas.counted', { date: format.date(at) }) : t(counting ? 'quotas.counting' : 'quotas.not-counted'));

export function page(main, share) {
  const body = h('div', { class: 'stack-of-cards' });
  const adding = button(t('quotas.add'), () => set(share, null, () => again()), { kind: 'primary', glyph: 'add' });
  adding.hidden = true;
  main.append(head(t('quotas.of', { name: share }), adding), h('p', { class: 'row' }, shareLink(share)), body);
  const { again, stop } = watch(body, 2, () => api.get(`/shares${api.path(share)}/quotas`), (known) => {
    const mayChange = may('shares') && known.declared_in === null;
    adding.hidden = !mayChange;
    const actions = (one) => h('div', { class: 'row' },
      button(t('quotas.change'), () => set(share, one, () => again()), { label: `${t('quotas.change')}: ${one.subject}` }),
      button(t('quotas.remove'), () => remove(share, one, () => again()), { kind: 'danger', label: `${t('quotas.remove')}: ${one.subject}` }));
    const holders = known.holders.map((holder) => ({ soft: null, hard: null, grace: 0, isHolder: true, ...holder }));
    return [section(t('quotas.title'), {}, table({
      caption: t('quotas.title'), rows: [...known.quotas, ...holders], key: ({ subject }) => subject, empty: t('quotas.none'),
      columns: [
        { title: t('quotas.who'), cell: ({ subject }) => subject },
        { title: t('quotas.used'), numeric: true, cell: ({ used }) => size(used) },
        { title: t('quotas.soft'), numeric: true, cell: ({ soft }) => size(soft) },
        { title: t('quotas.hard'), numeric: true, cell: ({ hard }) => size(hard) },
        { title: t('quotas.grace'), cell: grace },
        mayChange ? { title: t('app.actions'), cell: (one) => (one.isHolder ? NONE : actions(one)) } : null,
      ].filter(Boolean),
    }), counted(known))];
  });
  return stop;
}
