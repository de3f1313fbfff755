// Calls of the public API below /v1, and who is signed in.

/** Why a call was refused, in the words of the server. */
export class Refused extends Error {
  constructor(status, { error, message, advice = '' }) {
    super(message);
    this.status = status;
    this.kind = error;
    this.advice = advice;
  }
}

/** Who is signed in; null: nobody. */
export let me = null;

const SCOPES = ['read', 'shares', 'all'];

/** Whether the token allows what this scope is for. */
export const may = (scope) => me !== null && SCOPES.indexOf(me.scope) >= SCOPES.indexOf(scope);

export const path = (...parts) => parts.map((part) => `/${encodeURIComponent(part)}`).join('');

export const get = (where) => call('GET', where);
export const post = (where, body) => call('POST', where, body);
export const put = (where, body) => call('PUT', where, body);
export const change = (where, body) => call('PATCH', where, body);
export const remove = (where) => call('DELETE', where);

async function call(method, where, body) {
  const headers = {};
  if (me?.csrf) headers['X-CSRF-Token'] = me.csrf;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(`/v1${where}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refused(0, { error: 'no-answer', message: 'no-answer' });
  }
  const isJson = (response.headers.get('Content-Type') ?? '').startsWith('application/json');
  const answer = isJson ? await response.json() : { error: 'unclear', message: (await response.text()).trim() };
  if (response.ok) return answer;
  const refused = new Refused(response.status, answer);
  if (refused.kind === 'signed-out' || refused.kind === 'no-token') forget(false);
  throw refused;
}

function forget(isWanted) {
  if (me === null) return;
  me = null;
  window.dispatchEvent(new CustomEvent('signed-out', { detail: { isWanted } }));
}

/** Finds out who is signed in. */
export async function recognize() {
  try {
    me = await get('/sign-in');
  } catch (refused) {
    if (!(refused instanceof Refused) || refused.status === 0) throw refused;
    me = null;
  }
  return me;
}

export async function signIn(shown) {
  me = await post('/sign-in', shown);
  return me;
}

export async function signOut() {
  try {
    await remove('/sign-in');
  } finally {
    forget(true);
  }
}
