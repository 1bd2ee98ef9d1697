import type { z } from 'zod';
import { idOf } from '#libs/contracts/ids.ts';
import type { MessageResult } from '#libs/contracts/messages.ts';
import { newWebhookSecret, type SecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { webhookBodies } from '#libs/contracts/webhooks.ts';
import { dataOf } from './answer.ts';
import { about, type Input, type Plan } from './plan.ts';
import type { ReadDependencies, ReadInput } from './reads.ts';
import { pathId } from './unknown-ids.ts';

type Body<S extends z.ZodType> = z.output<S>;

/**
 * The secret is generated here and shown once. It is sent and stored sealed. A repeat gets the same body without it.
 */
export function webhookPlanners({ secretKeys }: { secretKeys: SecretKeys }) {
  const withSecret = (secret: string) => async (data: unknown, replayed: boolean) =>
    replayed ? data : { ...(data as object), secret };
  return {
    create_webhook({ body, bits }: Input<Body<typeof webhookBodies.create>>): Plan<'create_webhook'> {
      const webhook_id = idOf('webhook', bits);
      const secret = newWebhookSecret();
      const data = {
        webhook_id,
        url: body.url,
        event_types: [...new Set(body.event_types)],
        description: body.description ?? null,
        sealed_secret: secretKeys.seal(webhook_id, secret),
      };
      return {
        name: 'create_webhook',
        id: webhook_id,
        key: webhook_id,
        data,
        resource: { webhook_id },
        location: `/webhooks/${webhook_id}`,
        finish: withSecret(secret),
      };
    },
    update_webhook: (input: Input<Body<typeof webhookBodies.update>>) =>
      about('update_webhook', 'webhook_id', input, (webhook_id) => ({ webhook_id, changes: input.body })),
    delete_webhook: (input: Input) => about('delete_webhook', 'webhook_id', input, (webhook_id) => ({ webhook_id })),
    rotate_webhook_secret(input: Input<Body<typeof webhookBodies.rotate>>): Plan<'rotate_webhook_secret'> {
      const secret = newWebhookSecret();
      const { overlap_seconds } = input.body;
      return {
        ...about('rotate_webhook_secret', 'webhook_id', input, (webhook_id) => ({
          webhook_id,
          sealed_secret: secretKeys.seal(webhook_id, secret),
          overlap_seconds,
        })),
        finish: withSecret(secret),
      };
    },
    test_webhook: (input: Input) => about('test_webhook', 'webhook_id', input, (webhook_id) => ({ webhook_id })),
    replay_webhook(input: Input<Body<typeof webhookBodies.replay>>): Plan<'replay_webhook'> {
      const { from, to = input.acceptedAt.toISOString() } = input.body;
      return about('replay_webhook', 'webhook_id', input, (webhook_id) => ({ webhook_id, from, to }));
    },
    redeliver(input: Input): Plan<'redeliver'> {
      const plan = about('redeliver', 'webhook_id', input, (webhook_id) => ({
        webhook_id,
        delivery_id: pathId('delivery_id', input.params),
      }));
      return { ...plan, resource: { ...plan.resource, delivery_id: plan.data.delivery_id } };
    },
  };
}

/** Returns events and the cursor with which to continue. */
export async function readEvents(
  { query, origin }: ReadInput,
  { forwarder }: ReadDependencies,
): Promise<MessageResult<'list_events'>> {
  const data = query as { after?: string; types?: string[]; account_id?: string; limit: number };
  return dataOf(await forwarder.query('list_events', data, origin.requestId, origin)) as MessageResult<'list_events'>;
}
