import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import type { MessageData, MessageName } from '#libs/contracts/messages.ts';
import type { Delivery, Webhook } from '#libs/contracts/webhooks.ts';
import { isTime, type List, listed, readPage, Where } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { deliveryColumns, ordinalOf } from '../webhooks/deliveries.ts';
import { findWebhook, webhookColumns, webhookNotFound } from '../webhooks/find-webhook.ts';
import { listEvents } from './list-events.ts';

export interface Read {
  pool: Pool;
  context: MessageContext;
  /** In ms since 1970. */
  now: number;
  /** The retention of events in days; -1: unlimited. */
  retentionDays: number;
}

/** One handler per query. Not found is a value; anything a handler throws is a fault. */
export const queryHandlers = {
  list_webhooks: listWebhooks,
  get_webhook: getWebhook,
  list_deliveries: listDeliveries,
  list_events: listEvents,
} satisfies {
  [N in MessageName]?: (read: Read, data: MessageData<N>) => Promise<ReplyBody>;
};

export type QueryName = keyof typeof queryHandlers;

const webhookList: List<Webhook, Webhook> = {
  order: ['created_at', 'webhook_id'],
  values: ({ at, id }) => (isTime(at) && id.length <= 64 ? [at, id] : undefined),
  position: ({ created_at: at, webhook_id: id }) => ({ at, id }),
  item: (webhook) => webhook,
  select: (where, order, limit) =>
    `select ${webhookColumns} from webhooks where ${where} order by ${order} limit ${limit}`,
};

async function listWebhooks({ pool, context }: Read, page: MessageData<'list_webhooks'>): Promise<ReplyBody> {
  const where = new Where("status <> 'Deleted'").equal({ client_id: context.bound_client_id });
  return listed(await readPage(pool, where, webhookList, page));
}

async function getWebhook({ pool, context }: Read, { webhook_id }: MessageData<'get_webhook'>): Promise<ReplyBody> {
  const data = await findWebhook(pool, context, webhook_id);
  return data ? { ok: true, data } : { ok: false, refusal: webhookNotFound(webhook_id) };
}

const deliveryList: List<Delivery, Delivery> = {
  order: ['ordinal'],
  values({ id }) {
    const ordinal = ordinalOf(id);
    return ordinal === undefined ? undefined : [ordinal];
  },
  position: ({ created_at: at, delivery_id: id }) => ({ at, id }),
  item: (delivery) => delivery,
  select: (where, order, limit) =>
    `select ${deliveryColumns} from deliveries d where ${where} order by ${order} limit ${limit}`,
};

async function listDeliveries(
  { pool, context }: Read,
  { webhook_id, status, ...page }: MessageData<'list_deliveries'>,
): Promise<ReplyBody> {
  if (!(await findWebhook(pool, context, webhook_id))) return { ok: false, refusal: webhookNotFound(webhook_id) };
  return listed(await readPage(pool, new Where().equal({ webhook_id, status }), deliveryList, page));
}
