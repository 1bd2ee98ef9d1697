/**
 * Names, partitions and retention of every topic: the one place. Names are without the common prefix.
 */
export const commandPartitions = 12;
export const replyPartitions = 64;

const day = 24 * 60 * 60 * 1000;
const small = String(256 * 1024);
const medium = String(1024 * 1024);
const large = String(4 * 1024 * 1024);

export interface TopicDefinition {
  partitions: number;
  config: Record<string, string>;
}

/** A sender whose clock is wrong must not have its messages refused, or deleted before their time. */
const brokersTime = { 'message.timestamp.type': 'LogAppendTime' };

function log(partitions: number, retentionMs: number, maxMessageBytes: string): TopicDefinition {
  return { partitions, config: { 'cleanup.policy': 'delete', 'retention.ms': String(retentionMs), 'max.message.bytes': maxMessageBytes, ...brokersTime } };
}

/** EVENTS_RETENTION_DAYS, where it is not set. */
export const eventsRetentionDays = 400;

/** Events are kept long enough that a consumer can begin late, or read a year again. */
function kept(partitions: number): TopicDefinition {
  return log(partitions, eventsRetentionDays * day, large);
}

function compacted(partitions: number): TopicDefinition {
  return { partitions, config: { 'cleanup.policy': 'compact', 'min.cleanable.dirty.ratio': '0.1', 'segment.ms': String(day), 'max.message.bytes': medium, ...brokersTime } };
}

const deadLetter = log(1, 30 * day, large);

/** Where messages that cannot be processed are dead-lettered: `<topic>.dlq`. */
export const deadLetterTopics = ['ledger.commands.dlq', 'ledger.audit.dlq', 'accounts.commands.dlq', 'ledger.queries.dlq', 'accounts.queries.dlq'] as const;

/** What consumers read; the rest of what outboxes hold is between services. */
export const eventTopics = ['transactions', 'transfers', 'balances', 'accounts', 'clients', 'audit'] as const;
export type EventTopic = (typeof eventTopics)[number];

export function isEventTopic(topic: string): topic is EventTopic {
  return eventTopics.some((name) => name === topic);
}

export const topics = {
  'ledger.commands': log(commandPartitions, 7 * day, small),
  'accounts.commands': log(commandPartitions, 7 * day, small),
  /** The ledger's audit records, for accounts. */
  'ledger.audit': log(1, 7 * day, large),
  /** The newest batch that the ledger has published (libs/postgres/outbox/history.ts). Read by itself alone, the last record. */
  'ledger.position': { partitions: 1, config: { ...compacted(1).config, 'segment.bytes': String(16 * 1024 * 1024) } },
  'ledger.queries': log(commandPartitions, day / 24, small),
  'accounts.queries': log(commandPartitions, day / 24, small),
  replies: log(replyPartitions, 10 * 60 * 1000, large),
  transactions: kept(12),
  transfers: kept(12),
  accounts: kept(12),
  clients: kept(12),
  balances: compacted(12),
  'api-keys': compacted(1),
  /** Of the dashboard: which sessions were ended by signing out. Read from its beginning, like a compacted one; no session lasts as long as it keeps. */
  sessions: log(1, day, small),
  audit: kept(1),
  'ledger.commands.dlq': deadLetter,
  'ledger.audit.dlq': deadLetter,
  'accounts.commands.dlq': deadLetter,
  'ledger.queries.dlq': deadLetter,
  'accounts.queries.dlq': deadLetter,
} satisfies Record<string, TopicDefinition>;

export type TopicName = keyof typeof topics;

/** What EVENTS_RETENTION_DAYS means for the topic; undefined for any other than one of events, and for balances. */
export function eventsRetention(name: string, days: number): Record<string, string> | undefined {
  const isKept = isEventTopic(name) && topics[name].config['cleanup.policy'] === 'delete';
  return isKept ? { 'retention.ms': String(days === -1 ? -1 : days * day) } : undefined;
}

/** The topic's name on the broker. */
export function topicName(prefix: string, name: TopicName): string {
  return prefix + name;
}

/** The whole table, by the topics' names on the broker: publishers take their limits from it. */
export function topicTable(prefix: string): ReadonlyMap<string, TopicDefinition> {
  return new Map(Object.entries(topics).map(([name, definition]) => [prefix + name, definition]));
}

/** The bytes that the broker takes at most in one record batch of this topic, which is what one send holds for one partition. */
export function maxBatchBytes({ config }: TopicDefinition): number {
  return Number(config['max.message.bytes']);
}

/** The partition of a command or query with this bucket. */
export function commandPartition(bucket: number): number {
  return bucket % commandPartitions;
}
