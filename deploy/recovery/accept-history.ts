import type { Logger } from 'pino';
import { z } from 'zod';
import { topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { Publisher } from '#libs/kafka/publish/publish.ts';
import { kafkaConfig, kafkaOptions, loadConfig } from '#libs/service/config.ts';
import { run } from '#libs/service/run.ts';

/**
 * Resets the position in the topic `ledger.position`, so that ledgers started from now on accept a
 * database that lost published data (libs/postgres/outbox/history.ts). Only for docs/operations.md,
 * Restore, while the ledgers are stopped.
 */
export async function acceptHistory(
  kafka: KafkaClient,
  { prefix, logger }: { prefix: string; logger: Logger },
): Promise<void> {
  const publisher = new Publisher(kafka, { logger, name: 'accept-history', topics: topicTable(prefix) });
  await publisher.start();
  try {
    const topic = topicName(prefix, 'ledger.position');
    await publisher.publish({ topic, key: 'accepted', value: null, headers: {} }, { timeoutMs: 30_000 });
    logger.warn('the history of the database is accepted: ledgers that are started now work with it');
  } finally {
    await publisher.stop();
  }
}

if (import.meta.main) {
  run('accept-history', async ({ logger }) => {
    const config = loadConfig(z.object(kafkaConfig));
    await acceptHistory(createKafka(kafkaOptions(config, 'accept-history'), logger), {
      prefix: config.TOPIC_PREFIX,
      logger,
    });
  });
}
