// Forms in dialogs, and what people are told. A form keeps what was typed until the server has taken it.

import { Refused } from './api.js';
import { button, h, icon } from './dom.js';
import { t } from './texts.js';

let fieldCount = 0;

/** A field with its label. Kinds: text, password, number, check, area, choice. */
export function field({ name, label, kind = 'text', hint = null, value = '', choices = [], required = false, ...more }) {
  fieldCount += 1;
  const id = `field-${fieldCount}`;
  const described = hint ? `${id}-hint` : null;
  const common = { id, name, 'aria-describedby': described, required, ...more };
  const hinted = hint ? h('p', { class: 'hint', id: described }, hint) : null;
  if (kind === 'check') {
    return h('div', { class: 'field check' }, h('input', { ...common, type: 'checkbox', checked: value === true }),
      h('label', { for: id }, label), hinted);
  }
  const plain = { ...common, autocomplete: 'off', spellcheck: 'false' };
  const input =
    kind === 'area' ? h('textarea', { rows: 3, ...plain }, value)
    : kind === 'choice' ? h('select', common, choices.map(([of, text]) => h('option', { value: of, selected: of === value }, text)))
    : h('input', { ...plain, type: kind, value, autocomplete: kind === 'password' ? 'new-password' : 'off' });
  return h('div', { class: 'field' }, h('label', { for: id }, label), input, hinted);
}

/** What was filled in, by the names of the fields: booleans for boxes, texts for all others. */
export function values(form) {
  const filled = {};
  for (const element of form.elements) {
    if (element.name) filled[element.name] = element.type === 'checkbox' ? element.checked : element.value;
  }
  return filled;
}

export const words = (text) => text.split(/[\s,]+/).filter(Boolean);

/** Why something did not work, with what to do about it. */
export function problem(refused) {
  if (!(refused instanceof Refused)) throw refused;
  const isSilent = refused.kind === 'no-answer';
  const advice = isSilent ? t('app.no-answer-advice') : refused.advice;
  return h('div', { class: 'problem', role: 'alert' }, icon('alarm'), h('div', {},
    h('p', {}, h('strong', {}, isSilent ? t('app.no-answer') : sentence(refused.message))), advice ? h('p', {}, advice) : null));
}

/** Does what needs no form, and says why if that is refused. */
export async function attempt(act) {
  try {
    await act();
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    tell(refused.kind === 'no-answer' ? t('app.no-answer') : sentence(refused.message), 'bad');
  }
}

export function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

/**
 * A form whose button calls `submit` with what was filled in. While it works the form is locked; if it is refused, the reason is shown
 * and nothing that was typed is lost.
 */
export function form({ fields, submit, action, more = null, kind = 'primary', cancel = null }) {
  const errors = h('div', { class: 'errors' });
  const go = h('button', { type: 'submit', class: `button ${kind}` }, action);
  const element = h('form', {
    novalidate: true,
    onsubmit: async (event) => {
      event.preventDefault();
      errors.replaceChildren();
      go.disabled = true;
      element.setAttribute('aria-busy', 'true');
      try {
        await submit(values(element));
      } catch (refused) {
        errors.replaceChildren(problem(refused));
        element.querySelector('input, textarea, select')?.focus();
      } finally {
        go.disabled = false;
        element.removeAttribute('aria-busy');
      }
    },
  }, fields, more, errors, h('div', { class: 'form-actions' }, cancel, go));
  return element;
}

/** A dialog with a form. It closes when the server has taken what was filled in. */
export function dialog({ title, text = null, fields = [], submit, action, kind = 'primary', more = null }) {
  const close = () => element.close();
  const heading = h('h2', { id: `dialog-${(fieldCount += 1)}` }, title);
  const element = h('dialog', { 'aria-labelledby': heading.id, onclose: () => element.remove() },
    h('header', { class: 'card-head' }, heading, button('', close, { glyph: 'close', kind: 'bare', label: t('form.cancel') })),
    text ? h('p', {}, text) : null,
    form({
      fields, more, action, kind,
      cancel: button(t('form.cancel'), close),
      submit: async (filled) => {
        await submit(filled);
        close();
      },
    }));
  document.body.append(element);
  element.showModal();
  (element.querySelector('form input, form textarea, form select') ?? element.querySelector('[type=submit]')).focus();
  return element;
}

/** Says in a line what was done. */
export function tell(text, kind = 'good') {
  const line = h('p', { class: `message ${kind}` }, icon(kind === 'good' ? 'good' : 'alarm'), text);
  document.getElementById('messages').append(line);
  setTimeout(() => line.remove(), 6000);
}
