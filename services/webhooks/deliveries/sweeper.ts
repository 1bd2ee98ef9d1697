import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';

const chunk = 5_000;

/** ctid: a row that another process changes meanwhile is left to a later sweep. */
const deleteFinished = `delete from deliveries where ctid = any(array(
  select ctid from deliveries
  where status = $1 and finished_at < clock_timestamp() - make_interval(days => $2) limit ${chunk}))`;

const deleteOfDeleted = `delete from deliveries where ctid = any(array(
  select d.ctid from webhooks w join deliveries d using (webhook_id) where w.status = 'Deleted' limit ${chunk}))`;

/** Oldest first. The lock excludes a transaction that assigns an event to another owner while it is deleted. */
const deleteEvents = (pool: Pool, retentionDays: number) =>
  transaction(pool, async (client) => {
    await client.query('select from event_head for update');
    return client.query(
      `with old as materialized (
         select position from events where occurred_at < clock_timestamp() - make_interval(days => $1)
         order by occurred_at, position limit ${chunk}
       ), subjects as (
         delete from event_subjects where event_position = any(array(select position from old))
       ) delete from events where position = any(array(select position from old))`,
      [retentionDays],
    );
  });

/** Deletes one chunk of each kind of expired rows. Returns whether there were any. -1 days: unlimited. */
export async function sweep(pool: Pool, retentionDays: number): Promise<boolean> {
  const results = await Promise.all([
    pool.query(deleteFinished, ['Delivered', 7]),
    pool.query(deleteFinished, ['Failed', 30]),
    pool.query(deleteOfDeleted),
    ...(retentionDays === -1 ? [] : [deleteEvents(pool, retentionDays)]),
  ]);
  return results.some(({ rowCount }) => rowCount);
}
