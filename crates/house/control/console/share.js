// One share: its use against what is provisioned, what waited, where the time goes, and its settings.

import * as api from './api.js';
import { may } from './api.js';
import { badge, button, facts, h, section, show, table } from './dom.js';
import { bars, meter, stack } from './chart.js';
import * as format from './format.js';
import { dialog, field, problem, tell, words } from './forms.js';
import * as live from './live.js';
import { head } from './page.js';
import { charts } from './overview.js';
import { changePlan } from './plan.js';
import { shareState, use } from './shares.js';
import { t } from './texts.js';

/** The roles that all users may have who are in no list. */
const DEFAULT_ROLES = ['', 'none', 'reader', 'contributor', 'elevated', 'admin'];

/** How NFS clients may secure their calls. */
const NFS_SECURITY = ['sys', 'krb5', 'krb5i', 'krb5p'];

/** The rate that a limit is about. Those of one file or of a burst cannot be seen from outside. */
const RATES = {
  iops: (now) => now.calls,
  throughput: (now) => now.bytes,
  'read-throughput': (now) => now.reads,
  'write-throughput': (now) => now.writes,
};

const isBytes = (limit) => limit.includes('throughput');
const limitRate = (limit, value) => (isBytes(limit) ? format.throughput(value) : t('overview.per-second', { rate: format.rate(value) }));

function provisioned(name, activity) {
  const now = live.last(name);
  const rows = Object.entries(activity.limits).map(([limit, most]) => {
    const present = RATES[limit] && now ? RATES[limit](now) : null;
    const text = present === null ? limitRate(limit, most) : t('share.used-of', { used: limitRate(limit, present), all: limitRate(limit, most) });
    return h('div', { class: 'limit', 'data-key': limit },
      h('span', { class: 'limit-name' }, limit, activity.throttled.includes(limit) ? badge('warn', t('share.waits-now')) : null),
      h('span', { class: 'metered' }, text, present === null ? null : meter(`${limit}: ${text}`, present / most)));
  });
  const { burst_credits: credits, files } = activity;
  const objects = files === null ? t('share.not-counted') : t('share.objects', { count: format.count(files) });
  return section(t('share.performance'), { actions: h('code', { class: 'plan' }, activity.plan) },
    rows.length ? h('div', { class: 'limits' }, rows) : h('p', { class: 'note' }, t('share.no-limits')),
    facts([
      [t('share.capacity'), [use(activity), ' ', h('span', { class: 'note' }, objects)]],
      credits === null ? null : [t('share.credits'), format.count(credits)],
      activity.cache ? [t('share.cache'), t('share.cache-use', { hits: format.count(activity.cache.hits), misses: format.count(activity.cache.misses) })] : null,
    ]));
}

function waited({ waits, waiting }) {
  return section(t('share.waits'), { actions: waiting ? badge('warn', `${format.count(waiting)} ${t('share.waits-now')}`) : null },
    table({
      caption: t('share.waits'), rows: waits, key: ({ limit }) => limit, empty: t('share.nothing-waited'),
      columns: [
        { title: t('share.limit'), cell: ({ limit }) => limit },
        { title: t('share.waits-operations'), numeric: true, cell: ({ operations }) => format.count(operations) },
        { title: t('share.waits-mean'), numeric: true, cell: ({ operations, seconds }) => format.latency(seconds / operations) },
      ],
    }));
}

const PARTS = ['limit', 'queue', 'storage', 'network'];

function times({ apis }) {
  const whole = apis.reduce((sum, { seconds, network_seconds: network }) => sum + seconds + network, 0);
  const all = (api) => api.seconds + api.network_seconds;
  const parts = (api) => {
    const shares = PARTS.map((kind) => ({ kind, value: api[`${kind}_seconds`] }));
    const label = shares.map(({ kind, value }) => `${t(`share.part.${kind}`)} ${format.latency(value / api.calls)}`).join(', ');
    return h('span', { class: 'metered' }, stack(shares, label), h('span', { class: 'note' }, label));
  };
  return section(t('share.times'), { note: t('share.times-note') },
    h('p', { class: 'keys' }, PARTS.map((kind) => h('span', { class: `key ${kind}` }, t(`share.part.${kind}`)))),
    table({
      caption: t('share.times'), empty: t('share.no-calls'), key: ({ api, protocol }) => `${api} ${protocol}`,
      rows: [...apis].sort((one, other) => all(other) - all(one)),
      columns: [
        { title: t('share.operation'), cell: ({ api, protocol }) => [api, ' ', h('span', { class: 'note' }, protocol)] },
        { title: t('share.calls'), numeric: true, cell: ({ calls }) => format.count(calls) },
        { title: t('share.errors'), numeric: true, cell: ({ errors }) => format.count(errors) },
        { title: t('share.mean'), numeric: true, cell: ({ seconds, calls }) => format.latency(seconds / calls) },
        { title: t('share.parts'), cell: parts },
        { title: t('share.of-all'), numeric: true, cell: (api) => format.percent(whole ? all(api) / whole : 0) },
      ],
    }));
}

function sizes({ read_sizes: reads, write_sizes: writes }) {
  const of = (title, counts, kind) => {
    const name = ({ bytes_max: most }) => (most === null ? t('share.larger') : t('share.up-to', { size: format.bytes(most) }));
    const rows = counts.map((count) => ({ name: name(count), value: count.calls, text: format.count(count.calls) }));
    return h('div', {}, h('h3', {}, title), rows.length ? bars(rows, kind) : h('p', { class: 'empty' }, t('share.none-yet')));
  };
  return section(t('share.sizes'), {}, h('div', { class: 'pair' }, of(t('share.reads'), reads, 'one'), of(t('share.writes'), writes, 'two')));
}

const yesNo = (value) => t(`form.yes-no.${value}`);

// The lists of users with a role. Without any of them, everybody may do what the permissions of files allow.
function roles(rules) {
  const lists = [['share.readers', rules.read], ['share.writers', rules.write],
    ['share.elevated', rules.elevated], ['share.admins', rules.admin]];
  if (!rules.default_role && lists.every(([, names]) => !names.length)) return [[t('share.users'), t('share.everybody')]];
  const named = lists.filter(([, names]) => names.length).map(([label, names]) => [t(label), names.join(', ')]);
  return [...named, [t('share.others'), t(`role.${rules.default_role || 'none'}`)]];
}

function settings(share, redraw) {
  const list = (names, none) => (names.length ? names.join(', ') : none);
  const isOurs = share.declared_in === null;
  const actions = !may('shares') || !isOurs ? null : [
    button(t('share.change'), () => change(share, redraw)),
    button(t('share.remove'), () => remove(share), { kind: 'danger' }),
  ];
  return section(t('share.settings'), { actions, note: isOurs ? null : t('share.declared', { place: share.declared_in }) },
    facts([
      [t('share.directory'), h('code', {}, share.directory)],
      share.pool ? [t('share.pool'), share.pool] : null,
      share.comment ? [t('share.comment'), share.comment] : null,
      [t('share.protocols'), share.served_by.length ? share.served_by.join(', ') : t('share.all-protocols')],
      [t('share.rules'), list(share.rules.clients, t('share.any-client'))],
      ...roles(share.rules),
      [t('share.read-only'), yesNo(share.read_only)],
      [t('share.encrypted'), yesNo(share.encrypted)],
      [t('share.tls'), yesNo(share.tls_required)],
      [t('share.nfs-security'), share.nfs_security.join(', ')],
      [t('share.nfs-groups'), t(`share.nfs-groups.${share.nfs_groups || 'not-set'}`)],
      [t('share.nfs-snapshots'), t(`share.nfs-snapshots.${share.nfs_snapshots}`)],
      [t('share.recycle-bin'), share.recycle_bin],
      [t('share.ransomware-alarm'), share.ransomware_alarm],
      ...(share.encryption_at_rest ? [[t('share.at-rest'), t(`share.at-rest.${share.encryption_at_rest}`)]] : []),
      [t('share.guest'), yesNo(share.guest)],
      [t('share.abe'), yesNo(share.access_based_enumeration)],
      [t('share.ca'), yesNo(share.continuous_availability)],
      [t('share.hidden'), yesNo(share.hidden)],
      [t('share.cache'), yesNo(share.metadata_cache)],
      [t('share.access-log'), yesNo(share.access_log)],
    ]));
}

function change(share, redraw) {
  const check = (name, label) => field({ name, label: t(label), kind: 'check', value: share[name] });
  dialog({
    title: t('share.change'), action: t('form.save'),
    fields: [
      field({ name: 'comment', label: t('share.comment'), value: share.comment }),
      field({ name: 'clients', label: t('share.rules'), kind: 'area', hint: t('share.rules-hint'), value: share.rules.clients.join('\n') }),
      field({ name: 'read', label: t('share.readers'), hint: t('share.list-hint'), value: share.rules.read.join(' ') }),
      field({ name: 'write', label: t('share.writers'), hint: t('share.writers-hint'), value: share.rules.write.join(' ') }),
      field({ name: 'elevated', label: t('share.elevated'), value: share.rules.elevated.join(' ') }),
      field({ name: 'admin', label: t('share.admins'), value: share.rules.admin.join(' ') }),
      field({ name: 'default_role', label: t('share.others'), kind: 'choice', value: share.rules.default_role,
        choices: DEFAULT_ROLES.map((role) => [role, t(`role.${role || 'not-set'}`)]) }),
      field({ name: 'nfs_security', label: t('share.nfs-security'), hint: t('share.nfs-security-hint'), value: share.nfs_security.join(' ') }),
      field({ name: 'nfs_groups', label: t('share.nfs-groups'), kind: 'choice', value: share.nfs_groups,
        choices: ['', 'client', 'server'].map((by) => [by, t(`share.nfs-groups.${by || 'not-set'}`)]) }),
      field({ name: 'nfs_snapshots', label: t('share.nfs-snapshots'), kind: 'choice', value: share.nfs_snapshots,
        choices: ['off', 'hidden', 'shown'].map((how) => [how, t(`share.nfs-snapshots.${how}`)]) }),
      field({ name: 'recycle_bin', label: t('share.recycle-bin'), hint: t('share.recycle-bin-hint'), value: share.recycle_bin }),
      field({ name: 'ransomware_alarm', label: t('share.ransomware-alarm'), hint: t('share.ransomware-alarm-hint'), value: share.ransomware_alarm }),
      h('div', { class: 'checks' },
        check('read_only', 'share.read-only'), check('encrypted', 'share.encrypted'), check('tls_required', 'share.tls'), check('guest', 'share.guest'),
        check('access_based_enumeration', 'share.abe'), check('continuous_availability', 'share.ca'),
        check('hidden', 'share.hidden'), check('metadata_cache', 'share.cache'),
        check('access_log', 'share.access-log')),
    ],
    submit: async ({ clients, read, write, elevated, admin, default_role, nfs_security, ...filled }) => {
      const lines = clients.split('\n').map((line) => line.trim()).filter(Boolean);
      const rules = { clients: lines, read: words(read), write: words(write), elevated: words(elevated), admin: words(admin), default_role };
      // What is as it was is not sent: some settings may not be changed at all times.
      const isChanged = ([name, value]) => JSON.stringify(value) !== JSON.stringify(share[name]);
      const flavors = words(nfs_security);
      const changes = Object.fromEntries(Object.entries({ ...filled, nfs_security: flavors.length ? flavors : NFS_SECURITY }).filter(isChanged));
      const ruleChanges = Object.fromEntries(Object.entries(rules).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(share.rules[name])));
      await api.change(`/shares${api.path(share.name)}`, { ...changes, ...(Object.keys(ruleChanges).length ? { rules: ruleChanges } : {}) });
      tell(t('share.changed', { name: share.name }));
      redraw();
    },
  });
}

function remove(share) {
  dialog({
    title: t('share.remove'), text: t(share.pool ? 'share.remove-ask-pool' : 'share.remove-ask', share), action: t('share.remove'), kind: 'danger',
    submit: async () => {
      await api.remove(`/shares${api.path(share.name)}`);
      tell(t('share.removed', { name: share.name }));
      location.hash = '#/shares';
      live.ask();
    },
  });
}

export function share(main, [name]) {
  const state = h('div', { class: 'row' });
  const body = h('div', { class: 'stack-of-cards' });
  const below = h('div', { class: 'stack-of-cards' });
  let known = null;
  const plan = button(t('share.change-plan'), () => changePlan(known, ask), { kind: 'primary' });
  plan.hidden = true;
  main.append(head(name, plan), state, body, below);
  const ask = async () => {
    live.ask();
    try {
      known = await api.get(`/shares${api.path(name)}`);
      plan.hidden = !may('shares') || known.declared_in !== null;
      const link = (where, text) => h('p', {}, h('a', { href: `#${where}` }, t(text)));
      const part = (of) => link(`/shares${api.path(known.name)}/${of}`, `${of}.title`);
      show(below, settings(known, ask), link(`/files${api.path(known.name)}`, 'share.used-files'),
        known.served ? part('snapshots') : null, part('quotas'), part('replication'));
    } catch (refused) {
      show(below, problem(refused));
    }
  };
  const draw = () => {
    const found = live.status?.shares.find((of) => of.name.toLowerCase() === name.toLowerCase());
    if (live.trouble) show(state, problem(live.trouble));
    else if (found) show(state, shareState(found));
    if (!found?.activity) return show(body);
    const { activity } = found;
    show(body, section(t('overview.last-minutes').replace(/^./, (first) => first.toUpperCase()), {}, charts(found.name)),
      h('div', { class: 'pair' }, provisioned(found.name, activity), waited(activity)), times(activity), sizes(activity));
  };
  draw();
  ask();
  return live.onChange(draw);
}
