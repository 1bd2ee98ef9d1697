import { z } from 'zod';
import { eventNames, fullName } from './event-feed.ts';
import { outboxStateSchema } from './operations.ts';
import { type EndpointRows, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { text } from './texts.ts';

/** Webhooks (contract: webhooks): events sent to a URL, and their deliveries. */

/** The type of a test event. A webhook receives it regardless of its event_types. */
export const testEventType = 'corebanking.webhook.test.v1';

const pattern = z
  .string()
  .max(100)
  .refine(eventNames.has, eventNames.rule)
  .transform(fullName)
  .meta({ pattern: `^(${eventNames.pattern})$` });
const patterns = z.array(pattern).min(1, 'must name at least one type').max(50);

/** https, or http for a receiver on the same machine. The service checks which addresses are allowed. */
const url = z
  .string()
  .max(2000)
  .refine((value) => {
    if (!URL.canParse(value)) return false;
    const { protocol, username, password, hash } = new URL(value);
    return ['https:', 'http:'].includes(protocol) && username === '' && password === '' && hash === '';
  }, 'must be an https URL without user, password and fragment')
  .transform((value) => new URL(value).href)
  .meta({ format: 'uri' });

const ordering = z.enum(['account', 'none']);
const webhookStatus = z.enum(['Active', 'Paused', 'Disabled']);
export const deliveryStatus = z.enum(['Pending', 'Delivered', 'Failed']);

/** The maximum number of blocked accounts that a webhook shows. */
export const maxBlockedShown = 100;

/** An account, or another subject of events, whose first undelivered event was refused. */
const blockedAccountSchema = z
  .object({
    subject: z.string(),
    /** The refused delivery, for which the later events of the subject wait. */
    delivery_id: z.string(),
    event_type: z.string(),
    blocked_since: shown.time,
    attempts: z.number().int().min(1),
    error: z.string(),
    next_attempt_at: shown.time,
  })
  .meta({ id: 'BlockedAccount' });

export const webhookSchema = z
  .object({
    webhook_id: z.string(),
    url: z.string(),
    event_types: z.array(z.string()),
    ordering,
    description: z.string().nullable(),
    status: webhookStatus,
    /** The client whose events the webhook receives; null: all events of the bank. */
    client_id: z.string().nullable(),
    created_by: z.string(),
    created_at: shown.time,
    updated_at: shown.time,
    /** The time since which no delivery has succeeded. */
    failing_since: shown.time.nullable(),
    /** Until this time, events are also signed with the secret before the last rotation. */
    previous_secret_ends_at: shown.time.nullable(),
    /** Longest first. */
    blocked_accounts: z.array(blockedAccountSchema).max(maxBlockedShown),
  })
  .meta({ id: 'Webhook' });
export type Webhook = z.infer<typeof webhookSchema>;

/** The webhook with its secret, which is returned once. */
const webhookWithSecretSchema = webhookSchema
  .extend({ secret: z.string().optional() })
  .meta({ id: 'WebhookWithSecret' });

const attemptSchema = z
  .object({
    attempted_at: shown.time,
    duration_ms: z.number().int().min(0),
    /** null: no response. */
    response_status: z.number().int().min(100).max(999).nullable(),
    error: z.string().nullable(),
  })
  .meta({ id: 'DeliveryAttempt' });

/** One event for one webhook. */
const deliverySchema = z
  .object({
    delivery_id: z.string(),
    webhook_id: z.string(),
    /** The event's `id`, also sent in the header webhook-id. */
    event_id: z.string(),
    event_type: z.string(),
    status: deliveryStatus,
    created_at: shown.time,
    /** null: the delivery waits for an earlier event of the same account, or is not Pending. */
    next_attempt_at: shown.time.nullable(),
    finished_at: shown.time.nullable(),
    /** Oldest first. */
    attempts: z.array(attemptSchema),
  })
  .meta({ id: 'Delivery' });
export type Delivery = z.infer<typeof deliverySchema>;

/** The fields that PATCH can change. */
const webhookChanges = z.object({
  url: z.string().optional(),
  event_types: z.array(z.string()).optional(),
  description: z.string().nullable().optional(),
  ordering: ordering.optional(),
  status: z.enum(['Active', 'Paused']).optional(),
});

const deliveryFilters = z.strictObject({ status: deliveryStatus.optional(), ...field.page });

const secret = 'whsec_<base64>';
const underWay = { next_attempt_at: example.time, attempts: [] };

export const webhookEndpoints = {
  create_webhook: {
    route: 'POST /webhooks',
    summary: 'Create a webhook',
    scope: 'webhooks:manage',
    body: z.strictObject({
      url,
      event_types: patterns,
      description: text(0, 255).nullish(),
      ordering: ordering.optional(),
    }),
    description:
      'Sends events to a URL (Standard Webhooks 1.0; see docs/webhooks.md). `secret` is shown only in this response, also in a 202. A caller may have at most 20 webhooks. Private network addresses are refused.',
    result: webhookWithSecretSchema,
    success: 201,
    requests: { transactions: { description: 'Bookkeeping' } },
    answers: { transactions: { secret } },
  },
  list_webhooks: {
    route: 'GET /webhooks',
    summary: 'List webhooks',
    scope: 'webhooks:manage',
    shape: 'page',
  },
  get_webhook: {
    route: 'GET /webhooks/:webhook_id',
    summary: 'Get a webhook',
    scope: 'webhooks:manage',
  },
  update_webhook: {
    route: 'PATCH /webhooks/:webhook_id',
    summary: 'Update, pause, or resume a webhook',
    scope: 'webhooks:manage',
    body: z
      .strictObject({
        url: url.optional(),
        event_types: patterns.optional(),
        description: text(0, 255).nullable().optional(),
        ordering: webhookChanges.shape.ordering,
        status: webhookChanges.shape.status,
      })
      .check(field.changesSomething)
      .meta({ minProperties: 1 }),
    description:
      'Events are not sent while the webhook is Paused or Disabled; a replay sends them later. Setting Active also resumes a Disabled webhook.',
    requests: { pause: { status: 'Paused' } },
    answers: { pause: { status: 'Paused' } },
  },
  delete_webhook: {
    route: 'DELETE /webhooks/:webhook_id',
    summary: 'Delete a webhook and its pending deliveries',
    scope: 'webhooks:manage',
  },
  rotate_webhook_secret: {
    route: 'POST /webhooks/:webhook_id/secret-rotation',
    summary: 'Rotate the secret of a webhook',
    scope: 'webhooks:manage',
    body: z.strictObject({ overlap_seconds: field.orNumber(86400, field.wholeNumber(0, 30 * 86400)) }),
    description:
      'During the overlap the old secret signs too. The new secret is shown only in this response, also in a 202. At most two secrets sign: another rotation within the overlap ends the oldest.',
    result: webhookWithSecretSchema,
    requests: { day: { overlap_seconds: 86400 } },
    answers: { day: { previous_secret_ends_at: '2026-01-03T03:04:05.678Z', secret } },
  },
  test_webhook: {
    route: 'POST /webhooks/:webhook_id/test',
    summary: 'Send a test event to a webhook',
    scope: 'webhooks:manage',
    errors: ['invalid_status_transition'],
    answers: { test: { ...underWay, event_type: testEventType } },
  },
  replay_webhook: {
    route: 'POST /webhooks/:webhook_id/replay',
    summary: 'Replay the events of a period to a webhook',
    scope: 'webhooks:manage',
    body: z.strictObject({ from: field.time, to: field.time.optional() }).check(field.inOrder),
    description:
      'Sends the stored events from `from` (inclusive) to `to` (exclusive; default: now) by event time, including events from before the webhook was created.',
    errors: ['invalid_status_transition'],
    requests: { january: { to: '2026-02-01T00:00:00Z' } },
  },
  list_deliveries: {
    route: 'GET /webhooks/:webhook_id/deliveries',
    summary: 'List the deliveries of a webhook with their attempts',
    scope: 'webhooks:manage',
    query: deliveryFilters,
    description: 'Delivered deliveries are kept for 7 days, Failed ones for 30 days.',
    shape: 'page',
    answers: {
      delivery: {
        status: 'Delivered',
        finished_at: example.time,
        attempts: [{ error: 'no answer within 15 s' }, { response_status: 204 }],
      },
    },
  },
  redeliver: {
    route: 'POST /webhooks/:webhook_id/deliveries/:delivery_id/redelivery',
    summary: 'Redeliver a delivery',
    scope: 'webhooks:manage',
    description:
      'A Pending delivery is attempted now, or as soon as earlier events of its account are delivered or Failed.',
    errors: ['invalid_status_transition'],
    answers: { redeliver: underWay },
  },
  skip_delivery: {
    route: 'POST /webhooks/:webhook_id/deliveries/:delivery_id/skip',
    summary: 'Skip a delivery',
    scope: 'webhooks:manage',
    description:
      'A Pending delivery becomes Failed, and the next event of its account is sent. An attempt that is running may still arrive. It can be redelivered later.',
    errors: ['invalid_status_transition'],
    answers: { skip: { status: 'Failed', next_attempt_at: null, finished_at: example.time } },
  },
} satisfies EndpointRows;

export const webhookMessages = {
  create_webhook: message.webhooks.command(
    {
      webhook_id: message.id,
      url: z.string(),
      event_types: z.array(z.string()),
      description: message.text,
      ordering: ordering.optional(),
      sealed_secret: z.string(),
    },
    webhookSchema,
  ),
  update_webhook: message.webhooks.command({ webhook_id: message.id, changes: webhookChanges }, webhookSchema),
  delete_webhook: message.webhooks.command({ webhook_id: message.id }, webhookSchema),
  rotate_webhook_secret: message.webhooks.command(
    { webhook_id: message.id, sealed_secret: z.string(), overlap_seconds: z.number().int() },
    webhookSchema,
  ),
  test_webhook: message.webhooks.command({ webhook_id: message.id }, deliverySchema),
  redeliver: message.webhooks.command({ webhook_id: message.id, delivery_id: message.id }, deliverySchema),
  skip_delivery: message.webhooks.command({ webhook_id: message.id, delivery_id: message.id }, deliverySchema),
  replay_webhook: message.webhooks.command(
    { webhook_id: message.id, from: message.time, to: message.time },
    webhookSchema,
  ),
  /**
   * Disables the webhooks whose URL or secret these callers set last, or of this client, because their keys were revoked
   * or have expired.
   */
  disable_webhooks: message.webhooks.command(
    { set_by: z.array(z.string()), client_id: message.id.nullable() },
    z.object({ disabled: z.array(z.string()) }),
  ),
  list_webhooks: message.webhooks.query({ ...message.page }, message.pageSchema(webhookSchema)),
  /** Returns the ids of the webhooks whose URL or secret these callers set last. */
  list_webhooks_set_by: message.webhooks.query({ actors: z.array(z.string()) }, z.array(z.string())),
  get_webhook: message.webhooks.query({ webhook_id: message.id }, webhookSchema),
  list_deliveries: message.webhooks.query(
    { webhook_id: message.id, ...message.listRequest(deliveryFilters) },
    message.pageSchema(deliverySchema),
  ),
  get_webhooks_operations: message.webhooks.query(
    {},
    z.object({ outbox: outboxStateSchema, webhooks_failing: z.number().int() }),
  ),
};

export const webhookMeanings = {
  fields: {
    webhook_id: 'The webhook: `whk_` and 32 hexadecimal digits',
    delivery_id: 'The delivery: `dlv_` and 32 hexadecimal digits',
    url: 'https URL that events are posted to, at most 2,000 characters; http only to loopback where that is allowed',
    event_types:
      'Event types: `transaction.completed`, `transaction.*`, or `*`, which mean v1, or full names such as `corebanking.transaction.completed.v1`, which are shown',
    'Webhook.status':
      'Active: receives events; Paused: events are skipped; Disabled by the bank after a 410 or five days of failures',
    'update_webhook.status': 'Paused: skip events from now on; Active: deliver events again',
    ordering:
      'account: the events of an account wait for each other, in order; none: each is sent at once, and retried alone. Default: account',
    blocked_accounts: `The accounts whose next event was refused and is retried; their later events wait: at most ${maxBlockedShown}, the longest blocked first`,
    'BlockedAccount.subject': 'The account, or another subject, whose events wait',
    'BlockedAccount.delivery_id': 'The refused delivery, which can be redelivered or skipped',
    blocked_since: `When it was first refused, or first since its redelivery, ${meaning.utc}`,
    'BlockedAccount.attempts': 'How often it was refused since then',
    'BlockedAccount.error': 'Why the last attempt failed',
    'Webhook.description': 'A description, at most 255 characters; null: none',
    'Webhook.client_id': 'The client whose events it receives; null: events of the whole bank',
    'Delivery.status': 'Pending: will be attempted; Delivered; Failed: will not be attempted again',
    failing_since: `Since when all deliveries have failed, ${meaning.utc}; null: the last one succeeded`,
    previous_secret_ends_at: `Until when the previous secret also signs, ${meaning.utc}; null: there is none`,
    secret: 'The signing secret, `whsec_…`: shown only once, when it is created',
    event_id: "The event's `id`, also sent as webhook-id",
    event_type: 'Type of the event, such as corebanking.transaction.completed.v1',
    next_attempt_at: `The next attempt, ${meaning.utc}; null: it waits for an earlier event of the account, or is not Pending`,
    finished_at: `When it was delivered or failed finally, ${meaning.utc}; null: not yet`,
    attempts: 'Oldest first',
    attempted_at: `When the request was sent, ${meaning.utc}`,
    duration_ms: 'Time until the response in milliseconds',
    response_status: 'HTTP status of the response; null: none',
    'DeliveryAttempt.error': 'Why the attempt failed; null: it did not',
    'replay_webhook.from': 'Events at or after this time: ISO 8601 date or time',
    'replay_webhook.to': 'Events before this time: ISO 8601 date or time; default: now',
  },
  eventFields: {
    disabled_at: 'ISO 8601 UTC',
  },
  errors: {
    webhook_not_found: meaning.notFound('webhook', example.ids.webhook),
    delivery_not_found: {
      meaning: 'The webhook has no such delivery.',
      action: 'Correct the id.',
      example: [`delivery ${example.ids.delivery} not found`],
    },
  },
} satisfies Meanings;
