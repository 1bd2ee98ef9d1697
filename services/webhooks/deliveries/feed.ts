import { typePatterns } from '#libs/contracts/event-feed.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transactionInTwoTrips } from '#libs/postgres/transaction.ts';
import { maxPerWebhook } from './store.ts';

/**
 * Creates deliveries for events, for each webhook in the order of its feeds: one chunk at a time, with the
 * position stored in the same transaction. What counts is per ordering key: of a key with many Pending deliveries, or
 * a refused one, only the place is kept (held_keys), and its later events stay in the table of events. A webhook has
 * therefore at most `maxOfKey` Pending deliveries and a held key per account and feed, however many events wait. While about
 * `maxHeads` accounts wait, it is not fed, so that no statement has to read more of its rows.
 */

/** The number of events examined in one transaction. */
const chunk = 500;
/**
 * From this number of deliveries of one webhook on that are due for the first time, it is not fed: enough for the next claims
 * of several processes. A feed far ahead of them would write an event twice, first as one that waits for others of its key.
 */
const maxDue = 4 * maxPerWebhook;
/** The number of Pending deliveries of one webhook that have a time, whatever their tries, from which on it is not fed. */
export const maxHeads = 5_000;
/** The maximum number of Pending deliveries of one ordering key. */
const maxOfKey = 20;
/** The maximum number of held keys that are continued in one transaction. */
const maxKeys = chunk / maxOfKey;

/**
 * The feed of a Paused webhook leaves events until they are this old: its pause ends when that was requested, at most this
 * long before its end is known (resumeFeed).
 */
export const pauseTailS = 60;
/** It is fed only when its next event is this old, so that it does not cost a transaction for each event. */
const pausedFeedS = 2 * pauseTailS;

/** Without an order, a delivery has a key of its own. What is held is so by account even then, until it has been continued. */
const deliveryKey = "case ordering when 'none' then event_id::text else ordering_key end";

const waitsSince = 'case when until_time is null then occurred_at else opened_at end';

interface Feed {
  /** null: only held keys can be continued. */
  feed_id: bigint | null;
  webhook_id: string;
  client_id: string | null;
  event_types: string[];
  is_replay: boolean | null;
  is_paused: boolean;
  has_ready: boolean;
}

/**
 * Selects a replay or a live feed with new events, or held keys that can be continued, of a webhook that no other process is
 * feeding or finishing. That of a Paused webhook passes the events of the pause, so that little is left to do at its end.
 */
const nextFeed = `select f.feed_id, w.webhook_id, w.client_id, w.event_types, f.until_time is not null as is_replay,
    w.status = 'Paused' as is_paused, r.has_ready
  from webhooks w left join lateral (
    select * from feeds f where f.webhook_id = w.webhook_id and not f.is_over and (
      (f.until_time is not null and w.status = 'Active')
      or (f.until_time is null and case
        when w.status = 'Paused' then clock_timestamp() - interval '${pausedFeedS} seconds' > case when w.client_id is null
          then (select occurred_at from events where position > f.position order by position limit 1)
          else (select e.occurred_at from event_subjects s join events e on e.position = s.event_position
            where s.subject = w.client_id and s.position > f.position order by s.position limit 1) end
        when w.client_id is null then f.position < (select position from event_head)
        else exists (select from event_subjects s where s.subject = w.client_id and s.position > f.position) end)
    ) order by f.until_time is not null, f.feed_id limit 1
  ) f on true
  cross join lateral (
    select w.status = 'Active' and exists (select from held_keys h where h.webhook_id = w.webhook_id and h.is_ready) as has_ready
  ) r
  where w.status in ('Active', 'Paused') and w.webhook_id <> all($1::text[]) and (f.feed_id is not null or r.has_ready)
    and not exists (
      select from deliveries d where d.webhook_id = w.webhook_id and d.status = 'Pending'
        and d.next_attempt_at <= clock_timestamp() and d.tries = 0 offset ${maxDue - 1})
    and not exists (
      select from deliveries d where d.webhook_id = w.webhook_id and d.status = 'Pending' and d.next_attempt_at is not null
      offset ${maxHeads - 1})
  limit 1 for update of w skip locked`;

/** Selects the next positions of a feed `f`: those of a client by its subjects, replays for the whole bank by time. */
function nextPositions({ client_id, is_replay }: Feed): string {
  const range = 'position > f.position and position <= (select position from event_head)';
  const ofClient = `subject = w.client_id and ${range}`;
  if (client_id !== null)
    return `position, event_position, null::timestamptz from event_subjects where ${ofClient} order by position`;
  if (!is_replay) return `position, position, null::timestamptz from events where ${range} order by position`;
  return `position, position, occurred_at from events
    where (occurred_at, position) > (f.from_time, f.position) and occurred_at < f.until_time
    order by occurred_at, position`;
}

/** Selects one chunk of the next positions, of a Paused webhook only those before the first event that it must leave. */
function nextChunk(feed: Feed): string {
  const next = `select ${nextPositions(feed)} limit ${chunk}`;
  if (!feed.is_paused) return next;
  return `select reached, event_position, reached_time from (
      select n.*, bool_or(e.occurred_at >= clock_timestamp() - interval '${pauseTailS} seconds') over (order by reached) as is_left
      from (${next}) n (reached, event_position, reached_time) left join events e on e.position = n.event_position
    ) n where is_left is not true`;
}

/**
 * Inserts the deliveries of the next positions of a feed, and advances it: past the last one or, if there is none, to the
 * head. Events of keys that are full, or held already, are held, and those of a pause are skipped. A replay is over when its
 * end is reached.
 */
const insertDeliveries = (feed: Feed): string => `with examined as materialized (
    select f.*, p.*, row_number() over (order by p.reached_time, p.reached) as n
    from feeds f join webhooks w using (webhook_id)
    cross join lateral (${nextChunk(feed)}) p (reached, event_position, reached_time)
    where f.feed_id = $1
  ), wanted as materialized (
    select x.*, e.event_id, e.occurred_at, e.position as stored_position, e.type, e.subject as ordering_key, w.ordering,
      row_number() over (partition by e.subject order by n) as nth
    from examined x join webhooks w using (webhook_id) join events e on e.position = x.event_position
    where e.type like any($2) and not x.pauses @> e.occurred_at
      and (x.until_time is null or e.occurred_at >= x.from_time and e.occurred_at < x.until_time)
  ), known as materialized (
    select w.*, case when nth = 1 then (
        select array[count(*), coalesce(max(tries), 0)] from (
          select tries from deliveries d
          where d.webhook_id = w.webhook_id and d.ordering_key = w.ordering_key and d.status = 'Pending' limit ${maxOfKey}
        ) d
      ) end as pending_and_tries,
      case when nth = 1 then exists (
        select from held_keys h where h.feed_id = w.feed_id and h.ordering_key = w.ordering_key
      ) end as is_held
    from wanted w
  ), fitting as materialized (
    select k.*, max(case when nth = 1 then
        case when is_held then 0 when ordering = 'none' then ${chunk}
          when pending_and_tries[2] > 0 then 0 else ${maxOfKey} - pending_and_tries[1] end
      end) over (partition by ordering_key) as room
    from known k
  ), chosen as materialized (
    select f.*, w.last_ordinal + row_number() over (order by n) as ordinal,
      case when ordering = 'none' or nth = 1 and pending_and_tries[1] = 0 then clock_timestamp() end as due_at
    from fitting f join (select webhook_id, last_ordinal from webhooks) w using (webhook_id) where nth <= room
  ), held as (
    insert into held_keys (feed_id, webhook_id, ordering_key, position, from_time, from_position, is_ready)
    select feed_id, webhook_id, ordering_key, case when reached_time is null then reached - 1 else -1 end, reached_time, reached,
      ordering = 'none'
    from fitting where nth = greatest(room, 0) + 1
    on conflict do nothing
  ), counted as (
    update webhooks w set last_ordinal = c.last from (select webhook_id, max(ordinal) as last from chosen group by 1) c
    where w.webhook_id = c.webhook_id
  ), inserted as (
    insert into deliveries (webhook_id, ordinal, event_id, event_position, event_type, ordering_key, waits_since, next_attempt_at)
    select webhook_id, ordinal, event_id, stored_position, type, ${deliveryKey}, ${waitsSince}, due_at from chosen order by ordinal
  ), ended as (
    select from feeds where feed_id = $1 and until_time is not null
      and (select count(*) from examined) < ${chunk}
  ) update feeds f set position = coalesce(x.reached, ${feed.is_paused ? 'f' : 'h'}.position), from_time = coalesce(x.reached_time, f.from_time),
      is_over = exists (select from ended)
    from event_head h left join (select * from examined order by n desc limit 1) x on true
    where f.feed_id = $1`;

/**
 * Continues held keys that have no Pending delivery: inserts the next deliveries of each, up to the place of its feed. A
 * key that has been taken up to there is no longer held. A replay for the whole bank, which is in the order of time,
 * leaves the rest of its period to the held key, and skips it until its end.
 */
const continueKeys = (client_id: string | null): string => `with ready as materialized (
    select distinct on (h.ordering_key) h.*, f.is_over, f.until_time, f.opened_at, f.pauses, f.from_time as begins, f.position as reached_by_feed,
      w.client_id, w.ordering
    from held_keys h join feeds f using (feed_id) join webhooks w on w.webhook_id = h.webhook_id
    where h.webhook_id = $1 and h.is_ready and h.ordering_key = any(array(
      select ordering_key from held_keys where webhook_id = $1 and is_ready limit ${maxKeys}))
    order by h.ordering_key, f.until_time is not null, h.feed_id
  ), found as materialized (
    select r.*, e.*, row_number() over (partition by r.ordering_key order by e.reached) as nth
    from ready r cross join lateral (${
      client_id === null
        ? `select e.position as reached, e.position as event_position, e.event_id, e.occurred_at, e.type from events e
        where e.subject = r.ordering_key and e.position > r.position and e.type like any($2)
          and not r.pauses @> e.occurred_at
          and (r.until_time is not null or e.position <= r.reached_by_feed)
          and (r.until_time is null or e.occurred_at < r.until_time
            and (e.occurred_at, e.position) >= (r.from_time, r.from_position))
        order by e.position`
        : `select s.position as reached, s.event_position, e.event_id, e.occurred_at, e.type
        from event_subjects s join events e on e.position = s.event_position
        where s.subject = r.client_id and e.subject = r.ordering_key and e.type like any($2)
          and not r.pauses @> e.occurred_at and s.position > r.position and s.position <= r.reached_by_feed
          and (r.until_time is null or e.occurred_at >= r.begins and e.occurred_at < r.until_time)
        order by s.position`
    } limit ${maxOfKey}) e
  ), taken as materialized (
    select r.*, coalesce(f.count, 0) as count, f.reached
    from ready r left join (select ordering_key, count(*), max(reached) as reached from found group by 1) f using (ordering_key)
  ), chosen as materialized (
    select f.*, w.last_ordinal + row_number() over (order by f.ordering_key, nth) as ordinal
    from found f join webhooks w using (webhook_id)
  ), counted as (
    update webhooks w set last_ordinal = (select max(ordinal) from chosen)
    where w.webhook_id = $1 and exists (select from chosen)
  ), inserted as (
    insert into deliveries (webhook_id, ordinal, event_id, event_position, event_type, ordering_key, waits_since, next_attempt_at)
    select webhook_id, ordinal, event_id, event_position, type,
      ${deliveryKey}, ${waitsSince},
      case when ordering = 'none' or nth = 1 and not exists (
        select from deliveries d
        where d.webhook_id = $1 and d.ordering_key = chosen.ordering_key and d.status = 'Pending'
      ) then clock_timestamp() end
    from chosen order by ordinal
  ), freed as (
    delete from held_keys h using taken t where h.feed_id = t.feed_id and h.ordering_key = t.ordering_key
      and t.count < ${maxOfKey} and (t.is_over or t.from_time is null)
  ) update held_keys h set position = case when h.feed_id = t.feed_id then coalesce(t.reached, h.position) else h.position end,
      is_ready = case when h.feed_id = t.feed_id then t.ordering = 'none' and t.count = ${maxOfKey}
        else t.ordering = 'none' or t.count = 0 end
    from taken t where h.webhook_id = $1 and h.ordering_key = t.ordering_key
      and not (h.feed_id = t.feed_id and t.count < ${maxOfKey} and (t.is_over or t.from_time is null))`;

/** Lets the held keys of a replay that is over find their end, and deletes feeds that are over and of which nothing is held. */
const endFeeds = `with ready as (
    update held_keys h set is_ready = true from feeds f where f.webhook_id = $1 and f.is_over and h.feed_id = f.feed_id
      and not h.is_ready and not exists (
        select from deliveries d
        where d.webhook_id = $1 and d.ordering_key = h.ordering_key and d.status = 'Pending')
  ) delete from feeds f where f.webhook_id = $1 and f.is_over
    and not exists (select from held_keys h where h.feed_id = f.feed_id)`;

/**
 * Feeds each webhook once, in a transaction of its own. Returns whether any had something to do. The statements are
 * prepared: to plan them costs more than to deliver some events.
 */
export async function feedAll(pool: Pool): Promise<boolean> {
  for (const fed: string[] = []; ; ) {
    const webhookId = await transactionInTwoTrips<string | undefined>(pool, async (client) => {
      const [feed] = (await client.query<Feed>({ name: 'next_feed', text: nextFeed, values: [fed] })).rows;
      if (!feed) return { last: [], result: () => undefined };
      const { feed_id, webhook_id, client_id, is_replay, is_paused, has_ready } = feed;
      const types = typePatterns(feed.event_types);
      const of = client_id === null ? 'bank' : 'client';
      const kind = `${of}${is_replay ? '_replay' : ''}${is_paused ? '_paused' : ''}`;
      const statements: { name: string; text: string; values: unknown[] }[] = [];
      if (has_ready)
        statements.push({ name: `continue_keys_${of}`, text: continueKeys(client_id), values: [webhook_id, types] });
      if (feed_id !== null)
        statements.push({ name: `feed_${kind}`, text: insertDeliveries(feed), values: [feed_id, types] });
      if (has_ready || is_replay) statements.push({ name: 'end_feeds', text: endFeeds, values: [webhook_id] });
      return { last: statements.map((one) => client.query(one)), result: () => webhook_id };
    });
    if (webhookId === undefined) return fed.length > 0;
    fed.push(webhookId);
  }
}
