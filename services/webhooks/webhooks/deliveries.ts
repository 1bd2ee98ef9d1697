import { randomUUID } from 'node:crypto';
import { source } from '#libs/contracts/envelope.ts';
import { isId } from '#libs/contracts/ids.ts';
import { type CloudEvent, type Delivery, testEventType } from '#libs/contracts/webhooks.ts';
import type { Queries } from '#libs/postgres/pool.ts';

/** SQL of single deliveries. The id of a delivery contains its ordinal. */

/** Shows the last hundred attempts, because a delivery may be redelivered any number of times. */
export const deliveryColumns = `'dlv_' || lpad(to_hex(ordinal), 32, '0') as delivery_id, webhook_id, event_id, event_type,
  status, created_at, next_attempt_at, finished_at, (
    select coalesce(json_agg(json_build_object(
      'attempted_at', to_char(attempted_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'duration_ms', duration_ms,
      'response_status', response_status, 'error', error) order by attempted_at), '[]')
    from (select * from attempts a where a.ordinal = d.ordinal order by attempted_at desc limit 100) a
  ) as attempts`;

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

/** Redelivers a delivery. One that is already running or about to run is left unchanged. The webhook must be locked. */
export async function redeliverNow(client: Queries, webhookId: string, deliveryId: string): Promise<void> {
  await client.query(
    `update deliveries d set status = 'Pending', finished_at = null, tries = 0,
       next_attempt_at = case when not exists (
         select from deliveries o
         where o.webhook_id = $2 and o.ordering_key = d.ordering_key and o.status = 'Pending' and o.ordinal <> d.ordinal
           and (d.status <> 'Pending' or o.ordinal < d.ordinal)
       ) then clock_timestamp() end
     where ordinal = $1 and webhook_id = $2
       and (status <> 'Pending' or next_attempt_at > clock_timestamp() + interval '30 seconds')`,
    [ordinalOf(deliveryId), webhookId],
  );
}

/** Inserts a test event, which belongs to no account and waits for no other event. */
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
