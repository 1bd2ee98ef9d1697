import { formatId, idBits } from '#libs/contracts/ids.ts';
import type { EntryLine } from '#libs/contracts/statements.ts';
import type { TransactionType } from '#libs/contracts/transactions.ts';
import { type EntryRecord, isOfTransfer, toEntry } from '../domain/records.ts';
import { entryColumns, prefixed, selectEntries, toEntryRecord } from '../rows.ts';

/** Selects entries with all fields of a printed line. */

export interface LineRow extends EntryRecord {
  transaction_type: TransactionType;
  description: string | null;
  reference: string | null;
  reverses_transaction_id: string | null;
  reversed_by: string | null;
  counterparty_account_id: string | null;
  counterparty_account_number: string | null;
}

/** SQL for this column of the reversal of transaction `t`, if there is one. */
export const selectReversal = (
  what: string,
) => `(select r.${what} from transactions r where id_key(r.reverses_transaction_id) = id_key(t.transaction_id)
  and r.reverses_transaction_id is not null and r.status = 'Completed')`;

/**
 * Selects a page of entries with their transactions, their reversals, and the other account's number: three lookups by
 * an index per row.
 */
export function selectLines(entries: string, order: string): string {
  const ofTransaction = `, t.transaction_type, t.description, t.reference, t.reverses_transaction_id, ${selectReversal('transaction_id')} as reversed_by, t.counterparty_account_id, c.account_number as counterparty_account_number`;
  return `${selectEntries(`(${entries}) e`, ofTransaction)}
      left join lateral (select * from transactions t where id_key(t.transaction_id) = id_key(e.transaction_id) offset 0) t on true
      left join accounts c on c.account_id = t.counterparty_account_id
    order by ${order}`;
}

/**
 * SQL for what the balance of value dates before that day has, compared with the balance before that sequence, which is the
 * first that was posted on the day or later. `dated`: the account's entries with value dates of their own.
 */
export function datedDifference(sequence: string, day: string): string {
  return `coalesce((select sum(case when (direction = 'credit') = (effective_date < ${day}) then amount_minor else -amount_minor end)
      from dated where (sequence >= ${sequence}) = (effective_date < ${day})), 0)`;
}

/** The value dates of a list: from $from (inclusive) to before $to, in which these sequences were posted. Names of parameters. */
export interface DayRange {
  from: string;
  to: string;
  first: string;
  beyond: string;
}

/**
 * Selects the entries of one account with these value dates: those posted on these days without another value date, a range
 * of sequences, and the few others.
 */
export function selectDays(where: string, { from, to, first, beyond }: DayRange, order: string, limit: string): string {
  const part = (source: string, condition: string) =>
    `(select ${entryColumns} from ${source} where ${where} and ${condition} order by ${order} limit ${limit})`;
  return `select * from (
    ${part('entries left join dated_entries using (account_id, sequence)', `effective_date is null and sequence >= ${first} and sequence < ${beyond}`)}
    union all ${part('dated_entries join entries using (account_id, sequence)', `effective_date >= ${from}::date and effective_date < ${to}::date`)}
  ) days order by ${order} limit ${limit}`;
}

/** Customers do not see why staff reversed something. */
export function toLine(
  {
    transaction_type,
    description,
    reference,
    reverses_transaction_id,
    reversed_by,
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
    ...(reverses_transaction_id === null ? {} : { reverses_transaction_id: prefixed('txn', reverses_transaction_id) }),
    ...(reversed_by === null ? {} : { reversed_by_transaction_id: prefixed('txn', reversed_by) }),
  };
}
