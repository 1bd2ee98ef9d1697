import { appendFileSync } from 'node:fs';
import { toMinor } from '#libs/contracts/money.ts';

/**
 * What the clients know: each operation is written down before it is sent, each answer when it
 * came. The checker believes this and what it sees from outside, and nothing else.
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

/** One sending of an operation, and what came back. */
export interface Attempt {
  /** Milliseconds of performance.now. */
  sentAt: number;
  tookMs: number;
  gateway: string;
  /** The HTTP status, or what came in its place. */
  status: number | 'cut' | 'no answer';
  body: unknown;
  replayed: boolean;
  location?: string;
  /** Sent with another body under the same key: must be refused. */
  otherBody?: boolean;
}

/** How an operation moves a balance, in minor units: positive rises. */
export interface Effect {
  account: string;
  minor: number;
}

export interface Operation {
  key: string;
  kind: Kind;
  path: string;
  body: Record<string, unknown>;
  /** What it does when it is done; of an opening without the account, which has no id yet. */
  effects: Effect[];
  /** Of a batch: those of each item. */
  items?: Effect[][];
  /** Refusals that it may get. */
  deserves: string[];
  /** True where it must be refused. */
  mustFail?: boolean;
  attempts: Attempt[];
  /** Where it was answered 202: what GET says at each gateway, from Completed or Failed on. */
  outcomes: Map<string, Attempt>;
  /** What decided it: 2xx but 202, a refusal that stays, or the outcome that GET gave. */
  decided?: Attempt;
}

export interface Read {
  path: string;
  /** Whose balance it shows. */
  account?: string;
  /** A resource that was answered 202. */
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

  /** These were refused, and are not followed any more: that one of them was booked all the same is a finding. */
  forget(keys: ReadonlySet<string>): void {
    for (const key of keys) this.byKey.delete(key);
    this.operations.splice(0, this.operations.length, ...this.operations.filter(({ key }) => !keys.has(key)));
  }

  /** Before a request leaves. */
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

  /** What GET says of an operation that was answered 202. */
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

/** Where the outcome of an operation that was answered 202 is to be seen; undefined where it never was. */
export function pendingAt({ attempts }: Operation): string | undefined {
  return attempts.find(({ status }) => status === 202)?.location;
}

/** A Completed or Failed resource as the POST would have answered it. */
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

/** A batch that is not decided as a whole is answered 200 too: for whoever checks it is what 202 is of others. */
export function pendingAs202(attempt: Attempt): Attempt {
  const { batch_id, status } = (attempt.body as { data?: { batch_id?: string; status?: string } } | null)?.data ?? {};
  return attempt.status === 200 && batch_id !== undefined && status === 'Pending'
    ? { ...attempt, status: 202, location: `/batches/${batch_id}` }
    : attempt;
}

/** GET of a batch answers as POST does, and so it does for one that was refused. */
function batchAsAnswered(attempt: Attempt): Attempt | undefined {
  const seen = pendingAs202(attempt);
  return decides(seen) && seen.status !== 404 ? seen : undefined;
}

/** 2xx but 202, and refusals: 400, 404, 409, 422. Everything else leaves the outcome unknown. */
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

/** What an operation moved: of an opening its account's first balance. */
export function effectsOf(operation: Operation): Effect[] {
  if (operation.kind === 'batch') return effectsOfItems(operation);
  if (operation.kind !== 'open_account') return operation.effects;
  const account = accountOf(operation);
  const minor = minorUnits(operation.body['initial_deposit'], String(operation.body['currency']));
  return account === undefined || minor === 0 ? [] : [{ account, minor }];
}

/** Of the items that were booked; of all, while that is not known. */
function effectsOfItems({ items = [], effects, decided }: Operation): Effect[] {
  if (decided === undefined || !isDone(decided.status)) return effects;
  const { results } = (decided.body as { data: { results: { index: number; status: string }[] } }).data;
  return results.flatMap(({ index, status }) => (status === 'Completed' ? (items[index] ?? []) : []));
}

/** Minor units of an amount as it was sent or shown. */
export function minorUnits(amount: unknown, currency: string): number {
  return Number(toMinor(String(amount), currency));
}

/** The account that an opening has opened. */
export function accountOf({ kind, decided }: Operation): string | undefined {
  if (kind !== 'open_account') return undefined;
  return decided && isDone(decided.status)
    ? (decided.body as { data?: { account_id?: string } }).data?.account_id
    : undefined;
}

/** The code of an error body. */
export function codeOf({ body }: Attempt): string {
  return String((body as { code?: unknown } | null)?.code ?? '');
}

/** The id that an answer names: of what was created, or of the Failed transaction. */
export function idIn({ body }: Attempt): string | undefined {
  const whole = body as Record<string, unknown> | null;
  const data = (whole?.['data'] ?? whole?.['details'] ?? whole) as Record<string, unknown> | null;
  for (const field of ['batch_id', 'transfer_id', 'transaction_id', 'transition_id', 'account_id']) {
    const id = data?.[field];
    if (typeof id === 'string') return id;
  }
  return undefined;
}
