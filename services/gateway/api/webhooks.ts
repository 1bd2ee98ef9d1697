import type { MessageResult } from '#libs/contracts/messages.ts';
import { newWebhookSecret, type SecretKeys } from '#libs/contracts/webhook-secret.ts';
import { pathId } from '../http/unknown-ids.ts';
import { requireData } from './answer.ts';
import { type Plan, type Planners, planCreate, planFor } from './plan.ts';
import type { ReadDependencies, ReadInput } from './reads.ts';

/**
 * The secret is generated here and shown once. It is sent and stored sealed. A repeat gets the same body without it.
 */
export function webhookPlanners({ secretKeys }: { secretKeys: SecretKeys }) {
  // A typed object, because the compiler does not see a misspelt hook beside a spread plan.
  const showOnce = (secret: string): Pick<Plan, 'enrichResponse' | 'secret'> => ({
    secret,
    enrichResponse: async (data, replayed) => (replayed ? data : { ...(data as object), secret }),
  });
  return {
    create_webhook({ body: { url, event_types, description = null, ordering = 'account' }, bits }) {
      const secret = newWebhookSecret();
      const plan = planCreate('webhook_id', bits, (webhook_id) => ({
        webhook_id,
        url,
        event_types: [...new Set(event_types)],
        description,
        ordering,
        sealed_secret: secretKeys.seal(webhook_id, secret),
      }));
      return { ...plan, ...showOnce(secret) };
    },
    update_webhook: (input) => planFor('webhook_id', input, (webhook_id) => ({ webhook_id, changes: input.body })),
    delete_webhook: (input) => planFor('webhook_id', input, (webhook_id) => ({ webhook_id })),
    rotate_webhook_secret(input) {
      const secret = newWebhookSecret();
      const { overlap_seconds } = input.body;
      const plan = planFor('webhook_id', input, (webhook_id) => ({
        webhook_id,
        sealed_secret: secretKeys.seal(webhook_id, secret),
        overlap_seconds,
      }));
      return { ...plan, ...showOnce(secret) };
    },
    test_webhook: (input) => planFor('webhook_id', input, (webhook_id) => ({ webhook_id })),
    replay_webhook(input) {
      const { from, to = input.acceptedAt.toISOString() } = input.body;
      return planFor('webhook_id', input, (webhook_id) => ({ webhook_id, from, to }));
    },
    redeliver: planDelivery,
    skip_delivery: planDelivery,
  } satisfies Partial<Planners>;
}

function planDelivery(input: Parameters<Planners['redeliver']>[0]) {
  const plan = planFor('webhook_id', input, (webhook_id) => ({
    webhook_id,
    delivery_id: pathId('delivery_id', input.params),
  }));
  return { ...plan, resource: plan.data };
}

/** Returns events and the cursor with which to continue. */
export async function readEvents(
  { query, origin }: ReadInput,
  { forwarder }: ReadDependencies,
): Promise<MessageResult<'list_events'>> {
  const data = query as { after?: string; types?: string[]; account_id?: string; limit: number };
  return requireData(await forwarder.query('list_events', data, origin.requestId, origin));
}
