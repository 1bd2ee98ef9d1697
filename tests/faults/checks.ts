import { isDeepStrictEqual } from 'node:util';
import { freezeHolds, readsNeverGoBack, refusedForGoodReason } from './check-reads.ts';
import type { Evidence, LedgerTransaction } from './evidence.ts';
import {
  type Attempt,
  decides,
  done,
  errorCode,
  idIn,
  isDone,
  listEffects,
  type Operation,
  pendingAt,
} from './journal.ts';

/** The invariants that need only the collected evidence. Each function returns its findings. */

const signed = ({ direction, amount_minor }: LedgerTransaction): number =>
  (direction === 'credit' ? 1 : -1) * Number(amount_minor);

/**
 * I3: each 2xx operation exists once, as requested. I4: no refused one exists. I5: none is lost or
 * remains open.
 */
export function eachOperationOnce({ operations, transactions, t0 }: Evidence): string[] {
  const byKey = Map.groupBy(transactions, ({ idempotency_key }) => idempotency_key ?? '');
  const failed = new Set(
    transactions.filter(({ status }) => status === 'Failed').map(({ transaction_id }) => transaction_id),
  );
  return operations.flatMap((operation) => {
    const { key, kind, decided } = operation;
    const booked = (byKey.get(key) ?? []).filter(({ status }) => status === 'Completed');
    const say = (rule: string) =>
      `${rule} (${kind} ${key}, ${decided ? `answered ${decided.status} ${idIn(decided) ?? errorCode(decided)}` : 'no outcome'})`;
    if (decided === undefined && pendingAt(operation) === undefined)
      return [say('I5: repeated, and still without an outcome')];
    if (decided === undefined) return [say('I5: LOST: answered 202, and never Completed or Failed')];
    const operationIds = new Set(booked.map(({ operation_id }) => operation_id));
    if (operationIds.size > 1 && kind !== 'batch')
      return [say(`I5: DOUBLED: booked as ${[...operationIds].join(', ')}`)];
    if (!isDone(decided.status)) {
      if (booked.length > 0) return [say(`I4: refused, and booked as ${booked[0]?.transaction_id}`)];
      const kept = (decided.body as { details?: { transaction_id?: string } }).details?.transaction_id;
      return decided.status === 400 &&
        kept !== undefined &&
        errorCode(decided) !== 'already_reversed' &&
        decided.sentAt >= t0 &&
        !failed.has(kept)
        ? [say('I4: its Failed transaction is not kept')]
        : [];
    }
    if (!isNamedAsAsked(operation)) return [say('I3: named otherwise than it was asked for')];
    return isAsAsked(operation, booked)
      ? []
      : [
          say(
            `I3: ${booked.length === 0 ? 'LOST' : 'booked otherwise'}: the ledger has ${JSON.stringify(booked.map((row) => [row.account_id, signed(row)]))}`,
          ),
        ];
  });
}

/**
 * I5: after a 202 there is one outcome, the same at both gateways and in every response to a
 * repeat.
 */
export function oneOutcomeEverywhere({ operations, cluster }: Evidence): string[] {
  return operations.flatMap((operation) => {
    const { key, kind, decided, outcomes, attempts } = operation;
    if (pendingAt(operation) === undefined || decided === undefined) return [];
    const ignorant = cluster.gateways.filter(({ name }) => !outcomes.has(name));
    const seen = [...outcomes.values(), ...attempts.filter((attempt) => !attempt.otherBody && decides(attempt))];
    const texts = new Set(
      seen.map((attempt) => (isDone(attempt.status) ? `Completed ${idIn(attempt)}` : errorCode(attempt))),
    );
    return [
      ...ignorant.map(
        ({ name }) => `I5: LOST at ${name}: ${kind} ${key} was answered 202, and GET does not show its outcome there`,
      ),
      ...(texts.size > 1
        ? [`I5: ${kind} ${key} was answered 202, and has the outcomes ${[...texts].join(' | ')}`]
        : []),
    ];
  });
}

function isNamedAsAsked({ body, decided }: Operation): boolean {
  const shown = decided?.body as { data?: object } | undefined;
  const { external_id, metadata } = { ...(shown?.data ?? shown) } as Record<string, unknown>;
  return body['external_id'] === external_id && isDeepStrictEqual(body['metadata'], metadata);
}

function isAsAsked(operation: Operation, booked: LedgerTransaction[]): boolean {
  const text = (effects: { account: string; minor: number }[]) =>
    effects
      .map(({ account, minor }) => `${account} ${minor}`)
      .sort()
      .join();
  return text(listEffects(operation)) === text(booked.map((row) => ({ account: row.account_id, minor: signed(row) })));
}

/** I3 and I5, checked by another method: the responses add up to the balances, and nothing else was posted. */
export function nothingElseBooked({ operations, transactions, journal, before, after, t0 }: Evidence): string[] {
  const strange = transactions.filter(
    ({ idempotency_key }) => idempotency_key === null || !journal.byKey.has(idempotency_key),
  );
  const findings = strange
    .slice(0, 10)
    .map(({ transaction_id }) => `I5: ${transaction_id} is booked, and nobody has asked for it`);
  const expected = new Map(before);
  for (const operation of operations) {
    if (!done(operation) || (operation.decided as Attempt).sentAt < t0) continue;
    if (operation.kind === 'open_account') {
      const account = idIn(operation.decided as Attempt) ?? '';
      expected.set(account, expected.get(account) ?? 0);
    }
    for (const { account, minor } of listEffects(operation))
      expected.set(account, (expected.get(account) ?? 0) + minor);
  }
  for (const [account, minor] of after) {
    const due = expected.get(account);
    if (due === undefined) findings.push(`I5: ${account} exists, but no response reported its opening`);
    else if (due !== minor)
      findings.push(`I3: ${account} has ${minor} minor units, but the responses add up to ${due}`);
  }
  for (const account of expected.keys())
    if (!after.has(account)) findings.push(`I3: ${account} was opened, and is not there`);
  return findings;
}

/**
 * I6: no read showed a customer's balance below zero (entries and events are checked elsewhere).
 */
function noReadBelowZero({ reads }: Evidence): string[] {
  return reads.flatMap(({ path, attempt }) => {
    const balance = balanceIn(attempt);
    return balance !== undefined && balance < 0 ? [`I6: GET ${path} shows ${balance}`] : [];
  });
}

/** I8: the same key gets the same response. With another body it is refused. */
export function sameKeySameAnswer({ operations, attempts, cluster }: Evidence): string[] {
  const findings = operations.flatMap((operation) => {
    const answers =
      operation.kind === 'patch' ? [] : operation.attempts.filter((attempt) => !attempt.otherBody && decides(attempt));
    const texts = new Set(answers.map((answer) => stable(answer, cluster)));
    return texts.size > 1
      ? [`I8: ${operation.kind} ${operation.key} was answered differently: ${[...texts].join(' | ')}`]
      : [];
  });
  for (const { operation, attempt } of attempts) {
    // While the outcome cannot be queried, it cannot be compared either: the first response is a 202, and a later one
    // the refusal.
    if (attempt.otherBody && decides(attempt) && attempt.status !== 422)
      findings.push(`I8: ${operation.key} with another body was answered ${attempt.status}`);
  }
  return findings;
}

/**
 * I8: a response is marked as a replay if and only if it is one. Under a fault the bank may have
 * repeated the command itself.
 */
function repeatsSaySo({ attempts, fault }: Evidence): string[] {
  const keyed = attempts.filter(
    ({ operation, attempt }) => operation.kind !== 'patch' && !attempt.otherBody && decides(attempt),
  );
  const wrong = keyed.filter(({ operation: { decided, attempts: all }, attempt }) => {
    const isRepeat = decided !== undefined && attempt.sentAt >= decided.sentAt + decided.tookMs;
    return (isRepeat && !attempt.replayed) || (attempt.replayed && all.length === 1 && isCalm(attempt, fault));
  });
  return wrong.map(
    ({ operation: { kind, key }, attempt: { status, replayed } }) =>
      `I8: ${kind} ${key} was answered ${status} with Idempotent-Replayed: ${replayed}`,
  );
}

/** Returns a response without the fields that differ per response. After a restore, holds were changed at other times. */
function stable({ status, body }: Attempt, { isRestored }: Evidence['cluster']): string {
  const { request_id: _, ...rest } = body as Record<string, unknown>;
  return `${status} ${JSON.stringify(rest, (name, value: unknown) => (isRestored && name === 'updated_at' ? undefined : value))}`;
}

/**
 * I10: responses are in time, in the error format, and with only the statuses that this fault
 * allows, until everything must be normal again.
 */
function callersSeeWhatTheyMay({ row, attempts, reads, slowness, fault }: Evidence): string[] {
  const all = [
    ...attempts.map(({ operation, attempt }) => ({
      what: `${operation.kind} ${operation.key}`,
      attempt,
      deserves: deservedBy(operation, attempt),
      mustFail: operation.mustFail,
      read: undefined,
    })),
    ...reads.map((read) => ({
      what: `GET ${read.path}`,
      attempt: read.attempt,
      deserves: read.path.startsWith('/batches/') ? ['batch_refused', 'deadline_exceeded'] : [],
      mustFail: false,
      read,
    })),
  ];
  return all.flatMap(({ what, attempt, deserves, mustFail, read }) => {
    const { status, tookMs, gateway, body } = attempt;
    const calm = isCalm(attempt, fault);
    const findings: string[] = [];
    const seen = `${what} through ${gateway} after ${Math.round(tookMs)} ms: ${status} ${errorCode(attempt)}`;
    if (gateway === row.frozen && (status === 'no answer' || tookMs > replyWaitMs)) return findings;
    if (tookMs > replyWaitMs + marginMs * slowness) findings.push(`I10: too late: ${seen}`);
    if (status === 'cut' || status === 'no answer') {
      if (calm || status === 'no answer' || row.callers !== 'cut') findings.push(`I10: ${seen} ${String(body)}`);
      return findings;
    }
    if (status >= 400 && !isErrorForm(body))
      findings.push(`I10: not in the error form: ${seen} ${JSON.stringify(body)}`);
    if (isDone(status) && mustFail) findings.push(`I10: accepted: ${seen}`);
    if (isDone(status) || deserves.includes(errorCode(attempt))) return findings;
    const underFault =
      status === 202 ||
      status === 503 ||
      status === 504 ||
      (status === 409 && errorCode(attempt) === 'deadline_exceeded') ||
      (status === 429 && row.touches.includes('load'));
    const isAllowed = row.callers === 'nothing' ? status === 202 : underFault;
    if (calm || !isAllowed)
      findings.push(`I10: ${whyNot(status, read !== undefined, calm)}: ${seen} ${JSON.stringify(body)}`);
    return findings;
  });
}

/** Reports whether there was no fault during this request. */
const isCalm = ({ sentAt, tookMs }: Attempt, fault: Evidence['fault']): boolean =>
  sentAt + tookMs < fault.from || sentAt > fault.until;

/**
 * Returns the refusals that this attempt may get. A repeat may get the refusal of the first attempt, and an operation
 * that a fault delayed may get deadline_exceeded.
 */
function deservedBy({ deserves, decided, attempts }: Operation, attempt: Attempt): string[] {
  if (attempt.otherBody) return ['idempotency_key_reused'];
  const isLate = attempts.some(({ status }) => typeof status !== 'number' || status === 202 || status >= 500);
  const isRepeat = decided !== undefined && decided !== attempt && !isDone(decided.status);
  return [...deserves, ...(isLate ? ['deadline_exceeded'] : []), ...(isRepeat ? [errorCode(decided)] : [])];
}

function whyNot(status: Attempt['status'], isRead: boolean, calm: boolean): string {
  if (isRead && status === 404) return 'not found';
  return calm ? 'undeserved while nothing is wrong' : 'undeserved';
}

/** The reply timeout plus one second (contract: idempotency-15). */
const replyWaitMs = 5_000;
const marginMs = 1_000;

function isErrorForm(body: unknown): boolean {
  const error = body as Record<string, unknown> | null;
  return (
    error?.['status'] === 'error' &&
    ['message', 'code', 'request_id'].every((field) => typeof error[field] === 'string')
  );
}

function balanceIn({ status, body }: Attempt): number | undefined {
  return status === 200 ? (body as { data?: { balance?: number } }).data?.balance : undefined;
}

/** The checks of each row, besides those in check-outside.ts. */
export const evidenceRules = [
  eachOperationOnce,
  oneOutcomeEverywhere,
  nothingElseBooked,
  noReadBelowZero,
  sameKeySameAnswer,
  repeatsSaySo,
  callersSeeWhatTheyMay,
  readsNeverGoBack,
  refusedForGoodReason,
  freezeHolds,
];
