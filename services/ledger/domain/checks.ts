import type { MessageContext } from '#libs/contracts/envelope.ts';
import { invalidField, refusal } from '#libs/contracts/errors.ts';
import { maxMinor } from '#libs/contracts/money.ts';
import { dayAt, earliestDay } from './calendar.ts';
import { isSystem, type Leg } from './chart.ts';
import { type Books, currentDay } from './decision.ts';
import { type AccountState, availableMinor, type Failure } from './records.ts';

/**
 * The checks of a posting. Each returns a refusal, or undefined if the posting passes. They run in the
 * contract's order: the accounts exist; type, status, currency, limits, and funds of the source; then those of
 * the destination, so that a source without funds learns only that the destination exists. Pure.
 */

/**
 * Returns a customer's account. Teller, Vault, and accounts that do not belong to the bound client are unknown
 * to callers.
 */
export function customer(books: Books, accountId: string, boundClientId: string | undefined): AccountState | undefined {
  const account = books.accounts.get(accountId);
  if (account === undefined || isSystem(account.account_type)) return undefined;
  return boundClientId === undefined || account.client_id === boundClientId ? account : undefined;
}

export function pastDeadline(context: MessageContext, books: Books): boolean {
  return context.deadline !== undefined && context.deadline < books.now;
}

export function deadlineExceeded(): Failure {
  return refusal(
    'deadline_exceeded',
    'the command was received after its deadline: it was not executed and never will be; repeat it with a new Idempotency-Key',
  );
}

/**
 * The refusal of a command that had been refused before a restore, and is sent again. It stays refused even if the
 * account could pay now, because its caller was told so.
 */
export function refusedBefore({ decided }: MessageContext): Failure | undefined {
  if (!decided) return undefined;
  return refusal(
    decided as Failure['code'],
    'the command was refused for this reason before the database was restored',
  );
}

export function accountNotFound(accountId: string, field = 'account_id'): Failure {
  return refusal('account_not_found', `${field} ${accountId}: account not found`, {
    details: { field, account_id: accountId },
  });
}

/** The only refusal that a bound caller gets about another client's account that cannot accept its payment. */
export function destinationRefused(): Failure {
  return refusal('destination_refused', 'the destination account cannot take this payment');
}

export function badAmount(
  code: 'invalid_amount_precision' | 'amount_too_large',
  currency: string,
  field = 'amount',
): Failure {
  const message =
    code === 'amount_too_large'
      ? `${field} exceeds 10^15 - 1 minor units`
      : `${field} has more decimal places than ${currency} has`;
  return { ...invalidField(field, message, code), code };
}

/** A day before which a posting cannot be dated, and what happened then. */
export interface EarliestDay {
  day: string;
  what: string;
}

/** Checks a value date that was given. That of a command that is sent again after a restore was checked before. */
export function misdated(
  given: string | null | undefined,
  { decided }: MessageContext,
  books: Books,
  ...notBefore: EarliestDay[]
): Failure | undefined {
  if (given == null || decided !== undefined) return undefined;
  const { closed } = books;
  if (closed !== null && given <= closed) return refusal('day_closed', `the days up to ${closed} are closed`);
  const today = currentDay(books);
  const wrong = (rule: string) => refusal('invalid_effective_date', `effective_date ${given} is ${rule}`);
  if (given > today) return wrong(`after the bank's day ${today}`);
  const earliest = earliestDay(dayAt(books.now));
  if (given < earliest) return wrong(`before ${earliest}, the earliest day that is accepted`);
  const missed = notBefore.find(({ day }) => given < day);
  return missed && wrong(`before ${missed.day}, the day of ${missed.what}`);
}

export function onLoan(account: AccountState, message: string): Failure | undefined {
  return account.account_type === 'Loan' ? refusal('invalid_account_type', message) : undefined;
}

export function inactive(account: AccountState): Failure | undefined {
  if (account.status === 'Active') return undefined;
  return refusal('inactive_account', `account ${account.account_id} is ${account.status}`);
}

export function otherCurrency(account: AccountState, currency: string): Failure | undefined {
  if (account.currency === currency) return undefined;
  return refusal(
    'currency_mismatch',
    `account ${account.account_id} has the currency ${account.currency}, not ${currency}`,
  );
}

export function beyondLimit(account: AccountState, minor: bigint): Failure | undefined {
  if (account.balance_minor + minor <= maxMinor) return undefined;
  return refusal(
    'balance_limit_exceeded',
    `the balance of account ${account.account_id} would exceed 10^15 - 1 minor units`,
  );
}

/** Slots of Teller and Vault have no limit (contract: money-9), but their balance is a 64-bit integer in the database. */
export function beyondSlots(legs: Leg<AccountState>[], minor: bigint): Failure | undefined {
  const after = ({ account, direction }: Leg<AccountState>) =>
    account.balance_minor + (direction === 'credit' ? minor : -minor);
  const full = legs.find((leg) => isSystem(leg.account.account_type) && BigInt.asIntN(64, after(leg)) !== after(leg));
  return full && refusal('balance_limit_exceeded', `the bank's cash in ${full.account.currency} would exceed 64 bits`);
}

export function beyondOutstanding(account: AccountState, minor: bigint): Failure | undefined {
  if (minor <= account.balance_minor) return undefined;
  return refusal(
    'amount_exceeds_outstanding',
    `the amount exceeds the outstanding principal of loan account ${account.account_id}`,
  );
}

/** Checks the available balance, because only the capture of a hold can take its held amount. */
export function withoutFunds(
  account: AccountState,
  minor: bigint,
  operation: string,
  party = 'account',
): Failure | undefined {
  if (minor <= availableMinor(account)) return undefined;
  return refusal(
    'insufficient_funds',
    `the available balance of ${party} ${account.account_id} is too low for this ${operation}`,
  );
}
