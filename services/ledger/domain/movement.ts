import type { MessageContext } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { creditLegId, idKey, openingTransactionId } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { TransactionType } from '#libs/contracts/transactions.ts';
import { cashIn, cashOut, move } from './chart.ts';
import {
  beyondLimit,
  beyondOutstanding,
  beyondSlots,
  destinationRefused,
  type EarliestDay,
  inactive,
  onLoan,
  otherCurrency,
  refusedBefore,
  withoutFunds,
} from './checks.ts';
import { type Books, type CommandName, complete, completed, type Decision, type Draft, fail } from './decision.ts';
import { countPosting } from './four-eyes.ts';
import { beyondLimits, countOut } from './limits.ts';
import { type AccountState, type Failure, valueDate } from './records.ts';

/**
 * Code shared by postings and captures of holds: moves money, or records one Failed transaction with the
 * reason. Pure.
 */

/** Applies a deposit or a withdrawal, according to the draft. */
export function moveCash(
  name: CommandName,
  draft: Draft,
  account: AccountState,
  minor: bigint,
  currency: string,
  context: MessageContext,
  books: Books,
): Decision {
  const deposit = draft.direction === 'credit';
  const refuse = (why: Failure) => fail(name, draft, { decimal: fromMinor(minor, currency), currency }, why, books);
  const reason =
    onLoan(account, `a ${draft.transaction_type} is not possible on a Loan account`) ??
    inactive(account) ??
    otherCurrency(account, currency) ??
    (deposit
      ? beyondLimit(account, minor)
      : (beyondLimits(account, minor, 'withdrawal', context, books) ?? withoutFunds(account, minor, 'withdrawal')));
  if (reason) return refuse(reason);
  const teller = books.system('Teller', currency);
  const vault = books.system('Vault', currency);
  const legs = deposit ? cashIn(account, teller, vault) : cashOut(account, teller, vault, 'debit');
  const full = beyondSlots(legs, minor) ?? refusedBefore(context);
  if (full) return refuse(full);
  countPosting(context, minor, currency, books);
  if (!deposit) countOut(account, minor, context, books);
  return complete(name, [completed(draft, minor, currency)], legs, minor, books);
}

/** Returns the day on which a Loan was paid out, if it was: no payment of it may have an earlier value date. */
export function payout(to: AccountState, { transactions }: Books): EarliestDay[] {
  const paid = to.account_type === 'Loan' && transactions.get(idKey(openingTransactionId(to.account_id)));
  return paid ? [{ day: valueDate(paid), what: 'the payout of the Loan' }] : [];
}

/** Applies a transfer. `asked` is the draft of the transaction on its source. */
export function moveBetween(
  name: CommandName,
  asked: Draft,
  [from, to]: [AccountState, AccountState],
  minor: bigint,
  currency: string,
  context: MessageContext,
  books: Books,
): Decision {
  const refuse = (draft: Draft, why: Failure) =>
    fail(name, draft, { decimal: fromMinor(minor, currency), currency }, why, books);
  const cannotPay = refusedSource(from, to, minor, currency, context, books);
  if (cannotPay) return refuse(asked, cannotPay);
  const toLoan = to.account_type === 'Loan';
  const type: TransactionType = toLoan ? 'Loan Payment' : 'Transfer';
  const cannotTake = refusedDestination(to, minor, currency);
  if (cannotTake) {
    const mayKnow = context.bound_client_id === undefined || context.bound_client_id === to.client_id;
    return mayKnow
      ? refuse({ ...asked, transaction_type: type, failure_account_id: to.account_id }, cannotTake)
      : refuse(asked, destinationRefused());
  }
  const before = refusedBefore(context);
  if (before) return refuse(asked, before);
  countPosting(context, minor, currency, books);
  countOut(from, minor, context, books);
  const debit: Draft = { ...asked, transaction_type: type };
  const credit: Draft = {
    ...debit,
    transaction_id: creditLegId(asked.transaction_id),
    account_id: to.account_id,
    counterparty_account_id: from.account_id,
    direction: toLoan ? 'debit' : 'credit',
  };
  return complete(
    name,
    [completed(debit, minor, currency), completed(credit, minor, currency)],
    move(from, to, toLoan),
    minor,
    books,
  );
}

function refusedSource(
  from: AccountState,
  to: AccountState,
  minor: bigint,
  currency: string,
  context: MessageContext,
  books: Books,
): Failure | undefined {
  return (
    (from === to ? refusal('same_account', 'to_account_id must differ from from_account_id') : undefined) ??
    onLoan(from, 'a transfer from a Loan account is not possible') ??
    inactive(from) ??
    otherCurrency(from, currency) ??
    beyondLimits(from, minor, 'transfer', context, books) ??
    withoutFunds(from, minor, 'transfer', 'source account')
  );
}

function refusedDestination(to: AccountState, minor: bigint, currency: string): Failure | undefined {
  return (
    inactive(to) ??
    otherCurrency(to, currency) ??
    (to.account_type === 'Loan' ? beyondOutstanding(to, minor) : beyondLimit(to, minor))
  );
}
