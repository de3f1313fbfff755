// The last lines of the log.

import * as api from './api.js';
import { badge, h, section } from './dom.js';
import * as format from './format.js';
import { field } from './forms.js';
import { head, watch } from './page.js';
import { t } from './texts.js';

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR'];
const LINES_MAX = 1000;

/** The parts of a line of either form of the log. */
function parse({ number, text }) {
  if (text.startsWith('{')) {
    try {
      const { timestamp, level, target, fields } = JSON.parse(text);
      const { message = '', ...more } = fields ?? {};
      return { number, time: timestamp, level, target, message: [message, ...Object.entries(more).map(([name, value]) => `${name}=${value}`)].join(' ') };
    } catch {
      // A line that was cut is shown as it is.
    }
  }
  const [, time = '', level = '', target = '', message = text] = /^(\S+)\s+(TRACE|DEBUG|INFO|WARN|ERROR)\s+(\S+): (.*)$/s.exec(text) ?? [];
  return { number, time, level, target, message };
}

const clock = (time) => {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' }).format(date);
};

export function log(main) {
  const filter = field({ name: 'filter', label: t('log.filter'), kind: 'search', oninput: () => again() });
  const level = field({ name: 'level', label: t('log.level'), kind: 'choice', value: 'TRACE', choices: LEVELS.map((name) => [name, name === 'TRACE' ? t('log.all') : name]), onchange: () => again() });
  const body = h('div', {});
  main.append(head(t('page.log')), h('div', { class: 'row' }, filter, level), body);
  let lines = [];
  let lost = 0;
  const ask = async () => {
    const answer = await api.get(`/log?after=${lines.at(-1)?.number ?? 0}`);
    lines = [...lines, ...answer.lines.map(parse)].slice(-LINES_MAX);
    lost = answer.lost;
  };
  const draw = () => {
    const text = filter.querySelector('input').value.toLowerCase();
    const least = LEVELS.indexOf(level.querySelector('select').value);
    const isWanted = ({ level: of, target, message }) => (of === '' || LEVELS.indexOf(of) >= least) && `${target} ${message}`.toLowerCase().includes(text);
    const wanted = lines.filter(isWanted).reverse();
    return section(t('page.log'), { note: t('log.note', { count: format.count(wanted.length) }), actions: lost ? badge('warn', t('log.lost', { count: format.count(lost) })) : null },
      wanted.length ? h('ol', { class: 'log', tabindex: '0', 'aria-label': t('page.log') }, wanted.map(({ number, time, level: of, target, message }) =>
        h('li', { class: of.toLowerCase(), 'data-key': `${number}` }, h('time', { datetime: time }, clock(time)), ' ', h('span', { class: 'level' }, of), ' ', h('span', { class: 'target' }, target), ' ', h('span', { class: 'text' }, message))))
        : h('p', { class: 'empty' }, t('log.empty')));
  };
  const { again, stop } = watch(body, 3, ask, draw);
  return stop;
}
