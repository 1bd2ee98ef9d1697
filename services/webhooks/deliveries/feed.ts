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
      or (w.client_id is not null and exists (select from event_subjects s where s.subject = w.client_id and s.position > f.position))
    ) order by f.until_time is not null, f.feed_id limit 1
  ) f
  where w.status = 'Active' and w.webhook_id <> all($1::text[])
    and not exists (select from deliveries d where d.webhook_id = w.webhook_id and d.status = 'Pending' offset ${maxPending - 1})
  limit 1 for update of w skip locked`;

/**
 * Feeds one webhook and returns its id, if there was anything to do. `except`: webhooks that already had their
 * turn.
 */
function feedOne(pool: Pool, except: readonly string[]): Promise<string | undefined> {
  return transaction(pool, async (client) => {
    const {
      rows: [feed],
    } = await client.query<FeedRow>(nextFeed, [except]);
    if (!feed) return undefined;
    const { looked, last, last_time } = await insertDeliveries(client, feed);
    const isLive = feed.until_time === null && feed.until_position === null;
    if (looked < chunk && !isLive) await client.query('delete from feeds where feed_id = $1', [feed.feed_id]);
    else if (last !== null)
      await client.query('update feeds set position = $2, occurred_at = $3 where feed_id = $1', [
        feed.feed_id,
        last,
        last_time,
      ]);
    return feed.webhook_id;
  });
}

/** Feeds each webhook once. Returns whether any had something to do. */
export async function feedAll(pool: Pool): Promise<boolean> {
  const fed: string[] = [];
  for (let next = await feedOne(pool, fed); next !== undefined; next = await feedOne(pool, fed)) fed.push(next);
  return fed.length > 0;
}

/**
 * Returns the next positions of a feed, in its own order, with their events. Replays for the whole bank are
 * ordered by time.
 */
function windowOf(feed: FeedRow, values: Where): { select: string; order: string } {
  const { client_id, position, until_position, occurred_at, until_time } = feed;
  const [subject, after, until] = [client_id, position, until_position].map((value) =>
    value === null ? '' : values.parameter(value),
  );
  const upTo = until === '' ? '' : `and position <= ${until}`;
  const byPosition = `position > ${after} ${upTo} order by position limit ${chunk}`;
  if (client_id !== null)
    return {
      select: `select position, event_position, null::timestamptz as occurred_at from event_subjects where subject = ${subject} and ${byPosition}`,
      order: 'position',
    };
  if (until_time === null)
    return {
      select: `select position, position as event_position, null::timestamptz as occurred_at from events where ${byPosition}`,
      order: 'position',
    };
  const byTime = `(occurred_at, position) > (${values.parameter(occurred_at)}, ${after}) and occurred_at < ${values.parameter(until_time)}`;
  return {
    select: `select position, position as event_position, occurred_at from events where ${byTime} order by occurred_at, position limit ${chunk}`,
    order: 'occurred_at, position',
  };
}

async function insertDeliveries(
  client: Queries,
  feed: FeedRow,
): Promise<{ looked: number; last: bigint | null; last_time: string | null }> {
  const values = new Where();
  const webhook = values.parameter(feed.webhook_id);
  const { select, order } = windowOf(feed, values);
  const meant = [`e.type = any(${values.parameter([...new Set(feed.event_types.flatMap(typesOf))])})`];
  if (feed.from_time !== null) meant.push(`e.occurred_at >= ${values.parameter(feed.from_time)}`);
  if (feed.until_time !== null) meant.push(`e.occurred_at < ${values.parameter(feed.until_time)}`);
  const { rows } = await client.query<{ looked: number; last: bigint | null; last_time: string | null }>(
    `with looked_at as materialized (select row_number() over (order by ${order}) as n, w.* from (${select}) w),
     made as (
       insert into deliveries (webhook_id, event_id, event_position, event_type, ordering_key, next_attempt_at)
       select ${webhook}, e.event_id, e.position, e.type, e.subject,
         case when row_number() over (partition by e.subject order by n) = 1
           and not exists (select from deliveries d where d.webhook_id = ${webhook} and d.ordering_key = e.subject and d.status = 'Pending') then clock_timestamp() end
       from looked_at join events e on e.position = event_position where ${meant.join(' and ')} order by n
     )
     select count(*)::int as looked, (array_agg(position order by n desc))[1] as last, (array_agg(occurred_at order by n desc))[1] as last_time from looked_at`,
    values.values,
  );
  return rows[0] ?? { looked: 0, last: null, last_time: null };
}
