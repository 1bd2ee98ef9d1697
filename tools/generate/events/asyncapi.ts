import { isDeepStrictEqual } from 'node:util';
import { type EventType, eventHeadersSchema, events } from '#libs/contracts/events.ts';
import { isEventTopic, type TopicDefinition, type TopicName, topics } from '#libs/contracts/topics.ts';
import { eventExample, eventSchema, type JsonSchema, wireSchema } from './event-schemas.ts';

/** Builds the AsyncAPI 3 document of the event topics from the tables of topics and events. */

const description = `The events that the bank publishes to Kafka: CloudEvents 1.0 in binary content mode, delivered at least once,
with the same \`ce_id\` on every repeat, in order per key, and never published for a transaction that rolled back. Within a
type version (\`.v1\`) events only gain fields, so accept fields that you do not know. docs/events.md describes guarantees,
sequences, and the snapshot in \`balances\`.`;

/** Titles, keys, and rules of topics that cannot be derived from their messages. */
const about: Partial<Record<TopicName, { title: string; key: string; rule?: string }>> = {
  transactions: { title: 'One event per transaction of a customer', key: 'account_id' },
  transfers: { title: 'One event per transfer', key: 'transfer_id' },
  holds: { title: 'Changes of holds', key: 'account_id' },
  accounts: { title: 'Opened accounts and status changes', key: 'account_id' },
  clients: { title: 'Clients, without personal data', key: 'client_id' },
  approvals: { title: 'Requested and decided approvals', key: 'approval_id' },
  webhooks: { title: 'Disabled webhooks', key: 'webhook_id' },
  balances: {
    title: 'The latest balance of each account (compacted): read it from the beginning for the current state',
    key: 'account_id',
    rule: 'Replace a state only if the new one has a higher sequence, or the same sequence with a higher status_version or hold_version, because an older state may arrive late.',
  },
  'account-masters': {
    title: 'The master data of each account: compacted',
    key: 'account_id',
    rule: 'A state replaces the one you have only if its status_version is not lower.',
  },
  'client-masters': {
    title: 'The master data of each client, without personal data: compacted',
    key: 'client_id',
    rule: 'A state replaces the one you have only if its updated_at is not lower, and never one that has erased_at by one that has none.',
  },
  batches: { title: 'Decided batches of callers', key: 'batch_id' },
  days: { title: 'Closed days', key: 'date' },
  audit: { title: 'Every audit record', key: 'actor' },
  security: { title: 'Security events for a SIEM, summarized every minute', key: 'actor' },
};

const ref = (...path: string[]): JsonSchema => ({
  $ref: `#/${path.map((part) => part.replaceAll('/', '~1')).join('/')}`,
});

/** Keywords whose schemas are still those of the property. */
const isOfProperty = (keyword: string): boolean => ['anyOf', 'items', '0', '1', '2'].includes(keyword);
const inWords = (name: string): string =>
  name.replace(/(?:^|[._])([a-z])/g, (_all, letter: string) => letter.toUpperCase());

/** Returns `TransactionCompletedEvent` for `corebanking.transaction.completed.v1`, and `…EventV2` for v2. */
function payloadName(type: string): string {
  const [, what = '', version = ''] = /^corebanking\.(.+)\.v(\d+)$/.exec(type) ?? [];
  return `${inWords(what)}Event${version === '1' ? '' : `V${version}`}`;
}

/**
 * Makes the components of the payloads, so that generated classes have names: objects by their titles, and lists of values
 * by their property, after the name of their object if another object has other values.
 */
function nameParts(payloads: readonly JsonSchema[], schemas: Record<string, JsonSchema>): unknown[] {
  const add = (title: string, { description: _, ...schema }: JsonSchema): JsonSchema => {
    const { title: _title, ...known } = schemas[title] ?? schema;
    const { title: _own, ...rest } = schema;
    if (!isDeepStrictEqual(known, rest)) throw new TypeError(`two different schemas are named ${title}`);
    schemas[title] ??= { title, ...rest };
    return ref('components', 'schemas', title);
  };
  const lists = new Map<string, Set<string>>();
  const seek = (node: unknown, name = ''): void => {
    if (typeof node !== 'object' || node === null) return;
    const { enum: values } = node as JsonSchema;
    if (Array.isArray(values)) lists.set(name, (lists.get(name) ?? new Set()).add(JSON.stringify(values)));
    for (const [key, item] of Object.entries(node)) seek(item, isOfProperty(key) ? name : key);
  };
  seek(payloads);
  const visit = (node: unknown, name: string, owner: string): unknown => {
    if (Array.isArray(node)) return node.map((item) => visit(item, name, owner));
    if (typeof node !== 'object' || node === null) return node;
    const { title = owner, type, enum: values } = node as JsonSchema;
    const made = Object.fromEntries(
      Object.entries(node).map(([key, item]) => [key, visit(item, isOfProperty(key) ? name : key, String(title))]),
    ) as JsonSchema;
    if (Array.isArray(values))
      return add(lists.get(name)?.size === 1 ? inWords(name) : `${owner}${inWords(name)}`, made);
    return type === 'object' && 'title' in node ? add(String(title), made) : made;
  };
  return payloads.map((payload) => visit(payload, '', ''));
}

export function asyncApiDocument(version: string): JsonSchema {
  const eventTypes = (Object.keys(events) as EventType[]).filter((type) => isEventTopic(events[type].topic));
  const eventTopics = [...new Set(eventTypes.map((type) => events[type].topic))];
  const typesInTopic = (topic: TopicName) => eventTypes.filter((type) => events[type].topic === topic);
  const schemas: Record<string, JsonSchema> = { EventHeaders: wireSchema(eventHeadersSchema) };
  const payloads = eventTypes.map((type) => {
    const { $schema: _dialect, $id: _id, examples: _examples, ...payload } = eventSchema(type);
    return { ...payload, title: payloadName(type) };
  });
  const references = nameParts(payloads, schemas);
  const messages = Object.fromEntries(eventTypes.map((type, i) => [type, eventMessage(type, references[i])]));
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Core Banking',
      version,
      description,
      license: { name: 'UNLICENSED' },
      tags: [{ name: 'events' }],
    },
    defaultContentType: 'application/json',
    servers: {
      kafka: {
        host: '{brokers}',
        protocol: 'kafka',
        variables: { brokers: { default: 'localhost:9092', description: 'KAFKA_BROKERS' } },
      },
    },
    channels: Object.fromEntries(eventTopics.map((topic) => [topic, channel(topic, typesInTopic(topic))])),
    operations: Object.fromEntries(
      eventTopics.map((topic) => [
        `publish_${topic.replace('-', '_')}`,
        { action: 'send', channel: ref('channels', topic), description: `The bank publishes to ${topic}` },
      ]),
    ),
    components: {
      messages,
      schemas,
    },
  };
}

function channel(topic: TopicName, messageNames: string[]): JsonSchema {
  const { partitions, config }: TopicDefinition = topics[topic];
  const topicConfiguration: JsonSchema = {};
  for (const [name, value] of Object.entries(config)) {
    if (name === 'cleanup.policy') topicConfiguration[name] = [value];
    else if (['retention.ms', 'max.message.bytes'].includes(name)) topicConfiguration[name] = Number(value);
  }
  const own = about[topic];
  return {
    address: `{prefix}${topic}`,
    ...(own ? { title: own.title, description: [`Key: ${own.key}.`, own.rule].filter(Boolean).join(' ') } : {}),
    messages: Object.fromEntries(messageNames.map((name) => [name, ref('components', 'messages', name)])),
    parameters: { prefix: { default: '', description: 'TOPIC_PREFIX' } },
    bindings: { kafka: { partitions, topicConfiguration, bindingVersion: '0.5.0' } },
  };
}

function eventMessage(type: EventType, payload: unknown): JsonSchema {
  const key = { type: 'string', description: 'Events with the same key are in order; ce_subject has the same value' };
  return {
    name: type,
    title: type,
    summary: events[type].summary,
    contentType: 'application/json',
    headers: ref('components', 'schemas', 'EventHeaders'),
    payload,
    bindings: { kafka: { key, bindingVersion: '0.5.0' } },
    examples: [{ name: 'example', summary: 'An example', payload: eventExample(type) }],
  };
}
