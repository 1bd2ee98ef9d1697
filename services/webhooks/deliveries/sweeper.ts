import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';

const chunk = 5_000;

/** ctid: a row that another process changes meanwhile is left to a later sweep. */
const deleteFinished = `delete from deliveries where ctid = any(array(
  select ctid from deliveries
  where status = $1 and finished_at < clock_timestamp() - make_interval(days => $2) limit ${chunk}))`;

const deleteOfDeleted = `delete from deliveries where ctid = any(array(
  select d.ctid from webhooks w join deliveries d using (webhook_id) where w.status = 'Deleted' limit ${chunk}))`;

/** Events of a live feed that wait behind a refused event of their account, and never had a delivery. */
export interface Expired {
  webhook_id: string;
  events: number;
}

/** Oldest first. The lock excludes a transaction that assigns an event to another owner while it is deleted. */
const deleteEvents = (pool: Pool, retentionDays: number) =>
  transaction(pool, async (client) => {
    await client.query('select from event_head for update');
    const { rows } = await client.query<Expired & { deleted: number }>(
      `with old as materialized (
         select * from events where occurred_at < clock_timestamp() - make_interval(days => $1)
         order by occurred_at, position limit ${chunk}
       ), subjects as (
         delete from event_subjects where event_position = any(array(select position from old))
       ), deleted as (
         delete from events where position = any(array(select position from old))
       ), expired as (
         select h.webhook_id, count(*)::int as events
         from old join held_keys h on h.ordering_key = old.subject
         join feeds f on f.feed_id = h.feed_id and f.until_time is null and not f.pauses @> old.occurred_at
         join webhooks w on w.webhook_id = h.webhook_id
         left join event_subjects s on s.subject = w.client_id and s.event_position = old.position
         where case when w.client_id is null then old.position else s.position end between h.position + 1 and f.position
           and exists (select from unnest(w.event_types) as t where old.type like replace(replace(t, '_', '\\_'), '*', '%'))
         group by h.webhook_id
       ) select (select count(*)::int from old) as deleted, webhook_id, events from (select) one left join expired on true`,
      [retentionDays],
    );
    return { rowCount: rows[0]?.deleted ?? 0, expired: rows.filter(({ webhook_id }) => webhook_id !== null) };
  });

/**
 * Deletes one chunk of each kind of expired rows. Returns whether there were any. -1 days: unlimited. `onExpired` is told
 * about the events that a webhook will never receive.
 */
export async function sweep(
  pool: Pool,
  retentionDays: number,
  onExpired: (expired: Expired) => void,
): Promise<boolean> {
  const [events, ...others] = await Promise.all([
    retentionDays === -1 ? { rowCount: 0, expired: [] } : deleteEvents(pool, retentionDays),
    pool.query(deleteFinished, ['Delivered', 7]),
    pool.query(deleteFinished, ['Failed', 30]),
    pool.query(deleteOfDeleted),
  ]);
  for (const { webhook_id, events: count } of events.expired) onExpired({ webhook_id, events: count });
  return [events, ...others].some(({ rowCount }) => rowCount);
}
