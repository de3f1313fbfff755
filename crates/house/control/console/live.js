// What goes on in the server, asked every two seconds while the page is seen, and the rates that follow from two answers.

import { Refused, get, me } from './api.js';

const INTERVAL = 2000;
/** Points that are kept of each series: three minutes. */
const POINTS = 90;

export let status = null;
/** Why there is no answer, or null. */
export let trouble = null;
/** By share: { at, bytes, reads, writes, calls, p50, p99 }. The empty name stands for all shares. */
const series = new Map();
const listeners = new Set();
let counted = new Map();
let timer = null;
let isAsking = false;

export const points = (share = '') => series.get(share) ?? [];
export const last = (share = '') => points(share).at(-1) ?? null;

/** Calls a function after each answer, until the returned function is called. */
export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function start() {
  stop();
  series.clear();
  counted.clear();
  document.addEventListener('visibilitychange', ask);
  ask();
}

export function stop() {
  document.removeEventListener('visibilitychange', ask);
  clearTimeout(timer);
}

export async function ask() {
  clearTimeout(timer);
  if (document.hidden || me === null || isAsking) return;
  isAsking = true;
  try {
    status = await get('/status');
    // The pages of shares are about those of the server itself.
    status.shares = status.shares.filter(({ vserver }) => vserver === null);
    trouble = null;
    note(status.shares.filter((share) => share.activity), performance.now());
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    trouble = refused;
  } finally {
    isAsking = false;
  }
  for (const listener of [...listeners]) listener();
  if (me !== null) timer = setTimeout(ask, INTERVAL);
}

function note(shares, now) {
  const counts = new Map(shares.map((share) => [share.name, countsOf(share.activity)]));
  counts.set('', [...counts.values()].reduce(sum, countsOf({ apis: [], latencies: [] })));
  for (const [name, present] of counts) {
    const earlier = counted.get(name);
    if (earlier && earlier.calls <= present.calls) {
      const points = series.get(name) ?? [];
      points.push(rates(earlier, present, (now - earlier.at) / 1000));
      series.set(name, points.slice(-POINTS));
    }
    present.at = now;
  }
  for (const name of series.keys()) if (!counts.has(name)) series.delete(name);
  counted = counts;
}

function countsOf({ apis, latencies }) {
  const of = (name, field) => apis.filter((api) => !name || api.api === name).reduce((all, api) => all + api[field], 0);
  const buckets = new Map(latencies.map(({ seconds_max, calls }) => [seconds_max ?? Infinity, calls]));
  return { calls: of('', 'calls'), reads: of('Read', 'bytes'), writes: of('Write', 'bytes'), buckets };
}

function sum(one, other) {
  const buckets = new Map(one.buckets);
  for (const [limit, calls] of other.buckets) buckets.set(limit, (buckets.get(limit) ?? 0) + calls);
  const all = (field) => one[field] + other[field];
  return { calls: all('calls'), reads: all('reads'), writes: all('writes'), buckets };
}

function rates(earlier, present, seconds) {
  const of = (field) => Math.max(0, present[field] - earlier[field]) / seconds;
  const grown = [...present.buckets]
    .map(([limit, calls]) => [limit, calls - (earlier.buckets.get(limit) ?? 0)])
    .filter(([, calls]) => calls > 0)
    .sort(([one], [other]) => one - other);
  return {
    bytes: of('reads') + of('writes'), reads: of('reads'), writes: of('writes'), calls: of('calls'),
    p50: percentile(grown, 0.5), p99: percentile(grown, 0.99),
  };
}

/** Within a bucket, which ends at twice its beginning, calls are taken to be spread evenly. */
function percentile(buckets, part) {
  const calls = buckets.reduce((all, [, of]) => all + of, 0);
  let before = 0;
  for (const [limit, of] of buckets) {
    if (before + of >= calls * part) {
      if (limit === Infinity) return 8;
      return (limit / 2) * (1 + (calls * part - before) / of);
    }
    before += of;
  }
  return null;
}
