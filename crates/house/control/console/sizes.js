// Sizes and numbers that people write.

import { Refused } from './api.js';
import { field } from './forms.js';
import { t } from './texts.js';
import './share-texts.js';

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'];

const unclear = (text) => new Refused(0, { error: 'unclear', message: text });

/** What was written as a size, in bytes; null for nothing. */
export function bytes(text) {
  if (text.trim() === '') return null;
  const [, number, unit] = /^(\d+) ?([KMGT]iB)$/.exec(text.trim()) ?? [];
  if (number === undefined) throw unclear(t('size.unclear', { text }));
  return Number(number) * 1024 ** (UNITS.indexOf(unit) + 1);
}

/** What was written as a number, in the field with this label. */
export function number(text, label) {
  const value = text.trim() === '' ? NaN : Number(text.trim().replace(',', '.'));
  if (!(value >= 0)) throw unclear(t('number.unclear', { text, label: t(label) }));
  return value;
}

/** A size as it can be written, in the largest unit that divides it; what is no whole number of KiB is rounded up. */
function written(value) {
  if (value === null) return '';
  const units = UNITS.map((unit, at) => [unit, 1024 ** (at + 1)]);
  const [unit, one] = units.reverse().find(([, each]) => value >= each && value % each === 0) ?? ['KiB', 1024];
  return `${Math.ceil(value / one)} ${unit}`;
}

export const sizeField = ({ value = null, ...more }) => field({ ...more, value: written(value) });
