import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageName, Position } from '#libs/contracts/messages.ts';
import { isTime, type List, listed, readPage, Where } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type DeliveryRow, deliveryColumns, deliveryOf, ordinalOf } from '../webhooks/deliveries.ts';
import { isVisible, webhookNotFound } from '../webhooks/handlers.ts';
import { type WebhookRow, webhookColumns, webhookOf } from '../webhooks/store.ts';
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

async function listWebhooks({ pool, context }: Read, data: MessageData<'list_webhooks'>): Promise<ReplyBody> {
  const list: List<WebhookRow, unknown> = {
    order: ['created_at', 'webhook_id'],
    values: ({ at, id }: Position) => (isTime(at) && id.length <= 64 ? [at, id] : undefined),
    position: ({ created_at: at, webhook_id: id }) => ({ at, id }),
    item: webhookOf,
    select: (where, order, limit) =>
      `select ${webhookColumns} from webhooks where ${where} order by ${order} limit ${limit}`,
  };
  return listed(
    await readPage(pool, new Where("status <> 'Deleted'").equal({ client_id: context.bound_client_id }), list, data),
  );
}

async function findWebhook({ pool, context }: Read, webhookId: string): Promise<WebhookRow | undefined> {
  if (!isId('webhook', webhookId)) return undefined;
  const { rows } = await pool.query<WebhookRow>(
    `select ${webhookColumns} from webhooks where webhook_id = $1 and status <> 'Deleted'`,
    [webhookId],
  );
  return rows[0] && isVisible(context, rows[0]) ? rows[0] : undefined;
}

async function getWebhook(read: Read, { webhook_id }: MessageData<'get_webhook'>): Promise<ReplyBody> {
  const row = await findWebhook(read, webhook_id);
  return row ? { ok: true, data: webhookOf(row) } : { ok: false, refusal: webhookNotFound(webhook_id) };
}

async function listDeliveries(
  read: Read,
  { webhook_id, status, ...page }: MessageData<'list_deliveries'>,
): Promise<ReplyBody> {
  if (!(await findWebhook(read, webhook_id))) return { ok: false, refusal: webhookNotFound(webhook_id) };
  const list: List<DeliveryRow, unknown> = {
    order: ['ordinal'],
    values({ id }: Position) {
      const ordinal = ordinalOf(id);
      return ordinal === undefined ? undefined : [ordinal];
    },
    position: (row) => ({ at: row.created_at, id: deliveryOf(row).delivery_id }),
    item: deliveryOf,
    select: (where, order, limit) =>
      `select ${deliveryColumns} from deliveries d where ${where} order by ${order} limit ${limit}`,
  };
  return listed(await readPage(read.pool, new Where().equal({ webhook_id, status }), list, page));
}
