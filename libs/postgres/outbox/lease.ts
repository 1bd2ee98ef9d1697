import type { Pool } from 'pg';

/** How long the lease of a holder that no longer renews it excludes others, in database time. */
const leaseMs = 3000;
/**
 * How long a holder relies on its lease by its own clock, counted from the request for it. This is less than leaseMs,
 * so that the holder stops before another one can start, whatever the difference between the clocks.
 */
const trustMs = 2500;

/** The holder after a release that left nothing in doubt. */
const nobody = 'nobody';

const acquireStatement = `with former as (select holder, expires_at from outbox_lease)
  insert into outbox_lease (holder, expires_at) values ($1, clock_timestamp() + $2::int * interval '1 millisecond')
  on conflict (only_row) do update set holder = excluded.holder, expires_at = excluded.expires_at
  where outbox_lease.holder = excluded.holder or outbox_lease.expires_at <= clock_timestamp()
  returning (select expires_at from former where holder <> all(array[$1, '${nobody}'])) as former_ended_at`;

/**
 * A single statement locks the lease row while it runs, so no other process can take the lease between check and mark.
 */
const markStatement = `with lease as (
    update outbox_lease set expires_at = clock_timestamp() + $2::int * interval '1 millisecond'
    where holder = $1 and expires_at > clock_timestamp() returning holder
  ), marked as (
    update outbox_batches set published_at = clock_timestamp()
    where batch_id = any($3::bigint[]) and published_at is null and exists (select from lease)
  )
  select count(*) as held from lease`;

export interface Lease {
  /** True while this holder may publish, by its own monotonic clock. */
  held(): boolean;
  /**
   * Takes the lease, also from a holder that has not renewed it in time. Returns false if another process
   * holds it. `formerEndedAt`: when the lease of another process ended that may have left messages in doubt.
   */
  acquire(): Promise<false | { formerEndedAt: string | null }>;
  /** Marks batches as published and renews the lease. Returns false, with nothing marked, if the lease was lost. */
  mark(batchIds: readonly bigint[]): Promise<boolean>;
  /** Ends the lease. `isInDoubt`: a message of this holder may still be written. */
  release(isInDoubt: boolean): Promise<void>;
}

/** The right to publish one schema's outbox, stored in the row of outbox_lease. It has at most one holder at a time. */
export function createLease(pool: Pool, holder: string): Lease {
  let trustedUntil = 0;
  let releasedAt = -Infinity;

  function settle(askedAt: number, answer: boolean): boolean {
    // The response to an earlier heartbeat may arrive after the release.
    const held = answer && askedAt > releasedAt;
    trustedUntil = held ? Math.max(trustedUntil, askedAt + trustMs) : 0;
    return held;
  }

  async function mark(batchIds: readonly bigint[]): Promise<boolean> {
    const askedAt = performance.now();
    const { rows } = await pool.query<{ held: bigint }>({
      name: 'outbox_mark',
      text: markStatement,
      values: [holder, leaseMs, batchIds],
    });
    return settle(askedAt, rows[0]?.held === 1n);
  }

  return {
    held: () => performance.now() < trustedUntil,
    async acquire() {
      const askedAt = performance.now();
      const { rows } = await pool.query<{ former_ended_at: string | null }>(acquireStatement, [holder, leaseMs]);
      return settle(askedAt, rows.length === 1) && { formerEndedAt: rows[0]?.former_ended_at ?? null };
    },
    mark,
    async release(isInDoubt) {
      trustedUntil = 0;
      releasedAt = performance.now();
      await pool.query('update outbox_lease set expires_at = clock_timestamp(), holder = $2 where holder = $1', [
        holder,
        isInDoubt ? holder : nobody,
      ]);
    },
  };
}
