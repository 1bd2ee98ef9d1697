import type pg from 'pg';
import type { BankEntry } from '../bank-reads.ts';
import type { ReconciledStore } from '../reconcile.ts';

/** A store of entries in Postgres. It has no primary key, so that a test can plant any fault. */

export type Stored = Pick<BankEntry, 'account_id' | 'sequence' | 'direction' | 'amount' | 'effective_date'>;

export const createWarehouse =
  'create table warehouse (account_id text, sequence bigint, direction text, amount numeric, effective_date text)';

export async function insertEntry(pool: Pick<pg.Pool, 'query'>, entry: Stored): Promise<void> {
  const { account_id, sequence, direction, amount, effective_date } = entry;
  const values = [account_id, sequence, direction, amount, effective_date];
  await pool.query('insert into warehouse values ($1, $2, $3, $4, $5)', values);
}

export function warehouseStore(pool: Pick<pg.Pool, 'query'>, changes: Partial<ReconciledStore> = {}): ReconciledStore {
  const rows = async function* <T>(text: string, values: unknown[]): AsyncGenerator<T, void> {
    for (const row of (await pool.query(text, values)).rows) yield row as T;
  };
  return {
    accounts: (date) =>
      rows(
        `select account_id, sum(case direction when 'credit' then amount else -amount end)::text as sum, count(*),
           min(sequence) as first_sequence, max(sequence) as last_sequence
         from warehouse where effective_date = $1 group by account_id order by account_id`,
        [date],
      ),
    entries: ({ account_id, date, from, to }) =>
      rows(
        `select sequence, direction, amount::text, effective_date from warehouse
         where account_id = $1 and (effective_date = $2 or sequence between $3 and $4) order by sequence`,
        [account_id, date, from, to],
      ),
    ...changes,
  };
}
