import { z } from 'zod';
import { events } from './events.ts';
import { type EndpointRows, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { feedTopics } from './topics.ts';
import { violation } from './violation.ts';

/**
 * GET /events (contract: webhooks), and the names of event types that it and webhooks accept. A full name has a version:
 * `corebanking.transaction.completed.v1`, or `corebanking.transaction.*.v1` for a group. A short name,
 * `transaction.completed`, means v1, which only gains fields, and so does not change when there is a v2.
 */

/** Returns the full name of a type or a group of types. A full name is returned as it is. Pure. */
export function fullName(name: string): string {
  return /^corebanking\..+\.v\d+$/.test(name) ? name : `corebanking.${name}.v1`;
}

/** Returns the patterns for LIKE that the types with these names match. Types that there are later match too. Pure. */
export function typePatterns(names: readonly string[]): string[] {
  return names.map((name) => fullName(name).replaceAll('_', '\\_').replace('*', '%'));
}

/** Returns the names by which these event types can be named: each is a type or a group of them. Pure. */
export function namesOf(types: readonly string[]) {
  const split = types.map((type) => /^corebanking\.(.+)\.(v\d+)$/.exec(type)?.slice(1) ?? [type, '']);
  const byVersion = [...Map.groupBy(split, ([, version]) => version)].map(([version, named]) => {
    const names = new Set(named.flatMap(([name = '']) => [name, name.replace(/[^.]*$/, '*')]));
    return { version, names: [...(version === 'v1' ? names.add('*') : names)] };
  });
  const short = byVersion.find(({ version }) => version === 'v1')?.names ?? [];
  const all = new Set([
    ...short,
    ...byVersion.flatMap(({ version, names }) => names.map((name) => `corebanking.${name}.${version}`)),
  ]);
  const anyOf = (names: readonly string[]) => names.map((name) => name.replace(/[.*]/g, '\\$&')).join('|');
  const known = split.map(([name, version], i) => (version === 'v1' ? name : types[i]));
  return {
    has: (name: string) => all.has(name),
    rule: `must be one of ${known.join(', ')}, or a group of them such as transaction.*, or *, or a full name such as corebanking.transaction.completed.v1`,
    /** As a regular expression. */
    pattern: [
      anyOf(short),
      ...byVersion.map(({ version, names }) => `corebanking\\.(${anyOf(names)})\\.${version}`),
    ].join('|'),
  };
}

/** The names of the types on the topics that webhooks reads. Other types are states (balances) or are meant for auditors. */
export const eventNames = namesOf(
  Object.entries(events).flatMap(([type, { topic }]) => (feedTopics.includes(topic) ? [type] : [])),
);

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
    /** The address of the schema of `data`, or its `$id`; events from before 1.0.0 lack it. */
    dataschema: z.string().optional(),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'CloudEvent' });
export type CloudEvent = z.infer<typeof cloudEventSchema>;

const nameChoice = ` *(${eventNames.pattern}) *`;
const types = z
  .string()
  .max(2000)
  .transform((value, ctx) => {
    const named = value.split(',').map((part) => part.trim());
    if (!named.every(eventNames.has))
      return violation(ctx, 'validation_failed', `${eventNames.rule}; several are separated by commas`);
    return named.map(fullName);
  })
  .meta({ input_examples: ['transaction.completed,transfer.*'], pattern: `^${nameChoice}(,${nameChoice})*$` });

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
    dataschema: 'The JSON schema of `data`, by version: its URL, or its URN if webhooks has no API_URL',
    source: 'The service that published it',
    subject: 'Id of the resource concerned',
    time: `When it occurred, ${meaning.utc}`,
    datacontenttype: 'Always JSON',
    'CloudEvent.data': 'The event data, described in docs/events.md; amounts are decimal strings',
    types:
      'Event types separated by commas, such as transaction.completed,transfer.*; without a version v1 is meant, with one as in corebanking.transaction.completed.v1; default: all, in v1',
    'list_events.account_id': 'Only events of this account',
    'list_events.after': 'The cursor of the previous response; default: the oldest stored event',
  },
} satisfies Meanings;
