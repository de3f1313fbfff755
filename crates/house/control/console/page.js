// What all pages have.

import { me } from './api.js';
import { h, show } from './dom.js';
import { problem } from './forms.js';
import { t } from './texts.js';

/** The head of a page. */
export const head = (title, ...beside) =>
  h('header', { class: 'page-head' }, h('h1', { tabindex: '-1' }, title), beside.length ? h('div', { class: 'beside' }, beside) : null);

/**
 * Asks now and every `seconds` while the page is seen, and shows what `draw` makes of the answer. Returns how to ask at once, and how to
 * stop.
 */
export function watch(element, seconds, ask, draw) {
  let timer = null;
  let isOver = false;
  let turn = 0;
  const again = async () => {
    clearTimeout(timer);
    if (document.hidden || me === null || isOver) return;
    turn += 1;
    const mine = turn;
    let nodes;
    try {
      nodes = draw(await ask());
    } catch (refused) {
      nodes = problem(refused);
    }
    if (isOver || mine !== turn) return;
    show(element, nodes);
    if (seconds) timer = setTimeout(again, seconds * 1000);
  };
  show(element, h('p', { class: 'empty' }, t('app.loading')));
  document.addEventListener('visibilitychange', again);
  again();
  const stop = () => {
    isOver = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', again);
  };
  return { again, stop };
}
