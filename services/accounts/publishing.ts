import type { Logger } from 'pino';
import { replyType, source } from '#libs/contracts/envelope.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import { createSigner, signatureHeader } from '#libs/contracts/signature.ts';
import { type TopicName, topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { readMessage } from '#libs/kafka/consume/read-message.ts';
import { createPublisher, type OutgoingMessage, type Publisher } from '#libs/kafka/publish/publish.ts';
import { createRelay, type Relay } from '#libs/postgres/outbox/relay.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { relayOptions } from '#libs/service/config.ts';
import { deadLetterCounter, measureOutbox } from '#libs/service/measures.ts';
import type { Metrics } from '#libs/service/metrics.ts';
import { createReplies } from '#libs/service/replies.ts';
import { publishTracer, type Tracing } from '#libs/service/tracing.ts';
import type { AccountsConfig } from './config.ts';
import type { DeadLetterTopics } from './outcome.ts';
import { schema } from './schema.ts';

/** Reading and publishing a dead letter together take less than the 5 s that a transaction may be idle. */
const deadLetterTimeoutMs = 2000;

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
  config: AccountsConfig,
  { keys, relayPool, metrics, tracing, now, logger }: PublishingDependencies,
) {
  const prefix = config.TOPIC_PREFIX;
  const topics = topicTable(prefix);
  const publishers = {
    replies: createPublisher(kafka, { logger, name: 'replies', topics, sign: replySigner(prefix, keys) }),
    events: createPublisher(kafka, { logger, name: 'events', topics, sign: eventSigner(config, keys) }),
  };
  const tracePublished = publishTracer(tracing, prefix);
  const replies = createReplies({
    publisher: publishers.replies,
    source: source.accounts,
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
    source: source.accounts,
    logger,
    observe: measureOutbox(metrics, () => relay, tracePublished),
    topicName: (name) => topicName(prefix, name as TopicName),
  });
  return { publishers, replies, deadLetters: deadLetterTopicsOf(kafka, publishers.replies, logger), relay };
}

/** Signs replies to accounts itself, which executes some approved commands and ends their sagas by the reply. */
function replySigner(prefix: string, keys: MacKeys): (message: OutgoingMessage) => void {
  const forAccounts = topicName(prefix, 'accounts.commands');
  return (message) =>
    void (message.topic === forAccounts && message.headers['ce_type'] === replyType && keys.sign('accounts', message));
}

/**
 * Signs what the outbox contains: commands to the ledger, webhooks, and accounts itself, and states of API
 * keys, which gateways trust.
 */
function eventSigner(
  { TOPIC_PREFIX: prefix, API_KEY_SIGNING_KEY: signingKey }: AccountsConfig,
  keys: MacKeys,
): (message: OutgoingMessage) => void {
  const signState = createSigner(signingKey);
  const requests = (['ledger.commands', 'ledger.queries', 'accounts.commands', 'webhooks.commands'] as const).map(
    (name) => topicName(prefix, name),
  );
  const states = topicName(prefix, 'api-keys');
  return (message) => {
    if (requests.includes(message.topic)) keys.sign('accounts', message);
    if (message.topic === states) message.headers[signatureHeader] = signState(String(message.value));
  };
}

function deadLetterTopicsOf(kafka: KafkaClient, publisher: Publisher, logger: Logger): DeadLetterTopics {
  return {
    read: (topic, partition, offset) =>
      readMessage(kafka, { topic, partition, offset }, deadLetterTimeoutMs).catch((error: unknown) => {
        logger.warn({ err: error, topic, partition, offset: String(offset) }, 'a dead letter could not be read');
        throw error;
      }),
    publish: (message) => publisher.publish(message, { timeoutMs: deadLetterTimeoutMs }),
  };
}
