// Tokens for programs, and to sign in here.

import * as api from './api.js';
import { button, h, section, table } from './dom.js';
import * as format from './format.js';
import { dialog, field, tell } from './forms.js';
import { head, watch } from './page.js';
import { t } from './texts.js';

function create(shown, again) {
  dialog({
    title: t('tokens.create'), action: t('tokens.create'),
    fields: [
      field({ name: 'name', label: t('share.name'), required: true }),
      field({ name: 'scope', label: t('tokens.scope'), kind: 'choice', value: 'read', choices: ['read', 'shares', 'all'].map((scope) => [scope, `${scope}: ${t(`scope.${scope}`)}`]) }),
    ],
    submit: async (filled) => {
      const made = await api.post('/tokens', filled);
      shown.replaceChildren(h('div', { class: 'card', role: 'status' }, h('p', {}, t('tokens.shown-once', { name: made.name })), h('p', {}, h('code', { class: 'secret' }, made.token))));
      again();
    },
  });
}

function revoke(token, again) {
  dialog({
    title: t('tokens.revoke'), text: t('tokens.revoke-ask', token), action: t('tokens.revoke'), kind: 'danger',
    submit: async () => {
      await api.remove(`/tokens${api.path(token.name)}`);
      tell(t('tokens.revoked', token));
      again();
    },
  });
}

export function tokens(main) {
  const shown = h('div', {});
  const body = h('div', { class: 'stack-of-cards' });
  main.append(head(t('page.tokens'), button(t('tokens.create'), () => create(shown, () => again()), { kind: 'primary', glyph: 'add' })), shown, body);
  const { again, stop } = watch(body, 10, () => api.get('/tokens'), ({ tokens: all }) =>
    section(t('page.tokens'), { note: t('tokens.note') }, table({
      caption: t('page.tokens'), rows: all, key: ({ name }) => name, empty: t('tokens.none'),
      columns: [
        { title: t('share.name'), cell: ({ name }) => name },
        { title: t('tokens.scope'), cell: ({ scope }) => `${scope}: ${t(`scope.${scope}`)}` },
        { title: t('tokens.made'), cell: ({ made }) => format.date(made) },
        { title: t('app.actions'), cell: (token) => button(t('tokens.revoke'), () => revoke(token, () => again()), { kind: 'danger', label: `${t('tokens.revoke')}: ${token.name}` }) },
      ],
    })));
  return stop;
}
