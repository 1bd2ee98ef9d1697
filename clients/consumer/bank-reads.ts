import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type DayLine, dayClosingSchema, dayLineSchema } from '../../libs/contracts/days.ts';
import { entryLineSchema } from '../../libs/contracts/statements.ts';

/** What a reconciliation reads at the bank, with the global fetch. */

/** The bank's REST interface. The key needs the scopes `books:read` and `transactions:read`. */
export type BankAccess = { baseUrl: string } & ({ apiKey: string } | { token: string });

/** An entry as the bank has it. Amounts are decimal strings with all decimal places of the currency. */
export type BankEntry = z.infer<typeof bankEntry> & { account_number: string };
const bankEntry = entryLineSchema.extend({ effective_date: z.string(), transaction_type: z.string() });

/**
 * Why a day cannot be reconciled: the bank refused a request or did not answer (`refused`, `no_answer`), what it
 * returned is not what was closed (`not_as_closed`), or the store breaks a rule of its interface (`invalid_store`).
 */
export class ReconciliationError extends Error {
  override name = 'ReconciliationError';
  readonly code: 'refused' | 'no_answer' | 'not_as_closed' | 'invalid_store';

  constructor(code: ReconciliationError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

const answerWithinMs = 30_000;
const attempts = 5;
const firstPauseMs = 200;
const longestPauseMs = 10_000;
const longestLine = 65_536;

/** Reads the hash of a closed day; undefined if the day is not closed. */
export async function readClosingHash(bank: BankAccess, date: string): Promise<string | undefined> {
  const path = `/admin/day-closings/${encodeURIComponent(date)}`;
  const response = await get(bank, path, 'application/json', [200, 404]);
  const body = await readJson(path, response);
  if (response.status === 404) {
    // Any other 404 is not about the day: that of a wrong baseUrl, for example.
    if ((body as { code?: unknown }).code === 'day_not_found') return undefined;
    throw refused(path, response, body);
  }
  return parse(path, z.object({ data: dayClosingSchema.pick({ hash: true }) }), body).data.hash;
}

/**
 * Yields the lines of a closed day, by account_id, without keeping them. When all have been read, throws if their
 * SHA-256 is not `accounts_sha256`: what was concluded from them before is then worthless.
 */
export async function* readLines(
  bank: BankAccess,
  { date, accounts_sha256 }: { date: string; accounts_sha256: string },
): AsyncGenerator<DayLine, void> {
  const path = `/admin/day-closings/${encodeURIComponent(date)}/accounts`;
  const response = await get(bank, path, 'application/x-ndjson');
  const digest = createHash('sha256');
  const decoder = new TextDecoder();
  let rest = '';
  let count = 0;
  for await (const chunk of chunks(path, response)) {
    digest.update(chunk);
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield parse(`line ${++count} of ${path}`, dayLineSchema, toJson(line));
    if (rest.length > longestLine) throw notAsClosed(`line ${count + 1} of ${path} has no end`);
  }
  const sha256 = digest.digest('hex');
  if (sha256 !== accounts_sha256 || rest !== '')
    throw notAsClosed(
      `the ${count} lines of ${path} have the SHA-256 ${sha256}, and those that were closed ${accounts_sha256}`,
    );
}

/** Yields the entries of an account with that value date, in the order of their sequences, a page at a time. */
export async function* readEntries(bank: BankAccess, date: string, line: DayLine): AsyncGenerator<BankEntry, void> {
  const list = `/accounts/${encodeURIComponent(line.account_id)}/entries`;
  for (
    let path: string | undefined = `${list}?effective_from=${date}&effective_to=${date}&order=asc&limit=500`;
    path !== undefined;
  ) {
    const response: Response = await get(bank, path, 'application/json');
    const { data } = parse(path, z.object({ data: z.array(z.looseObject({})) }), await readJson(path, response));
    for (const entry of data) {
      const amounts = { amount: decimal(entry['amount'], line), balance_after: decimal(entry['balance_after'], line) };
      yield { ...parse(path, bankEntry, { ...entry, ...amounts }), account_number: line.account_number };
    }
    const next = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
    // The key goes only to baseUrl.
    const url = next === undefined ? undefined : new URL(next, 'http://bank.invalid');
    path = url && url.pathname.endsWith(list) ? `${list}${url.search}` : undefined;
  }
}

/** Formats an amount of REST, whose 15 digits a double has unchanged, with the decimal places of the line's amounts. */
function decimal(amount: unknown, { sum }: DayLine): unknown {
  return typeof amount === 'number' ? amount.toFixed(sum.split('.')[1]?.length ?? 0) : amount;
}

/** Requests until the bank answers, at most five times. Throws an error with the bank's own reason. */
async function get(bank: BankAccess, path: string, accept: string, expected = [200]): Promise<Response> {
  const credentials: Record<string, string> =
    'apiKey' in bank ? { 'x-api-key': bank.apiKey } : { authorization: `Bearer ${bank.token}` };
  for (let attempt = 1; ; attempt++) {
    const pauseMs = Math.min(firstPauseMs * 2 ** attempt, longestPauseMs);
    try {
      const response = await answered(bank.baseUrl.replace(/\/$/, '') + path, { accept, ...credentials });
      if (expected.includes(response.status)) return response;
      const mayRepeat = response.status === 429 || response.status >= 502;
      if (!mayRepeat || attempt === attempts) throw refused(path, response, await readJson(path, response));
      await response.body?.cancel();
      const wantedMs = Number(response.headers.get('retry-after') ?? 0) * 1_000;
      await sleep(Math.min(Math.max(pauseMs, wantedMs || 0), longestPauseMs));
    } catch (error) {
      if (error instanceof ReconciliationError) throw error;
      if (attempt === attempts) throw noAnswer(path, error);
      await sleep(pauseMs);
    }
  }
}

/** The time limit is for the headers; the body may be long. */
async function answered(url: string, headers: Record<string, string>): Promise<Response> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`no answer within ${answerWithinMs} ms`)), answerWithinMs);
  try {
    return await fetch(url, { headers, redirect: 'error', signal: limit.signal });
  } finally {
    clearTimeout(timer);
  }
}

/** Yields the body. Throws if nothing arrives for too long, or the connection breaks. */
async function* chunks(path: string, response: Response): AsyncGenerator<Uint8Array, void> {
  const reader = response.body?.getReader();
  if (!reader) return;
  let isDone = false;
  try {
    while (!isDone) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`nothing arrived for ${answerWithinMs} ms`)), answerWithinMs);
      });
      const read = await Promise.race([reader.read(), late])
        .catch((error: unknown) => Promise.reject(noAnswer(path, error)))
        .finally(() => clearTimeout(timer));
      isDone = read.done;
      if (read.value) yield read.value;
    }
  } finally {
    if (!isDone) void reader.cancel().catch(() => undefined);
  }
}

async function readJson(path: string, response: Response): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks(path, response)) text += decoder.decode(chunk, { stream: true });
  return toJson(text);
}

function refused(path: string, response: Response, body: unknown): ReconciliationError {
  const { code, message } = body as { code?: string; message?: string };
  return new ReconciliationError('refused', `GET ${path}: ${response.status} ${code ?? ''}: ${message ?? 'no reason'}`);
}

function noAnswer(path: string, error: unknown): ReconciliationError {
  const { message, cause } = error as Error;
  const reason = cause instanceof Error && cause.message !== '' ? cause.message : message;
  return new ReconciliationError('no_answer', `no answer to GET ${path}: ${reason}`, { cause: error });
}

export function notAsClosed(message: string): ReconciliationError {
  return new ReconciliationError('not_as_closed', message);
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

function parse<S extends z.ZodType>(what: string, schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw notAsClosed(`${what} is not as the contract says: ${z.prettifyError(parsed.error)}`);
}
