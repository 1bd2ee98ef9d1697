import { matchEventTypes } from '#libs/contracts/event-feed.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';

/**
 * Creates deliveries for events, for each webhook in the order of its feeds: one chunk at a time, with the
 * position stored in the same transaction.
 */

/** The number of events examined in one transaction. */
const chunk = 500;
/** The maximum number of Pending deliveries of one webhook. Further events stay in the table of events. */
const maxPending = 2_000;

interface Feed {
  feed_id: bigint;
  webhook_id: string;
  client_id: string | null;
  event_types: string[];
  is_replay: boolean;
}

/** Selects a feed with an end or new events, of an Active webhook that no other process is feeding or finishing. */
const nextFeed = `select f.feed_id, w.webhook_id, w.client_id, w.event_types, f.until_time is not null as is_replay
  from webhooks w cross join lateral (
    select * from feeds f where f.webhook_id = w.webhook_id and (
      f.until_time is not null or f.until_position is not null
      or (w.client_id is null and f.position < (select position from event_head))
      or (w.client_id is not null
        and exists (select from event_subjects s where s.subject = w.client_id and s.position > f.position))
    ) order by f.until_time is not null, f.feed_id limit 1
  ) f
  where w.status = 'Active' and w.webhook_id <> all($1::text[])
    and not exists (
      select from deliveries d where d.webhook_id = w.webhook_id and d.status = 'Pending' offset ${maxPending - 1})
  limit 1 for update of w skip locked`;

/** Selects the next positions of a feed `f`: those of a client by its subjects, replays for the whole bank by time. */
function nextPositions({ client_id, is_replay }: Feed): string {
  const range = 'position > f.position and position <= least(f.until_position, (select position from event_head))';
  const ofClient = `subject = w.client_id and ${range}`;
  if (client_id !== null)
    return `position, event_position, null::timestamptz from event_subjects where ${ofClient} order by position`;
  if (!is_replay) return `position, position, null::timestamptz from events where ${range} order by position`;
  return `position, position, occurred_at from events
    where (occurred_at, position) > (f.from_time, f.position) and occurred_at < f.until_time
    order by occurred_at, position`;
}

/**
 * Inserts the deliveries of the next positions of a feed, and advances it: past the last one or, if the events up to
 * the head are no longer kept, to the head. A feed with an end is deleted when it is reached.
 */
const insertDeliveries = (feed: Feed): string => `with examined as materialized (
    select f.*, p.*, row_number() over (order by p.reached_time, p.reached) as n
    from feeds f join webhooks w using (webhook_id)
    cross join lateral (select ${nextPositions(feed)} limit ${chunk}) p (reached, event_position, reached_time)
    where f.feed_id = $1
  ), chosen as materialized (
    select x.webhook_id, w.last_ordinal + row_number() over (order by n) as ordinal, e.event_id, e.position, e.type, e.subject,
      case when row_number() over (partition by e.subject order by n) = 1 and not exists (
        select from deliveries d
        where d.webhook_id = x.webhook_id and d.ordering_key = e.subject and d.status = 'Pending'
      ) then clock_timestamp() end as due_at
    from examined x join webhooks w using (webhook_id) join events e on e.position = x.event_position
    where e.type = any($2) and (x.until_time is null or e.occurred_at >= x.from_time and e.occurred_at < x.until_time)
  ), counted as (
    update webhooks w set last_ordinal = c.last from (select webhook_id, max(ordinal) as last from chosen group by 1) c
    where w.webhook_id = c.webhook_id
  ), inserted as (
    insert into deliveries (webhook_id, ordinal, event_id, event_position, event_type, ordering_key, next_attempt_at)
    select webhook_id, ordinal, event_id, position, type, subject, due_at from chosen order by ordinal
  ), ended as (
    delete from feeds where feed_id = $1 and (until_position is not null or until_time is not null)
      and (select count(*) from examined) < ${chunk} returning 1
  ) update feeds f set position = coalesce(x.reached, h.position), from_time = coalesce(x.reached_time, f.from_time)
    from event_head h left join (select * from examined order by n desc limit 1) x on true
    where f.feed_id = $1 and not exists (select from ended)`;

/** Feeds each webhook once, in a transaction of its own. Returns whether any had something to do. */
export async function feedAll(pool: Pool): Promise<boolean> {
  for (const fed: string[] = []; ; ) {
    const webhookId = await transaction(pool, async (client) => {
      const [feed] = (await client.query<Feed>({ name: 'next_feed', text: nextFeed, values: [fed] })).rows;
      if (feed) await client.query(insertDeliveries(feed), [feed.feed_id, feed.event_types.flatMap(matchEventTypes)]);
      return feed?.webhook_id;
    });
    if (webhookId === undefined) return fed.length > 0;
    fed.push(webhookId);
  }
}
