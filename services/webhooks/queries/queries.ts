import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import type { Position } from '#libs/contracts/message-fields.ts';
import type { MessageData, MessageOn } from '#libs/contracts/messages.ts';
import type { Delivery, Webhook } from '#libs/contracts/webhooks.ts';
import { byTime, listTable } from '#libs/postgres/keyset.ts';
import { outboxStats } from '#libs/postgres/outbox/relay-read.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import type { Item } from '#libs/service/command-consumer.ts';
import { replyToUnknown } from '#libs/service/dead-lettered.ts';
import { createQueryConsumer, type QueryConsumerOptions, type Request } from '#libs/service/query-consumer.ts';
import {
  deliveryColumns,
  findShown,
  findWebhook,
  parseOrdinal,
  reach,
  webhookColumns,
  webhookNotFound,
} from '../webhooks/store.ts';
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
const queryHandlers = {
  list_webhooks: listWebhooks,
  list_webhooks_set_by: listSetBy,
  get_webhook: getWebhook,
  list_deliveries: listDeliveries,
  list_events: listEvents,
  get_webhooks_operations: getOperations,
} satisfies { [N in MessageOn<'webhooks.queries'>]: (read: Read, data: MessageData<N>) => Promise<ReplyBody> };

type QueryDeps = Pick<Read, 'pool' | 'retentionDays'> &
  Pick<QueryConsumerOptions, 'prefix' | 'keys' | 'replies' | 'logger' | 'now'>;

/** Answers the queries in webhooks.queries. */
export function webhooksQueries(deps: QueryDeps) {
  const { pool, retentionDays, now } = deps;
  const answer = ({ content: { name, context, data } }: Item<Request>): Promise<ReplyBody> => {
    const handle = queryHandlers[name as keyof typeof queryHandlers];
    return handle({ pool, context, now: now(), retentionDays }, data as never);
  };
  return createQueryConsumer({
    ...deps,
    takes: (name) => Object.hasOwn(queryHandlers, name),
    isBatched: () => false,
    answer: (requests) => Promise.all(requests.map(answer)),
    concurrency: 1,
  });
}

async function getOperations({ pool }: Read): Promise<ReplyBody> {
  const [outbox, { rows }] = await Promise.all([
    outboxStats(pool),
    pool.query<{ failing: number }>(
      "select count(*)::int as failing from webhooks where status = 'Active' and client_id is null and failing_since is not null",
    ),
  ]);
  return { ok: true, data: { outbox, webhooks_failing: rows[0]?.failing ?? 0 } };
}

function listWebhooks({ pool, context }: Read, page: MessageData<'list_webhooks'>): Promise<ReplyBody> {
  const source = {
    from: 'webhooks',
    columns: webhookColumns,
    fixed: "status <> 'Deleted'",
    filters: reach(context),
    ...byTime<Webhook>('created_at', 'webhook_id'),
    item: (webhook: Webhook) => webhook,
  };
  return listTable(pool, source, page);
}

async function listSetBy({ pool }: Read, { actors }: MessageData<'list_webhooks_set_by'>): Promise<ReplyBody> {
  const { rows } = await pool.query<Pick<Webhook, 'webhook_id'>>(
    `select webhook_id from webhooks where (url_set_by = any($1) or secret_set_by = any($1)) and status <> 'Deleted'
     order by webhook_id`,
    [actors],
  );
  return { ok: true, data: rows.map(({ webhook_id }) => webhook_id) };
}

async function getWebhook({ pool, context }: Read, { webhook_id }: MessageData<'get_webhook'>): Promise<ReplyBody> {
  const data = await findShown(pool, context, webhook_id);
  return data ? { ok: true, data } : replyToUnknown(pool, webhook_id, webhookNotFound);
}

async function listDeliveries(
  { pool, context }: Read,
  { webhook_id, status, ...page }: MessageData<'list_deliveries'>,
): Promise<ReplyBody> {
  if (!(await findWebhook(pool, context, webhook_id))) return { ok: false, refusal: webhookNotFound(webhook_id) };
  const source = {
    from: 'deliveries d',
    columns: deliveryColumns,
    filters: { webhook_id, status },
    order: ['ordinal'],
    values: ({ id }: Position) => (parseOrdinal(id) === undefined ? undefined : [parseOrdinal(id)]),
    position: ({ created_at: at, delivery_id: id }: Delivery) => ({ at, id }),
    item: (delivery: Delivery) => delivery,
  };
  return listTable(pool, source, page);
}
