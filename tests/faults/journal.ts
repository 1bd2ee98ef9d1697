import { appendFileSync } from 'node:fs';
import { toMinor } from '#libs/contracts/money.ts';

/**
 * The clients' knowledge: each operation is recorded before it is sent, and each response when it arrives. The checker
 * uses only this and observations from outside.
 */
export type Kind =
  | 'open_account'
  | 'deposit'
  | 'withdrawal'
  | 'transfer'
  | 'reversal'
  | 'status'
  | 'patch'
  | 'hold'
  | 'capture'
  | 'release'
  | 'batch'
  | 'approved';

/** One attempt of an operation, and its response. */
export interface Attempt {
  /** In milliseconds of performance.now. */
  sentAt: number;
  tookMs: number;
  gateway: string;
  /** The HTTP status, or the failure instead of one. */
  status: number | 'cut' | 'no answer';
  body: unknown;
  replayed: boolean;
  location?: string;
  /** True if it was sent with another body under the same key, which must be refused. */
  otherBody?: boolean;
}

/** The change of a balance in minor units; positive numbers increase it. */
export interface Effect {
  account: string;
  minor: number;
}

export interface Operation {
  key: string;
  kind: Kind;
  path: string;
  body: Record<string, unknown>;
  /** Its effect when it is completed. The effect of an opening has no account id, which is not known yet. */
  effects: Effect[];
  /** The effects of each item of a batch. */
  items?: Effect[][];
  /** The refusals that it may get. */
  deserves: string[];
  /** True if it must be refused. */
  mustFail?: boolean;
  attempts: Attempt[];
  /** After a 202: the result of GET at each gateway, once it is Completed or Failed. */
  outcomes: Map<string, Attempt>;
  /** The response with the outcome: 2xx except 202, a final refusal, or the outcome that GET returned. */
  decided?: Attempt;
}

export interface Read {
  path: string;
  /** The account whose balance it shows. */
  account?: string;
  /** A resource whose response was 202. */
  pending?: boolean;
  attempt: Attempt;
}

export class Journal {
  readonly operations: Operation[] = [];
  readonly byKey = new Map<string, Operation>();
  readonly reads: Read[] = [];
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  begin(operation: Omit<Operation, 'attempts' | 'outcomes' | 'deserves'> & { deserves?: string[] }): Operation {
    const begun: Operation = { deserves: [], ...operation, attempts: [], outcomes: new Map() };
    this.operations.push(begun);
    this.byKey.set(begun.key, begun);
    return begun;
  }

  /** Refused operations that are no longer followed. A posting of one of them is a finding. */
  forget(keys: ReadonlySet<string>): void {
    for (const key of keys) this.byKey.delete(key);
    this.operations.splice(0, this.operations.length, ...this.operations.filter(({ key }) => !keys.has(key)));
  }

  /** Called before a request is sent. */
  sending(what: { key: string; path: string; body: unknown; gateway: string }): void {
    appendFileSync(this.#file, `${JSON.stringify({ at: new Date().toISOString(), send: what })}\n`);
  }

  answered(operation: Operation, attempt: Attempt): void {
    const { key } = operation;
    operation.attempts.push(attempt);
    if (!attempt.otherBody && operation.decided === undefined && decides(attempt)) operation.decided = attempt;
    const { status, tookMs, body, gateway } = attempt;
    appendFileSync(
      this.#file,
      `${JSON.stringify({ at: new Date().toISOString(), key, gateway, status, took_ms: Math.round(tookMs), body })}\n`,
    );
  }

  /** Records the result of GET for an operation whose response was 202. */
  asked(operation: Operation, attempt: Attempt): void {
    const outcome = operation.kind === 'batch' ? batchAsAnswered(attempt) : asAnswered(attempt);
    if (outcome === undefined) return;
    operation.outcomes.set(attempt.gateway, outcome);
    operation.decided ??= outcome;
    const { key, outcomes } = operation;
    appendFileSync(
      this.#file,
      `${JSON.stringify({ at: new Date().toISOString(), key, asked: [...outcomes.keys()], body: attempt.body })}\n`,
    );
  }
}

/** Returns the URL for the outcome of an operation whose response was 202, or undefined if there was none. */
export function pendingAt({ attempts }: Operation): string | undefined {
  return attempts.find(({ status }) => status === 202)?.location;
}

/** Converts a Completed or Failed resource to the response that POST would have returned. */
function asAnswered(attempt: Attempt): Attempt | undefined {
  if (attempt.status !== 200) return undefined;
  const { data } = attempt.body as { data: { status: string; failure_code?: string } };
  if (data.status === 'Completed') return { ...attempt, status: 201, body: data };
  if (data.status !== 'Failed') return undefined;
  return {
    ...attempt,
    status: data.failure_code === 'deadline_exceeded' ? 409 : 400,
    body: { code: data.failure_code, details: data },
  };
}

/** The response to a batch with undecided items is also 200. The checker treats it like a 202. */
export function pendingAs202(attempt: Attempt): Attempt {
  const { batch_id, status } = (attempt.body as { data?: { batch_id?: string; status?: string } } | null)?.data ?? {};
  return attempt.status === 200 && batch_id !== undefined && status === 'Pending'
    ? { ...attempt, status: 202, location: `/batches/${batch_id}` }
    : attempt;
}

/** GET of a batch returns the response of POST, also for a refused one. */
function batchAsAnswered(attempt: Attempt): Attempt | undefined {
  const seen = pendingAs202(attempt);
  return decides(seen) && seen.status !== 404 ? seen : undefined;
}

/**
 * Reports whether the response is an outcome: 2xx except 202, or a refusal (400, 404, 409, 422). After any other
 * response, the outcome is unknown.
 */
export function decides({ status }: Attempt): boolean {
  return (
    isDone(status) || (typeof status === 'number' && status >= 400 && status < 500 && status !== 429 && status !== 408)
  );
}

export function isDone(status: Attempt['status']): boolean {
  return status === 200 || status === 201;
}

export function done({ decided }: Operation): boolean {
  return decided !== undefined && isDone(decided.status);
}

/** Returns the effects of an operation. That of an opening is on the balance of the new account. */
export function listEffects(operation: Operation): Effect[] {
  if (operation.kind === 'batch') return effectsOfItems(operation);
  if (operation.kind !== 'open_account') return operation.effects;
  const account = openedAccount(operation);
  const minor = minorUnits(operation.body['initial_deposit'], String(operation.body['currency']));
  return account === undefined || minor === 0 ? [] : [{ account, minor }];
}

/** Returns the effects of the posted items, or of all items while their outcomes are unknown. */
function effectsOfItems({ items = [], effects, decided }: Operation): Effect[] {
  if (decided === undefined || !isDone(decided.status)) return effects;
  const { results } = (decided.body as { data: { results: { index: number; status: string }[] } }).data;
  return results.flatMap(({ index, status }) => (status === 'Completed' ? (items[index] ?? []) : []));
}

/** Returns the minor units of an amount in a request or response. */
export function minorUnits(amount: unknown, currency: string): number {
  return Number(toMinor(String(amount), currency));
}

/** Returns the account that an opening created. */
export function openedAccount({ kind, decided }: Operation): string | undefined {
  if (kind !== 'open_account') return undefined;
  return decided && isDone(decided.status)
    ? (decided.body as { data?: { account_id?: string } }).data?.account_id
    : undefined;
}

/** Returns the hold that an operation placed. */
export function placedHold({ kind, decided }: Operation): string | undefined {
  return kind === 'hold' && decided && isDone(decided.status)
    ? (decided.body as { data: { hold_id: string } }).data.hold_id
    : undefined;
}

/** Returns the code of an error body. */
export function errorCode({ body }: Attempt): string {
  return String((body as { code?: unknown } | null)?.code ?? '');
}

/** Returns the id in a response: of the created resource, or of the Failed transaction. */
export function idIn({ body }: Attempt): string | undefined {
  const whole = body as Record<string, unknown> | null;
  const data = (whole?.['data'] ?? whole?.['details'] ?? whole) as Record<string, unknown> | null;
  for (const field of ['batch_id', 'transfer_id', 'transaction_id', 'transition_id', 'account_id']) {
    const id = data?.[field];
    if (typeof id === 'string') return id;
  }
  return undefined;
}
