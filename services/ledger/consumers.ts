import type { Logger } from 'pino';
import { topicName } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { consume, type ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { LedgerConfig } from './config.ts';

const queryConcurrency = 4;

type Handle = (messages: ReceivedMessage[]) => Promise<void>;

/**
 * Creates the consumers. Queries and callers' batches have separate groups, so that a read never waits behind
 * writes, nor a single command behind a batch. Nothing is started yet.
 */
export function createConsumers(
  kafka: KafkaClient,
  config: LedgerConfig,
  handle: { commands: Handle; batches: Handle; queries: Handle },
  logger: Logger,
) {
  const { TOPIC_PREFIX: prefix, SESSION_TIMEOUT_MS: sessionTimeoutMs } = config;
  return {
    commands: consume(kafka, {
      groupId: `${prefix}ledger`,
      topics: [topicName(prefix, 'ledger.commands')],
      maxBatch: config.BATCH_MAX,
      sessionTimeoutMs,
      logger,
      handle: handle.commands,
    }),
    batches: consume(kafka, {
      groupId: `${prefix}ledger-batches`,
      topics: [topicName(prefix, 'ledger.batches')],
      sessionTimeoutMs,
      logger,
      handle: handle.batches,
    }),
    queries: consume(kafka, {
      groupId: `${prefix}ledger-queries`,
      topics: [topicName(prefix, 'ledger.queries')],
      concurrency: queryConcurrency,
      sessionTimeoutMs,
      logger,
      handle: handle.queries,
    }),
  };
}
