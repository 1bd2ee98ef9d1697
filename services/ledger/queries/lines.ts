import { formatId, idBits } from '#libs/contracts/ids.ts';
import type { EntryLine } from '#libs/contracts/statements.ts';
import type { TransactionType } from '#libs/contracts/transactions.ts';
import { type EntryRecord, isOfTransfer, toEntry } from '../domain/records.ts';
import { entryColumns, prefixed, qualifyColumns, toEntryRecord } from '../rows.ts';

/** Selects entries with all fields of a printed line. */

export interface LineRow extends EntryRecord {
  transaction_type: TransactionType;
  description: string | null;
  reference: string | null;
  reverses_transaction_id: string | null;
  counterparty_account_id: string | null;
  counterparty_account_number: string | null;
}

/**
 * Selects a page of entries with their transactions and the other account's number: two primary-key lookups per
 * row.
 */
export function selectLines(entries: string, order: string): string {
  return `select ${qualifyColumns('e', entryColumns)}, t.transaction_type, t.description, t.reference, t.reverses_transaction_id, t.counterparty_account_id, c.account_number as counterparty_account_number
    from (${entries}) e
      left join lateral (select * from transactions t where id_key(t.transaction_id) = id_key(e.transaction_id) offset 0) t on true
      left join accounts c on c.account_id = t.counterparty_account_id
    order by ${order}`;
}

/** Customers do not see why staff reversed something. */
export function toLine(
  {
    transaction_type,
    description,
    reference,
    reverses_transaction_id,
    counterparty_account_id,
    counterparty_account_number,
    ...entry
  }: LineRow,
  bound: string | undefined,
): EntryLine {
  const isHidden = bound !== undefined && reverses_transaction_id !== null;
  return {
    ...toEntry(toEntryRecord(entry)),
    transaction_type,
    description: isHidden ? null : description,
    reference,
    ...(counterparty_account_id === null ? {} : { counterparty_account_id: prefixed('acc', counterparty_account_id) }),
    ...(counterparty_account_number === null ? {} : { counterparty_account_number }),
    ...(isOfTransfer({ transaction_type })
      ? { transfer_id: formatId('transfer', idBits(prefixed('opr', entry.operation_id))) }
      : {}),
  };
}
