import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { invalidField, type Refusal, refusal } from '#libs/contracts/errors.ts';
import { holdLifetimeMs, maxActiveHolds, maxHoldLifetimeMs } from '#libs/contracts/holds.ts';
import { fromMinor, toMinor } from '#libs/contracts/money.ts';
import {
  accountNotFound,
  badAmount,
  customer,
  deadlineExceeded,
  inactive,
  misdated,
  onLoan,
  otherCurrency,
  pastDeadline,
  withoutFunds,
} from './checks.ts';
import {
  availableOn,
  type Books,
  type CommandOf,
  type Decision,
  draftTransaction,
  fail,
  type HoldChange,
  replyOnly,
  storeReply,
} from './decision.ts';
import { waitsIfNeeded } from './four-eyes.ts';
import { beyondLimits } from './limits.ts';
import { moveBetween, moveCash, payout } from './movement.ts';
import { type AccountState, type Failure, type HoldState, toHold, toTransaction, toTransfer } from './records.ts';

/**
 * Places, captures, releases, and expires holds. Each account contains the total of its holds, so that postings
 * need not read them. Pure.
 */

/** Returns the amount that is still held. */
function remainingMinor(hold: HoldState): bigint {
  return hold.amount_minor - hold.captured_minor;
}

function timeAfter(time: string, ms: number): string {
  return new Date(Date.parse(time) + ms).toISOString();
}

function holdNotFound(holdId: string): Refusal {
  return refusal('hold_not_found', `hold ${holdId} not found`);
}

function tooMany({ account_id, active_holds }: AccountState): Refusal | undefined {
  if (active_holds < maxActiveHolds) return undefined;
  return refusal('too_many_holds', `account ${account_id} has ${maxActiveHolds} Active holds, and cannot have more`);
}

function notActive(hold: HoldState): Failure | undefined {
  return hold.status === 'Active' ? undefined : refusal('hold_not_active', `hold ${hold.hold_id} is ${hold.status}`);
}

/** The part of the books that a change of a hold updates. */
type HoldBooks = Pick<Books, 'changedHolds' | 'heldAmountChanged'>;

/** Records a change, so that the batch writes the hold and its account. */
function noteChange(kind: HoldChange['kind'], hold: HoldState, account: AccountState, books: HoldBooks): HoldChange {
  if (account.held_minor === 0n) account.hold_expires_at = null;
  account.hold_version += 1n;
  if (kind === 'placed') account.active_holds += 1n;
  else if (hold.status !== 'Active') account.active_holds -= 1n;
  books.changedHolds.add(hold);
  books.heldAmountChanged.add(account);
  return { kind, hold: { ...hold }, hold_version: account.hold_version };
}

export function placeHold({ data, context }: CommandOf<'place_hold'>, books: Books): Decision {
  const refuse = (reason: Refusal) => storeReply(refused(reason));
  const { account_id, hold_id, description, reference, external_id = null, metadata = null } = data;
  const expires_at = data.expires_at ?? timeAfter(context.time, holdLifetimeMs);
  const account = customer(books, account_id, context.bound_client_id);
  if (account === undefined) return refuse(accountNotFound(account_id));
  if (pastDeadline(context, books)) return refuse(deadlineExceeded());
  const currency = data.currency ?? account.currency;
  const minor = toMinor(data.amount, currency);
  if (typeof minor !== 'bigint') return refuse(badAmount(minor, currency));
  // A validation error is not kept. Repeats of this message are refused again, because both conditions remain true.
  if (expires_at <= books.now || expires_at > timeAfter(context.time, maxHoldLifetimeMs))
    return replyOnly(
      refused(invalidField('expires_at', 'expires_at must be in the future, and at most 31 days ahead')),
    );
  const reason =
    onLoan(account, 'a hold is not possible on a Loan account') ??
    inactive(account) ??
    otherCurrency(account, currency) ??
    tooMany(account) ??
    beyondLimits(account, minor, 'hold', context, books) ??
    withoutFunds(account, minor, 'hold');
  if (reason) return refuse(reason);
  const { actor, request_id, time: created_at } = context;
  const hold: HoldState = {
    hold_id,
    account_id,
    amount_minor: minor,
    captured_minor: 0n,
    currency,
    status: 'Active',
    description,
    reference,
    actor,
    request_id,
    external_id,
    metadata,
    expires_at,
    created_at,
    updated_at: created_at,
  };
  books.holds.set(hold_id, hold);
  account.held_minor += minor;
  if (account.hold_expires_at === null || expires_at < account.hold_expires_at) account.hold_expires_at = expires_at;
  return {
    ...storeReply({ ok: true, data: toHold(hold) }),
    hold: { ...noteChange('placed', hold, account, books), request_id },
  };
}

export function releaseHold({ data, context }: CommandOf<'release_hold'>, books: Books): Decision {
  const found = newHold(data.hold_id, context.bound_client_id, books);
  if (found === undefined) return storeReply(refused(holdNotFound(data.hold_id)));
  const { hold, account } = found;
  const reason = pastDeadline(context, books) ? deadlineExceeded() : notActive(hold);
  if (reason) return storeReply(refused(reason));
  account.held_minor -= remainingMinor(hold);
  hold.status = 'Released';
  hold.updated_at = books.now;
  return {
    ...storeReply({ ok: true, data: toHold(hold) }),
    hold: { ...noteChange('released', hold, account, books), request_id: context.request_id },
  };
}

/** Captures a hold: a posting that takes the held amount. */
export function captureHold({ name, data, context }: CommandOf<'capture_hold'>, books: Books): Decision {
  const found = newHold(data.hold_id, context.bound_client_id, books);
  if (found === undefined) return replyOnly(refused(holdNotFound(data.hold_id)));
  const { hold, account } = found;
  const { currency, reference } = hold;
  const left = remainingMinor(hold);
  const draft = {
    ...draftTransaction(
      context,
      data.transaction_id,
      account.account_id,
      data.to_account_id,
      data.to_account_id === null ? 'Withdrawal' : 'Transfer',
      'debit',
      data.description ?? hold.description,
      reference,
      data,
    ),
    hold_id: hold.hold_id,
  };
  const decimal = data.amount ?? fromMinor(left === 0n ? hold.amount_minor : left, currency);
  const refuse = (reason: Failure, refused = draft) => fail(name, refused, { decimal, currency }, reason, books);
  if (pastDeadline(context, books)) return refuse(deadlineExceeded());
  const to = data.to_account_id === null ? undefined : customer(books, data.to_account_id, undefined);
  const isUnknown = to === undefined && data.to_account_id !== null;
  const minor = toMinor(decimal, currency);
  const wrong = misdated(data.effective_date, context, books, ...(to === undefined ? [] : payout(to, books)));
  const waiting =
    isUnknown || typeof minor !== 'bigint' || wrong
      ? undefined
      : waitsIfNeeded(context, data.effective_date, minor, currency, books, refuse, hold.captured_minor);
  if (waiting) return waiting;
  const ended = notActive(hold);
  if (ended) return refuse(ended);
  if (typeof minor !== 'bigint') return refuse(badAmount(minor, currency));
  if (minor > left)
    return refuse(refusal('amount_exceeds_hold', `hold ${hold.hold_id} has less than that amount left`));
  if (to === undefined && data.to_account_id !== null) {
    const refused = { ...draft, failure_account_id: data.to_account_id };
    return refuse(accountNotFound(data.to_account_id, 'to_account_id'), refused);
  }
  if (wrong) return refuse(wrong);
  account.held_minor -= minor;
  const decision =
    to === undefined
      ? moveCash(name, draft, account, minor, currency, context, books)
      : moveBetween(name, draft, [account, to], minor, currency, context, books);
  const [captured] = decision.transactions;
  // The held amount is settled only after the move, so what was available then is not what remains.
  if (captured?.status !== 'Completed') {
    account.held_minor += minor;
    return { ...decision, available: availableOn(decision.transactions, books) };
  }
  hold.captured_minor += minor;
  hold.updated_at = books.now;
  if (data.final || minor === left) {
    hold.status = 'Captured';
    account.held_minor -= left - minor;
  }
  const reply: ReplyBody = {
    ok: true,
    data: {
      hold: toHold(hold),
      ...(to === undefined ? { transaction: toTransaction(captured) } : { transfer: toTransfer(captured) }),
    },
  };
  return {
    ...decision,
    reply,
    available: availableOn(decision.transactions, books),
    hold: { ...noteChange('captured', hold, account, books), request_id: context.request_id, captured },
  };
}

function newHold(
  holdId: string,
  boundClientId: string | undefined,
  books: Books,
): { hold: HoldState; account: AccountState } | undefined {
  const hold = books.holds.get(holdId);
  const account = hold && customer(books, hold.account_id, boundClientId);
  return hold && account && { hold, account };
}

/**
 * Expires these due holds of these accounts, in their order. `next` is the first expiry of the other Active holds of
 * each account. Without it, an account remains due. Sets updated_at to expires_at, regardless of when it runs.
 */
export function expireHolds(
  accounts: readonly AccountState[],
  due: readonly HoldState[],
  next: ReadonlyMap<string, string>,
  books: HoldBooks,
): HoldChange[] {
  const byAccount = Map.groupBy(due, ({ account_id }) => account_id);
  return accounts.flatMap((account) => {
    account.hold_expires_at = next.get(account.account_id) ?? account.hold_expires_at;
    books.heldAmountChanged.add(account);
    return (byAccount.get(account.account_id) ?? []).map((hold) => {
      account.held_minor -= remainingMinor(hold);
      hold.status = 'Expired';
      hold.updated_at = hold.expires_at;
      return noteChange('expired', hold, account, books);
    });
  });
}
