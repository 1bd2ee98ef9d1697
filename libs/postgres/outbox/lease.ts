import type { Pool } from 'pg';
import { bigintArray } from '../arrays.ts';

/** How long a holder that fell silent keeps others out, in database time. */
const leaseMs = 3000;
/**
 * A holder trusts its lease by its own clock for this long after it ASKED for it: less than leaseMs, so that it stops
 * before another may begin, whatever the two clocks say.
 */
const trustMs = 2500;

/** Who stops gives the lease back: the row then names nobody. */
const nobody = '';

const acquireStatement = `with former as (select holder from outbox_lease)
  insert into outbox_lease (holder, expires_at) values ($1, clock_timestamp() + $2::int * interval '1 millisecond')
  on conflict (only_row) do update set holder = excluded.holder, expires_at = excluded.expires_at
  where outbox_lease.holder = excluded.holder or outbox_lease.expires_at <= clock_timestamp()
  returning (select holder from former) as former`;

/** One statement: while it runs the lease row is locked, so no rival can take the lease between check and mark. */
const markStatement = `with lease as (
    update outbox_lease set expires_at = clock_timestamp() + $2::int * interval '1 millisecond'
    where holder = $1 and expires_at > clock_timestamp() returning holder
  ), marked as (
    update outbox_batches set published_at = clock_timestamp()
    where batch_id = any($3::bigint[]) and published_at is null and exists (select from lease)
  )
  select count(*) as held from lease`;

export interface Lease {
  /** True while this holder may publish, judged by its own monotonic clock. */
  held(): boolean;
  /** Takes the lease, maybe from another holder that fell silent; false where another holds it. */
  acquire(): Promise<false | { isFromSilent: boolean }>;
  /** Marks these as published, and keeps the lease; false, and nothing marked, where it was lost. */
  mark(batchIds: readonly bigint[]): Promise<boolean>;
  /** Marks these as published, and lets another take over at once. */
  release(batchIds: readonly bigint[]): Promise<void>;
}

/** The right to publish one schema's outbox: at most one holder at a time, by the row in outbox_lease. */
export function createLease(pool: Pool, holder: string): Lease {
  let trustedUntil = 0;

  function settle(askedAt: number, held: boolean): boolean {
    trustedUntil = held ? Math.max(trustedUntil, askedAt + trustMs) : 0;
    return held;
  }

  async function mark(batchIds: readonly bigint[]): Promise<boolean> {
    const askedAt = performance.now();
    const { rows } = await pool.query<{ held: bigint }>({
      name: 'outbox_mark',
      text: markStatement,
      values: [holder, leaseMs, bigintArray(batchIds)],
    });
    return settle(askedAt, rows[0]?.held === 1n);
  }

  return {
    held: () => performance.now() < trustedUntil,
    async acquire() {
      const askedAt = performance.now();
      const { rows } = await pool.query<{ former: string | null }>(acquireStatement, [holder, leaseMs]);
      const former = rows[0]?.former ?? nobody;
      return settle(askedAt, rows.length === 1) && { isFromSilent: former !== nobody && former !== holder };
    },
    mark,
    async release(batchIds) {
      if (batchIds.length > 0) await mark(batchIds);
      trustedUntil = 0;
      await pool.query('update outbox_lease set holder = $2, expires_at = clock_timestamp() where holder = $1', [
        holder,
        nobody,
      ]);
    },
  };
}
