import type { MessageContext } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { SecretKeys } from '#libs/contracts/webhook-secret.ts';
import { maxBlockedShown, type Webhook } from '#libs/contracts/webhooks.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';

/** SQL of single webhooks and deliveries. The id of a delivery contains its ordinal. */

const ownColumns = `webhook_id, url, event_types, description, status, client_id, created_by, created_at,
  updated_at, failing_since, ordering,
  case when previous_secret_ends_at > clock_timestamp() then previous_secret_ends_at end as previous_secret_ends_at`;

/** When the first attempt of its present schedule was refused. */
const refusedSince = "attempts[cardinality(attempts) - tries + 1]->>'attempted_at'";

/** The columns of a webhook as it is shown: without its secrets. Without an order, no account is blocked. */
export const webhookColumns = `${ownColumns}, array(
    select json_build_object('subject', coalesce(body::json->>'subject', ordering_key), 'delivery_id', 'dlv_' || lpad(to_hex(ordinal), 32, '0'), 'event_type', event_type,
      'blocked_since', ${refusedSince}, 'attempts', tries, 'error',
      coalesce(attempts[cardinality(attempts)]->>'error', 'HTTP ' || (attempts[cardinality(attempts)]->>'response_status')),
      'next_attempt_at', to_char(next_attempt_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    from deliveries d where d.webhook_id = webhooks.webhook_id and webhooks.ordering <> 'none' and d.status = 'Pending' and d.next_attempt_at is not null and d.tries > 0
    order by ${refusedSince}, ordinal limit ${maxBlockedShown}
  ) as blocked_accounts`;

/**
 * Returns the filters of the webhooks that a caller may use; for it, all others do not exist. A bound caller may use those
 * of its client, another one those that it created or, if its context says so, all of them.
 */
export function reach({ bound_client_id, all_webhooks, actor }: MessageContext) {
  if (bound_client_id !== undefined) return { client_id: bound_client_id };
  return all_webhooks === 'true' ? {} : { created_by: actor };
}

/** A webhook without what its deliveries say of it. */
export type OwnWebhook = Omit<Webhook, 'blocked_accounts'>;

export const findWebhook = (
  queries: Queries,
  context: MessageContext,
  webhookId: string,
  lock: '' | 'for update' = '',
) => select<OwnWebhook>(queries, context, webhookId, ownColumns, lock);

/** Finds a webhook as it is shown. */
export const findShown = (queries: Queries, context: MessageContext, webhookId: string) =>
  select<Webhook>(queries, context, webhookId, webhookColumns);

async function select<W extends OwnWebhook>(
  queries: Queries,
  context: MessageContext,
  webhookId: string,
  columns: string,
  lock: '' | 'for update' = '',
): Promise<W | undefined> {
  if (!isId('webhook', webhookId)) return undefined;
  const { client_id, created_by }: { client_id?: string; created_by?: string } = reach(context);
  const { rows } = await queries.query<W>(
    `select ${columns} from webhooks
     where webhook_id = $1 and status <> 'Deleted' and ($2::text is null or client_id = $2)
       and ($3::text is null or created_by = $3) ${lock}`,
    [webhookId, client_id, created_by],
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
export function parseOrdinal(deliveryId: string): bigint | undefined {
  const ordinal = isId('delivery', deliveryId) ? BigInt(`0x${deliveryId.slice(4)}`) : undefined;
  return ordinal !== undefined && ordinal <= maxOrdinal ? ordinal : undefined;
}

/**
 * Seals every secret with the current key, so that an older key can be removed from the configuration. Costs one short
 * query if there is nothing to do. Returns the number of changed webhooks. Throws if the key of one is not configured.
 */
export function resealSecrets(pool: Pool, keys: SecretKeys): Promise<number> {
  return transaction(pool, async (client) => {
    const { rows } = await client.query<{ webhook_id: string; secret: string; previous_secret: string | null }>(
      `select webhook_id, secret, previous_secret from webhooks
       where status <> 'Deleted' and not (starts_with(secret, $1) and starts_with(coalesce(previous_secret, secret), $1))
       order by webhook_id for update`,
      [keys.prefix],
    );
    for (const { webhook_id, secret, previous_secret } of rows) {
      const reseal = (sealed: string) => keys.seal(webhook_id, keys.open(webhook_id, sealed));
      const values = [webhook_id, reseal(secret), previous_secret && reseal(previous_secret)];
      await client.query('update webhooks set secret = $2, previous_secret = $3 where webhook_id = $1', values);
    }
    return rows.length;
  });
}
