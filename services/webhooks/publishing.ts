import type { Logger } from 'pino';
import { source } from '#libs/contracts/envelope.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import { type TopicName, topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { createPublisher, type OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { createRelay, type Relay } from '#libs/postgres/outbox/relay.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { relayOptions } from '#libs/service/config.ts';
import { deadLetterCounter, measureOutbox } from '#libs/service/measures.ts';
import type { Metrics } from '#libs/service/metrics.ts';
import { createReplies } from '#libs/service/replies.ts';
import { publishTracer, type Tracing } from '#libs/service/tracing.ts';
import type { WebhooksConfig } from './config.ts';
import { schema } from './schema.ts';

export interface PublishingDependencies {
  keys: MacKeys;
  relayPool: Pool;
  metrics: Metrics;
  tracing: Tracing | undefined;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  logger: Logger;
}

/** Creates separate publishers for replies and for the outbox. Nothing is started yet. */
export function createPublishing(
  kafka: KafkaClient,
  config: WebhooksConfig,
  { keys, relayPool, metrics, tracing, now, logger }: PublishingDependencies,
) {
  const prefix = config.TOPIC_PREFIX;
  const topics = topicTable(prefix);
  const audited = topicName(prefix, 'accounts.commands');
  const sign = (message: OutgoingMessage): void => void (message.topic === audited && keys.sign('webhooks', message));
  const publishers = {
    replies: createPublisher(kafka, { logger, name: 'replies', topics }),
    events: createPublisher(kafka, { logger, name: 'events', topics, sign }),
  };
  const tracePublished = publishTracer(tracing, prefix);
  const replies = createReplies({
    publisher: publishers.replies,
    source: source.webhooks,
    logger,
    now,
    onDeadLetter: deadLetterCounter(metrics, prefix),
    onReplies: tracePublished,
  });
  const relay: Relay = createRelay({
    ...relayOptions(config),
    pool: relayPool,
    publisher: publishers.events,
    schema,
    source: source.webhooks,
    logger,
    observe: measureOutbox(metrics, () => relay, tracePublished),
    topicName: (name) => topicName(prefix, name as TopicName),
  });
  return { publishers, replies, relay };
}
