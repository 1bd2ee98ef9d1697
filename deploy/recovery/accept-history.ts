import type { Logger } from 'pino';
import { z } from 'zod';
import { topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { createPublisher } from '#libs/kafka/publish/publish.ts';
import { kafkaConfig, kafkaOptions, loadConfig } from '#libs/service/config.ts';
import { run } from '#libs/service/run.ts';

/**
 * Takes back what the topic `ledger.position` says was published, so that ledgers which are started
 * from now on work with a database of an older history (libs/postgres/outbox/history.ts). For
 * docs/operations.md, Restore, alone: the ledgers are stopped.
 */
export async function acceptHistory(
  kafka: KafkaClient,
  { prefix, logger }: { prefix: string; logger: Logger },
): Promise<void> {
  const publisher = createPublisher(kafka, { logger, name: 'accept-history', topics: topicTable(prefix) });
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
