import { z } from 'zod';
import { events } from './events.ts';
import { type EndpointRows, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { feedTopics } from './topics.ts';
import { violation } from './violation.ts';

/**
 * GET /events (contract: webhooks), and the event types that it and webhooks know. Types have no prefix and version here:
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

/**
 * Returns the event types that a pattern matches: a name, `transaction.*`, or `*`. Returns none for an unknown
 * name.
 */
export function matchEventTypes(pattern: string): string[] {
  const isMeant = (name: string) =>
    pattern === '*' || name === pattern || (pattern.endsWith('.*') && name.startsWith(pattern.slice(0, -1)));
  return [...feedTypes].filter(([name]) => isMeant(name)).map(([, type]) => type);
}

export const knownTypes = `must be one of ${[...feedTypes.keys()].join(', ')}, or a group of them such as transaction.*, or *`;
/** The patterns for which matchEventTypes returns event types, as a JSON Schema. */
const patternNames = new Set([...feedTypes.keys()].flatMap((name) => [name, name.replace(/[^.]*$/, '*')])).add('*');
export const anyPattern = [...patternNames].map((name) => name.replace(/[.*]/g, '\\$&')).join('|');

/** A CloudEvents 1.0 event in structured JSON. */
const cloudEventSchema = z
  .object({
    specversion: z.literal('1.0'),
    id: z.string(),
    source: z.string(),
    type: z.string(),
    subject: z.string(),
    time: shown.time,
    datacontenttype: z.literal('application/json'),
    /** The `$id` of the schema of `data`; events from before 0.2.0 lack it. */
    dataschema: z.string().optional(),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'CloudEvent' });
export type CloudEvent = z.infer<typeof cloudEventSchema>;

const patternChoice = ` *(${anyPattern}) *`;
const types = z
  .string()
  .max(2000)
  .transform((value, ctx) => {
    const named = value.split(',').map((part) => part.trim());
    const wrong = named.some((part) => matchEventTypes(part).length === 0);
    return wrong ? violation(ctx, 'validation_failed', `${knownTypes}; several are separated by commas`) : named;
  })
  .meta({ input_examples: ['transaction.completed,transfer.*'], pattern: `^${patternChoice}(,${patternChoice})*$` });

export const feedEndpoints = {
  list_events: {
    route: 'GET /events',
    summary: 'Poll events with a cursor',
    scope: 'transactions:read',
    query: z.strictObject({
      after: z.string().max(100).optional(),
      types: types.optional(),
      account_id: z.string().max(100).optional(),
      limit: field.page.limit,
    }),
    description:
      'Returns the published CloudEvents, oldest first, in publication order per account. To continue, pass `cursor` as `after` with the same filters. ' +
      'No event that is committed later appears before a cursor. Without `after`, starts with the oldest stored event (EVENTS_RETENTION_DAYS). A Link is present while there are more events. ' +
      'A caller bound to a client sees only events and entries of its own accounts.',
    shape: 'feed',
    answers: {
      event: {
        source: '/core-banking/accounts',
        type: 'corebanking.client.created.v1',
        subject: example.ids.client,
        data: { client_id: example.ids.client, client_type: 'Retail', created_at: example.time },
      },
    },
  },
} satisfies EndpointRows;

export const feedMessages = {
  list_events: message.webhooks.query(
    {
      after: z.string().optional(),
      types: z.array(z.string()).optional(),
      account_id: z.string().optional(),
      limit: message.page.limit,
    },
    z.object({ items: z.array(cloudEventSchema), cursor: z.string(), more: z.boolean() }),
  ),
};

export const feedMeanings = {
  fields: {
    'CloudEvent.id': 'Unique among all events; use it to recognize repeats',
    specversion: 'Version of CloudEvents',
    dataschema: 'Where the JSON schema of `data` is, by version',
    source: 'The service that published it',
    subject: 'Id of the resource concerned',
    time: `When it occurred, ${meaning.utc}`,
    datacontenttype: 'Always JSON',
    'CloudEvent.data': 'The event data, described in docs/events.md; amounts are decimal strings',
    types:
      'Event types without prefix and version, separated by commas, such as transaction.completed,transfer.*; default: all',
    'list_events.account_id': 'Only events of this account',
    'list_events.after': 'The cursor of the previous response; default: the oldest stored event',
  },
} satisfies Meanings;
