import { z } from 'zod';
import {
  eventsRetention,
  type TopicDefinition,
  type TopicName,
  topicName,
  topics,
  topicTable,
} from '#libs/contracts/topics.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import { changeSettings, ensureTopics, requireSafeTopics, type TopicSpec } from '#libs/kafka/topics.ts';
import { eventsRetentionConfig, inProduction, kafkaConfig, kafkaOptions, loadConfig } from '#libs/service/config.ts';
import { run } from '#libs/service/run.ts';

/**
 * Creates missing topics with three replicas, in a trial with as many as there are brokers. In existing ones it changes
 * only the retention of events; it refuses topics whose data could be lost with one broker.
 */
export const topicsConfig = z.object({
  ...kafkaConfig,
  ...eventsRetentionConfig,
});

type Config = z.output<typeof topicsConfig>;

const safeReplicas = 3;

/** Returns a topic of the contract with this bank's settings, and with as many replicas as production asks for. */
export function topicSpec(name: TopicName, config: Config, replicas = safeReplicas): TopicSpec {
  const { partitions, config: settings }: TopicDefinition = topics[name];
  const replicated: Record<string, string> = replicas > 1 ? { 'min.insync.replicas': '2' } : {};
  return {
    name: topicName(config.TOPIC_PREFIX, name),
    partitions,
    replication_factor: replicas,
    config: { ...settings, ...replicated, ...eventsRetention(name, config.EVENTS_RETENTION_DAYS) },
  };
}

/** Returns the names of the topics that were missing, and of those whose retention was different. */
export async function createTopics(
  kafka: KafkaClient,
  config: Config,
): Promise<{ created: string[]; changed: string[] }> {
  const names = Object.keys(topics) as TopicName[];
  const brokers = await kafka.withAdmin(async (admin) => (await admin.describeCluster()).brokers.length);
  const replicas = inProduction() ? safeReplicas : Math.min(brokers, safeReplicas);
  const created = await ensureTopics(
    kafka,
    names.map((name) => topicSpec(name, config, replicas)),
  );
  const ofEvents = names.flatMap((name) => {
    const settings = eventsRetention(name, config.EVENTS_RETENTION_DAYS);
    return settings === undefined ? [] : [[topicName(config.TOPIC_PREFIX, name), settings] as const];
  });
  return { created, changed: await changeSettings(kafka, new Map(ofEvents)) };
}

if (import.meta.main) {
  run('create-topics', async ({ logger, instance }) => {
    const config = loadConfig(topicsConfig);
    const brokers = kafkaOptions(config, `create-topics-${instance}`);
    const kafka = createKafka(brokers, logger);
    await checkBrokers(kafka, brokers);
    const made = await createTopics(kafka, config);
    if (inProduction()) await requireSafeTopics(kafka, topicTable(config.TOPIC_PREFIX));
    logger.info(made, 'the topics exist');
  });
}
