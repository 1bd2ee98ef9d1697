import type { Evidence } from './evidence.ts';
import { errorCode, listEffects, minorUnits, type Operation, openedAccount } from './journal.ts';

/** Checks balances in reads and refusals against the clients' knowledge at that moment. */

interface Move {
  minor: number;
  /** The earliest time of its effect, when it was sent. */
  from: number;
  /** The latest time of its effect, when it was acknowledged. */
  by: number;
}

const never = Number.POSITIVE_INFINITY;

/** I9: a balance includes all operations acknowledged before the request, and none that was sent after the response. */
export function readsNeverGoBack(evidence: Evidence): string[] {
  const bounds = createBounds(evidence);
  return evidence.reads.flatMap(({ path, account, attempt }) => {
    if (account === undefined || attempt.status !== 200) return [];
    const { balance, currency } = (attempt.body as { data: { balance: number; currency: string } }).data;
    const shown = minorUnits(balance, currency);
    const { low, high } = bounds(account, attempt.sentAt, attempt.sentAt + attempt.tookMs);
    return shown < low || shown > high
      ? [`I9: GET ${path} shows ${shown} minor units, where ${low} to ${high} can be`]
      : [];
  });
}

/** I4: no request is refused for funds that were available all the time. */
export function refusedForGoodReason(evidence: Evidence): string[] {
  const bounds = createBounds(evidence);
  return evidence.operations.flatMap((operation) => {
    const { decided, effects, key, kind, mustFail } = operation;
    const debit = effects.find(({ minor }) => minor < 0);
    if (
      !decided ||
      !debit ||
      decided.sentAt < evidence.t0 ||
      errorCode(decided) !== 'insufficient_funds' ||
      kind === 'reversal' ||
      mustFail
    )
      return [];
    const first = operation.attempts[0]?.sentAt ?? decided.sentAt;
    const { low } = bounds(debit.account, first, decided.sentAt + decided.tookMs);
    return low >= -debit.minor
      ? [`I4: ${kind} ${key} of ${-debit.minor} was refused for funds, where at least ${low} were there`]
      : [];
  });
}

/**
 * I5, freeze: from the response to a freeze until its end is requested, nothing is posted on the account. Only freezes
 * of this row count: one of an earlier row may have been repeated, but ended long ago.
 */
export function freezeHolds({ operations, journal, t0 }: Evidence): string[] {
  const statuses = journal.operations.filter(({ kind }) => kind === 'status');
  const spans = statuses.map((operation) => ({
    operation,
    from: operation.attempts[0]?.sentAt ?? 0,
    by: operation.decided ? operation.decided.sentAt + operation.decided.tookMs : never,
  }));
  const freezes = spans.filter(
    ({ operation, from, by }) => operation.body['status'] === 'Frozen' && from >= t0 && by !== never,
  );
  const thaws = spans.filter(({ operation }) => operation.body['status'] === 'Active');
  return freezes.flatMap((freeze) => {
    const account = freeze.operation.path.split('/')[2];
    const end = Math.min(
      ...thaws
        .filter(({ operation, by }) => operation.path === freeze.operation.path && by > freeze.from)
        .map(({ from }) => Math.max(from, freeze.from)),
    );
    return operations
      .filter((operation) => listEffects(operation).some((effect) => effect.account === account))
      .filter(
        ({ attempts, decided }) =>
          decided &&
          decided.status === 201 &&
          (attempts[0]?.sentAt ?? 0) > freeze.by &&
          decided.sentAt + decided.tookMs < end,
      )
      .map(
        ({ key, kind }) =>
          `I5: ${kind} ${key} was booked on ${account} while it was frozen (by ${freeze.operation.key})`,
      );
  });
}

/** Returns the lowest and highest possible balance of an account between two moments. */
function createBounds({
  operations,
  before,
  t0,
}: Evidence): (account: string, from: number, until: number) => { low: number; high: number } {
  const moves = new Map<string, Move[]>();
  for (const operation of operations)
    for (const { account, minor } of listEffects(operation)) push(moves, account, toMove(operation, minor, t0));
  const opened = new Set(operations.map(openedAccount));
  return (account, from, until) => {
    let low = before.get(account) ?? (opened.has(account) ? 0 : Number.NaN);
    let high = low;
    for (const move of moves.get(account) ?? []) {
      const has = move.by <= from;
      const may = move.from <= until;
      if (has || (may && move.minor < 0)) low += move.minor;
      if (has || (may && move.minor > 0)) high += move.minor;
    }
    return { low, high };
  };
}

/**
 * A refused operation has no effect. An operation that was completed before the row is included in the initial balance.
 */
function toMove(operation: Operation, minor: number, t0: number): Move | undefined {
  const { decided, attempts } = operation;
  if (decided && decided.status !== 200 && decided.status !== 201) return undefined;
  if (decided && decided.sentAt < t0) return undefined;
  return { minor, from: attempts[0]?.sentAt ?? 0, by: decided ? decided.sentAt + decided.tookMs : never };
}

function push(moves: Map<string, Move[]>, account: string, move: Move | undefined): void {
  if (move === undefined) return;
  const list = moves.get(account);
  if (list) list.push(move);
  else moves.set(account, [move]);
}
