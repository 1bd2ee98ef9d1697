import type { AccountStatus } from '#libs/contracts/accounts.ts';
import type { Direction, Entry, Side } from '#libs/contracts/entries.ts';
import type { Refusal } from '#libs/contracts/errors.ts';
import type { failureCodes } from '#libs/contracts/event-fields.ts';
import type { Hold, HoldStatus } from '#libs/contracts/holds.ts';
import { formatId, idBits } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { pickNames } from '#libs/contracts/names.ts';
import { openingBalance, type Transaction, type TransactionType } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import { dayAt } from './calendar.ts';
import { accountClass, type LedgerAccountType } from './chart.ts';

/** The ledger's records, and the resources that are rebuilt from them. Money is in minor units. */

export interface AccountState extends AccountLimits {
  account_id: string;
  account_number: string;
  /** null for Teller and Vault. */
  client_id: string | null;
  account_type: LedgerAccountType;
  currency: string;
  status: AccountStatus;
  /** Incremented by each status change, which orders the changes. */
  status_version: number;
  balance_minor: bigint;
  last_sequence: bigint;
  /** The posting time of its last entry. Later ones are not before it, even if the clock was set back. */
  last_posted_at: string | null;
  /** The total that is reserved by its Active holds. */
  held_minor: bigint;
  /** The number of its Active holds. */
  active_holds: bigint;
  /** No Active hold expires before this time; null if there is none. */
  hold_expires_at: string | null;
  /** The number of changes of its holds. */
  hold_version: bigint;
}

/** Limits of an account, in minor units; null: none. */
export interface AccountLimits {
  minimum_balance_minor: bigint | null;
  per_transaction_minor: bigint | null;
  per_day_out_minor: bigint | null;
  /** The last day on which something left the account, if that is counted: it has a limit per day. */
  out_day: string | null;
  out_minor: bigint;
}

/** Of an account without limits. */
export const noLimits: Readonly<AccountLimits> = {
  minimum_balance_minor: null,
  per_transaction_minor: null,
  per_day_out_minor: null,
  out_day: null,
  out_minor: 0n,
};

/** Returns the available balance in minor units. */
export function availableMinor({
  balance_minor,
  held_minor,
}: Pick<AccountState, 'balance_minor' | 'held_minor'>): bigint {
  return balance_minor - held_minor;
}

/** A row of `holds`. */
export interface HoldState {
  hold_id: string;
  account_id: string;
  amount_minor: bigint;
  captured_minor: bigint;
  currency: string;
  status: HoldStatus;
  description: string | null;
  reference: string | null;
  actor: string;
  request_id: string;
  external_id: string | null;
  metadata: Record<string, string> | null;
  expires_at: string;
  created_at: string;
  updated_at: string;
}

/** A row of `transactions`: immutable, and the idempotency record of its command. */
export interface TransactionRecord {
  transaction_id: string;
  operation_id: string;
  account_id: string;
  counterparty_account_id: string | null;
  transaction_type: TransactionType;
  direction: Direction;
  /**
   * null, with the decimal in amount_text, if the currency is unknown or the amount is not a whole number of
   * its minor units.
   */
  amount_minor: bigint | null;
  amount_text: string | null;
  currency: string | null;
  description: string | null;
  reference: string | null;
  status: 'Completed' | 'Failed';
  failure_code: string | null;
  failure_message: string | null;
  /** The counterparty account, if it is the reason for the failure. */
  failure_account_id: string | null;
  reverses_transaction_id: string | null;
  /** The hold that the transaction captures. */
  hold_id: string | null;
  idempotency_key: string | null;
  fingerprint: string | null;
  actor: string;
  request_id: string;
  created_at: string;
  external_id: string | null;
  metadata: Record<string, string> | null;
  /** The batch that contained it as an item. */
  batch_id: string | null;
  /** The client whose credentials gave the metadata; null: the bank's. */
  metadata_client_id: string | null;
  /** The value date, if it is not the bank's day of created_at. */
  effective_date: string | null;
}

export interface EntryRecord {
  account_id: string;
  sequence: bigint;
  operation_id: string;
  transaction_id: string;
  direction: Direction;
  side: Side;
  amount_minor: bigint;
  currency: string;
  balance_after_minor: bigint;
  created_at: string;
  /** The value date, if it is not the bank's day of created_at. */
  effective_date: string | null;
}

/** An entry with what its account is, for events. */
export interface PostedEntry extends EntryRecord {
  account_type: LedgerAccountType;
}

/** Returns the value date of a transaction or an entry. */
export function valueDate({ effective_date, created_at }: Pick<EntryRecord, 'effective_date' | 'created_at'>): string {
  return effective_date ?? dayAt(created_at);
}

/**
 * Refusals that are not part of an account's history: the account does not exist or is hidden from the caller,
 * or the amount is not valid in its currency. GET of their id returns them, but lists and events do not.
 */
const shownByIdAlone = ['account_not_found', 'invalid_amount_precision', 'amount_too_large'] as const;

/** A refusal that is stored as a Failed transaction. Its events have only codes that their schema lists. */
export type Failure = Refusal & { code: (typeof failureCodes)[number] | (typeof shownByIdAlone)[number] };

export function isShownByIdAlone({ failure_code }: Pick<TransactionRecord, 'failure_code'>): boolean {
  return failure_code !== null && (shownByIdAlone as readonly string[]).includes(failure_code);
}

/** The same condition in SQL for a column: true for listed transactions. */
export function isListed(column: string): string {
  return `coalesce(${column}, '') not in (${shownByIdAlone.map((code) => `'${code}'`).join(', ')})`;
}

/**
 * Returns the type of the event of a transaction, or undefined if it has none. The refusal because of an unknown
 * account has one, although only GET of its id returns it.
 */
export function transactionEventType(record: Pick<TransactionRecord, 'status' | 'failure_code'>): string | undefined {
  const isUnknown = record.failure_code === 'account_not_found';
  if (isShownByIdAlone(record) && !isUnknown) return undefined;
  const outcome = isUnknown ? 'account_not_found' : record.status === 'Completed' ? 'completed' : 'failed';
  return `corebanking.transaction.${outcome}.v1`;
}

/** Reports whether the transaction belongs to a transfer or to its reversal, which is a transfer too. */
export function isOfTransfer({ transaction_type }: Pick<TransactionRecord, 'transaction_type'>): boolean {
  return transaction_type === 'Transfer' || transaction_type === 'Loan Payment';
}

/** Reports whether the row is a leg of a transfer that is not a reversal. */
export function isTransferLeg(record: TransactionRecord): boolean {
  return isOfTransfer(record) && record.reverses_transaction_id === null;
}

/** Returns the record as shown to a caller who may not see why the counterparty account was refused. */
export function withoutReason(record: TransactionRecord): TransactionRecord {
  const isPayment = record.reverses_transaction_id === null;
  return {
    ...record,
    failure_code: 'destination_refused',
    ...(isPayment ? { transaction_type: 'Transfer' as const } : {}),
  };
}

function amountText(record: TransactionRecord): string {
  if (record.amount_minor !== null && record.currency !== null) return fromMinor(record.amount_minor, record.currency);
  return record.amount_text ?? '0';
}

/** Converts a record to the transaction in replies and events. */
export function toTransaction(record: TransactionRecord, reversedBy?: string): Transaction {
  return {
    transaction_id: record.transaction_id,
    account_id: record.account_id,
    transaction_type: record.transaction_type,
    amount: amountText(record),
    currency: record.currency,
    description: record.description,
    reference: record.reference,
    status: record.status,
    created_at: record.created_at,
    effective_date: valueDate(record),
    direction: record.direction,
    ...(isOfTransfer(record) ? { transfer_id: formatId('transfer', idBits(record.operation_id)) } : {}),
    ...(record.counterparty_account_id === null ? {} : { counterparty_account_id: record.counterparty_account_id }),
    ...(record.reverses_transaction_id === null ? {} : { reverses_transaction_id: record.reverses_transaction_id }),
    ...(record.hold_id === null ? {} : { hold_id: record.hold_id }),
    ...(reversedBy === undefined ? {} : { reversed_by_transaction_id: reversedBy }),
    ...(record.batch_id === null ? {} : { batch_id: record.batch_id }),
    ...(record.failure_code === null ? {} : { failure_code: record.failure_code }),
    ...pickNames(record),
  };
}

const isOpeningBalanceSql = (row: string) =>
  `(coalesce(${row}.description, '') = '${openingBalance}' and id_key(${row}.transaction_id) = id_key(${row}.account_id))`;

/** The condition of tills.ts (isOverCounter) in SQL for a row of transactions by a person, which is a deposit or a withdrawal. */
export const isOverCounterSql = (
  row: string,
) => `(${row}.batch_id is null and not ${isOpeningBalanceSql(row)} and (${row}.reverses_transaction_id is null or exists (
      select from transactions original where id_key(original.transaction_id) = id_key(${row}.reverses_transaction_id)
        and original.batch_id is null and original.actor like 'jwt:%' and not ${isOpeningBalanceSql('original')})))`;

/** The operation ids of the transfers that this one reverses and that reverse it. */
export interface TransferLinks {
  reverses?: string | undefined;
  reversed_by?: string | undefined;
}

/** Converts the leg on a transfer's source to the transfer. */
export function toTransfer(record: TransactionRecord, { reverses, reversed_by }: TransferLinks = {}): Transfer {
  return {
    transfer_id: formatId('transfer', idBits(record.operation_id)),
    from_account_id: record.account_id,
    to_account_id: record.counterparty_account_id ?? '',
    amount: amountText(record),
    currency: record.currency,
    description: record.description,
    status: record.status,
    created_at: record.created_at,
    effective_date: valueDate(record),
    ...(reverses === undefined ? {} : { reverses_transfer_id: formatId('transfer', idBits(reverses)) }),
    ...(reversed_by === undefined ? {} : { reversed_by_transfer_id: formatId('transfer', idBits(reversed_by)) }),
    ...(record.hold_id === null ? {} : { hold_id: record.hold_id }),
    ...(record.batch_id === null ? {} : { batch_id: record.batch_id }),
    ...(record.failure_code === null ? {} : { failure_code: record.failure_code }),
    ...pickNames(record),
  };
}

/** Converts a row to the hold in replies and events. */
export function toHold({
  amount_minor,
  captured_minor,
  actor: _,
  request_id: __,
  external_id,
  metadata,
  ...hold
}: HoldState): Hold {
  const amounts = {
    amount: fromMinor(amount_minor, hold.currency),
    captured_amount: fromMinor(captured_minor, hold.currency),
  };
  return { ...hold, ...amounts, ...pickNames({ external_id, metadata }) };
}

export function toEntry(entry: EntryRecord): Entry {
  return { ...withoutBalance(entry), balance_after: fromMinor(entry.balance_after_minor, entry.currency) };
}

/**
 * Converts an entry for events. It omits the balance, because the entry may be of an account other than the
 * event's.
 */
export function toEventEntry({ account_type, ...entry }: PostedEntry) {
  return { ...withoutBalance(entry), account_type, account_class: accountClass(account_type) };
}

function withoutBalance(entry: EntryRecord): Omit<Entry, 'balance_after'> {
  return {
    entry_id: `ent_${idBits(entry.account_id)}-${entry.sequence}`,
    operation_id: entry.operation_id,
    transaction_id: entry.transaction_id,
    account_id: entry.account_id,
    sequence: Number(entry.sequence),
    direction: entry.direction,
    side: entry.side,
    amount: fromMinor(entry.amount_minor, entry.currency),
    currency: entry.currency,
    created_at: entry.created_at,
    effective_date: valueDate(entry),
  };
}
