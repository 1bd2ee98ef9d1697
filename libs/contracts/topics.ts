/**
 * Names, partitions and retention of every topic: the one place. Names are without the common prefix.
 */
export const commandPartitions = 12;
export const replyPartitions = 64;

const day = 24 * 60 * 60 * 1000;
const small = String(256 * 1024);
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

function compacted(partitions: number): TopicDefinition {
  return { partitions, config: { 'cleanup.policy': 'compact', 'min.cleanable.dirty.ratio': '0.1', 'segment.ms': String(day), ...brokersTime } };
}

const deadLetter = log(1, 30 * day, large);

/** Where what cannot be processed is put aside: `<topic>.dlq`. */
export const deadLetterTopics = ['ledger.commands.dlq', 'accounts.commands.dlq', 'ledger.queries.dlq', 'accounts.queries.dlq'] as const;

/** Event topics that can be replayed, each by the service whose outbox keeps its events. */
export const replayedBy = { transactions: 'ledger', transfers: 'ledger', balances: 'ledger', accounts: 'accounts', clients: 'accounts', audit: 'accounts' } as const;
export type ReplayedTopic = keyof typeof replayedBy;

/** What consumers read; the rest of what outboxes hold is between services. */
export function isEventTopic(topic: string): boolean {
  return Object.hasOwn(replayedBy, topic);
}

/** Where a replay of the topic goes. */
export function sideTopic<T extends ReplayedTopic>(topic: T) {
  return `${topic}.replay` as const;
}

const side = log(3, 7 * day, large);

export const topics = {
  'ledger.commands': log(commandPartitions, 7 * day, small),
  'accounts.commands': log(commandPartitions, 7 * day, small),
  'ledger.queries': log(commandPartitions, day / 24, small),
  'accounts.queries': log(commandPartitions, day / 24, small),
  replies: log(replyPartitions, 10 * 60 * 1000, large),
  transactions: log(12, 30 * day, large),
  transfers: log(12, 30 * day, large),
  accounts: log(12, 30 * day, large),
  clients: log(12, 30 * day, large),
  balances: compacted(12),
  'api-keys': compacted(1),
  /** Of the dashboard: which sessions were ended by signing out. Read from its beginning, like a compacted one; no session lasts as long as it keeps. */
  sessions: log(1, day, small),
  audit: log(1, 365 * day, large),
  'transactions.replay': side,
  'transfers.replay': side,
  'balances.replay': side,
  'accounts.replay': side,
  'clients.replay': side,
  'audit.replay': side,
  'ledger.commands.dlq': deadLetter,
  'accounts.commands.dlq': deadLetter,
  'ledger.queries.dlq': deadLetter,
  'accounts.queries.dlq': deadLetter,
} satisfies Record<string, TopicDefinition>;

export type TopicName = keyof typeof topics;

/** The topic's name on the broker. */
export function topicName(prefix: string, name: TopicName): string {
  return prefix + name;
}

/** The partition of a command or query with this bucket. */
export function commandPartition(bucket: number): number {
  return bucket % commandPartitions;
}
