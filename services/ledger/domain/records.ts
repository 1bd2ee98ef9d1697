import { idBits, idOf } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { AccountStatus, Direction, Entry, Side, Transaction, TransactionType, Transfer } from '#libs/contracts/resources.ts';
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
  idempotency_key: string | null;
  fingerprint: string | null;
  actor: string;
  request_id: string;
  created_at: string;
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
 * Refusals that are no part of any account's history: of an account that is none, or that its sender may not know, and of an
 * amount that its currency does not count. They are shown by GET of their id, in no list and in no event.
 */
const shownByIdAlone = ['account_not_found', 'invalid_amount_precision', 'amount_too_large'];

export function isShownByIdAlone({ failure_code }: Pick<TransactionRecord, 'failure_code'>): boolean {
  return failure_code !== null && shownByIdAlone.includes(failure_code);
}

/** The same in SQL, of a column: true for what is listed. */
export function isListed(column: string): string {
  return `coalesce(${column}, '') not in (${shownByIdAlone.map((code) => `'${code}'`).join(', ')})`;
}

/** True where the row is a leg of a transfer: the reversal of one is not a transfer of its own. */
export function isTransferLeg(record: TransactionRecord): boolean {
  return (record.transaction_type === 'Transfer' || record.transaction_type === 'Loan Payment') && record.reverses_transaction_id === null;
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
    ...(isTransferLeg(record) ? { transfer_id: idOf('transfer', idBits(record.operation_id)) } : {}),
    ...(record.counterparty_account_id === null ? {} : { counterparty_account_id: record.counterparty_account_id }),
    ...(record.reverses_transaction_id === null ? {} : { reverses_transaction_id: record.reverses_transaction_id }),
    ...(reversedBy === undefined ? {} : { reversed_by_transaction_id: reversedBy }),
    ...(record.failure_code === null ? {} : { failure_code: record.failure_code }),
  };
}

/** The Transfer that the leg on its source stands for. */
export function toTransfer(record: TransactionRecord): Transfer {
  return {
    transfer_id: idOf('transfer', idBits(record.operation_id)),
    from_account_id: record.account_id,
    to_account_id: record.counterparty_account_id ?? '',
    amount: amountOf(record),
    currency: record.currency,
    description: record.description,
    status: record.status,
    created_at: record.created_at,
    ...(record.failure_code === null ? {} : { failure_code: record.failure_code }),
  };
}

export function toEntry(entry: EntryRecord): Entry {
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
    balance_after: fromMinor(entry.balance_after_minor, entry.currency),
    created_at: entry.created_at,
  };
}
