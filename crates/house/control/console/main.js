// Signing in, the frame around the pages, and which page is shown.

import * as api from './api.js';
import { Refused, may } from './api.js';
import { button, h, icon, mark, show } from './dom.js';
import { field, form, problem } from './forms.js';
import * as live from './live.js';
import { advice } from './advice.js';
import { clients } from './clients.js';
import { files } from './files.js';
import { log } from './log.js';
import { overview } from './overview.js';
import { share } from './share.js';
import { shares } from './shares.js';
import { tokens } from './tokens.js';
import { users } from './users.js';
import { language, t } from './texts.js';

/** A page whose script is loaded when somebody goes there: the first page has so many bytes and no more. */
const late = (load) => (main, name) => {
  let [left, stop] = [false, null];
  load().then((script) => {
    if (left) return;
    stop = script.page(main, name);
    main.querySelector('h1').focus({ preventScroll: true });
  }, () => main.append(problem(new Refused(0, { error: 'no-answer', message: 'no-answer' }))));
  return () => {
    left = true;
    stop?.();
  };
};

/** The parts of a share's page that are pages themselves. */
const PARTS = {
  snapshots: late(() => import('./snapshots.js')),
  quotas: late(() => import('./quotas.js')),
  replication: late(() => import('./replication.js')),
};

/** All pages: their names in the address, who may see them, what draws them, and beside which they are, if the menu has them not. */
const PAGES = [
  { name: 'overview', draw: overview },
  { name: 'shares', draw: (main, [name, part]) => (Object.hasOwn(PARTS, part) ? PARTS[part](main, name) : name ? share(main, [name]) : shares(main)) },
  { name: 'clients', draw: clients },
  { name: 'files', draw: files },
  { name: 'users', draw: users },
  { name: 'advice', draw: advice },
  { name: 'tokens', draw: tokens, scope: 'all' },
  { name: 'log', draw: log, scope: 'all' },
  { name: 'deleted-shares', draw: late(() => import('./deleted.js')), beside: 'shares' },
];

const app = document.getElementById('app');
let leave = null;

function signInPage(note) {
  live.stop();
  leave?.();
  leave = null;
  document.querySelectorAll('dialog').forEach((dialog) => dialog.close());
  document.title = `${t('sign-in.title')} – Anabranch`;
  const user = field({ name: 'user', label: t('sign-in.user'), hint: t('sign-in.user-hint') });
  user.querySelector('input').setAttribute('autocomplete', 'username');
  const token = field({ name: 'token', label: t('sign-in.token'), kind: 'password', hint: t('sign-in.hint'), required: true });
  token.querySelector('input').setAttribute('autocomplete', 'current-password');
  app.replaceChildren(h('main', { class: 'sign-in' }, h('div', { class: 'card' },
    h('header', {}, mark(), h('h1', {}, 'Anabranch')),
    note ? h('p', { class: 'note', role: 'status' }, note) : null,
    form({
      fields: [user, token], action: t('sign-in.title'),
      submit: async (filled) => {
        const name = filled.user.trim();
        await api.signIn(name ? { user: name, password: filled.token } : { token: filled.token.trim() });
        enter();
      },
    }))));
  user.querySelector('input').focus();
}

function enter() {
  const { token, user, scope } = api.me;
  const menu = button(t('app.menu'), () => {
    const isOpen = menu.getAttribute('aria-expanded') === 'true';
    menu.setAttribute('aria-expanded', String(!isOpen));
  }, { kind: 'bare menu', glyph: 'menu', 'aria-expanded': 'false', 'aria-controls': 'pages' });
  const allowed = t(`scope.${scope}`);
  const who = user ? t('app.signed-in-as', { user, scope: allowed }) : t('app.signed-in', { token: token ?? t('app.own-token'), scope: allowed });
  const seen = PAGES.filter((page) => !page.beside && (!page.scope || may(page.scope)));
  app.replaceChildren(
    h('a', { class: 'skip', href: '#content', onclick: (event) => {
      event.preventDefault();
      document.querySelector('h1')?.focus();
    } }, t('app.skip')),
    h('div', { class: 'frame' },
      h('header', { class: 'side' },
        h('div', { class: 'brand' }, mark(), h('span', {}, 'Anabranch'), menu),
        h('nav', { id: 'pages', 'aria-label': t('app.pages') }, h('ul', {}, seen.map(({ name }) =>
          h('li', {}, h('a', { href: `#/${name}`, 'data-page': name }, icon(name), t(`page.${name}`)))))),
        h('div', { class: 'who' }, h('p', { class: 'note' }, who), button(t('app.sign-out'), () => api.signOut(), { glyph: 'leave' }))),
      h('main', { id: 'content' })));
  live.start();
  route();
}

/** Shows the page that the address names. */
function route() {
  if (api.me === null) return;
  leave?.();
  leave = null;
  document.querySelectorAll('dialog').forEach((dialog) => dialog.close());
  const [name, ...parts] = location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decodeURIComponent);
  const page = name ? PAGES.find((of) => of.name === name) : PAGES[0];
  const main = document.getElementById('content');
  main.replaceChildren();
  for (const link of document.querySelectorAll('[data-page]')) {
    if (link.dataset.page === (page?.beside ?? page?.name)) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.querySelector('.menu')?.setAttribute('aria-expanded', 'false');
  if (!page) main.append(h('h1', { tabindex: '-1' }, t('app.no-page')));
  else if (page.scope && !may(page.scope)) main.append(h('h1', { tabindex: '-1' }, t(`page.${page.name}`)), h('p', {}, t('scope.needed', page)));
  else leave = page.draw(main, parts) ?? null;
  document.title = `${page ? (parts[0] ?? t(`page.${page.name}`)) : t('app.no-page')} – Anabranch`;
  // Those who listen hear where they are; nobody is taken from what he was doing in an update.
  main.querySelector('h1')?.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

async function begin() {
  try {
    if (await api.recognize()) enter();
    else signInPage(null);
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    show(app, h('main', { class: 'sign-in' }, h('div', { class: 'card' }, problem(refused), button(t('app.retry'), begin, { kind: 'primary' }))));
  }
}

document.documentElement.lang = language;
window.addEventListener('hashchange', route);
window.addEventListener('signed-out', ({ detail }) => signInPage(t(detail.isWanted ? 'sign-in.left' : 'sign-in.ended')));
begin();
