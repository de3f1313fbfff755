// The form for a new share: on a directory that is there, or in a pool.

import { get, post } from './api.js';
import { h } from './dom.js';
import * as format from './format.js';
import { dialog, field, tell, words } from './forms.js';
import * as live from './live.js';
import { bytes, sizeField } from './sizes.js';
import { t } from './texts.js';
import './share-texts.js';

/** A pool with what its shares may still be promised. */
function choice({ name, overcommit, capacity, promised }) {
  const isLimited = !overcommit && capacity !== null;
  return [name, isLimited ? t('share.pool-left', { name, size: format.bytes(Math.max(0, capacity - promised)) }) : name];
}

/** Where the share is: the fields of a directory, or of a pool, whichever is chosen. */
function places(pools) {
  const directory = field({ name: 'directory', label: t('share.directory'), hint: t('share.directory-hint'), required: true });
  if (!pools.length) return [directory];
  const size = sizeField({ name: 'size', label: t('share.size'), hint: t('size.hint'), required: true });
  size.hidden = true;
  const onchange = ({ target }) => [directory.hidden, size.hidden] = [target.value !== '', target.value === ''];
  const choices = [['', t('share.pool-none')], ...pools.filter(({ problem }) => problem === null).map(choice)];
  return [field({ name: 'pool', label: t('share.pool'), kind: 'choice', choices, onchange }), directory, size];
}

const placeOf = ({ pool, directory, size }) => (pool ? { pool, size: bytes(size) } : { directory: directory.trim() });

export async function create() {
  const { pools } = await get('/pools');
  dialog({
    title: t('share.create'), action: t('form.create'),
    fields: [
      field({ name: 'name', label: t('share.name'), required: true }),
      ...places(pools),
      field({ name: 'plan', label: t('share.plan'), hint: t('share.plan-hint'), value: 'unlimited', kind: 'area', rows: 2 }),
      field({ name: 'comment', label: t('share.comment') }),
      h('div', { class: 'checks' },
        field({ name: 'read_only', label: t('share.read-only'), kind: 'check' }),
        field({ name: 'encrypted', label: t('share.encrypted'), kind: 'check' }),
        field({ name: 'access_based_enumeration', label: t('share.abe'), kind: 'check' })),
    ],
    submit: async ({ plan, pool, directory, size, ...filled }) => {
      const made = await post('/shares', { ...filled, ...placeOf({ pool, directory, size }), ...(plan.trim() ? { plan: words(plan).join(' ') } : {}) });
      tell(t('share.created', { name: made.name }));
      live.ask();
    },
  });
}
