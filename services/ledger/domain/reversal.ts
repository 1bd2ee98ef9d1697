import { isUnapproved } from '#libs/contracts/approvals.ts';
import { refused } from '#libs/contracts/envelope.ts';
import { type ErrorCode, refusal } from '#libs/contracts/errors.ts';
import { formatId, idBits, idKey, siblingBits } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { cashIn, cashOut, isSystem, type Leg, move, opposite, reverseLegs } from './chart.ts';
import {
  beyondLimit,
  beyondOutstanding,
  beyondSlots,
  customer,
  deadlineExceeded,
  inactive,
  misdated,
  pastDeadline,
  refusedBefore,
  withoutFunds,
} from './checks.ts';
import {
  type Books,
  type CommandOf,
  complete,
  completed,
  type Decision,
  type Draft,
  draftTransaction,
  fail,
  replyOnly,
} from './decision.ts';
import { isBackdated, waitsForApproval } from './four-eyes.ts';
import { type AccountState, type Failure, isTransferLeg, type TransactionRecord, valueDate } from './records.ts';

/**
 * Reverses an operation, at most once, by new transactions with the entries in the opposite direction. All
 * checks of a posting apply except that of the account type.
 */
export function reverseTransaction({ name, data, context }: CommandOf<'reverse_transaction'>, books: Books): Decision {
  const found = books.transactions.get(idKey(data.reverses_transaction_id));
  const original = found?.transaction_id === data.reverses_transaction_id ? found : undefined;
  if (original === undefined && books.deadLettered.has(data.reverses_transaction_id))
    return refuse('not_reversible', `transaction ${data.reverses_transaction_id} is Pending`);
  const account = original && customer(books, original.account_id, context.bound_client_id);
  const isVisible = account !== undefined || context.bound_client_id === undefined;
  if (original === undefined || !isVisible) {
    return refuse('transaction_not_found', `transaction ${data.reverses_transaction_id} not found`);
  }
  const isLate = pastDeadline(context, books);
  const backdated = isBackdated(context, data.effective_date);
  if (!isLate && (backdated || isUnapproved(context, 'reverse')))
    return waitsForApproval(context, backdated ? 'backdate' : 'reverse', books, postingOf(original));
  const { amount_minor: minor, currency } = original;
  if (original.status !== 'Completed')
    return refuse('not_reversible', `transaction ${original.transaction_id} is ${original.status}`);
  if (account === undefined || minor === null || currency === null)
    throw new Error(`the account of ${original.transaction_id} is not locked`);
  if (original.reverses_transaction_id !== null)
    return refuse('not_reversible', `transaction ${original.transaction_id} is itself a reversal`);
  const draft: Draft = {
    ...draftTransaction(
      context,
      data.transaction_id,
      account.account_id,
      original.counterparty_account_id,
      original.transaction_type,
      opposite(original.direction),
      data.reason,
      original.reference,
      data,
    ),
    reverses_transaction_id: original.transaction_id,
  };
  const amount = { decimal: fromMinor(minor, currency), currency };
  const reversal = books.reversals.get(original.transaction_id);
  if (reversal !== undefined) {
    return refuse('already_reversed', `transaction ${original.transaction_id} was reversed by ${reversal}`, {
      reversal_transaction_id: reversal,
    });
  }
  if (isLate) return fail(name, draft, amount, deadlineExceeded(), books);
  const wrong = misdated(data.effective_date, context, books, {
    day: valueDate(original),
    what: 'the transaction that it reverses',
  });
  if (wrong) return fail(name, draft, amount, wrong, books);
  const { legs, records } = planReversal(original, draft, account, books);
  // The paying account is checked first and completely, as in checks.ts.
  for (const leg of legs) {
    const reason = refusedLeg(leg, minor);
    const failure_account_id = leg.account === account ? null : leg.account.account_id;
    if (reason) return fail(name, { ...draft, failure_account_id }, amount, reason, books);
  }
  const full = beyondSlots(legs, minor) ?? refusedBefore(context);
  if (full) return fail(name, draft, amount, full, books);
  const decision = complete(
    name,
    records.map((record) => completed(record, minor, currency)),
    legs,
    minor,
    books,
  );
  return { ...decision, reverses_operation_id: original.operation_id };
}

/** What the approval says about it, because the command names only its id. */
function postingOf({ account_id, counterparty_account_id: other, amount_minor: minor, currency }: TransactionRecord) {
  if (minor === null || currency === null) return undefined;
  return {
    amount: fromMinor(minor, currency),
    currency,
    account_ids: other === null ? [account_id] : [account_id, other],
  };
}

/**
 * Returns the reversed legs of an operation and the transactions that record them: one, or two if a transfer is
 * reversed.
 */
function planReversal(
  original: TransactionRecord,
  draft: Draft,
  account: AccountState,
  books: Books,
): { legs: Leg<AccountState>[]; records: Draft[] } {
  const currency = account.currency;
  if (!isTransferLeg(original)) {
    const teller = books.system('Teller', currency);
    const vault = books.system('Vault', currency);
    const legs =
      original.transaction_type === 'Deposit'
        ? cashIn(account, teller, vault)
        : cashOut(account, teller, vault, original.direction);
    return { legs: reverseLegs(legs), records: [draft] };
  }
  const other = customer(books, original.counterparty_account_id ?? '', undefined);
  if (other === undefined) throw new Error(`counterparty of ${original.transaction_id} is not locked`);
  const fromSource = original.transaction_id === formatId('transaction', idBits(original.operation_id));
  const [source, destination] = fromSource ? [account, other] : [other, account];
  const toLoan = original.transaction_type === 'Loan Payment';
  const originalSibling = formatId('transaction', siblingBits(idBits(original.transaction_id)));
  const sibling: Draft = {
    ...draft,
    transaction_id: formatId('transaction', siblingBits(idBits(draft.transaction_id))),
    account_id: other.account_id,
    counterparty_account_id: account.account_id,
    direction: fromSource && !toLoan ? 'debit' : 'credit',
    reverses_transaction_id: originalSibling,
  };
  return { legs: reverseLegs(move(source, destination, toLoan)), records: [draft, sibling] };
}

function refusedLeg({ account, direction }: Leg<AccountState>, minor: bigint): Failure | undefined {
  if (isSystem(account.account_type)) return undefined;
  return inactive(account) ?? (direction === 'credit' ? beyondLimit(account, minor) : beyondBalance(account, minor));
}

function beyondBalance(account: AccountState, minor: bigint): Failure | undefined {
  if (account.account_type === 'Loan') return beyondOutstanding(account, minor);
  return withoutFunds(account, minor, 'reversal');
}

/** A refusal without a transaction as its record. */
function refuse(code: ErrorCode, message: string, details?: Record<string, unknown>): Decision {
  return replyOnly(refused(refusal(code, message, details && { details })));
}
