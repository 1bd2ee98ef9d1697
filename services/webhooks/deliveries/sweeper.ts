import type { Logger } from 'pino';
import type { Pool } from '#libs/postgres/pool.ts';
import { type Sweeping, sweeping } from '#libs/service/sweeping.ts';

export interface SweeperOptions {
  pool: Pool;
  /** The retention of events in days; -1: unlimited. */
  retentionDays: number;
  logger: Logger;
}

const deliveredDays = 7;
const failedDays = 30;
const chunk = 5_000;

/** Deletes one chunk of each kind of expired rows. Returns the number of rows. */
export async function sweep(pool: Pool, retentionDays: number): Promise<number> {
  const counts = await Promise.all([
    pool.query(
      `delete from deliveries where ordinal = any(array(select ordinal from deliveries where status = 'Delivered' and finished_at < clock_timestamp() - make_interval(days => $1) limit ${chunk}))`,
      [deliveredDays],
    ),
    pool.query(
      `delete from deliveries where ordinal = any(array(select ordinal from deliveries where status = 'Failed' and finished_at < clock_timestamp() - make_interval(days => $1) limit ${chunk}))`,
      [failedDays],
    ),
    pool.query(
      `delete from deliveries where ordinal = any(array(select d.ordinal from webhooks w join deliveries d using (webhook_id) where w.status = 'Deleted' limit ${chunk}))`,
    ),
    retentionDays === -1 ? undefined : deleteEvents(pool, retentionDays),
  ]);
  return counts.reduce((sum, result) => sum + (result?.rowCount ?? 0), 0);
}

/** By time, oldest first. */
function deleteEvents(pool: Pool, days: number) {
  return pool.query(
    `with old as (
       select position from events where occurred_at < clock_timestamp() - make_interval(days => $1) order by occurred_at, position limit ${chunk}
     ), subjects as (
       delete from event_subjects s using events e, unnest(e.account_ids || e.client_ids) as named (subject)
       where e.position in (select position from old) and s.subject = named.subject and s.position = e.position
     ) delete from events where position in (select position from old)`,
    [days],
  );
}

/** Sweeps every minute, and at once again while there is more. */
export function createSweeper({ pool, retentionDays, logger }: SweeperOptions): Sweeping {
  return sweeping(async () => (await sweep(pool, retentionDays)) > 0, 60_000, logger);
}
