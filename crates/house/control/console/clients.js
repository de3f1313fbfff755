// Clients: how they are connected, and why they have no more connections.

import * as api from './api.js';
import { may } from './api.js';
import { badge, button, facts, h, show, table } from './dom.js';
import * as format from './format.js';
import { dialog, tell } from './forms.js';
import { head, watch } from './page.js';
import { t } from './texts.js';

const roundTrip = (us) => (us === null ? '–' : format.latency(us / 1e6));

function disconnect(client, again) {
  dialog({
    title: t('clients.disconnect'), text: t('clients.disconnect-ask', { client }), action: t('clients.disconnect'), kind: 'danger',
    submit: async () => {
      await api.remove(`/clients${api.path(client)}`);
      tell(t('clients.disconnected', { client }));
      again();
    },
  });
}

function findings(found) {
  if (!found) return null;
  const draw = ({ id, what, evidence, advice }) =>
    h('li', { 'data-key': id }, h('p', {}, h('strong', {}, what)),
      facts([[t('clients.evidence'), evidence], [t('clients.to-do'), advice]]));
  const part = (title, of) => (of.length ? [h('h3', {}, title), h('ul', { class: 'findings' }, of.map(draw))] : null);
  const reasons = found.findings.filter(({ limits }) => limits);
  return [
    part(t('clients.why'), reasons),
    part(t('clients.worth'), found.findings.filter(({ limits }) => !limits)),
    found.findings.length ? null : h('p', { class: 'note' }, t('clients.enough')),
  ];
}

function card({ id, vserver, title, badges, pairs, found, connections, address }, again) {
  const files = address ? h('a', { class: 'button quiet', href: `#/files/*/${encodeURIComponent(address)}` }, t('clients.files')) : null;
  const why = found?.findings.some(({ limits }) => limits) ? t('clients.why') : t('clients.connections');
  return h('article', { class: 'card client', 'data-key': `${vserver ?? ''} ${id}`, 'aria-label': title },
    h('header', { class: 'card-head' }, h('h2', {}, title, ' ', badges),
      h('div', { class: 'actions' }, files, may('all') ? button(t('clients.disconnect'), () => disconnect(id, again), { kind: 'danger', label: `${t('clients.disconnect')}: ${title}` }) : null)),
    facts(pairs),
    h('details', {}, h('summary', {}, why), findings(found), connections));
}

/** With what the user has logged on, and when the ticket ends. */
function loggedOn({ mechanism, expires_in_seconds: left }) {
  const names = { kerberos: 'Kerberos', iakerb: 'IAKERB', ntlm: 'NTLM' };
  return [
    ...(mechanism ? [[t('clients.logged-on-with'), names[mechanism] ?? mechanism]] : []),
    ...(Number.isFinite(left) ? [[t('clients.ticket-ends'), format.duration(left)]] : []),
  ];
}

/** The vserver to which a client is connected that is not connected to the server itself. */
const at = ({ vserver }) => (vserver === null ? [] : [[t('clients.vserver'), vserver]]);

function smbCard(session, found, again) {
  const address = session.channels[0]?.client.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  const { encryption, signing } = session;
  const isEncrypted = encryption?.required;
  const encrypted = encryption ? t(isEncrypted ? 'clients.encrypted' : 'clients.may-encrypt', { cipher: encryption.cipher }) : t('clients.plain');
  const signed = signing.required ? t('clients.signed', { algorithm: signing.algorithm }) : t('clients.not-signed');
  return card({
    id: session.id, vserver: session.vserver, address, found,
    title: session.user || t('clients.guest'),
    badges: [badge('plain', `SMB ${session.dialect}`), isEncrypted ? badge('good', t('clients.encrypted', { cipher: encryption.cipher })) : null],
    pairs: [
      [t('clients.from'), h('code', {}, address ?? '–')],
      ...at(session),
      [t('clients.protection'), `${encrypted}; ${signed}`],
      [t('clients.channels'), t('clients.of-possible', { count: session.channels.length, possible: found?.possible ?? session.max_channels })],
      [t('clients.opens'), format.count(session.opens)],
      [t('clients.since'), format.duration(session.age_seconds)],
      ...loggedOn(session),
      [t('clients.idle'), format.duration(session.idle_seconds)],
    ],
    connections: table({
      caption: t('clients.channels'), rows: session.channels, key: ({ client }) => client, empty: '',
      columns: [
        { title: t('clients.from'), cell: ({ client }) => client },
        { title: t('clients.to'), cell: ({ server }) => server },
        { title: t('clients.round-trip'), numeric: true, cell: ({ round_trip_us: us }) => roundTrip(us) },
        { title: t('clients.requests'), numeric: true, cell: ({ requests }) => format.count(requests) },
        { title: t('clients.idle'), numeric: true, cell: ({ idle_seconds: idle }) => format.duration(idle) },
      ],
    }),
  }, again);
}

/** How the connections of an NFS client are encrypted: by TLS, or each call by its flavor. */
function nfsProtection({ connections }) {
  const hows = connections.map(({ tls, security }) => {
    if (tls) return t('clients.encrypted', { cipher: `TLS ${tls.version}, ${tls.cipher}` });
    return security.length && security.every((flavor) => flavor === 'krb5p') ? t('clients.encrypted', { cipher: 'krb5p' }) : t('clients.plain');
  });
  return [...new Set(hows)].join('; ');
}

/** The names in the certificates of an NFS client. */
function certificates({ connections }) {
  const shown = connections.flatMap(({ tls }) => (tls?.certificate ? [tls.certificate.names.join(' ') || tls.certificate.fingerprint] : []));
  return shown.length ? [[t('clients.certificate'), [...new Set(shown)].join(', ')]] : [];
}

function nfsCard(client, found, again) {
  const versions = [...new Set(client.connections.map(({ version }) => version).filter((version) => version !== null))];
  const oldest = Math.max(0, ...client.connections.map(({ age_seconds: age }) => age));
  const newest = Math.min(...client.connections.map(({ idle_seconds: idle }) => idle));
  return card({
    id: client.address, vserver: client.vserver, address: client.address, found,
    title: client.sessions[0]?.client || client.address,
    badges: versions.map((version) => badge('plain', `NFSv${version}`)),
    pairs: [
      [t('clients.from'), h('code', {}, client.address)],
      ...at(client),
      [t('clients.protection'), nfsProtection(client)],
      [t('clients.security'), [...new Set(client.connections.flatMap(({ security }) => security))].join(', ') || '–'],
      ...certificates(client),
      [t('clients.connections'), format.count(client.connections.length)],
      [t('clients.users'), client.users?.length ? client.users.join(', ') : '–'],
      [t('clients.shares'), client.shares.length ? client.shares.join(', ') : '–'],
      [t('clients.since'), format.duration(oldest)],
      [t('clients.idle'), format.duration(newest)],
    ],
    connections: table({
      caption: t('clients.connections'), rows: client.connections, key: ({ client: from }) => from, empty: '',
      columns: [
        { title: t('clients.from'), cell: ({ client: from }) => from },
        { title: t('clients.to'), cell: ({ server }) => server },
        { title: t('clients.round-trip'), numeric: true, cell: ({ round_trip_us: us }) => roundTrip(us) },
        { title: t('clients.requests'), numeric: true, cell: ({ calls }) => format.count(calls) },
        { title: t('clients.in-flight'), numeric: true, cell: ({ in_flight: under }) => format.count(under) },
      ],
    }),
  }, again);
}

export function clients(main) {
  const body = h('div', { class: 'stack-of-cards' });
  const note = h('span', { class: 'note' });
  main.append(head(t('page.clients'), note), body);
  const ask = () => Promise.all([api.get('/clients'), api.get('/findings')]);
  const { again, stop } = watch(body, 3, ask, ([connected, found]) => {
    const of = (id, vserver) => found.clients.find((one) => one.client === id && one.vserver === vserver);
    const cards = [
      ...connected.smb_sessions.map((session) => smbCard(session, of(session.id, session.vserver), () => again())),
      ...connected.nfs_clients.map((client) => nfsCard(client, of(client.address, client.vserver), () => again())),
    ];
    show(note, t('clients.list', { count: cards.length }));
    return cards.length ? cards : h('p', { class: 'empty card' }, t('clients.none'));
  });
  return stop;
}
