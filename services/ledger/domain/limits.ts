import { isUnapproved } from '#libs/contracts/approvals.ts';
import { type MessageContext, refused } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { allowsMore, type LimitName, limitNames } from '#libs/contracts/limits.ts';
import type { MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor, toMinor } from '#libs/contracts/money.ts';
import { dayAt } from './calendar.ts';
import { accountNotFound, badAmount, customer, deadlineExceeded, onLoan, pastDeadline } from './checks.ts';
import { type Books, type CommandOf, type Decision, replyOnly, storeReply } from './decision.ts';
import { waitsForApproval } from './four-eyes.ts';
import { type AccountLimits, type AccountState, availableMinor, type Failure } from './records.ts';

/** Decides the limits of accounts, and whether a posting keeps them (contract: limits). Pure. */

const columns = {
  minimum_balance: 'minimum_balance_minor',
  per_transaction: 'per_transaction_minor',
  per_day_out: 'per_day_out_minor',
} as const satisfies Record<LimitName, keyof AccountLimits>;

/** Returns what has left the account on the bank's day of `now`. Known only if it has a limit per day, or is to have one. */
function outToday({ out_day, out_minor }: AccountLimits, now: string): bigint {
  return out_day !== null && out_day >= dayAt(now) ? out_minor : 0n;
}

/**
 * Refuses a withdrawal, transfer, or hold that a limit of its source does not allow. A hold does not leave the account.
 * What was decided before a restore keeps its decision.
 */
export function beyondLimits(
  account: AccountState,
  minor: bigint,
  operation: 'withdrawal' | 'transfer' | 'hold',
  { decided }: MessageContext,
  { now }: Books,
): Failure | undefined {
  if (decided !== undefined) return undefined;
  const { minimum_balance_minor: least, per_transaction_minor: once, per_day_out_minor: daily } = account;
  const exceeded = (limit: LimitName) =>
    refusal('limit_exceeded', `${limit} of account ${account.account_id} allows less than this ${operation}`, {
      details: { limit },
    });
  if (once !== null && minor > once) return exceeded('per_transaction');
  if (daily !== null && operation !== 'hold' && outToday(account, now) + minor > daily) return exceeded('per_day_out');
  if (least !== null && availableMinor(account) - minor < least) return exceeded('minimum_balance');
  return undefined;
}

/**
 * Adds a posting to what has left the account on this day, if that is counted. Of those sent again after a restore, only
 * those of this day count.
 */
export function countOut(
  account: AccountState,
  minor: bigint,
  { decided, time }: MessageContext,
  { now, limitsChanged }: Books,
): void {
  if (account.out_day === null) return;
  const today = dayAt(now);
  if (decided !== undefined && dayAt(time) !== today) return;
  account.out_minor = outToday(account, now) + minor;
  if (account.out_day < today) account.out_day = today;
  limitsChanged.add(account);
}

/** Reports whether one of the limits allows more than before. */
function raises(before: AccountLimits, after: Pick<AccountLimits, (typeof columns)[LimitName]>): boolean {
  return limitNames.some((name) => allowsMore(name, before[columns[name]], after[columns[name]]));
}

export function setLimits({ data, context }: CommandOf<'set_account_limits'>, books: Books): Decision {
  const refuse = (reason: Refusal) => storeReply(refused(reason));
  const account = customer(books, data.account_id, context.bound_client_id);
  // It has no Idempotency-Key, so nothing is stored for whom an account does not exist.
  if (account === undefined) return replyOnly(refused(accountNotFound(data.account_id)));
  if (pastDeadline(context, books)) return refuse(deadlineExceeded());
  const unsuitable = onLoan(account, 'a Loan account has no limits, because nothing is paid from it');
  if (unsuitable) return refuse(unsuitable);
  const limits = { minimum_balance_minor: null, per_transaction_minor: null, per_day_out_minor: null } as Record<
    (typeof columns)[LimitName],
    bigint | null
  >;
  for (const name of limitNames) {
    const decimal = data[name];
    if (decimal === undefined) continue;
    const minor = toMinor(decimal, account.currency);
    if (typeof minor !== 'bigint') return refuse(badAmount(minor, account.currency, name));
    limits[columns[name]] = minor;
  }
  if (isUnapproved(context, 'raise_limit') && raises(account, limits))
    return waitsForApproval(context, 'raise_limit', books);
  const replaced = shownLimits(account);
  Object.assign(account, limits);
  books.limitsChanged.add(account);
  return { ...storeReply({ ok: true, data: toLimits(account, books.now) }), replaced };
}

/** Returns the limits that are set, as decimals. */
function shownLimits(account: AccountLimits & Pick<AccountState, 'currency'>): Partial<Record<LimitName, string>> {
  return Object.fromEntries(
    limitNames.flatMap((name) => {
      const minor = account[columns[name]];
      return minor === null ? [] : [[name, fromMinor(minor, account.currency)]];
    }),
  );
}

/** Converts the limits of an account to those in replies. */
export function toLimits(
  account: AccountLimits & Pick<AccountState, 'account_id' | 'currency'>,
  now: string,
): MessageResult<'get_account_limits'> {
  const { account_id, currency } = account;
  const isCounted = account.per_day_out_minor !== null;
  return {
    account_id,
    currency,
    ...shownLimits(account),
    ...(isCounted && { out_today: fromMinor(outToday(account, now), currency) }),
  };
}
