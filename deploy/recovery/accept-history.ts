import type { Logger } from 'pino';
import { z } from 'zod';
import { source } from '#libs/contracts/envelope.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import { topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { Publisher } from '#libs/kafka/publish/publish.ts';
import { acceptance } from '#libs/postgres/outbox/history.ts';
import { kafkaConfig, kafkaOptions, loadConfig } from '#libs/service/config.ts';
import { run } from '#libs/service/run.ts';
import { macConfig, macKeys } from '#libs/service/signing.ts';

/**
 * Resets the position in the topic `ledger.position`, so that ledgers started from now on accept a
 * database that lost published data (libs/postgres/outbox/history.ts). Only for docs/operations.md,
 * Restore, while the ledgers are stopped.
 */
export async function acceptHistory(
  kafka: KafkaClient,
  { prefix, keys, logger }: { prefix: string; keys: MacKeys; logger: Logger },
): Promise<void> {
  const publisher = new Publisher(kafka, { logger, name: 'accept-history', topics: topicTable(prefix) });
  await publisher.start();
  try {
    const topic = topicName(prefix, 'ledger.position');
    const value = acceptance(new Date().toISOString(), keys);
    await publisher.publish({ topic, key: `${source.ledger} accepted`, value, headers: {} }, { timeoutMs: 30_000 });
    logger.warn('the history of the database is accepted: ledgers that are started now work with it');
  } finally {
    await publisher.stop();
  }
}

if (import.meta.main) {
  run('accept-history', async ({ logger }) => {
    const config = loadConfig(z.object({ ...kafkaConfig, LEDGER_MAC_KEYS: macConfig.LEDGER_MAC_KEYS }));
    await acceptHistory(createKafka(kafkaOptions(config, 'accept-history'), logger), {
      prefix: config.TOPIC_PREFIX,
      keys: macKeys(config),
      logger,
    });
  });
}
