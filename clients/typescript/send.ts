import type { TokenProvider } from './credentials.ts';
import { BankError, NoAnswerError } from './errors.ts';
import type { ErrorBody } from './operations.ts';

/** Sends a request, with as many attempts as necessary. */

export interface Request {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Including the query. */
  path: string;
  body?: string;
  idempotencyKey?: string;
  ifMatch?: string;
  /** The media type of the requested page or file, instead of JSON. */
  accept?: string;
  /** The body is not read: the answer has it as a ReadableStream. */
  isStream?: boolean;
}

/** The time limit of a call. `endsAt` refers to performance.now(). */
export interface Patience {
  endsAt: number;
  signal: AbortSignal | undefined;
}

export interface Answer {
  status: number;
  body: unknown;
  headers: Headers;
}

/** The part of the global fetch that is used; `body` is required for files of any length. Rejects with a TypeError, or the reason of the signal, if there is no response. */
export type Fetch = (
  url: string,
  request: {
    method: string;
    headers: Record<string, string>;
    body: string | null;
    redirect: 'error';
    signal: AbortSignal;
  },
) => Promise<Pick<Response, 'ok' | 'status' | 'headers' | 'text'> & { body?: Response['body'] }>;

export interface Sender {
  baseUrl: string;
  credentials: { apiKey: string } | { token: string | TokenProvider };
  attempts: number;
  attemptTimeoutMs: number;
  fetch: Fetch | undefined;
  /** Parses a response. Default: JSON.parse. */
  parse?: ((text: string) => unknown) | undefined;
}

const firstWaitMs = 100;
const longestWaitMs = 5_000;

/**
 * Returns the bank's response to a successful request. Repeats requests without a response, and those
 * that the bank allows to be repeated, always with the same Idempotency-Key: after the pause that the
 * bank requests, otherwise after a random, increasing one. Throws a BankError or NoAnswerError, or
 * the signal's reason.
 */
export async function send(sender: Sender, request: Request, patience: Patience): Promise<Answer> {
  let renew = false;
  for (let attempt = 1; ; attempt++) {
    const outcome = await tryOnce(sender, request, patience, renew);
    if (!(outcome instanceof Error)) return outcome;
    const refused = outcome instanceof BankError && outcome.code === 'invalid_credentials';
    const mayRenew: boolean =
      refused && !renew && 'token' in sender.credentials && typeof sender.credentials.token === 'function';
    renew = mayRenew;
    const waitMs = mayRenew ? 0 : repeatAfter(outcome, request, attempt);
    if (waitMs === undefined || attempt >= sender.attempts || performance.now() + waitMs >= patience.endsAt)
      throw outcome;
    await pause(waitMs, patience.signal);
  }
}

/**
 * One attempt. Errors are returned for a decision about a repeat; only an abort by the caller, and
 * errors that no repeat can remedy, are thrown.
 */
async function tryOnce(
  // In a browser, fetch must not be called as a method of another object.
  { fetch = globalThis.fetch, baseUrl, credentials, attemptTimeoutMs, parse = JSON.parse }: Sender,
  { method, path, body, idempotencyKey, ifMatch, accept, isStream }: Request,
  { endsAt, signal }: Patience,
  renew: boolean,
): Promise<Answer | BankError | NoAnswerError> {
  const limit = new AbortController();
  const timer = setTimeout(
    () => limit.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
    Math.max(1, Math.min(attemptTimeoutMs, Math.ceil(endsAt - performance.now()))),
  );
  try {
    const headers = {
      ...(await credentialHeader(credentials, renew)),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
      ...(accept === undefined ? {} : { accept }),
    };
    const response = await fetch(baseUrl + path, {
      method,
      headers,
      body: body ?? null,
      redirect: 'error',
      signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
    });
    if (response.ok && isStream === true)
      return { status: response.status, body: response.body, headers: response.headers };
    if (response.ok && accept !== undefined)
      return { status: response.status, body: await response.text(), headers: response.headers };
    const answer = parsed(await response.text(), parse);
    if (response.ok && answer !== undefined)
      return { status: response.status, body: answer, headers: response.headers };
    if (!isErrorBody(answer))
      return new NoAnswerError(`${baseUrl} answered ${response.status}, but not as the bank does`, {
        idempotencyKey,
      });
    return new BankError(response.status, answer, retryAfterMs(response.headers), idempotencyKey);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof TypeError || error instanceof DOMException)
      return new NoAnswerError(`no answer from ${baseUrl}: ${failureReason(error)}`, {
        cause: error,
        idempotencyKey,
      });
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function credentialHeader(credentials: Sender['credentials'], renew: boolean): Promise<Record<string, string>> {
  if ('apiKey' in credentials) return { 'x-api-key': credentials.apiKey };
  const { token } = credentials;
  return { authorization: `Bearer ${typeof token === 'string' ? token : await token(renew)}` };
}

function parsed(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function isErrorBody(body: unknown): body is ErrorBody {
  return (
    typeof body === 'object' && body !== null && 'code' in body && typeof body.code === 'string' && 'message' in body
  );
}

/** The cause of an error of Node's fetch is more specific than its message. */
export function failureReason({ message, cause }: TypeError | DOMException): string {
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}

/** The pause before the request is repeated, in ms; undefined if it must not be repeated. */
function repeatAfter(
  outcome: BankError | NoAnswerError,
  { method, ifMatch }: Request,
  attempt: number,
): number | undefined {
  const status = outcome instanceof BankError ? outcome.status : 0;
  // If nothing was executed, any request may be repeated. Otherwise a PATCH or PUT, which has no key, could
  // undo changes that others made meanwhile, unless it states the version to change.
  const mayRepeat =
    status === 408 ||
    status === 429 ||
    status === 503 ||
    ((method === 'PATCH' ? (ifMatch ?? '*').trim() !== '*' : method !== 'DELETE' && method !== 'PUT') &&
      (status === 0 || status === 504));
  if (!mayRepeat) return undefined;
  const grown = Math.min(longestWaitMs, firstWaitMs * 2 ** attempt) * (0.5 + Math.random() / 2);
  return Math.max(grown, outcome instanceof BankError ? (outcome.retryAfterMs ?? 0) : 0);
}

/** The value of Retry-After in ms; it may also be a date. */
export function retryAfterMs(headers: Headers): number | undefined {
  const text = headers.get('retry-after');
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Resolves after `ms`; rejects with the signal's reason when it is aborted. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

/** The path and query of a URL from the bank: requests, and so credentials, go only to `baseUrl`. */
export function pathAndQuery(url: string): string {
  const { pathname, search } = new URL(url, 'http://bank.invalid');
  return pathname + search;
}
