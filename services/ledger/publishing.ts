import type { Logger } from 'pino';
import { source } from '#libs/contracts/envelope.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import { type TopicName, topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { readLastValue } from '#libs/kafka/consume/read-message.ts';
import { createPublisher, type OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { History } from '#libs/postgres/outbox/history.ts';
import { createRelay, type Relay } from '#libs/postgres/outbox/relay.ts';
import { relayOptions } from '#libs/service/config.ts';
import { deadLetterCounter, measureOutbox } from '#libs/service/measures.ts';
import type { Metrics } from '#libs/service/metrics.ts';
import { createReplies } from '#libs/service/replies.ts';
import { publishTracer, type Tracing } from '#libs/service/tracing.ts';
import { createAuditSender } from './audit/audit-sender.ts';
import { restateBalances } from './batch/restate.ts';
import type { LedgerConfig } from './config.ts';
import type { Pools } from './pools.ts';
import { ledgerSchema } from './schema.ts';

const readTimeoutMs = 2_000;

/** Publishes the newest published batch to a topic, so that a database with an older history is detected. */
export function createHistory(kafka: KafkaClient, prefix: string): History {
  const readLast = () => readLastValue(kafka, topicName(prefix, 'ledger.position'), readTimeoutMs);
  return new History({ topic: 'ledger.position', source: source.ledger, readLast });
}

export interface PublishingDependencies {
  keys: MacKeys;
  pools: Pools;
  history: History;
  metrics: Metrics;
  tracing: Tracing | undefined;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  logger: Logger;
}

/**
 * Creates separate publishers for replies, events, and audit records. Messages that accounts acts on are
 * signed: replies to saga steps, and audit records. Nothing is started yet.
 */
export function createPublishing(
  kafka: KafkaClient,
  config: LedgerConfig,
  { keys, pools, history, metrics, tracing, now, logger }: PublishingDependencies,
) {
  const prefix = config.TOPIC_PREFIX;
  const sign = (message: OutgoingMessage) => keys.sign('ledger', message);
  const forAccounts = topicName(prefix, 'accounts.commands');
  const topics = topicTable(prefix);
  const publishers = {
    replies: createPublisher(kafka, {
      logger,
      name: 'replies',
      topics,
      maxQueued: 50_000,
      sign: (message) => void (message.topic === forAccounts && sign(message)),
    }),
    events: createPublisher(kafka, { logger, name: 'events', topics }),
    audits: createPublisher(kafka, { logger, name: 'audits', topics, sign }),
  };
  const tracePublished = publishTracer(tracing, prefix);
  const replies = createReplies({
    publisher: publishers.replies,
    source: source.ledger,
    logger,
    now,
    onDeadLetter: deadLetterCounter(metrics, prefix),
    onReplies: tracePublished,
  });
  const relay: Relay = createRelay({
    ...relayOptions(config),
    pool: pools.relayPool,
    publisher: publishers.events,
    schema: ledgerSchema,
    source: source.ledger,
    logger,
    observe: measureOutbox(metrics, () => relay, tracePublished),
    topicName: (name) => topicName(prefix, name as TopicName),
    restate: (messages) => restateBalances(pools.writes, messages, topicName(prefix, 'balances')),
    history,
  });
  const auditSender = createAuditSender({ pool: pools.relayPool, publisher: publishers.audits, prefix, logger });
  return { publishers, replies, relay, auditSender };
}
