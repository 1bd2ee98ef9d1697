import { z } from 'zod';
import { events } from './events.ts';
import { changesSomething, inOrder, orNumber, page, time, wholeNumber } from './fields.ts';
import { text } from './texts.ts';
import { feedTopics } from './topics.ts';
import { violation } from './violation.ts';

/**
 * Webhooks and GET /events: resources, bodies, and parameters. Event types have no prefix and version here:
 * `transaction.completed`.
 */

/**
 * The event types of the topics that webhooks reads, by short name. Other types are states (balances) or are meant for
 * auditors.
 */
const feedTypes: ReadonlyMap<string, string> = new Map(
  Object.entries(events)
    .filter(([, { topic }]) => feedTopics.includes(topic))
    .map(([type]) => [type.replace(/^corebanking\.|\.v\d+$/g, ''), type]),
);

/** The type of a test event. A webhook receives it regardless of its event_types. */
export const testEventType = 'corebanking.webhook.test.v1';

/**
 * Returns the event types that a pattern matches: a name, `transaction.*`, or `*`. Returns none for an unknown
 * name.
 */
export function typesOf(pattern: string): string[] {
  const isMeant = (name: string) =>
    pattern === '*' || name === pattern || (pattern.endsWith('.*') && name.startsWith(pattern.slice(0, -1)));
  return [...feedTypes].filter(([name]) => isMeant(name)).map(([, type]) => type);
}

const knownTypes = `must be one of ${[...feedTypes.keys()].join(', ')}, or a group of them such as transaction.*, or *`;
/** The patterns for which typesOf returns event types, as a JSON Schema. */
const patternNames = new Set([...feedTypes.keys()].flatMap((name) => [name, name.replace(/[^.]*$/, '*')])).add('*');
const anyPattern = [...patternNames].map((name) => name.replace(/[.*]/g, '\\$&')).join('|');
const pattern = z
  .string()
  .max(100)
  .refine((value) => typesOf(value).length > 0, knownTypes)
  .meta({ pattern: `^(${anyPattern})$` });
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

const webhookStatus = z.enum(['Active', 'Paused', 'Disabled']);
export const deliveryStatus = z.enum(['Pending', 'Delivered', 'Failed']);

export const webhookSchema = z.object({
  webhook_id: z.string(),
  url: z.string(),
  event_types: z.array(z.string()),
  description: z.string().nullable(),
  status: webhookStatus,
  /** The client whose events the webhook receives; null: all events of the bank. */
  client_id: z.string().nullable(),
  created_by: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  /** The time since which no delivery has succeeded. */
  failing_since: z.string().nullable(),
  /** Until this time, events are also signed with the secret before the last rotation. */
  previous_secret_ends_at: z.string().nullable(),
});
export type Webhook = z.infer<typeof webhookSchema>;

/** The webhook with its secret, which is returned once. */
export const webhookWithSecretSchema = webhookSchema.extend({ secret: z.string().optional() });

const attemptSchema = z.object({
  attempted_at: z.string(),
  duration_ms: z.number().int().min(0),
  /** null: no response. */
  response_status: z.number().int().min(100).max(999).nullable(),
  error: z.string().nullable(),
});

/** One event for one webhook. */
export const deliverySchema = z.object({
  delivery_id: z.string(),
  webhook_id: z.string(),
  /** The event's `id`, also sent in the header webhook-id. */
  event_id: z.string(),
  event_type: z.string(),
  status: deliveryStatus,
  created_at: z.string(),
  /** null: the delivery waits for an earlier event of the same account, or is not Pending. */
  next_attempt_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  /** Oldest first. */
  attempts: z.array(attemptSchema),
});
export type Delivery = z.infer<typeof deliverySchema>;

/** A CloudEvents 1.0 event in structured JSON. */
export const cloudEventSchema = z.object({
  specversion: z.literal('1.0'),
  id: z.string(),
  source: z.string(),
  type: z.string(),
  subject: z.string(),
  time: z.string(),
  datacontenttype: z.literal('application/json'),
  /** The `$id` of the schema of `data`; events from before 0.2.0 lack it. */
  dataschema: z.string().optional(),
  data: z.record(z.string(), z.unknown()),
});
export type CloudEvent = z.infer<typeof cloudEventSchema>;

/** The fields that PATCH can change. */
export const webhookChanges = z.object({
  url: z.string().optional(),
  event_types: z.array(z.string()).optional(),
  description: z.string().nullable().optional(),
  status: z.enum(['Active', 'Paused']).optional(),
});

export const webhookBodies = {
  create: z.strictObject({ url, event_types: patterns, description: text(0, 255).nullish() }),
  update: z
    .strictObject({
      url: url.optional(),
      event_types: patterns.optional(),
      description: text(0, 255).nullable().optional(),
      status: webhookChanges.shape.status,
    })
    .check(changesSomething)
    .meta({ minProperties: 1 }),
  rotate: z.strictObject({
    overlap_seconds: orNumber(86400, wholeNumber(0, 30 * 86400)),
  }),
  replay: z.strictObject({ from: time, to: time.optional() }).check(inOrder),
};

const oneOf = ` *(${anyPattern}) *`;
const types = z
  .string()
  .max(2000)
  .transform((value, ctx) => {
    const named = value.split(',').map((part) => part.trim());
    const wrong = named.some((part) => typesOf(part).length === 0);
    return wrong ? violation(ctx, 'validation_failed', `${knownTypes}; several are separated by commas`) : named;
  })
  .meta({ input_examples: ['transaction.completed,transfer.*'], pattern: `^${oneOf}(,${oneOf})*$` });

export const webhookParameters = {
  deliveries: z.strictObject({ status: deliveryStatus.optional(), ...page }),
  events: z.strictObject({
    after: z.string().max(100).optional(),
    types: types.optional(),
    account_id: z.string().max(100).optional(),
    limit: page.limit,
  }),
};
