// The form for another plan of a share, which can be tried on recorded work first.

import * as api from './api.js';
import { button, h, show } from './dom.js';
import * as format from './format.js';
import { dialog, field, problem, tell, words } from './forms.js';
import { t } from './texts.js';

/** The server takes 4 MiB with one recording, whose lines are escaped in JSON. */
const LINES_BYTES_MAX = 3 << 20;
const oneLine = (plan) => words(plan).join(' ');
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** What a plan would have done, in words. */
function told(simulated) {
  if (simulated.waited === 0) return h('p', {}, t('plan.result-none'));
  const { operations, waited, clients, wait_seconds: waits, late_seconds: late, limits, credits } = simulated;
  return [
    h('p', {}, h('strong', {}, t('plan.result', {
      waited: format.count(waited), operations: format.count(operations), part: format.percent(waited / operations), clients: format.count(clients),
    }))),
    h('p', {}, t('plan.result-times', { p50: format.latency(waits.p50), p99: format.latency(waits.p99), max: format.latency(waits.max) })),
    late > 0 ? h('p', {}, t('plan.result-late', { late: format.latency(late) })) : null,
    h('p', {}, t('plan.result-limits', { limits: limits.map(({ limit, operations: of }) => `${limit} (${format.count(of)})`).join(', ') })),
    credits ? h('p', {}, t('plan.result-credits', { first: format.count(credits.first), least: format.count(credits.least) })) : null,
  ];
}

/** Records what clients do in the share, and calls `progress` meanwhile. Returns the lines of the recording. */
async function record(share, seconds, progress, isWanted) {
  const where = `/shares${api.path(share)}/trace`;
  await api.post(where, { seconds });
  const end = performance.now() + seconds * 1000;
  let [lines, operations, isCut] = ['', 0, false];
  for (;;) {
    await pause(500);
    const part = await api.get(where);
    operations += part.operations;
    if (lines.length + part.lines.length <= LINES_BYTES_MAX) lines += part.lines;
    else isCut = true;
    progress(Math.max(0, Math.ceil((end - performance.now()) / 1000)), operations);
    if (part.over || !isWanted()) return { lines, isCut };
  }
}

export function changePlan(share, redraw) {
  const outcome = h('div', { class: 'outcome', role: 'status', 'aria-live': 'polite' });
  let recording = null;
  const seconds = field({ name: 'seconds', label: t('plan.seconds'), kind: 'number', value: '10', min: '1', max: '300' });
  const plan = field({ name: 'plan', label: t('share.plan'), hint: t('share.plan-hint'), value: share.plan, required: true, kind: 'area', rows: 2 });
  const simulate = async () => {
    const simulated = await api.post('/simulations', { plan: oneLine(plan.querySelector('textarea').value), lines: recording.lines });
    show(outcome, told(simulated), recording.isCut ? h('p', { class: 'note' }, t('plan.too-long')) : null);
  };
  const guarded = (work) => async () => {
    [again.disabled, begin.disabled] = [true, true];
    try {
      await work();
    } catch (refused) {
      show(outcome, problem(refused));
    } finally {
      [again.disabled, begin.disabled] = [recording === null, false];
    }
  };
  const begin = button(t('plan.record'), guarded(async () => {
    const progress = (left, operations) => show(outcome, h('p', {}, t('plan.recording', { seconds: left, operations: format.count(operations) })));
    recording = await record(share.name, Number(seconds.querySelector('input').value) || 10, progress, () => outcome.isConnected);
    if (outcome.isConnected) await simulate();
  }));
  const again = button(t('plan.again'), guarded(simulate), { disabled: true });
  dialog({
    title: `${t('share.change-plan')}: ${share.name}`, action: t('form.save'),
    fields: [plan],
    more: h('fieldset', {}, h('legend', {}, t('plan.simulate')), h('p', { class: 'hint' }, t('plan.simulate-note')),
      h('div', { class: 'row' }, seconds, begin, again), outcome),
    submit: async (filled) => {
      await api.change(`/shares${api.path(share.name)}`, { plan: oneLine(filled.plan) });
      tell(t('share.changed', { name: share.name }));
      redraw();
    },
  });
}
