import type { CallOptions } from './call.ts';
import type { TokenProvider } from './credentials.ts';
import { ApprovalNeededError, BankError, NoAnswerError } from './errors.ts';
import { createLines, readFile } from './lines.ts';
import type { Approval, Calls, Operation } from './operations.ts';
import { operations } from './operations.ts';
import { createPages } from './pages.ts';
import type { Answer, Fetch, Patience, Request, Sender } from './send.ts';
import { pathAndQuery, pause, retryAfterMs, send } from './send.ts';

/**
 * One call per operation of the bank. Amounts are JSON numbers. Those of postings and of accounts of clients have at most 15
 * digits, which a double represents without loss. Sums may have more (Teller and Vault, trial balance, totals of a day or
 * of postings): a `parse` that keeps the text shows them exactly. Do not add up amounts as doubles: ask the bank.
 */
export type Bank = Calls;

export type BankOptions = {
  /** Base URL, such as https://bank.example. */
  baseUrl: string;
  /** Maximum duration of a call in ms, including all attempts and pauses. Default: 60,000. */
  deadlineMs?: number;
  /** Maximum number of attempts. Default: 5. */
  attempts?: number;
  /** Timeout of one attempt in ms. Default: 15,000. The bank itself responds within 5 s. */
  attemptTimeoutMs?: number;
  /** Sends the requests, for example through a proxy. Default: the global fetch. */
  fetch?: Fetch;
  /** Parses the body of a response. Default: JSON.parse. */
  parse?: (text: string) => unknown;
} & ({ apiKey: string } | { token: string | TokenProvider });

/**
 * A client of the bank. Its calls reject with a BankError, an ApprovalNeededError, a NoAnswerError,
 * or the reason of their signal.
 */
export function createBank(options: BankOptions): Bank {
  const {
    baseUrl: url,
    fetch,
    parse,
    attempts = 5,
    attemptTimeoutMs = 15_000,
    deadlineMs = 60_000,
    ...credentials
  } = options;
  const baseUrl = new URL(url).href.replace(/\/$/, '');
  const sender: Sender = { baseUrl, credentials, attempts, attemptTimeoutMs, fetch, parse };
  const toPatience = (call: CallOptions): Patience => ({
    endsAt: performance.now() + (call.deadlineMs ?? deadlineMs),
    signal: call.signal,
  });
  const createCall =
    (operation: Operation) =>
    (input: Input = {}, call: CallOptions = {}) => {
      const request = buildRequest(operation, input, call);
      if (operation.form !== undefined) {
        const asked = { ...request, accept: operation.form };
        if (operation.stream) return readFile(sender, asked, toPatience(call), call.onHeaders);
        return text(sender, asked, toPatience(call), call.onHeaders);
      }
      if (operation.stream) return createLines(sender, request, () => toPatience(call), call.onHeaders);
      if (operation.paged === undefined) return one(sender, operation, request, toPatience(call), call.onHeaders);
      const readItems = ({ body }: Answer) =>
        (operation.paged === 'items' ? unwrapData(body) : [unwrapData(body)]) as unknown[];
      return createPages(request.path, (path) => send(sender, { ...request, path }, toPatience(call)), readItems);
    };
  return Object.fromEntries(
    Object.entries(operations).map(([name, operation]) => [name, createCall(operation)]),
  ) as unknown as Bank;
}

type Input = Record<string, unknown>;

/** Fields named in the path are put there, the others into the query of a GET or the body. */
function buildRequest(
  { method, path: template }: Operation,
  input: Input,
  { idempotencyKey, ifMatch }: CallOptions,
): Request {
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const path = template.replace(/:(\w+)/g, (_, name: string) => {
    const value = String(rest.get(name) ?? '');
    rest.delete(name);
    // It would change the path.
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`${name} is missing`);
    return encodeURIComponent(value);
  });
  if (method === 'GET') {
    const query = new URLSearchParams([...rest].flatMap(([name, value]) => parameters(name, value)));
    return { method, path: rest.size === 0 ? path : `${path}?${query}` };
  }
  const body = JSON.stringify(Object.fromEntries(rest));
  const condition = ifMatch === undefined ? {} : { ifMatch };
  if (method === 'PATCH') return { method, path, body, ...condition };
  if (method === 'PUT') return { method, path, body };
  if (method === 'DELETE') return { method, path };
  const key = idempotencyKey ?? newKey();
  if (!/^[\x20-\x7e]{1,255}$/.test(key))
    throw new TypeError('idempotencyKey must have 1 to 255 printable ASCII characters');
  return { method, path, body, idempotencyKey: key, ...condition };
}

/** The parameters of a filter: an object has one per key. */
const parameters = (name: string, value: unknown): [string, string][] =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.entries(value).map(([key, item]) => [`${name}.${key}`, String(item)])
    : [[name, String(value)]];

/** 128 random bits; browsers provide crypto.randomUUID only in secure contexts. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The resource, extracted from `{status, data}` if it is in one. */
function unwrapData(body: unknown): unknown {
  return (body as { data: unknown }).data;
}

async function one(
  sender: Sender,
  operation: Operation,
  request: Request,
  patience: Patience,
  onHeaders?: CallOptions['onHeaders'],
): Promise<unknown> {
  let answer = await send(sender, request, patience);
  onHeaders?.(answer.headers);
  if (operation.feed) return { data: unwrapData(answer.body), cursor: (answer.body as { cursor: string }).cursor };
  if (answer.status !== 202) return operation.bare ? answer.body : unwrapData(answer.body);
  const approval = approvalIn(answer.body);
  if (approval) throw new ApprovalNeededError(approval, request.idempotencyKey);
  const pending = operation.bare ? answer.body : unwrapData(answer.body);
  const location = pathAndQuery(answer.headers.get('location') ?? '');
  while (answer.status === 202) {
    const waitMs = retryAfterMs(answer.headers) ?? 1000;
    if (performance.now() + waitMs >= patience.endsAt)
      throw new NoAnswerError('the bank took the request, its outcome is not known yet', {
        idempotencyKey: request.idempotencyKey,
        pending,
      });
    await pause(waitMs, patience.signal);
    const resource = await lookUp(sender, location, patience);
    if (resource?.status === 'Completed') return resource;
    // A repeat gets the outcome of the first request, including a refusal with its code, even for
    // callers without permission to read.
    if (resource?.status !== 'Pending') answer = await send(sender, request, patience);
  }
  return operation.bare ? answer.body : unwrapData(answer.body);
}

async function text(sender: Sender, request: Request, patience: Patience, onHeaders?: CallOptions['onHeaders']) {
  const { body, headers } = await send(sender, request, patience);
  onHeaders?.(headers);
  return body;
}

/** The content of a 202 for a request that a second person must approve. */
function approvalIn(body: unknown): Approval | undefined {
  const data = unwrapData(body);
  return typeof data === 'object' && data !== null && 'approval_id' in data ? (data as Approval) : undefined;
}

/**
 * The current resource, Pending if its outcome is not known yet; undefined for a caller that may
 * write but not read.
 */
async function lookUp(sender: Sender, path: string, patience: Patience): Promise<{ status: string } | undefined> {
  try {
    return unwrapData((await send({ ...sender, attempts: 1 }, { method: 'GET', path }, patience)).body) as {
      status: string;
    };
  } catch (error) {
    if (error instanceof BankError && error.code === 'insufficient_scope') return undefined;
    if (error instanceof NoAnswerError || (error instanceof BankError && (error.status === 429 || error.status >= 500)))
      return { status: 'Pending' };
    throw error;
  }
}
