import type { Webhook } from '#libs/contracts/webhooks.ts';
import { textArray } from '#libs/postgres/arrays.ts';
import type { Queries } from '#libs/postgres/pool.ts';

/** SQL of webhooks and their feeds. */

export interface WebhookRow extends Omit<Webhook, 'status'> {
  status: Webhook['status'] | 'Deleted';
  secret: string;
}

const shown =
  'webhook_id, url, event_types, description, status, client_id, created_by, created_at, updated_at, failing_since';
export const webhookColumns = `${shown}, case when previous_secret_ends_at > clock_timestamp() then previous_secret_ends_at end as previous_secret_ends_at, secret`;

export function webhookOf({ secret: _secret, ...row }: WebhookRow): Webhook {
  return { ...row, status: row.status as Webhook['status'] };
}

/** Serializes transactions that add or remove webhooks of one caller. Returns the number of its webhooks. */
export async function lockedCount(client: Queries, actor: string): Promise<number> {
  await client.query("select pg_advisory_xact_lock(hashtextextended('webhooks of ' || $1, 0))", [actor]);
  const { rows } = await client.query<{ count: number }>(
    "select count(*)::int as count from webhooks where created_by = $1 and status <> 'Deleted'",
    [actor],
  );
  return rows[0]?.count ?? 0;
}

export async function insertWebhook(
  client: Queries,
  row: Pick<
    WebhookRow,
    'webhook_id' | 'client_id' | 'url' | 'event_types' | 'description' | 'secret' | 'created_by' | 'created_at'
  >,
): Promise<WebhookRow> {
  const { rows } = await client.query<WebhookRow>(
    `insert into webhooks (webhook_id, client_id, url, event_types, description, status, secret, created_by, created_at, updated_at)
     values ($1, $2, $3, $4, $5, 'Active', $6, $7, $8, $8) returning ${webhookColumns}`,
    [
      row.webhook_id,
      row.client_id,
      row.url,
      row.event_types,
      row.description,
      row.secret,
      row.created_by,
      row.created_at,
    ],
  );
  return one(rows);
}

/** Locks and returns the webhook, or undefined if it does not exist or was deleted. */
export async function lockWebhook(client: Queries, webhookId: string): Promise<WebhookRow | undefined> {
  const { rows } = await client.query<WebhookRow>(
    `select ${webhookColumns} from webhooks where webhook_id = $1 and status <> 'Deleted' for update`,
    [webhookId],
  );
  return rows[0];
}

/** Those that these callers have made, or that are for this client, and that may send; locked. */
export async function lockMadeBy(
  client: Queries,
  makers: readonly string[],
  clientId: string | null,
): Promise<WebhookRow[]> {
  const { rows } = await client.query<WebhookRow>(
    `select ${webhookColumns} from webhooks where (created_by = any($1::text[]) or client_id = $2)
       and status in ('Active', 'Paused') order by webhook_id for update`,
    [textArray([...makers]), clientId],
  );
  return rows;
}

export type Changes = Partial<
  Pick<WebhookRow, 'url' | 'event_types' | 'description' | 'status' | 'secret' | 'failing_since'> & {
    previous_secret: string | null;
    previous_secret_ends_at: string | null;
  }
>;

export async function changeWebhook(
  client: Queries,
  webhookId: string,
  changes: Changes,
  at: string,
): Promise<WebhookRow> {
  const columns = Object.keys(changes) as (keyof Changes)[];
  const { rows } = await client.query<WebhookRow>(
    `update webhooks set ${['updated_at', ...columns].map((column, i) => `${column} = $${i + 2}`).join(', ')} where webhook_id = $1 returning ${webhookColumns}`,
    [webhookId, at, ...columns.map((column) => changes[column])],
  );
  return one(rows);
}

/** Opens a feed of everything published from now on. */
export async function openFeed(client: Queries, webhookId: string): Promise<void> {
  await client.query('insert into feeds (webhook_id, position) select $1, position from event_head', [webhookId]);
}

/** Ends the current feed: what was published until now is still sent, but nothing after it. */
export async function closeFeed(client: Queries, webhookId: string): Promise<void> {
  await client.query(
    'update feeds set until_position = (select position from event_head) where webhook_id = $1 and until_position is null and until_time is null',
    [webhookId],
  );
}

export async function deleteFeeds(client: Queries, webhookId: string): Promise<void> {
  await client.query('delete from feeds where webhook_id = $1', [webhookId]);
}

/** Opens a feed of the events of a period. Returns false if too many replays are waiting. */
export async function openReplay(client: Queries, webhookId: string, from: string, to: string): Promise<boolean> {
  const opened = await client.query(
    `insert into feeds (webhook_id, position, occurred_at, from_time, until_time)
     select $1, -1, $2, $2, $3 where (select count(*) from feeds where webhook_id = $1) < ${maxFeeds}`,
    [webhookId, from, to],
  );
  return opened.rowCount === 1;
}
const maxFeeds = 20;

function one<Row>([row]: Row[]): Row {
  if (row === undefined) throw new TypeError('a webhook that was locked is not there');
  return row;
}
