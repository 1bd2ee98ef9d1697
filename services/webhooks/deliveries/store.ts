import { bigintArray, intArray, textArray, timestampArray } from '#libs/postgres/arrays.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import type { Attempt, Verdict } from './verdict.ts';

/** SQL of deliveries: claims due ones and records how attempts ended. */

/**
 * Longer than an attempt, in seconds. After that, another process may take the delivery, because the first one
 * is gone.
 */
const claimS = 30;

export interface Claimed {
  ordinal: bigint;
  claim: number;
  tries: number;
  webhook_id: string;
  url: string;
  client_id: string | null;
  secret: string;
  /** While it also signs. */
  previous_secret: string | null;
  event_id: string;
  /** null if retention has deleted it. */
  body: string | null;
}

/**
 * Claims due deliveries: for each Active webhook as many as `places` says, otherwise `otherwise`, and at most
 * `limit` in total, longest waiting first. Each is claimed by one process.
 */
export async function claimDue(
  pool: Pool,
  places: ReadonlyMap<string, number>,
  otherwise: number,
  limit: number,
): Promise<Claimed[]> {
  const { rows } = await pool.query<Claimed>(
    `with due as materialized (
       select d.ordinal from webhooks w
       left join unnest($1::text[], $2::int4[]) as p (webhook_id, places) on p.webhook_id = w.webhook_id
       cross join lateral (
         select ordinal, next_attempt_at from deliveries
         where webhook_id = w.webhook_id and status = 'Pending' and next_attempt_at <= clock_timestamp()
         order by next_attempt_at limit coalesce(p.places, $3) for update skip locked
       ) d
       where w.status = 'Active' order by d.next_attempt_at limit $4
     )
     update deliveries d set claim = claim + 1, next_attempt_at = clock_timestamp() + interval '${claimS} seconds'
     from due, webhooks w
     where d.ordinal = due.ordinal and w.webhook_id = d.webhook_id
     returning d.ordinal, d.claim, d.tries, d.webhook_id, d.event_id, w.url, w.client_id, w.secret,
       case when w.previous_secret_ends_at > clock_timestamp() then w.previous_secret end as previous_secret,
       coalesce(d.body, (select event from events where position = d.event_position)) as body`,
    [textArray([...places.keys()]), intArray([...places.values()]), otherwise, limit],
  );
  return rows;
}

export interface LockedWebhook {
  status: string;
  client_id: string | null;
  failing_since: string | null;
}

/** Locks the webhook: until the transaction ends, no other one changes which of its deliveries are Pending. */
export async function lockWebhook(client: Queries, webhookId: string): Promise<LockedWebhook | undefined> {
  const { rows } = await client.query<LockedWebhook>(
    'select status, client_id, failing_since from webhooks where webhook_id = $1 for update',
    [webhookId],
  );
  return rows[0];
}

/**
 * Records how attempts ended, if their claims are still valid, and releases the next deliveries of their
 * ordering keys.
 */
export async function writeAttempts(
  client: Queries,
  webhookId: string,
  ended: readonly { attempt: Attempt; verdict: Verdict }[],
): Promise<void> {
  await client.query(
    `with ended as (
       select * from unnest($2::int8[], $3::int4[], $4::text[], $5::int4[], $6::timestamptz[], $7::int4[], $8::int4[], $9::text[])
         as e (ordinal, claim, status, delay_ms, attempted_at, duration_ms, response_status, error)
     ), written as (
       update deliveries d set status = e.status, tries = d.tries + 1,
         next_attempt_at = case when e.status = 'Pending' then clock_timestamp() + make_interval(secs => e.delay_ms / 1000.0) end,
         finished_at = case when e.status <> 'Pending' then clock_timestamp() end
       from ended e where d.ordinal = e.ordinal and d.claim = e.claim and d.status = 'Pending' and d.webhook_id = $1 returning d.ordinal
     )
     insert into attempts (ordinal, attempted_at, duration_ms, response_status, error)
     select ordinal, attempted_at, duration_ms, response_status, error from ended join written using (ordinal) on conflict do nothing`,
    [
      webhookId,
      bigintArray(ended.map(({ attempt }) => attempt.ordinal)),
      intArray(ended.map(({ attempt }) => attempt.claim)),
      textArray(ended.map(({ verdict }) => verdict.status)),
      intArray(ended.map(({ verdict }) => ('delayMs' in verdict ? verdict.delayMs : null))),
      timestampArray(ended.map(({ attempt }) => attempt.attempted_at)),
      intArray(ended.map(({ attempt }) => attempt.duration_ms)),
      intArray(ended.map(({ attempt }) => attempt.response_status)),
      textArray(ended.map(({ attempt }) => attempt.error)),
    ],
  );
  await releaseNext(
    client,
    webhookId,
    ended.map(({ attempt }) => attempt.ordinal),
  );
}

/** Releases the first waiting Pending delivery for each ordering key of these deliveries. */
async function releaseNext(client: Queries, webhookId: string, ordinals: readonly bigint[]): Promise<void> {
  await client.query(
    `update deliveries d set next_attempt_at = clock_timestamp() from (
       select (select n.ordinal from deliveries n where n.webhook_id = $1 and n.ordering_key = k.ordering_key and n.status = 'Pending' order by n.ordinal limit 1) as ordinal
       from (select distinct ordering_key from deliveries where ordinal = any($2::int8[])) k
     ) first where d.ordinal = first.ordinal and d.next_attempt_at is null`,
    [webhookId, bigintArray(ordinals)],
  );
}

export async function keepFailingSince(client: Queries, webhookId: string, failingSince: string | null): Promise<void> {
  await client.query('update webhooks set failing_since = $2 where webhook_id = $1', [webhookId, failingSince]);
}

/** Disables a webhook: Pending deliveries become Failed, and later events are left to a replay. */
export async function disable(client: Queries, webhookId: string, at: string): Promise<void> {
  await client.query("update webhooks set status = 'Disabled', updated_at = $2 where webhook_id = $1", [webhookId, at]);
  await client.query(
    "update deliveries set status = 'Failed', finished_at = clock_timestamp(), next_attempt_at = null where webhook_id = $1 and status = 'Pending'",
    [webhookId],
  );
  await client.query('delete from feeds where webhook_id = $1', [webhookId]);
}
