import { z } from 'zod';
import { event } from './subject.ts';

/** The events of webhooks, apart from webhooks.ts, whose patterns name the types of all events. */
export const webhookEvents = {
  /**
   * The bank stopped sending to the webhook. `gone`: its receiver returned 410. `failing`: nothing was delivered for
   * five days. `revoked`: a key that last set its URL or secret was revoked or has expired, or its client was erased.
   */
  'corebanking.webhook.disabled.v1': event.row('webhooks', {
    summary:
      'The bank stopped sending events to a webhook, because its receiver returned 410, no delivery succeeded for five days, a key that last set its URL or secret was revoked or has expired, or its client was erased',
    fields: {
      webhook_id: event.idField('webhook'),
      client_id: event.idField('client').nullable(),
      reason: z.enum(['gone', 'failing', 'revoked']),
      failing_since: event.moment.nullable(),
      disabled_at: event.moment,
    },
  }),
};
