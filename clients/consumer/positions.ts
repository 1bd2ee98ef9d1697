import type { SequencedEvent } from './event.ts';

/** A connection, a pool or a transaction of pg, or what behaves like one. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>;
}

export interface AccountPositions {
  /** Makes the table where it is missing. */
  create(db: Queryable): Promise<void>;
  /**
   * Inside of the transaction that writes what the event causes: true when the event is new, and
   * its account is now as far as its sequence; false when it was there before, and nothing may be
   * written again. Waits for a transaction that is at the same account. What is redriven is behind
   * the account's sequence: it is new once, by its id.
   */
  claim(db: Queryable, event: SequencedEvent): Promise<boolean>;
  /** How far the account is; 0 when it is not known. For the option `store.lastSequence`. */
  last(db: Queryable, accountId: string): Promise<number>;
}

/**
 * Exactly once by sequence: how far each account is, in a Postgres table of the consumer's own,
 * moved by the very transaction that writes what an event causes. However often an event is
 * delivered, its transaction takes effect once.
 */
export function accountPositions(table = 'account_positions'): AccountPositions {
  if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(table)) throw new Error(`not a plain name of a table: ${table}`);
  return {
    async create(db) {
      await db.query(`create table if not exists ${table} (account_id text primary key, sequence bigint not null)`, []);
      await db.query(`create table if not exists ${table}_redriven (event_id text primary key)`, []);
    },
    async claim(db, { id, redriven, data }) {
      if (redriven) {
        const inserted = await db.query(`insert into ${table}_redriven values ($1) on conflict do nothing`, [id]);
        return inserted.rowCount === 1;
      }
      const { rowCount } = await db.query(
        `insert into ${table} as known (account_id, sequence) values ($1, $2)
         on conflict (account_id) do update set sequence = excluded.sequence where known.sequence < excluded.sequence`,
        [data.transaction.account_id, data.sequence],
      );
      return rowCount === 1;
    },
    async last(db, accountId) {
      const { rows } = await db.query(`select sequence::int from ${table} where account_id = $1`, [accountId]);
      return (rows[0] as { sequence: number } | undefined)?.sequence ?? 0;
    },
  };
}
