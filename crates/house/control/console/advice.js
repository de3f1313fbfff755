// Advice on what a client does; a change that it comes to can be tried, measured, kept or taken back.

import * as api from './api.js';
import { may } from './api.js';
import { badge, button, facts, h, icon, section, show, table } from './dom.js';
import * as format from './format.js';
import { field, form, problem, sentence, tell } from './forms.js';
import { head, watch } from './page.js';
import { shareLink } from './shares.js';
import { t } from './texts.js';

const KINDS = { green: 'good', yellow: 'warn', red: 'bad' };
const MEASURE_SECONDS = 8;
const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

/** The change that is being tried. It stays while people look at other pages: { work, before, after }. */
let trial = null;
window.addEventListener('beforeunload', (event) => {
  if (trial) event.preventDefault();
});

function command(line) {
  const copy = async () => {
    await navigator.clipboard.writeText(line);
    tell(t('advice.copied'));
  };
  return h('div', { class: 'command' }, h('code', {}, line), navigator.clipboard ? button('', copy, { kind: 'bare', glyph: 'copy', label: `${t('advice.copy')}: ${line}` }) : null);
}

const piece = ({ rule, verdict, text, figures, commands }) =>
  h('li', { class: `advice ${KINDS[verdict]}`, 'data-key': `${rule} ${text}` },
    h('p', {}, badge(KINDS[verdict], t(`advice.${verdict}`)), ' ', h('strong', {}, sentence(text)), ' ', h('span', { class: 'note' }, t('advice.rule', { rule }))),
    figures.length ? h('p', { class: 'note' }, figures.join('; ')) : null,
    commands.map(command));

/** What the client did in the share between two looks. */
async function measure({ client, share }) {
  const look = async () => {
    const { shares } = await api.get(`/clients${api.path(client)}/activity`);
    const apis = shares.find(({ name }) => name === share)?.apis ?? [];
    const all = (name) => apis.reduce((sum, of) => sum + of[name], 0);
    return { at: performance.now(), calls: all('calls'), seconds: all('seconds'), bytes: all('bytes') };
  };
  const first = await look();
  await pause(MEASURE_SECONDS);
  const second = await look();
  const seconds = (second.at - first.at) / 1000;
  const calls = second.calls - first.calls;
  return { calls: calls / seconds, mean: calls ? (second.seconds - first.seconds) / calls : null, bytes: (second.bytes - first.bytes) / seconds };
}

const patch = ({ share }, body) => api.change(`/shares${api.path(share)}`, body);

function outcome(draw) {
  const { work, before, after } = trial;
  const difference = (one, other) => (one ? `${other >= one ? '+' : ''}${format.percent(other / one - 1)}` : '–');
  const rows = [
    ['advice.calls', (of) => of.calls, format.rate],
    ['advice.mean', (of) => of.mean, format.latency],
    ['advice.throughput', (of) => of.bytes, format.throughput],
  ];
  const end = (body, key) => async () => {
    try {
      if (body) await patch(work, body);
      trial = null;
      tell(t(key));
      draw();
    } catch (refused) {
      show(trouble, problem(refused));
    }
  };
  const trouble = h('div', {});
  return [
    table({
      caption: t('advice.measured'), rows, key: ([key]) => key, empty: '',
      columns: [
        { title: t('advice.measured'), cell: ([key]) => t(key) },
        { title: t('advice.without'), numeric: true, cell: ([, of, write]) => write(of(before)) },
        { title: t('advice.with'), numeric: true, cell: ([, of, write]) => write(of(after)) },
        { title: t('advice.difference'), numeric: true, cell: ([, of]) => difference(of(before), of(after)) },
      ],
    }),
    h('p', { class: 'note' }, t('advice.noise')),
    h('div', { class: 'form-actions' },
      button(t('advice.take-back'), end(work.change.back, 'advice.taken-back')),
      button(t('advice.keep'), end(null, 'advice.kept'), { kind: 'primary' })),
    trouble,
  ];
}

function trialCard(element) {
  const draw = () => {
    if (!trial) return show(element);
    const { work, before, after, refused } = trial;
    const progress = before === null ? t('advice.before') : after === null ? t('advice.after') : null;
    show(element, section(t('advice.open', { share: work.share, what: work.change.what }), {},
      progress ? h('p', { role: 'status' }, progress) : outcome(draw), refused ? problem(refused) : null));
  };
  const begin = async (work) => {
    trial = { work, before: null, after: null };
    let isChanged = false;
    try {
      draw();
      trial.before = await measure(work);
      await patch(work, work.change.forth);
      isChanged = true;
      draw();
      trial.after = await measure(work);
      draw();
    } catch (refused) {
      // Without both measurements there is nothing to decide: the share is as it was.
      if (isChanged) await patch(work, work.change.back);
      trial = null;
      show(element, problem(refused));
    }
  };
  draw();
  return begin;
}

function workCard(work, client, begin) {
  const { share, figures, advice, change } = work;
  return section(t('advice.of', { client, share }), { actions: shareLink(share), note: figures.join('; ') },
    advice.length ? h('ul', { class: 'advices' }, advice.map(piece)) : h('p', { class: 'empty' }, t('advice.none')),
    change ? h('div', { class: 'try' }, facts([[t('advice.try'), h('code', {}, change.what)]]), h('p', { class: 'note' }, t('advice.try-note', { seconds: MEASURE_SECONDS })),
      may('shares') ? button(t('advice.apply'), () => begin(work), { kind: 'primary', glyph: 'advice' }) : command(change.command)) : null);
}

export function advice(main) {
  const tried = h('div', {});
  const chooser = h('div', {});
  const results = h('div', { class: 'stack-of-cards', 'aria-live': 'polite' });
  main.append(head(t('page.advice')), h('p', { class: 'note' }, t('advice.note')), tried, chooser, results);
  const begin = trialCard(tried);
  const { stop } = watch(chooser, 0, () => api.get('/clients'), ({ smb_sessions: smb, nfs_clients: nfs }) => {
    const choices = [
      ...smb.map(({ id, user, channels }) => [id, `${user || t('clients.guest')} (${channels[0]?.client ?? id})`]),
      ...nfs.map(({ address, sessions }) => [address, sessions[0] ? `${sessions[0].client} (${address})` : address]),
    ];
    if (!choices.length) return h('p', { class: 'empty card' }, t('clients.none'));
    return h('div', { class: 'card' }, form({
      fields: h('div', { class: 'row' },
        field({ name: 'client', label: t('advice.client'), kind: 'choice', choices }),
        field({ name: 'seconds', label: t('advice.seconds'), kind: 'number', value: '5', min: '1', max: '20' })),
      action: [icon('advice'), t('advice.watch')],
      submit: async ({ client, seconds }) => {
        show(results, h('p', { class: 'empty' }, t('advice.watching', { seconds })));
        try {
          const { works } = await api.get(`/clients${api.path(client)}/advice?seconds=${encodeURIComponent(seconds)}`);
          const name = choices.find(([of]) => of === client)[1];
          show(results, works.map((work) => workCard(work, name, begin)));
        } catch (refused) {
          show(results);
          throw refused;
        }
      },
    }));
  });
  return stop;
}
