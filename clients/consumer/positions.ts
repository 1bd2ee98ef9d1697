import type { SequencedEvent } from './event.ts';

/** A connection, pool, or transaction of pg, or an equivalent object. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>;
}

export interface AccountPositions {
  /** Creates the table if it is missing. */
  create(db: Queryable): Promise<void>;
  /**
   * Must be called in the transaction that writes the event's effects. Returns true if the event is new, and
   * records its sequence for the account; false if it is a repeat, whose effects must not be written again.
   * Waits for a concurrent transaction on the same account. The sequence of a redriven event is lower than its
   * account's. Such an event is accepted once, by its id.
   */
  claim(db: Queryable, event: SequencedEvent): Promise<boolean>;
  /** Returns the account's last sequence, or 0 if it is unknown. For the option `store.lastSequence`. */
  last(db: Queryable, accountId: string): Promise<number>;
}

/**
 * Processes events exactly once, by sequence. A Postgres table of the consumer contains the last sequence of
 * each account, which the transaction that writes an event's effects updates. Even if an event is delivered
 * several times, its effects are written once.
 */
export function accountPositions(table = 'account_positions'): AccountPositions {
  if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(table)) throw new Error(`not a valid table name: ${table}`);
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
      // As text, because drivers return a bigint in different types.
      const { rows } = await db.query(`select sequence::text from ${table} where account_id = $1`, [accountId]);
      return Number((rows[0] as { sequence: string } | undefined)?.sequence ?? 0);
    },
  };
}
