// Users with a password for SMB.

import * as api from './api.js';
import { may } from './api.js';
import { badge, button, h, section, table } from './dom.js';
import { dialog, field, tell, words } from './forms.js';
import { head, watch } from './page.js';
import { t } from './texts.js';

/** What is no number goes to the server as it is, which says so. */
const number = (text) => (/^\d+$/.test(text.trim()) ? Number(text) : text.trim());
const where = ({ name }) => `/users${api.path(name)}`;

function add(again) {
  dialog({
    title: t('users.add'), action: t('users.add'),
    fields: [
      field({ name: 'name', label: t('users.name'), required: true }),
      field({ name: 'password', label: t('users.password'), kind: 'password', required: true }),
      field({ name: 'uid', label: t('users.uid'), hint: t('users.id-hint'), inputmode: 'numeric' }),
      field({ name: 'gid', label: t('users.gid'), inputmode: 'numeric' }),
      field({ name: 'groups', label: t('users.groups'), hint: t('users.groups-hint') }),
    ],
    submit: async ({ name, password, uid, gid, groups }) => {
      const numbers = { uid: number(uid), gid: number(gid), groups: words(groups).map(number) };
      const isFilled = ([, value]) => value !== '' && value.length !== 0;
      const given = Object.fromEntries(Object.entries(numbers).filter(isFilled));
      await api.post('/users', { name, password, ...given });
      tell(t('users.added', { name }));
      again();
    },
  });
}

function setPassword(user) {
  dialog({
    title: `${t('users.set-password')}: ${user.name}`, action: t('users.set-password'),
    fields: [field({ name: 'password', label: t('users.password'), kind: 'password', required: true })],
    submit: async ({ password }) => {
      await api.change(where(user), { password });
      tell(t('users.changed', user));
    },
  });
}

function remove(user, again) {
  dialog({
    title: t('users.remove'), text: t('users.remove-ask', user), action: t('users.remove'), kind: 'danger',
    submit: async () => {
      await api.remove(where(user));
      tell(t('users.removed', user));
      again();
    },
  });
}

function disable(user, again) {
  const action = t(user.disabled ? 'users.enable' : 'users.disable');
  dialog({
    title: `${action}: ${user.name}`, action,
    submit: async () => {
      await api.change(where(user), { disabled: !user.disabled });
      tell(t('users.changed', user));
      again();
    },
  });
}

function actions(user, again) {
  if (user.declared_in !== null) return h('span', { class: 'note' }, t('users.declared', { place: user.declared_in }));
  const of = (key, work, more = {}) => button(t(key), work, { label: `${t(key)}: ${user.name}`, ...more });
  return h('div', { class: 'actions' },
    of('users.set-password', () => setPassword(user)),
    of(user.disabled ? 'users.enable' : 'users.disable', () => disable(user, again)),
    of('users.remove', () => remove(user, again), { kind: 'danger' }));
}

export function users(main) {
  const body = h('div', { class: 'stack-of-cards' });
  main.append(head(t('page.users'), may('all') ? button(t('users.add'), () => add(() => again()), { kind: 'primary', glyph: 'add' }) : null), body);
  const { again, stop } = watch(body, 10, () => api.get('/users'), ({ users: all }) =>
    section(t('page.users'), { note: t('users.note') }, table({
      caption: t('page.users'), rows: all, key: ({ name }) => name, empty: t('users.none'),
      columns: [
        { title: t('users.name'), cell: ({ name }) => name },
        { title: t('users.state'), cell: ({ disabled }) => (disabled ? badge('warn', t('users.disabled')) : badge('good', t('users.enabled'))) },
        { title: t('users.uid'), numeric: true, cell: ({ uid }) => uid },
        { title: t('users.gid'), numeric: true, cell: ({ gid }) => gid },
        { title: t('users.groups'), cell: ({ groups }) => (groups.length ? groups.join(', ') : '–') },
        may('all') ? { title: t('app.actions'), cell: (user) => actions(user, () => again()) } : null,
      ].filter(Boolean),
    })));
  return stop;
}
