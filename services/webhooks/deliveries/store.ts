import type { Pool, Queries } from '#libs/postgres/pool.ts';
import type { Attempt, Verdict } from './verdict.ts';

/** SQL of deliveries: claims due ones and records how attempts ended. */

/**
 * Longer than an attempt, in seconds. After that, another process may take the delivery, because the first one
 * is gone.
 */
const claimS = 30;

export interface Claimed extends Pick<Attempt, 'ordinal' | 'claim' | 'tries'> {
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
     returning d.ordinal::text, d.claim, d.tries, d.webhook_id, d.event_id, w.url, w.client_id, w.secret,
       case when w.previous_secret_ends_at > clock_timestamp() then w.previous_secret end as previous_secret,
       coalesce(d.body, (select event from events where position = d.event_position)) as body`,
    [[...places.keys()], [...places.values()], otherwise, limit],
  );
  return rows;
}

/**
 * Records how attempts ended, if their claims are still valid, and makes the first Pending delivery of each of
 * their ordering keys due. The webhook must be locked.
 */
export async function writeAttempts(
  client: Queries,
  webhookId: string,
  attempts: readonly Attempt[],
  verdicts: readonly Verdict[],
): Promise<void> {
  await client.query(
    `with ended as (
       select * from json_to_recordset($2::json) as e (ordinal int8, claim int4, status text, "delayMs" int4,
         attempted_at timestamptz, duration_ms int4, response_status int4, error text)
     ), written as (
       update deliveries d set status = e.status, tries = d.tries + 1,
         next_attempt_at = case when e.status = 'Pending'
           then clock_timestamp() + make_interval(secs => e."delayMs" / 1000.0) end,
         finished_at = case when e.status <> 'Pending' then clock_timestamp() end
       from ended e where d.ordinal = e.ordinal and d.claim = e.claim and d.status = 'Pending' and d.webhook_id = $1
       returning d.ordinal
     )
     insert into attempts (ordinal, attempted_at, duration_ms, response_status, error)
     select ordinal, attempted_at, duration_ms, response_status, error from ended join written using (ordinal)
     on conflict do nothing`,
    [webhookId, JSON.stringify(attempts.map((attempt, i) => ({ ...attempt, ...verdicts[i] })))],
  );
  await client.query(
    `update deliveries d set next_attempt_at = clock_timestamp() from (
       select (
         select n.ordinal from deliveries n
         where n.webhook_id = $1 and n.ordering_key = k.ordering_key and n.status = 'Pending' order by n.ordinal limit 1
       ) as ordinal
       from (select distinct ordering_key from deliveries where ordinal = any($2::int8[])) k
     ) first where d.ordinal = first.ordinal and d.next_attempt_at is null`,
    [webhookId, attempts.map(({ ordinal }) => ordinal)],
  );
}
