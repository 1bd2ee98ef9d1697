import { z } from 'zod';
import { topicName, topics, type TopicName } from '#libs/contracts/topics.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { ensureTopics } from '#libs/kafka/topics.ts';
import { kafkaConfig, kafkaOptions, loadConfig, wholeNumber } from '#libs/service/config.ts';
import { run } from '#libs/service/run.ts';

/** Creates the topics that are missing; existing ones stay as they are. */
export const topicsConfig = z.object({
  ...kafkaConfig,
  REPLICATION_FACTOR: wholeNumber(1, 10).prefault('3').describe('Replicas of each topic'),
});

if (import.meta.main) {
  run('create-topics', async ({ logger, instance }) => {
    const config = loadConfig(topicsConfig);
    const brokers = kafkaOptions(config, `create-topics-${instance}`);
    const kafka = createKafka(brokers, logger);
    await checkBrokers(kafka, brokers);
    const specs = Object.entries(topics).map(([name, { partitions, config: settings }]) => ({
      name: topicName(config.TOPIC_PREFIX, name as TopicName),
      partitions,
      replication_factor: config.REPLICATION_FACTOR,
      config: config.REPLICATION_FACTOR > 1 ? { ...settings, 'min.insync.replicas': '2' } : settings,
    }));
    const created = await ensureTopics(kafka, specs);
    logger.info({ created }, 'topics are there');
  });
}
