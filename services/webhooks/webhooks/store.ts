import { randomUUID } from 'node:crypto';
import { type MessageContext, source } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { isId } from '#libs/contracts/ids.ts';
import { type CloudEvent, type Delivery, testEventType, type Webhook } from '#libs/contracts/webhooks.ts';
import type { Queries } from '#libs/postgres/pool.ts';

/** SQL of single webhooks and deliveries. The id of a delivery contains its ordinal. */

/** The columns of a webhook as it is shown: without its secrets. */
export const webhookColumns = `webhook_id, url, event_types, description, status, client_id, created_by, created_at,
  updated_at, failing_since,
  case when previous_secret_ends_at > clock_timestamp() then previous_secret_ends_at end as previous_secret_ends_at`;

/** A bound caller sees the webhooks of its client; for it, all others do not exist. */
export async function findWebhook(
  queries: Queries,
  { bound_client_id }: MessageContext,
  webhookId: string,
  lock: '' | 'for update' = '',
): Promise<Webhook | undefined> {
  if (!isId('webhook', webhookId)) return undefined;
  const { rows } = await queries.query<Webhook>(
    `select ${webhookColumns} from webhooks
     where webhook_id = $1 and status <> 'Deleted' and ($2::text is null or client_id = $2) ${lock}`,
    [webhookId, bound_client_id],
  );
  return rows[0];
}

export function webhookNotFound(webhookId: string): Refusal {
  return refusal('webhook_not_found', `webhook ${webhookId} not found`);
}

export const deliveryColumns = `'dlv_' || lpad(to_hex(ordinal), 32, '0') as delivery_id, webhook_id, event_id, event_type,
  status, created_at, next_attempt_at, finished_at, to_json(attempts) as attempts`;

const maxOrdinal = 2n ** 63n - 1n;

/** Returns the ordinal of a delivery id, or undefined if the id is malformed. */
export function ordinalOf(deliveryId: string): bigint | undefined {
  const ordinal = isId('delivery', deliveryId) ? BigInt(`0x${deliveryId.slice(4)}`) : undefined;
  return ordinal !== undefined && ordinal <= maxOrdinal ? ordinal : undefined;
}

export async function readDelivery(
  client: Queries,
  webhookId: string,
  deliveryId: string,
): Promise<{ delivery: Delivery; has_event: boolean } | undefined> {
  const { rows } = await client.query<Delivery & { has_event: boolean }>(
    `select ${deliveryColumns},
       body is not null or exists (select from events e where e.position = d.event_position) as has_event
     from deliveries d where ordinal = $1 and webhook_id = $2`,
    [ordinalOf(deliveryId), webhookId],
  );
  if (!rows[0]) return undefined;
  const { has_event, ...delivery } = rows[0];
  return { delivery, has_event };
}

/**
 * Redelivers a delivery. One that is already running or about to run is left unchanged. The first Pending delivery of
 * its ordering key becomes due, unless one of them has a time already. The webhook must be locked.
 */
export async function redeliverNow(client: Queries, webhookId: string, deliveryId: string): Promise<void> {
  await client.query(
    `update deliveries set status = 'Pending', finished_at = null, tries = 0, next_attempt_at = null
     where ordinal = $1 and webhook_id = $2
       and (status <> 'Pending' or next_attempt_at > clock_timestamp() + interval '30 seconds')`,
    [ordinalOf(deliveryId), webhookId],
  );
  await client.query(
    `update deliveries set next_attempt_at = clock_timestamp() where webhook_id = $2 and ordinal = (
       select min(p.ordinal) from deliveries d join deliveries p using (webhook_id, ordering_key)
       where d.ordinal = $1 and d.webhook_id = $2 and p.status = 'Pending' having count(p.next_attempt_at) = 0)`,
    [ordinalOf(deliveryId), webhookId],
  );
}

/** Inserts a test event. It belongs to no account, so its delivery waits for no other event. */
export async function insertTest(client: Queries, webhookId: string, time: string): Promise<Delivery | undefined> {
  const id = randomUUID();
  const event: CloudEvent = {
    specversion: '1.0',
    id,
    source: source.webhooks,
    type: testEventType,
    subject: webhookId,
    time,
    datacontenttype: 'application/json',
    data: { webhook_id: webhookId },
  };
  const { rows } = await client.query<Delivery>(
    `insert into deliveries as d (webhook_id, event_id, event_type, ordering_key, body, next_attempt_at)
     values ($1, $2::uuid, $3, 'test ' || $2::text, $4, clock_timestamp()) returning ${deliveryColumns}`,
    [webhookId, id, testEventType, event],
  );
  return rows[0];
}
