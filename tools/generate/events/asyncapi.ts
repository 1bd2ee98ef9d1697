import { headerNames, replySchema, replyType } from '#libs/contracts/envelope.ts';
import { refusalSchema } from '#libs/contracts/errors.ts';
import { type EventType, eventHeadersSchema, events } from '#libs/contracts/events.ts';
import { type MessageName, messages, messageType } from '#libs/contracts/messages.ts';
import { isEventTopic, type TopicDefinition, type TopicName, topics } from '#libs/contracts/topics.ts';
import { eventExamples } from './event-examples.ts';
import { eventSchema, eventSummaries, type JsonSchema, wireSchema } from './event-schemas.ts';

/** Builds the AsyncAPI 3 document from the tables of topics, events, and messages. */

const description = `The events that the bank publishes to Kafka, and the messages between its services.

The channels tagged \`events\` are for consumers: CloudEvents 1.0 in binary content mode, delivered at least once, with the
same \`ce_id\` on every repeat, in order per key, and never published for a transaction that rolled back. Within a type
version (\`.v1\`) events only gain fields, so accept fields that you do not know. docs/events.md describes guarantees,
sequences, and the snapshot in \`balances\`.

Commands, queries, and replies (tagged \`internal\`) may change in every release. Use REST instead.`;

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
  'api-keys': { title: 'Internal: API keys, for gateways', key: 'key_id' },
  replies: {
    title: 'Internal: replies to commands and queries, each in the partition named by its request',
    key: 'none',
  },
};

const ref = (...path: string[]): JsonSchema => ({
  $ref: `#/${path.map((part) => part.replaceAll('/', '~1')).join('/')}`,
});

export function asyncApiDocument(version: string): JsonSchema {
  const eventTypes = Object.keys(events) as EventType[];
  const requests = Object.keys(messages) as MessageName[];
  const eventTopics = [...new Set(eventTypes.map((type) => events[type].topic))];
  const requestTopics = [...new Set(requests.map((name) => messages[name].topic))];
  const typesOf = (topic: TopicName) => eventTypes.filter((type) => events[type].topic === topic);
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
    channels: {
      ...Object.fromEntries(eventTopics.map((topic) => [topic, channel(topic, typesOf(topic), tagOf(topic))])),
      ...Object.fromEntries(
        requestTopics.map((topic) => [
          topic,
          channel(
            topic,
            requests.filter((name) => messages[name].topic === topic),
            'internal',
          ),
        ]),
      ),
      replies: channel('replies', requests.map(replyName), 'internal'),
    },
    operations: {
      ...Object.fromEntries(eventTopics.map((topic) => [`publish_${topic.replace('-', '_')}`, publication(topic)])),
      ...Object.fromEntries(requests.map((name) => [name, exchange(name)])),
    },
    components: {
      messages: {
        ...Object.fromEntries(
          eventTypes.map((type) => [
            type,
            eventMessage(type, eventSummaries[type], eventSchema(type), eventExamples[type]),
          ]),
        ),
        ...Object.fromEntries(requests.map((name) => [name, requestMessage(name)])),
        ...Object.fromEntries(requests.map((name) => [replyName(name), replyMessageOf(name)])),
      },
      schemas: {
        EventHeaders: wireSchema(eventHeadersSchema),
        RequestHeaders: requestHeaders(),
        Refusal: wireSchema(refusalSchema),
      },
      correlationIds: {
        reply: {
          description: 'The correlation id of the request',
          location: `$message.header#/${headerNames.correlation_id}`,
        },
      },
    },
  };
}

function replyName(name: MessageName): string {
  return `${name}.reply`;
}

function channel(topic: TopicName, messageNames: string[], tag: string): JsonSchema {
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
    tags: [{ name: tag }],
    bindings: { kafka: { partitions, topicConfiguration, bindingVersion: '0.5.0' } },
  };
}

function tagOf(topic: TopicName): string {
  return isEventTopic(topic) ? 'events' : 'internal';
}

function publication(topic: TopicName): JsonSchema {
  return { action: 'send', channel: ref('channels', topic), tags: [{ name: tagOf(topic) }] };
}

/** Returns the operation of a service that receives a command or query and replies to it. */
function exchange(name: MessageName): JsonSchema {
  const { topic, kind } = messages[name];
  return {
    action: 'receive',
    title: `${kind} ${name}`,
    channel: ref('channels', topic),
    messages: [ref('channels', topic, 'messages', name)],
    reply: { channel: ref('channels', 'replies'), messages: [ref('channels', 'replies', 'messages', replyName(name))] },
    tags: [{ name: 'internal' }],
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

function requestMessage(name: MessageName): JsonSchema {
  return {
    name: messageType(name),
    title: name,
    contentType: 'application/json',
    headers: ref('components', 'schemas', 'RequestHeaders'),
    correlationId: ref('components', 'correlationIds', 'reply'),
    payload: wireSchema(messages[name].data, 'input'),
  };
}

function replyMessageOf(name: MessageName): JsonSchema {
  const [done] = replySchema.options;
  const success = wireSchema(done.extend({ data: messages[name].result }));
  const refused = {
    type: 'object',
    properties: {
      ok: { type: 'boolean', const: false },
      replayed: { type: 'boolean' },
      refusal: ref('components', 'schemas', 'Refusal'),
    },
    required: ['ok', 'refusal'],
  };
  return {
    name: replyType,
    title: `Reply to ${name}`,
    contentType: 'application/json',
    headers: ref('components', 'schemas', 'RequestHeaders'),
    correlationId: ref('components', 'correlationIds', 'reply'),
    payload: { oneOf: [success, refused] },
  };
}

const meanings: Record<keyof typeof headerNames, string> = {
  message_id: 'Of a command: the id of what it creates, the same on every repeat',
  type: 'corebanking.<command|query>.<name>.v1, or corebanking.reply.v1',
  source: 'Who sent it',
  time: 'When the request was accepted',
  subject: 'The message key',
  request_id: 'X-Request-Id',
  actor: 'Who asked',
  deadline: 'After this moment a command is not begun any more',
  reply_by: 'Until this moment somebody waits for the reply',
  idempotency_key: 'Idempotency-Key',
  fingerprint: 'Of path parameters and body: another one under the same id is refused',
  repeat_only: 'true: what is kept under this id is answered, and nothing is executed',
  staff: 'true where a member of staff asks in person',
  address: "The caller's network address",
  bound_client_id: 'The client that the caller is bound to',
  approved_by: 'The second person, where one had to approve the command',
  approval_id: 'The approval, where one was needed',
  traceparent: 'W3C trace context',
  correlation_id: 'Of the reply that is waited for',
  reply_topic: 'Where the reply goes; absent where nobody waits',
};

function requestHeaders(): JsonSchema {
  const texts = (Object.keys(meanings) as (keyof typeof headerNames)[]).map((field) => [
    headerNames[field],
    { type: 'string', description: meanings[field] },
  ]);
  const partition = {
    type: 'string',
    pattern: '^\\d{1,5}$',
    description: 'The partition of the reply topic from which the sender reads',
  };
  return {
    type: 'object',
    properties: { ...Object.fromEntries(texts), 'reply-partition': partition },
    required: ['ce_id', 'ce_type', 'ce_time'],
  };
}
