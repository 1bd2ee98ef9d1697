import type { Pool } from 'pg';
import { bigintArray } from './arrays.ts';

/** How long a holder that fell silent keeps others out, in database time. */
export const leaseMs = 3000;
/**
 * A holder trusts its lease by its own clock for this long after it ASKED for it: less than leaseMs, so that it stops
 * before another may begin, whatever the two clocks say.
 */
const trustMs = 2500;
/** How long, and how many, marks may be put off: each mark is a transaction. */
export const putOffMs = 50;
const maxPutOff = 1000;

const acquireStatement = `insert into outbox_lease (holder, expires_at)
  values ($1, clock_timestamp() + $2::int * interval '1 millisecond')
  on conflict (only_row) do update set holder = excluded.holder, expires_at = excluded.expires_at
  where outbox_lease.holder = excluded.holder or outbox_lease.expires_at <= clock_timestamp()`;

/** One statement: while it runs the lease row is locked, so no rival can take the lease between check and mark. */
const markStatement = `with lease as (
    update outbox_lease set expires_at = clock_timestamp() + $2::int * interval '1 millisecond'
    where holder = $1 and expires_at > clock_timestamp() returning holder
  ), marked as (
    update outbox_batches set published_at = clock_timestamp()
    where batch_id = any($3::bigint[]) and published_at is null and exists (select from lease)
  )
  select count(*) as held from lease`;

const beatStatement = `update outbox_lease set expires_at = clock_timestamp() + $2::int * interval '1 millisecond'
  where holder = $1 and expires_at > clock_timestamp() returning exists (select from outbox_batches where published_at is null) as waits`;

export interface Lease {
  /** True while this holder may publish, judged by its own monotonic clock. */
  held(): boolean;
  /** Takes the lease; false where another holds it. */
  acquire(): Promise<boolean>;
  /** Keeps the lease, unless it was lost. True where a batch waits to be published. */
  beat(): Promise<boolean>;
  /** Marks those put off as published, and keeps the lease; false, and nothing marked, where it was lost. One call at a time. */
  mark(): Promise<boolean>;
  /** These are published, and marked with the next ones. Returns false where that is due now. */
  putOff(batchIds: readonly bigint[]): boolean;
  /** Those put off: published, and not marked yet. */
  owed(): readonly bigint[];
  /** Marks what was put off, and lets another take over at once. */
  release(): Promise<void>;
}

/** The right to publish one schema's outbox: at most one holder at a time, by the row in outbox_lease. */
export function createLease(pool: Pool, holder: string): Lease {
  let trustedUntil = 0;
  let owed: bigint[] = [];
  let markedAt = 0;

  function settle(askedAt: number, held: boolean): boolean {
    trustedUntil = held ? Math.max(trustedUntil, askedAt + trustMs) : 0;
    return held;
  }

  async function tell(batchIds: readonly bigint[]): Promise<boolean> {
    const askedAt = performance.now();
    const result = await pool.query<{ held: bigint }>(markStatement, [holder, leaseMs, bigintArray(batchIds)]);
    return settle(askedAt, result.rows[0]?.held === 1n);
  }

  return {
    held: () => performance.now() < trustedUntil,
    async acquire() {
      const askedAt = performance.now();
      const result = await pool.query(acquireStatement, [holder, leaseMs]);
      return settle(askedAt, result.rowCount === 1);
    },
    async beat() {
      const askedAt = performance.now();
      const { rows } = await pool.query<{ waits: boolean }>({ name: 'outbox_beat', text: beatStatement, values: [holder, leaseMs] });
      settle(askedAt, rows.length === 1);
      return rows[0]?.waits === true;
    },
    async mark() {
      const count = owed.length;
      const held = await tell(owed);
      owed = owed.slice(count);
      markedAt = performance.now();
      return held;
    },
    putOff(batchIds) {
      owed.push(...batchIds);
      return owed.length <= maxPutOff && performance.now() < markedAt + putOffMs;
    },
    owed: () => owed,
    async release() {
      if (owed.length > 0) await tell(owed);
      trustedUntil = 0;
      await pool.query('update outbox_lease set expires_at = clock_timestamp() where holder = $1', [holder]);
    },
  };
}
