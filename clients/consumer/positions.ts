import type { SequencedEvent } from './event.ts';
import type { ConsumerOptions, SetAside } from './options.ts';

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
   * Waits for a concurrent transaction on the same account. A redriven event is new if its sequence was set aside, and
   * counts from then on.
   */
  claim(db: Queryable, event: SequencedEvent): Promise<boolean>;
  /** Returns the account's last sequence, or 0 if it is unknown. For the option `store.lastSequence`. */
  last(db: Queryable, accountId: string): Promise<number>;
  /**
   * Records that the event with this sequence became a dead letter, so that it leaves no gap, and can be redriven once. Does
   * nothing if the sequence was processed or set aside before. For the option `store.setAside`.
   */
  setAside(db: Queryable, event: SetAside): Promise<void>;
  /** Returns the option `store` of a consumer. */
  store(db: Queryable): Required<Pick<NonNullable<ConsumerOptions['store']>, 'lastSequence' | 'setAside'>>;
}

/**
 * Processes events exactly once, by sequence. A Postgres table of the consumer contains the last sequence of
 * each account, which the transaction that writes an event's effects updates. Even if an event is delivered
 * several times, its effects are written once. A second table contains the sequences that were set aside.
 */
export function accountPositions(table = 'account_positions'): AccountPositions {
  if (!/^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(table)) throw new Error(`not a valid table name: ${table}`);
  const made: AccountPositions = {
    async create(db) {
      await db.query(`create table if not exists ${table} (account_id text primary key, sequence bigint not null)`, []);
      await db.query(
        `create table if not exists ${table}_set_aside (account_id text, sequence bigint, event_id text not null,
           primary key (account_id, sequence))`,
        [],
      );
    },
    async claim(db, { redriven, data }) {
      if (redriven) {
        const redeemed = await db.query(`delete from ${table}_set_aside where account_id = $1 and sequence = $2`, [
          data.transaction.account_id,
          data.sequence,
        ]);
        return redeemed.rowCount === 1;
      }
      const { rowCount } = await db.query(
        `with repeated as (
           delete from ${table}_set_aside where account_id = $1 and sequence = $2
             and not exists (select from ${table} where account_id = $1 and sequence >= $2)
         ) insert into ${table} as known (account_id, sequence) values ($1, $2)
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
    async setAside(db, { account_id, sequence, id, isUnproven }) {
      if (isUnproven) {
        await db.query(
          `insert into ${table}_set_aside select $1, $2, $3
           where not exists (select from ${table} where account_id = $1 and sequence >= $2) on conflict do nothing`,
          [account_id, sequence, id],
        );
        return;
      }
      await db.query(
        `with moved as (
           insert into ${table} as known (account_id, sequence) values ($1, $2)
           on conflict (account_id) do update set sequence = excluded.sequence where known.sequence < excluded.sequence
           returning 1
         ) insert into ${table}_set_aside select $1, $2, $3 where exists (select from moved) on conflict do nothing`,
        [account_id, sequence, id],
      );
    },
    store: (db) => ({
      lastSequence: (accountId) => made.last(db, accountId),
      setAside: (event) => made.setAside(db, event),
    }),
  };
  return made;
}
