import type { z } from 'zod';
import { source } from '#libs/contracts/envelope.ts';
import { EventKeys } from '#libs/contracts/mac.ts';
import { feedTopics, type TopicName, topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { type OutgoingMessage, Publisher } from '#libs/kafka/publish/publish.ts';
import { Relay, type RelayOptions } from '#libs/postgres/outbox/relay.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import type { kafkaConfig } from './config.ts';
import { deadLetterCounter, measureOutbox } from './measures.ts';
import type { Metrics } from './metrics.ts';
import { createReplies } from './replies.ts';
import type { RunContext } from './run.ts';
import type { macConfig } from './signing.ts';
import { publishTracer, type Tracing } from './tracing.ts';

const hourMs = 60 * 60 * 1000;

/**
 * How long published messages stay in the outbox, for `npm run bank -- republish` and timelines: about 400 bytes per posting
 * under load, 900 for single postings.
 */
export const outboxHours = 24;

/** The dependencies that the main program of a service provides. */
export interface PublishingDependencies extends Pick<RunContext, 'logger' | 'onStop'> {
  relayPool: Pool;
  metrics: Metrics;
  tracing: Tracing | undefined;
  /** The bank's time, in ms since 1970. */
  now: () => number;
}

export interface PublishingOptions extends PublishingDependencies, Pick<RelayOptions, 'states' | 'history'> {
  service: 'ledger' | 'accounts' | 'webhooks';
  schema: string;
  signReply?: (message: OutgoingMessage) => void;
  /** Signs messages of the outbox other than events that webhooks stores, which have a MAC of their own. */
  signEvent?: (message: OutgoingMessage) => void;
  /** The maximum number of replies that are queued for the broker. */
  maxQueued?: number;
}

/** Creates the publishers of a service, one for replies and one for its outbox, and the relay. Starts nothing, and registers how they stop. */
export function createPublishing(
  kafka: KafkaClient,
  config: z.output<z.ZodObject<Pick<typeof kafkaConfig, 'TOPIC_PREFIX'> & Pick<typeof macConfig, 'ACCOUNTS_MAC_KEYS'>>>,
  options: PublishingOptions,
) {
  const { service, schema, relayPool, metrics, tracing, now, logger, onStop, signReply, signEvent, maxQueued } =
    options;
  const prefix = config.TOPIC_PREFIX;
  const common = { logger, topics: topicTable(prefix) };
  const eventKeys = new EventKeys(config.ACCOUNTS_MAC_KEYS);
  const fed = new Set(feedTopics.map((name) => topicName(prefix, name)));
  const sign = (message: OutgoingMessage) => (fed.has(message.topic) ? eventKeys.sign(message) : signEvent?.(message));
  const publishers = {
    replies: new Publisher(kafka, {
      ...common,
      name: 'replies',
      ...(signReply && { sign: signReply }),
      ...(maxQueued !== undefined && { maxQueued }),
    }),
    events: new Publisher(kafka, { ...common, name: 'events', sign }),
  };
  const tracePublished = publishTracer(tracing, prefix);
  const replies = createReplies({
    publisher: publishers.replies,
    source: source[service],
    logger,
    now,
    onDeadLetter: deadLetterCounter(metrics, prefix),
    onReplies: tracePublished,
  });
  const relay: Relay = new Relay({
    retainMs: outboxHours * hourMs,
    pool: relayPool,
    publisher: publishers.events,
    schema,
    source: source[service],
    logger,
    observe: measureOutbox(metrics, () => relay, tracePublished),
    topicName: (name) => topicName(prefix, name as TopicName),
    ...(options.states && { states: options.states }),
    ...(options.history && { history: options.history }),
  });
  onStop('publishers', () => Promise.all(Object.values(publishers).map((publisher) => publisher.stop())));
  onStop('outbox relay', () => relay.stop());
  return { publishers, replies, relay };
}
