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
  audit: { title: 'Every audit record', key: 'actor' },
  security: { title: 'Security events for a SIEM, summarized every minute', key: 'actor' },
};

const ref = (...path: string[]): JsonSchema => ({
  $ref: `#/${path.map((part) => part.replaceAll('/', '~1')).join('/')}`,
});

export function asyncApiDocument(version: string): JsonSchema {
  const eventTypes = (Object.keys(events) as EventType[]).filter((type) => isEventTopic(events[type].topic));
  const eventTopics = [...new Set(eventTypes.map((type) => events[type].topic))];
  const typesInTopic = (topic: TopicName) => eventTypes.filter((type) => events[type].topic === topic);
  return {
    asyncapi: '3.0.0',
    info: { title: 'Core Banking', version, description },
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
        { action: 'send', channel: ref('channels', topic) },
      ]),
    ),
    components: {
      messages: Object.fromEntries(
        eventTypes.map((type) => [
          type,
          eventMessage(type, events[type].summary, eventSchema(type), eventExample(type)),
        ]),
      ),
      schemas: { EventHeaders: wireSchema(eventHeadersSchema) },
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

function eventMessage(type: string, summary: string, schema: JsonSchema, example?: unknown): JsonSchema {
  const { $schema: _dialect, ...payload } = schema;
  const key = { type: 'string', description: 'Events with the same key are in order; ce_subject has the same value' };
  return {
    name: type,
    title: type,
    summary,
    contentType: 'application/json',
    headers: ref('components', 'schemas', 'EventHeaders'),
    payload,
    bindings: { kafka: { key, bindingVersion: '0.5.0' } },
    ...(example === undefined ? {} : { examples: [{ payload: example }] }),
  };
}
