import type { Logger } from 'pino';
import type { KafkaClient } from '#libs/kafka/client.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { consumerGroups } from '#libs/service/service.ts';
import type { LedgerConfig } from './config.ts';

const queryConcurrency = 4;

type Handle = (messages: ReceivedMessage[]) => Promise<void>;

/**
 * Creates the consumers. Queries and callers' batches have separate groups, so that reads do not wait behind
 * writes, and single commands do not wait behind batches. Nothing is started yet.
 */
export function createConsumers(
  kafka: KafkaClient,
  config: LedgerConfig,
  handle: { commands: Handle; batches: Handle; queries: Handle },
  logger: Logger,
) {
  const group = consumerGroups(kafka, config, logger);
  return {
    commands: group('ledger', ['ledger.commands'], { handle: handle.commands, maxBatch: config.BATCH_MAX }),
    batches: group('ledger-batches', ['ledger.batches'], { handle: handle.batches }),
    queries: group('ledger-queries', ['ledger.queries'], { handle: handle.queries, concurrency: queryConcurrency }),
  };
}
