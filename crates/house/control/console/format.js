// Figures for people.

import { locale } from './texts.js';

const number = (value, digits) => new Intl.NumberFormat(locale, { maximumFractionDigits: digits }).format(value);

const digitsOf = (value) => (value >= 100 ? 0 : value >= 10 ? 1 : 2);

export const count = (value) => number(value, 0);

export const rate = (value) => number(value, value >= 100 ? 0 : 1);

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(value) {
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${number(value, unit === 0 ? 0 : digitsOf(value))} ${UNITS[unit]}`;
}

export const throughput = (value) => `${bytes(value)}/s`;

export function latency(seconds) {
  if (seconds === null || Number.isNaN(seconds)) return '–';
  if (seconds < 0.001) return `${number(seconds * 1e6, 0)} µs`;
  if (seconds < 1) return `${number(seconds * 1e3, digitsOf(seconds * 1e3))} ms`;
  return `${number(seconds, digitsOf(seconds))} s`;
}

export function duration(seconds) {
  if (seconds < 60) return `${count(seconds)} s`;
  if (seconds < 3600) return `${count(Math.floor(seconds / 60))} min`;
  if (seconds < 86400) return `${count(Math.floor(seconds / 3600))} h ${count(Math.floor((seconds % 3600) / 60))} min`;
  return `${count(Math.floor(seconds / 86400))} d ${count(Math.floor((seconds % 86400) / 3600))} h`;
}

export const percent = (part) => `${number(part * 100, part < 0.1 ? 1 : 0)} %`;

export const date = (seconds) =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(seconds * 1000));
