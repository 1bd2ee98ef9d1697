import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { approvalRequired, isUnapproved } from '#libs/contracts/approvals.ts';
import { type MessageContext, type ReplyBody, source } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal, violationsRefusal } from '#libs/contracts/errors.ts';
import type { CloudEvent } from '#libs/contracts/event-feed.ts';
import type { MessageData, MessageOn } from '#libs/contracts/messages.ts';
import { type Delivery, testEventType, type Webhook } from '#libs/contracts/webhooks.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { apartMs } from '#libs/service/clock.ts';
import type { AllowedAddresses } from '../deliveries/addresses.ts';
import { pauseTailS } from '../deliveries/feed.ts';
import { disableWebhook } from '../deliveries/finish.ts';
import { changePending, claimS, startFirst } from '../deliveries/store.ts';
import {
  deliveryColumns,
  findShown,
  findWebhook,
  type OwnWebhook,
  parseOrdinal,
  webhookColumns,
  webhookNotFound,
} from './store.ts';

/** The arguments of a handler. It runs in the transaction that stores the command's record. */
export interface Work {
  client: Queries;
  context: MessageContext;
  /** ISO 8601 UTC */
  now: string;
  addresses: Pick<AllowedAddresses, 'wrongWith'>;
}

/** `details` are for the audit. A refusal has written nothing. */
export interface Outcome {
  body: ReplyBody;
  details?: Record<string, unknown>;
}

const maxPerCaller = 20;
const maxReplays = 20;
/** Every event that is examined is compared with them. */
const maxPauses = 1_000;

const done = (data: unknown, details: Record<string, unknown> = {}): Outcome => ({ body: { ok: true, data }, details });
export const refused = (refusal: Refusal): Outcome => ({ body: { ok: false, refusal } });
const wrongUrl = (rule: string): Outcome =>
  refused(violationsRefusal([{ field: 'url', code: 'validation_failed', message: `url ${rule}` }]));
const wrongStatus = (message: string): Outcome => refused(refusal('invalid_status_transition', message));

export const handlers = {
  create_webhook: createWebhook,
  update_webhook: locked(updateWebhook),
  delete_webhook: locked(deleteWebhook),
  rotate_webhook_secret: locked(rotateSecret),
  test_webhook: locked(testWebhook, 'Active'),
  redeliver: locked(redeliver, 'Active'),
  skip_delivery: locked(skipDelivery, 'Active'),
  replay_webhook: locked(replayWebhook, 'Active'),
  disable_webhooks: disableWebhooks,
} satisfies { [N in MessageOn<'webhooks.commands'>]: (work: Work, data: MessageData<N>) => Promise<Outcome> };

async function createWebhook(
  { client, context, addresses }: Work,
  { webhook_id, url, event_types, description, ordering = 'account', sealed_secret }: MessageData<'create_webhook'>,
): Promise<Outcome> {
  const { bound_client_id = null, actor, time } = context;
  const wrong = addresses.wrongWith(url);
  if (wrong !== undefined) return wrongUrl(wrong);
  if (await isDisabled(client, context)) return refused(revoked);
  if (isUnapproved(context, 'webhook')) return refused(approvalRequired());
  // Serializes the transactions that create webhooks of one caller.
  await client.query("select pg_advisory_xact_lock(hashtextextended('webhooks of ' || $1, 0))", [actor]);
  const { rows } = await client.query<Webhook>(
    `insert into webhooks (webhook_id, client_id, url, event_types, description, secret, created_by, url_set_by,
       secret_set_by, created_at, updated_at, status, ordering)
     select $1, $2, $3, $4, $5, $6, $7, $7, $7, $8, $8, 'Active', $9
     where (select count(*) from webhooks where created_by = $7 and status <> 'Deleted') < ${maxPerCaller}
     returning ${webhookColumns}`,
    [webhook_id, bound_client_id, url, event_types, description, sealed_secret, actor, time, ordering],
  );
  if (!rows[0]) return refused(refusal('validation_failed', `a caller has at most ${maxPerCaller} webhooks`));
  await openFeed(client, webhook_id);
  return done(rows[0], { host: new URL(url).host, event_types });
}

const revoked = refusal('insufficient_scope', 'the credentials of this request were revoked');

/**
 * Reports whether the caller's key was revoked or has expired, or the client to which it is bound was erased. A disabling
 * takes the lock exclusively. So it either sees what this transaction writes, or this transaction sees its callers.
 */
async function isDisabled(client: Queries, { actor, bound_client_id }: MessageContext): Promise<boolean> {
  await client.query("select pg_advisory_xact_lock_shared(hashtextextended('disabled callers', 0))");
  const { rowCount } = await client.query('select from disabled_callers where caller in ($1, $2)', [
    actor,
    bound_client_id,
  ]);
  return rowCount !== 0;
}

/** Opens a feed of everything published from now on. */
async function openFeed(client: Queries, webhookId: string): Promise<void> {
  await client.query('insert into feeds (webhook_id, position) select $1, position from event_head', [webhookId]);
}

/** The arguments of a handler for one webhook, which is locked. */
type OwnWork = Work & { webhook: OwnWebhook };
type Handle<D> = (work: OwnWork, data: D) => Promise<Outcome>;

/** Locks the webhook of a command, if the caller may use it. Only an Active webhook can be sent anything. */
function locked<D extends { webhook_id: string }>(handle: Handle<D>, only?: 'Active') {
  return async (work: Work, data: D): Promise<Outcome> => {
    const { webhook_id } = data;
    if (await isDisabled(work.client, work.context)) return refused(revoked);
    const webhook = await findWebhook(work.client, work.context, webhook_id, 'for update');
    if (!webhook) return refused(webhookNotFound(webhook_id));
    if (only && webhook.status !== only)
      return wrongStatus(`webhook ${webhook_id} is ${webhook.status}: make it ${only} first`);
    return handle({ ...work, webhook }, data);
  };
}

/** Changes columns of the webhook. The parameters of `set` start at $3. */
async function change({ client, now, webhook }: OwnWork, set: string[], ...values: unknown[]): Promise<Webhook> {
  const { rows } = await client.query<Webhook>(
    `update webhooks set ${['updated_at = $2', ...set].join(', ')} where webhook_id = $1 returning ${webhookColumns}`,
    [webhook.webhook_id, now, ...values],
  );
  return rows[0] as Webhook;
}

async function updateWebhook(work: OwnWork, { webhook_id, changes }: MessageData<'update_webhook'>): Promise<Outcome> {
  const { client, context, addresses, webhook } = work;
  const wrong = changes.url === undefined ? undefined : addresses.wrongWith(changes.url);
  if (wrong !== undefined) return wrongUrl(wrong);
  const isOther = (['url', 'event_types'] as const).some(
    (field) => changes[field] !== undefined && !isDeepStrictEqual(changes[field], webhook[field]),
  );
  if (isOther && isUnapproved(context, 'webhook')) return refused(approvalRequired());
  const { status = webhook.status } = changes;
  const isResumed = status === 'Active' && webhook.status !== 'Active';
  if (isResumed) await resumeFeed(work);
  if (status !== 'Active' && webhook.status === 'Active' && !(await pauseFeed(work)))
    return refused(refusal('validation_failed', `a webhook has at most ${maxPauses} pauses while its events are kept`));
  const columns = { ...changes, ...(changes.url !== undefined && { url_set_by: context.actor }) };
  if (isResumed) await vouch(work);
  if (changes.ordering === 'none') await freeWaiting(client, webhook_id);
  const set = Object.keys(columns).map((column, i) => `${column} = $${i + 3}`);
  if (isResumed) set.push('failing_since = null');
  const changed = await change(work, set, ...Object.values(columns));
  return done(changed, { changed_fields: Object.keys(changes), status });
}

/**
 * Begins a pause, and returns whether that is possible. Events whose time is before it are still sent, whenever they are stored.
 * Pauses from before the oldest stored event are forgotten; no event is stored a month late.
 */
async function pauseFeed({ client, now, webhook }: OwnWork): Promise<boolean> {
  const { rowCount } = await client.query(
    `update feeds f set pauses = kept + tstzmultirange(tstzrange($2, null, '()')) from (
       select feed_id, pauses * tstzmultirange(tstzrange(
         least((select min(occurred_at) from events), $2::timestamptz - interval '35 days'), null)) as kept
       from feeds where webhook_id = $1 and until_time is null
     ) k where f.feed_id = k.feed_id and (select count(*) from unnest(kept)) < ${maxPauses}`,
    [webhook.webhook_id, now],
  );
  return rowCount === 1;
}

/**
 * Ends a pause when its end was requested, but 10 s earlier, because clocks differ: rather some events of the pause are sent than
 * one from after it is lost. A dead letter ends it later, because the feed has passed what occurred meanwhile. A Disabled webhook
 * has no feed, and gets what is published from now on.
 */
async function resumeFeed({ client, context, now, webhook }: OwnWork): Promise<void> {
  const end = Math.max(Date.parse(context.time) - apartMs, Date.parse(now) - pauseTailS * 1000 + apartMs);
  const { rowCount } = await client.query(
    `update feeds set pauses = pauses * tstzmultirange(tstzrange(null, $2))
     where webhook_id = $1 and until_time is null`,
    [webhook.webhook_id, new Date(end).toISOString()],
  );
  if (rowCount === 0) await openFeed(client, webhook.webhook_id);
}

/** Sends what has waited for earlier events of its account. */
async function freeWaiting(client: Queries, webhookId: string): Promise<void> {
  await client.query('update held_keys set is_ready = true where webhook_id = $1', [webhookId]);
  await changePending(client, webhookId, 'next_attempt_at = clock_timestamp()', 'd.next_attempt_at is null');
}

/** Who resumes a webhook that was disabled with a key takes responsibility for what that key had set. */
async function vouch({ client, context, webhook }: OwnWork): Promise<void> {
  for (const column of ['url_set_by', 'secret_set_by'])
    await client.query(
      `update webhooks set ${column} = $2 where webhook_id = $1 and ${column} in (select caller from disabled_callers)`,
      [webhook.webhook_id, context.actor],
    );
}

/** The sweeper deletes its deliveries, sent or not. Of the webhook remain its id, its creator, and its times. */
async function deleteWebhook(work: OwnWork, { webhook_id }: MessageData<'delete_webhook'>): Promise<Outcome> {
  await work.client.query('delete from feeds where webhook_id = $1', [webhook_id]);
  await change(work, ["status = 'Deleted'", "url = ''", 'description = null']);
  // Nothing waits any more.
  return done({ ...work.webhook, blocked_accounts: [] });
}

async function rotateSecret(work: OwnWork, data: MessageData<'rotate_webhook_secret'>): Promise<Outcome> {
  if (isUnapproved(work.context, 'webhook')) return refused(approvalRequired());
  const ends = new Date(Date.parse(work.now) + data.overlap_seconds * 1000).toISOString();
  const set = ['secret = $3', 'previous_secret = secret', 'previous_secret_ends_at = $4', 'secret_set_by = $5'];
  const changed = await change(work, set, data.sealed_secret, ends, work.context.actor);
  return done(changed, { old_secret_ends_at: ends });
}

/** A test event belongs to no account, so its delivery waits for no other event. */
async function testWebhook({ client, now }: OwnWork, { webhook_id }: MessageData<'test_webhook'>): Promise<Outcome> {
  const event: CloudEvent = {
    specversion: '1.0',
    id: randomUUID(),
    source: source.webhooks,
    type: testEventType,
    subject: webhook_id,
    time: now,
    datacontenttype: 'application/json',
    data: { webhook_id },
  };
  const { rows } = await client.query<Delivery>(
    `with counted as (
       update webhooks set last_ordinal = last_ordinal + 1 where webhook_id = $1 returning last_ordinal
     ) insert into deliveries as d (webhook_id, ordinal, event_id, event_type, ordering_key, body, next_attempt_at)
     select $1, last_ordinal, $2::uuid, $3, 'test ' || $2::text, $4, clock_timestamp() from counted returning ${deliveryColumns}`,
    [webhook_id, event.id, event.type, event],
  );
  return done(rows[0]);
}

async function redeliver({ client }: OwnWork, { webhook_id, delivery_id }: MessageData<'redeliver'>): Promise<Outcome> {
  const key = [webhook_id, parseOrdinal(delivery_id)];
  const found = await client.query<Pick<Delivery, 'status'> & { is_kept: boolean }>(
    `select status, body is not null or exists (select from events where position = d.event_position) as is_kept
     from deliveries d where webhook_id = $1 and ordinal = $2`,
    key,
  );
  const [before] = found.rows;
  if (!before) return refused(refusal('delivery_not_found', `delivery ${delivery_id} not found`));
  if (!before.is_kept) return wrongStatus(`the event of delivery ${delivery_id} is no longer kept`);
  // One that is already running or about to run is left unchanged.
  await client.query(
    `update deliveries set status = 'Pending', finished_at = null, tries = 0, next_attempt_at = null, waits_since = clock_timestamp()
     where webhook_id = $1 and ordinal = $2
       and (status <> 'Pending' or next_attempt_at > clock_timestamp() + interval '${claimS} seconds')`,
    key,
  );
  await startFirst(client, webhook_id, key.slice(1));
  const { rows } = await client.query<Delivery>(
    `select ${deliveryColumns} from deliveries where webhook_id = $1 and ordinal = $2`,
    key,
  );
  return done(rows[0], { delivery_id, status: before.status });
}

async function skipDelivery({ client }: OwnWork, data: MessageData<'skip_delivery'>): Promise<Outcome> {
  const { webhook_id, delivery_id } = data;
  const key = [webhook_id, parseOrdinal(delivery_id)];
  const found = await client.query<Pick<Delivery, 'status'>>(
    'select status from deliveries where webhook_id = $1 and ordinal = $2',
    key,
  );
  const [before] = found.rows;
  if (!before) return refused(refusal('delivery_not_found', `delivery ${delivery_id} not found`));
  if (before.status !== 'Pending')
    return wrongStatus(`delivery ${delivery_id} is ${before.status}: only a Pending one can be skipped`);
  const { rows } = await client.query<Delivery>(
    `update deliveries d set status = 'Failed', finished_at = clock_timestamp(), next_attempt_at = null
     where webhook_id = $1 and ordinal = $2 returning ${deliveryColumns}`,
    key,
  );
  await startFirst(client, webhook_id, key.slice(1));
  return done(rows[0], { delivery_id });
}

/**
 * Webhooks whose URL or secret these callers set last, or of this client, send nothing more until somebody else makes
 * them Active again. Commands of these callers that arrive later, because they were sent before, are refused.
 */
async function disableWebhooks(
  { client, context, now }: Work,
  { set_by, client_id }: MessageData<'disable_webhooks'>,
): Promise<Outcome> {
  await client.query("select pg_advisory_xact_lock(hashtextextended('disabled callers', 0))");
  const callers = client_id === null ? set_by : [...set_by, client_id];
  await client.query('insert into disabled_callers select unnest($1::text[]) on conflict do nothing', [callers]);
  // Disabled ones are locked too, because a transaction that makes one Active may not have committed.
  const { rows } = await client.query<Pick<Webhook, 'webhook_id' | 'client_id' | 'status'>>(
    `select webhook_id, client_id, status from webhooks
     where (url_set_by = any($1::text[]) or secret_set_by = any($1) or client_id = $2) and status <> 'Deleted'
     order by webhook_id for update`,
    [set_by, client_id],
  );
  const disabled: string[] = [];
  for (const { status, ...webhook } of rows) {
    if (status === 'Disabled') continue;
    const event = { ...webhook, reason: 'revoked', failing_since: null, disabled_at: now } as const;
    await disableWebhook(client, event, context);
    disabled.push(webhook.webhook_id);
  }
  return done({ disabled }, { disabled });
}

async function replayWebhook(
  { client, context }: OwnWork,
  { webhook_id, from, to }: MessageData<'replay_webhook'>,
): Promise<Outcome> {
  const opened = await client.query(
    `insert into feeds (webhook_id, position, from_time, until_time)
     select $1, -1, $2, $3
     where (select count(*) from feeds where webhook_id = $1 and until_time is not null) < ${maxReplays}`,
    [webhook_id, from, to],
  );
  if (opened.rowCount === 1) return done(await findShown(client, context, webhook_id), { from, to });
  return wrongStatus(`webhook ${webhook_id} has too many running replays: wait until one has finished`);
}
