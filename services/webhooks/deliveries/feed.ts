import { typesOf } from '#libs/contracts/webhooks.ts';
import { Where } from '#libs/postgres/keyset.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';

/**
 * Creates deliveries for events, for each webhook in the order of its feeds: one chunk at a time, with the
 * position stored in the same transaction.
 */

/** The number of events examined in one transaction. */
const chunk = 500;
/** The maximum number of Pending deliveries of one webhook. Further events stay in the table of events. */
const maxPending = 2_000;

interface FeedRow {
  feed_id: bigint;
  webhook_id: string;
  client_id: string | null;
  event_types: string[];
  position: bigint;
  until_position: bigint | null;
  occurred_at: string | null;
  from_time: string | null;
  until_time: string | null;
}

/** Selects a feed with new events, of an Active webhook that no other process is feeding or finishing. */
const nextFeed = `select f.*, w.client_id, w.event_types from webhooks w
  cross join lateral (
    select * from feeds f where f.webhook_id = w.webhook_id and (
      f.until_time is not null
      or (f.until_position is not null and f.position >= f.until_position)
      or (w.client_id is null and f.position < (select position from event_head))
      or (w.client_id is not null
        and exists (select from event_subjects s where s.subject = w.client_id and s.position > f.position))
    ) order by f.until_time is not null, f.feed_id limit 1
  ) f
  where w.status = 'Active' and w.webhook_id <> all($1::text[])
    and not exists (
      select from deliveries d where d.webhook_id = w.webhook_id and d.status = 'Pending' offset ${maxPending - 1})
  limit 1 for update of w skip locked`;

/**
 * Feeds one webhook and returns its id, if there was anything to do. `except`: webhooks that already had their
 * turn.
 */
function feedOne(pool: Pool, except: readonly string[]): Promise<string | undefined> {
  return transaction(pool, async (client) => {
    const [feed] = (await client.query<FeedRow>(nextFeed, [except])).rows;
    if (!feed) return undefined;
    const { looked, last, last_time } = await insertDeliveries(client, feed);
    const isLive = feed.until_time === null && feed.until_position === null;
    if (looked < chunk && !isLive) await client.query('delete from feeds where feed_id = $1', [feed.feed_id]);
    else if (last !== null) {
      const values = [feed.feed_id, last, last_time];
      await client.query('update feeds set position = $2, occurred_at = $3 where feed_id = $1', values);
    }
    return feed.webhook_id;
  });
}

/** Feeds each webhook once. Returns whether any had something to do. */
export async function feedAll(pool: Pool): Promise<boolean> {
  const fed: string[] = [];
  for (let next = await feedOne(pool, fed); next !== undefined; next = await feedOne(pool, fed)) fed.push(next);
  return fed.length > 0;
}

interface Looked {
  looked: number;
  last: bigint | null;
  last_time: string | null;
}

/**
 * Inserts deliveries for the next positions of a feed, in its own order: that of a client by its subjects, replays
 * for the whole bank by time. Returns how many positions were looked at, and the last of them.
 */
async function insertDeliveries(
  client: Queries,
  { webhook_id, client_id, event_types, position, until_position, occurred_at, from_time, until_time }: FeedRow,
): Promise<Looked> {
  const window = new Where();
  const byTime = client_id === null && until_time !== null;
  const order = byTime ? 'occurred_at, position' : 'position';
  const after = [...(byTime ? [occurred_at] : []), position].map((value) => window.parameter(value));
  window.conditions.push(`(${order}) > (${after.join(', ')})`);
  if (byTime) window.add('occurred_at < ?', until_time);
  if (client_id !== null) window.add('subject = ?', client_id);
  if (until_position !== null) window.add('position <= ?', until_position);
  const positions =
    client_id === null
      ? 'position, position as event_position, occurred_at from events'
      : 'position, event_position, null::timestamptz as occurred_at from event_subjects';
  const [types, from, until, webhook] = [
    [...new Set(event_types.flatMap(typesOf))],
    from_time,
    until_time,
    webhook_id,
  ].map((value) => window.parameter(value));
  const { rows } = await client.query<Looked>(
    `with looked_at as materialized (
       select row_number() over (order by ${order}) as n, w.*
       from (select ${positions} where ${window} order by ${order} limit ${chunk}) w
     ), made as (
       insert into deliveries (webhook_id, event_id, event_position, event_type, ordering_key, next_attempt_at)
       select ${webhook}, e.event_id, e.position, e.type, e.subject,
         case when row_number() over (partition by e.subject order by n) = 1 and not exists (
           select from deliveries d
           where d.webhook_id = ${webhook} and d.ordering_key = e.subject and d.status = 'Pending'
         ) then clock_timestamp() end
       from looked_at join events e on e.position = event_position
       where e.type = any(${types}) and e.occurred_at >= coalesce(${from}, '-infinity'::timestamptz)
         and e.occurred_at < coalesce(${until}, 'infinity'::timestamptz)
       order by n
     )
     select count(*)::int as looked, (array_agg(position order by n desc))[1] as last,
       (array_agg(occurred_at order by n desc))[1] as last_time from looked_at`,
    window.values,
  );
  return rows[0] as Looked;
}
