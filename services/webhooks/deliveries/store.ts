import type { Pool, Queries } from '#libs/postgres/pool.ts';
import type { Attempt, Verdict } from './verdict.ts';

/** SQL of deliveries: claims due ones and records how attempts ended. */

/**
 * For how long a claim holds, in seconds, unless the process renews it: if the process is killed, another one may claim the
 * delivery then. A process ends attempts whose claims it could not renew.
 */
export const claimS = 5;
/** The number of attempts stored with a delivery, which can be redelivered any number of times. */
const maxAttempts = 100;
/** The maximum number of concurrent requests to one receiver. */
export const maxPerWebhook = 64;

export interface Claimed extends Pick<Attempt, 'ordinal' | 'claim' | 'tries'> {
  webhook_id: string;
  url: string;
  client_id: string | null;
  secret: string;
  /** While it also signs. */
  previous_secret: string | null;
  event_id: string;
  /** null if retention has deleted it. */
  event: string | null;
}

/**
 * Claims due deliveries of Active webhooks, those that have been due longest first: one of each webhook to which
 * this process is sending nothing, and `shared` more. Each is claimed by one process. `loads` are the webhooks to which
 * it is sending, with the number of further requests (`places`) that each may get.
 */
export async function claimDue(
  pool: Pool,
  loads: readonly { webhook_id: string; running: number; places: number }[],
  shared: number,
): Promise<Claimed[]> {
  const { rows } = await pool.query<Claimed>({
    name: 'claim_due',
    text: `with due as materialized (
       select d.*, coalesce(l.running, 0) = 0
         and row_number() over (partition by d.webhook_id order by d.next_attempt_at) = 1 as is_first
       from webhooks w
       left join json_to_recordset($1::json) as l (webhook_id text, running int4, places int4) using (webhook_id)
       cross join lateral (
         select webhook_id, ordinal, next_attempt_at from deliveries
         where webhook_id = w.webhook_id and status = 'Pending' and next_attempt_at <= clock_timestamp()
         order by next_attempt_at limit coalesce(l.places, ${maxPerWebhook}) for update skip locked
       ) d
       where w.status = 'Active'
     ), chosen as (
       select *, is_first or row_number() over (partition by is_first order by next_attempt_at) <= $2 as fits from due
     )
     update deliveries d set claim = claim + 1, next_attempt_at = clock_timestamp() + interval '${claimS} seconds'
     from chosen c join webhooks w using (webhook_id)
     where c.fits and d.webhook_id = c.webhook_id and d.ordinal = c.ordinal
     returning d.ordinal::text, d.claim, d.tries, d.webhook_id, d.event_id, w.url, w.client_id, w.secret,
       case when w.previous_secret_ends_at > clock_timestamp() then w.previous_secret end as previous_secret,
       coalesce(d.body, (select event from events where position = d.event_position)) as event`,
    values: [JSON.stringify(loads), shared],
  });
  return rows;
}

export type Claim = Pick<Claimed, 'webhook_id' | 'ordinal' | 'claim' | 'tries'>;

/**
 * Renews claims, and returns those that hold for another `claimS`. A claim is missing if another process has the delivery, its
 * attempt has been recorded, or somebody is changing it just now.
 */
export async function renewClaims(pool: Pool, claims: readonly Claim[]): Promise<Claim[]> {
  const { rows } = await pool.query<Claim>({
    name: 'renew_claims',
    text: `with held as materialized (
       select d.webhook_id, d.ordinal
       from json_to_recordset($1::json) as c (webhook_id text, ordinal int8, claim int4, tries int4)
       join deliveries d using (webhook_id, ordinal)
       where d.claim = c.claim and d.tries = c.tries and d.status = 'Pending' for update of d skip locked
     ) update deliveries d set next_attempt_at = clock_timestamp() + interval '${claimS} seconds'
     from held h where d.webhook_id = h.webhook_id and d.ordinal = h.ordinal
     returning d.webhook_id, d.ordinal::text, d.claim, d.tries`,
    values: [JSON.stringify(claims)],
  });
  return rows;
}

/** Records how attempts ended, if their claims are still valid, by statements sent together. The webhook must be locked. */
export async function writeAttempts(client: Queries, webhookId: string, ended: (Attempt & Verdict)[]): Promise<void> {
  const written = client.query(
    `update deliveries d set status = e.status, tries = d.tries + 1,
       next_attempt_at = case when e.status = 'Pending' then clock_timestamp() + e."delayMs" * interval '1 ms' end,
       finished_at = case when e.status <> 'Pending' then clock_timestamp() end,
       attempts = (d.attempts || json_build_object('attempted_at', e.attempted_at, 'duration_ms', e.duration_ms,
         'response_status', e.response_status, 'error', e.error))[greatest(1, cardinality(d.attempts) + 2 - ${maxAttempts}):]
     from json_to_recordset($2::json) as e (ordinal int8, claim int4, status text, "delayMs" int4, attempted_at text,
       duration_ms int4, response_status int4, error text)
     where d.webhook_id = $1 and d.ordinal = e.ordinal and d.claim = e.claim and d.status = 'Pending'`,
    [webhookId, JSON.stringify(ended)],
  );
  const ordinals = ended.map(({ ordinal }) => ordinal);
  await Promise.all([written, startFirst(client, webhookId, ordinals)]);
}

/**
 * Makes the first Pending delivery of each ordering key of these deliveries due, unless it has a time already. If
 * there is none, a held key can be continued. The webhook must be locked.
 */
export async function startFirst(client: Queries, webhookId: string, ordinals: readonly unknown[]): Promise<void> {
  await client.query(
    `with first as materialized (
       select k.ordering_key, (
         select n.ordinal from deliveries n
         where n.webhook_id = $1 and n.ordering_key = k.ordering_key and n.status = 'Pending' order by n.ordinal limit 1
       ) as ordinal
       from (select distinct ordering_key from deliveries where webhook_id = $1 and ordinal = any($2::int8[])) k
     ), ready as (
       update held_keys h set is_ready = true from first
       where h.webhook_id = $1 and h.ordering_key = first.ordering_key and first.ordinal is null
     ) update deliveries d set next_attempt_at = clock_timestamp() from first
     where d.webhook_id = $1 and d.ordinal = first.ordinal and d.next_attempt_at is null`,
    [webhookId, ordinals],
  );
}

/** The number of rows that one statement changes, far below what the limit of its duration allows. */
const rowsAtOnce = 5_000;

/**
 * Changes all Pending deliveries of a webhook for which `where` holds, in several statements. The webhook must be locked.
 * An array instead of a join: with statistics from before the deliveries came, a join compares every row with every other.
 */
export async function changePending(client: Queries, webhookId: string, set: string, where = 'true'): Promise<void> {
  type Place = { ordering_key: string; ordinal: bigint };
  for (let place: Place | undefined = { ordering_key: '', ordinal: -1n }; place; ) {
    const changed: { rows: Place[] } = await client.query<Place>(
      `with next_rows as materialized (
         select ordering_key, ordinal from deliveries
         where webhook_id = $1 and status = 'Pending' and (ordering_key, ordinal) > ($2, $3::int8)
         order by ordering_key, ordinal limit ${rowsAtOnce}
       ), changed as (
         update deliveries d set ${set}
         where d.webhook_id = $1 and d.ordinal = any(array(select ordinal from next_rows)) and ${where}
       ) select * from next_rows order by ordering_key desc, ordinal desc limit 1`,
      [webhookId, place.ordering_key, place.ordinal],
    );
    place = changed.rows[0];
  }
}
