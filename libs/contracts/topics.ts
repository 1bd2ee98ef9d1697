/** Names, partitions, retention, writers, and readers of all topics. Names have no prefix here. */
export const commandPartitions = 12;
export const replyPartitions = 64;

const day = 24 * 60 * 60 * 1000;
const small = String(256 * 1024);
const medium = String(1024 * 1024);
const large = String(4 * 1024 * 1024);

/** `consumers` are downstream systems. Broker ACLs are generated from this table (tools/generate/kafka-rights.ts). */
export type TopicUser = 'gateway' | 'ledger' | 'accounts' | 'webhooks' | 'consumers';

export interface TopicSettings {
  partitions: number;
  config: Record<string, string>;
}

export interface TopicDefinition extends TopicSettings {
  writers: readonly TopicUser[];
  readers: readonly TopicUser[];
}

/** Messages of a sender whose clock is wrong must not be rejected, or deleted too early. */
const brokersTime = { 'message.timestamp.type': 'LogAppendTime' };

function log(partitions: number, retentionMs: number, maxMessageBytes: string): TopicSettings {
  return {
    partitions,
    config: {
      'cleanup.policy': 'delete',
      'retention.ms': String(retentionMs),
      'max.message.bytes': maxMessageBytes,
      ...brokersTime,
    },
  };
}

/** The default of EVENTS_RETENTION_DAYS. */
export const eventsRetentionDays = 400;

/** Events are kept long enough for a consumer to start late or to read a year again. */
function kept(partitions: number): TopicSettings {
  return log(partitions, eventsRetentionDays * day, large);
}

function compacted(partitions: number): TopicSettings {
  return {
    partitions,
    config: {
      'cleanup.policy': 'compact',
      'min.cleanable.dirty.ratio': '0.1',
      'segment.ms': String(day),
      'max.message.bytes': medium,
      ...brokersTime,
    },
  };
}

/** accounts reads all dead letter topics and lists their messages. */
function deadLetter(writer: TopicUser): TopicDefinition {
  return { ...log(1, 30 * day, large), writers: [writer], readers: ['accounts'] };
}

function between(
  writers: readonly TopicUser[],
  readers: readonly TopicUser[],
  settings: TopicSettings,
): TopicDefinition {
  return { ...settings, writers, readers };
}

/** `others`: further services that read the events. */
function events(writer: TopicUser, settings: TopicSettings, ...others: TopicUser[]): TopicDefinition {
  return between([writer], ['consumers', ...others], settings);
}

/** The topics between services, and those of the gateways alone. */
const internalTopics = {
  /** accounts writes saga steps and redriven commands. */
  'ledger.commands': between(['gateway', 'accounts'], ['ledger'], log(commandPartitions, 7 * day, small)),
  /** Separate from single commands, so that these never wait for a batch. A request of 1 MiB is one message. */
  'ledger.batches': between(['gateway', 'accounts'], ['ledger'], log(commandPartitions, 7 * day, large)),
  /** The ledger writes replies to saga steps; webhooks writes audit records. */
  'accounts.commands': between(
    ['gateway', 'ledger', 'accounts', 'webhooks'],
    ['accounts'],
    log(commandPartitions, 7 * day, small),
  ),
  /** The ledger's audit records. */
  'ledger.audit': between(['ledger', 'accounts'], ['accounts'], log(1, 7 * day, large)),
  /** The last record is the newest batch that the ledger published (libs/postgres/outbox/history.ts). */
  'ledger.position': between(['ledger'], ['ledger'], {
    partitions: 1,
    config: { ...compacted(1).config, 'segment.bytes': String(16 * 1024 * 1024) },
  }),
  'ledger.queries': between(['gateway', 'accounts'], ['ledger'], log(commandPartitions, day / 24, small)),
  'accounts.queries': between(['gateway', 'accounts'], ['accounts'], log(commandPartitions, day / 24, small)),
  /** accounts writes redriven commands. */
  'webhooks.commands': between(['gateway', 'accounts'], ['webhooks'], log(commandPartitions, 7 * day, small)),
  'webhooks.queries': between(['gateway', 'accounts'], ['webhooks'], log(commandPartitions, day / 24, small)),
  replies: between(['ledger', 'accounts', 'webhooks'], ['gateway'], log(replyPartitions, 10 * 60 * 1000, large)),
  'api-keys': between(['accounts'], ['gateway'], compacted(1)),
  /**
   * Access tokens that ended by signing out, or in again. Gateways read the topic from the beginning; no token that they
   * accept outlives its retention (12 hours).
   */
  sessions: between(['gateway'], ['gateway'], log(1, 8 * day, small)),
};

/** The topics for consumers. */
const publishedTopics = {
  transactions: events('ledger', kept(12), 'webhooks'),
  transfers: events('ledger', kept(12), 'webhooks'),
  balances: events('ledger', compacted(12)),
  /** Master data of each account and client, without personal data. */
  'account-masters': events('accounts', compacted(12)),
  'client-masters': events('accounts', compacted(12)),
  holds: events('ledger', kept(12), 'webhooks'),
  /** Decided batches of callers. */
  batches: events('ledger', kept(1), 'webhooks'),
  /** Closed days. */
  days: events('ledger', kept(1), 'webhooks'),
  accounts: events('accounts', kept(12), 'webhooks'),
  clients: events('accounts', kept(12), 'webhooks'),
  approvals: events('accounts', kept(1), 'webhooks'),
  webhooks: events('webhooks', kept(1), 'webhooks'),
  audit: events('accounts', kept(1)),
  /** Security events for a SIEM, summarized by the gateways. */
  security: events('gateway', kept(1)),
};

/** Messages of `<topic>` that cannot be processed. */
const deadLetters = {
  'ledger.commands.dlq': deadLetter('ledger'),
  'ledger.batches.dlq': deadLetter('ledger'),
  'ledger.audit.dlq': deadLetter('accounts'),
  'accounts.commands.dlq': deadLetter('accounts'),
  'ledger.queries.dlq': deadLetter('ledger'),
  'accounts.queries.dlq': deadLetter('accounts'),
  'webhooks.commands.dlq': deadLetter('webhooks'),
  'webhooks.queries.dlq': deadLetter('webhooks'),
};

export const topics = { ...internalTopics, ...publishedTopics, ...deadLetters };
export const eventTopics = Object.keys(publishedTopics) as EventTopic[];
export const deadLetterTopics = Object.keys(deadLetters) as (keyof typeof deadLetters)[];

export type EventTopic = keyof typeof publishedTopics;
export type TopicName = keyof typeof topics;

export function isEventTopic(topic: string): topic is EventTopic {
  return Object.hasOwn(publishedTopics, topic);
}

/** The topics that webhooks stores for deliveries and GET /events. */
export const feedTopics: readonly TopicName[] = eventTopics.filter((name) =>
  (topics[name].readers as readonly TopicUser[]).includes('webhooks'),
);

/** Returns the effect of EVENTS_RETENTION_DAYS on the topic, or undefined if it is compacted or contains no events. */
export function eventsRetention(name: string, days: number): Record<string, string> | undefined {
  const isKept = isEventTopic(name) && topics[name].config['cleanup.policy'] === 'delete';
  return isKept ? { 'retention.ms': String(days === -1 ? -1 : days * day) } : undefined;
}

/** Retention deletes whole segments, and brokers start a new segment after this time by default. */
const segmentMs = 7 * day;

/**
 * Returns how long webhooks stores events, in days, from EVENTS_RETENTION_DAYS (-1: forever). At least 35 days, because
 * a delivery may take three days and can be redelivered for thirty.
 */
export const storedDays = (retentionDays: number): number => (retentionDays === -1 ? -1 : Math.max(retentionDays, 35));

/** Returns how long a record can stay in the topic, in ms; undefined: forever. */
export function longestKept(name: TopicName, eventsDays: number): number | undefined {
  const config: Record<string, string> = { ...topics[name].config, ...eventsRetention(name, eventsDays) };
  const retentionMs = Number(config['retention.ms'] ?? -1);
  return retentionMs < 0 ? undefined : retentionMs + segmentMs;
}

/** Returns the topic's name on the broker. */
export function topicName(prefix: string, name: TopicName): string {
  return prefix + name;
}

/** Returns the topics table by names on the broker. Publishers take their limits from it. */
export function topicTable(prefix: string): ReadonlyMap<string, TopicDefinition> {
  return new Map(Object.entries(topics).map(([name, definition]) => [prefix + name, definition]));
}

/**
 * Returns the maximum size of a record batch that the broker accepts, in bytes. One send makes one record batch
 * per partition.
 */
export function maxBatchBytes({ config }: TopicSettings): number {
  return Number(config['max.message.bytes']);
}

/** Returns the partition of a command or query with this bucket. */
export function commandPartition(bucket: number): number {
  return bucket % commandPartitions;
}
