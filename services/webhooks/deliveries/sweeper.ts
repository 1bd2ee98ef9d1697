import type { Pool } from '#libs/postgres/pool.ts';

const chunk = 5_000;

/** ctid: a row that another process changes meanwhile is left to a later sweep. */
const deleteFinished = `delete from deliveries where ctid = any(array(
  select ctid from deliveries
  where status = $1 and finished_at < clock_timestamp() - make_interval(days => $2) limit ${chunk}))`;

const deleteOfDeleted = `delete from deliveries where ctid = any(array(
  select d.ctid from webhooks w join deliveries d using (webhook_id) where w.status = 'Deleted' limit ${chunk}))`;

/** Oldest first. */
const deleteEvents = `with old as (
    select position from events where occurred_at < clock_timestamp() - make_interval(days => $1)
    order by occurred_at, position limit ${chunk}
  ), subjects as (
    delete from event_subjects s using events e, unnest(e.account_ids || e.client_ids) as named (subject)
    where e.position in (select position from old) and s.subject = named.subject and s.position = e.position
  ) delete from events where position in (select position from old)`;

/** Deletes one chunk of each kind of expired rows. Returns whether there were any. -1 days: unlimited. */
export async function sweep(pool: Pool, retentionDays: number): Promise<boolean> {
  const results = await Promise.all([
    pool.query(deleteFinished, ['Delivered', 7]),
    pool.query(deleteFinished, ['Failed', 30]),
    pool.query(deleteOfDeleted),
    ...(retentionDays === -1 ? [] : [pool.query(deleteEvents, [retentionDays])]),
  ]);
  return results.some(({ rowCount }) => rowCount);
}
