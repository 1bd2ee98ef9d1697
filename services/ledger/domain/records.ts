import type { Hold, HoldStatus } from '#libs/contracts/holds.ts';
import { idBits, idOf } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { namesOf } from '#libs/contracts/names.ts';
import type {
  AccountStatus,
  Direction,
  Entry,
  Side,
  Transaction,
  TransactionType,
  Transfer,
} from '#libs/contracts/resources.ts';
import type { LedgerAccountType } from './chart.ts';

/** What the ledger keeps, and the resources that are rebuilt from it. Money in minor units. */

export interface AccountState {
  account_id: string;
  account_number: string;
  /** null for Teller and Vault. */
  client_id: string | null;
  account_type: LedgerAccountType;
  currency: string;
  status: AccountStatus;
  /** Rises with every change of status: the order of changes. */
  status_version: number;
  balance_minor: bigint;
  last_sequence: bigint;
  /** The sum of what its Active holds still hold. */
  held_minor: bigint;
  /** None of its Active holds ends before this moment; null where there is none. */
  hold_expires_at: string | null;
  /** Counts the changes of its holds. */
  hold_version: bigint;
}

/** What can be taken from the account. */
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
  /** null, with the decimal in amount_text, where no currency is known to count minor units in. */
  amount_minor: bigint | null;
  amount_text: string | null;
  currency: string | null;
  description: string | null;
  reference: string | null;
  status: 'Completed' | 'Failed';
  failure_code: string | null;
  failure_message: string | null;
  reverses_transaction_id: string | null;
  /** The hold that it captures. */
  hold_id: string | null;
  idempotency_key: string | null;
  fingerprint: string | null;
  actor: string;
  request_id: string;
  created_at: string;
  external_id: string | null;
  metadata: Record<string, string> | null;
  /** The batch that it was an item of. */
  batch_id: string | null;
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
}

/**
 * Refusals that are no part of any account's history: of an account that is none, or that its
 * sender may not know, and of an amount that its currency does not count. They are shown by GET of
 * their id, in no list and in no event.
 */
const shownByIdAlone = ['account_not_found', 'invalid_amount_precision', 'amount_too_large'];

export function isShownByIdAlone({ failure_code }: Pick<TransactionRecord, 'failure_code'>): boolean {
  return failure_code !== null && shownByIdAlone.includes(failure_code);
}

/** The same in SQL, of a column: true for what is listed. */
export function isListed(column: string): string {
  return `coalesce(${column}, '') not in (${shownByIdAlone.map((code) => `'${code}'`).join(', ')})`;
}

/** True for both Transactions of a transfer, and for those of its reversal, which is a Transfer too. */
export function isOfTransfer({ transaction_type }: Pick<TransactionRecord, 'transaction_type'>): boolean {
  return transaction_type === 'Transfer' || transaction_type === 'Loan Payment';
}

/** True where the row is a leg of a transfer that reverses none. */
export function isTransferLeg(record: TransactionRecord): boolean {
  return isOfTransfer(record) && record.reverses_transaction_id === null;
}

/** Whether the account at the other end was the reason of a refusal, which its message then names. */
export function isRefusedByOther({ counterparty_account_id: other, failure_message }: TransactionRecord): boolean {
  return other !== null && failure_message?.includes(other) === true;
}

/** As a caller is shown it who may not know what the account at the other end lacks. */
export function withoutReason(record: TransactionRecord): TransactionRecord {
  const isPayment = record.reverses_transaction_id === null;
  return {
    ...record,
    failure_code: 'destination_refused',
    ...(isPayment ? { transaction_type: 'Transfer' as const } : {}),
  };
}

function amountOf(record: TransactionRecord): string {
  if (record.amount_minor !== null && record.currency !== null) return fromMinor(record.amount_minor, record.currency);
  return record.amount_text ?? '0';
}

/** The Transaction as replies and events carry it. */
export function toTransaction(record: TransactionRecord, reversedBy?: string): Transaction {
  return {
    transaction_id: record.transaction_id,
    account_id: record.account_id,
    transaction_type: record.transaction_type,
    amount: amountOf(record),
    currency: record.currency,
    description: record.description,
    reference: record.reference,
    status: record.status,
    created_at: record.created_at,
    direction: record.direction,
    ...(isOfTransfer(record) ? { transfer_id: idOf('transfer', idBits(record.operation_id)) } : {}),
    ...(record.counterparty_account_id === null ? {} : { counterparty_account_id: record.counterparty_account_id }),
    ...(record.reverses_transaction_id === null ? {} : { reverses_transaction_id: record.reverses_transaction_id }),
    ...(record.hold_id === null ? {} : { hold_id: record.hold_id }),
    ...(reversedBy === undefined ? {} : { reversed_by_transaction_id: reversedBy }),
    ...(record.batch_id === null ? {} : { batch_id: record.batch_id }),
    ...(record.failure_code === null ? {} : { failure_code: record.failure_code }),
    ...namesOf(record),
  };
}

/** The transfer that reverses another, and the one that it reverses: their operations' ids. */
export interface TransferLinks {
  reverses?: string | undefined;
  reversed_by?: string | undefined;
}

/** The Transfer that the leg on its source stands for. */
export function toTransfer(record: TransactionRecord, { reverses, reversed_by }: TransferLinks = {}): Transfer {
  return {
    transfer_id: idOf('transfer', idBits(record.operation_id)),
    from_account_id: record.account_id,
    to_account_id: record.counterparty_account_id ?? '',
    amount: amountOf(record),
    currency: record.currency,
    description: record.description,
    status: record.status,
    created_at: record.created_at,
    ...(reverses === undefined ? {} : { reverses_transfer_id: idOf('transfer', idBits(reverses)) }),
    ...(reversed_by === undefined ? {} : { reversed_by_transfer_id: idOf('transfer', idBits(reversed_by)) }),
    ...(record.hold_id === null ? {} : { hold_id: record.hold_id }),
    ...(record.batch_id === null ? {} : { batch_id: record.batch_id }),
    ...(record.failure_code === null ? {} : { failure_code: record.failure_code }),
    ...namesOf(record),
  };
}

/** The Hold as replies and events carry it. */
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
  return { ...hold, ...amounts, ...namesOf({ external_id, metadata }) };
}

export function toEntry(entry: EntryRecord): Entry {
  return { ...toEventEntry(entry), balance_after: fromMinor(entry.balance_after_minor, entry.currency) };
}

/** As events of other accounts may tell it too. */
export function toEventEntry(entry: EntryRecord): Omit<Entry, 'balance_after'> {
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
  };
}
