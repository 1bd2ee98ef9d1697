/**
 * Names, partitions and retention of every topic, and who writes and reads it: the one place. Names
 * are without the common prefix.
 */
export const commandPartitions = 12;
export const replyPartitions = 64;

const day = 24 * 60 * 60 * 1000;
const small = String(256 * 1024);
const medium = String(1024 * 1024);
const large = String(4 * 1024 * 1024);

/** `consumers`: downstream systems. The broker's rights follow from it (tools/generate/kafka-rights.ts). */
export type TopicUser = 'gateway' | 'ledger' | 'accounts' | 'webhooks' | 'consumers';

export interface TopicSettings {
  partitions: number;
  config: Record<string, string>;
}

export interface TopicDefinition extends TopicSettings {
  writers: readonly TopicUser[];
  readers: readonly TopicUser[];
}

/** A sender whose clock is wrong must not have its messages refused, or deleted before their time. */
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

/** EVENTS_RETENTION_DAYS, where it is not set. */
export const eventsRetentionDays = 400;

/** Events are kept long enough that a consumer can begin late, or read a year again. */
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

/** Read by accounts, who lists it. */
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

/** `others`: services that read them too. */
function events(writer: TopicUser, settings: TopicSettings, ...others: TopicUser[]): TopicDefinition {
  return between([writer], ['consumers', ...others], settings);
}

/** Where messages that cannot be processed are dead-lettered: `<topic>.dlq`. */
export const deadLetterTopics = [
  'ledger.commands.dlq',
  'ledger.batches.dlq',
  'ledger.audit.dlq',
  'accounts.commands.dlq',
  'ledger.queries.dlq',
  'accounts.queries.dlq',
  'webhooks.commands.dlq',
  'webhooks.queries.dlq',
] as const;

/** What consumers read; the rest of what outboxes hold is between services. */
export const eventTopics = [
  'transactions',
  'transfers',
  'balances',
  'holds',
  'accounts',
  'clients',
  'approvals',
  'webhooks',
  'audit',
  'security',
] as const;
export type EventTopic = (typeof eventTopics)[number];

export function isEventTopic(topic: string): topic is EventTopic {
  return eventTopics.some((name) => name === topic);
}

export const topics = {
  /** accounts writes its sagas' steps, and what is redriven. */
  'ledger.commands': between(['gateway', 'accounts'], ['ledger'], log(commandPartitions, 7 * day, small)),
  /**
   * Apart from single commands, so that none of these waits behind a batch. A request of 1 MiB is
   * one message, where one partition takes it all.
   */
  'ledger.batches': between(['gateway', 'accounts'], ['ledger'], log(commandPartitions, 7 * day, large)),
  /** The ledger answers those steps; webhooks sends what is audited of its own. */
  'accounts.commands': between(
    ['gateway', 'ledger', 'accounts', 'webhooks'],
    ['accounts'],
    log(commandPartitions, 7 * day, small),
  ),
  /** The ledger's audit records. */
  'ledger.audit': between(['ledger', 'accounts'], ['accounts'], log(1, 7 * day, large)),
  /** The newest batch that the ledger has published (libs/postgres/outbox/history.ts): the last record. */
  'ledger.position': between(['ledger'], ['ledger'], {
    partitions: 1,
    config: { ...compacted(1).config, 'segment.bytes': String(16 * 1024 * 1024) },
  }),
  'ledger.queries': between(['gateway', 'accounts'], ['ledger'], log(commandPartitions, day / 24, small)),
  'accounts.queries': between(['gateway', 'accounts'], ['accounts'], log(commandPartitions, day / 24, small)),
  /** accounts writes what is redriven. */
  'webhooks.commands': between(['gateway', 'accounts'], ['webhooks'], log(commandPartitions, 7 * day, small)),
  'webhooks.queries': between(['gateway', 'accounts'], ['webhooks'], log(commandPartitions, day / 24, small)),
  /** A gateway writes messages to itself, by which it knows that replies arrive. */
  replies: between(
    ['gateway', 'ledger', 'accounts', 'webhooks'],
    ['gateway'],
    log(replyPartitions, 10 * 60 * 1000, large),
  ),
  transactions: events('ledger', kept(12), 'webhooks'),
  transfers: events('ledger', kept(12), 'webhooks'),
  holds: events('ledger', kept(12), 'webhooks'),
  accounts: events('accounts', kept(12), 'webhooks'),
  clients: events('accounts', kept(12), 'webhooks'),
  approvals: events('accounts', kept(1), 'webhooks'),
  webhooks: events('webhooks', kept(1), 'webhooks'),
  balances: events('ledger', compacted(12)),
  'api-keys': between(['accounts'], ['gateway'], compacted(1)),
  /**
   * Of the dashboard: which sessions were ended by signing out. Read from its beginning, like a
   * compacted one; no session lasts as long as it keeps.
   */
  sessions: between(['gateway'], ['gateway'], log(1, day, small)),
  audit: events('accounts', kept(1)),
  /** What a SIEM is told of, summed up by the gateways. */
  security: events('gateway', kept(1)),
  'ledger.commands.dlq': deadLetter('ledger'),
  'ledger.batches.dlq': deadLetter('ledger'),
  'ledger.audit.dlq': deadLetter('accounts'),
  'accounts.commands.dlq': deadLetter('accounts'),
  'ledger.queries.dlq': deadLetter('ledger'),
  'accounts.queries.dlq': deadLetter('accounts'),
  'webhooks.commands.dlq': deadLetter('webhooks'),
  'webhooks.queries.dlq': deadLetter('webhooks'),
} satisfies Record<string, TopicDefinition>;

export type TopicName = keyof typeof topics;

/** The events that webhooks stores: what it sends, and what GET /events has. */
export const feedTopics: readonly TopicName[] = eventTopics.filter((name) =>
  (topics[name].readers as readonly TopicUser[]).includes('webhooks'),
);

/** What EVENTS_RETENTION_DAYS means for the topic; undefined for any other than one of events, and for balances. */
export function eventsRetention(name: string, days: number): Record<string, string> | undefined {
  const isKept = isEventTopic(name) && topics[name].config['cleanup.policy'] === 'delete';
  return isKept ? { 'retention.ms': String(days === -1 ? -1 : days * day) } : undefined;
}

/** Retention deletes segments as a whole, and brokers begin a new one after so long (their default). */
const segmentMs = 7 * day;

/**
 * webhooks stores events for EVENTS_RETENTION_DAYS, and so long at least: a delivery may be sent
 * for three days, and sent again for thirty.
 */
export const leastStoredDays = 35;

/** How long a record is in the topic at the latest; undefined: for ever. */
export function longestKept(name: TopicName, eventsDays: number): number | undefined {
  const config: Record<string, string> = { ...topics[name].config, ...eventsRetention(name, eventsDays) };
  const retentionMs = Number(config['retention.ms'] ?? -1);
  return retentionMs < 0 ? undefined : retentionMs + segmentMs;
}

/** The topic's name on the broker. */
export function topicName(prefix: string, name: TopicName): string {
  return prefix + name;
}

/** The whole table, by the topics' names on the broker: publishers take their limits from it. */
export function topicTable(prefix: string): ReadonlyMap<string, TopicDefinition> {
  return new Map(Object.entries(topics).map(([name, definition]) => [prefix + name, definition]));
}

/**
 * The bytes that the broker takes at most in one record batch of this topic, which is what one send
 * holds for one partition.
 */
export function maxBatchBytes({ config }: TopicSettings): number {
  return Number(config['max.message.bytes']);
}

/** The partition of a command or query with this bucket. */
export function commandPartition(bucket: number): number {
  return bucket % commandPartitions;
}
