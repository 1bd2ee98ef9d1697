import { z } from 'zod';
import {
  eventsRetention,
  isEventTopic,
  type TopicDefinition,
  type TopicName,
  topicName,
  topics,
  topicTable,
} from '#libs/contracts/topics.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import { changeSettings, ensureTopics, requireSafeTopics, type TopicSpec } from '#libs/kafka/topics.ts';
import {
  eventsRetentionConfig,
  inProduction,
  kafkaConfig,
  kafkaOptions,
  loadConfig,
  wholeNumber,
} from '#libs/service/config.ts';
import { run } from '#libs/service/run.ts';

/**
 * Creates missing topics. In existing ones it changes only the retention and the compression of events;
 * it refuses topics whose data could be lost with one broker.
 */
export const topicsConfig = z.object({
  ...kafkaConfig,
  REPLICATION_FACTOR: wholeNumber(1, 10).prefault('3').describe('Replicas of each topic'),
  ...eventsRetentionConfig,
  EVENTS_COMPRESSION: z
    .enum(['none', 'gzip', 'zstd'])
    .prefault('none')
    .describe(
      'How the broker compresses event topics, including existing ones. Every consumer must be able to decompress it: kafkajs only reads gzip without a codec',
    ),
});

type Config = z.output<typeof topicsConfig>;

/** Returns the settings of an event topic that this bank's operator chooses; undefined for other topics. */
function eventsSettings(name: TopicName, config: Config): Record<string, string> | undefined {
  if (!isEventTopic(name)) return undefined;
  // The services send events uncompressed, and 'producer' keeps them so.
  const compression = config.EVENTS_COMPRESSION === 'none' ? 'producer' : config.EVENTS_COMPRESSION;
  return { ...eventsRetention(name, config.EVENTS_RETENTION_DAYS), 'compression.type': compression };
}

/** Returns a topic of the contract with this bank's settings. */
export function topicSpec(name: TopicName, config: Config): TopicSpec {
  const { partitions, config: settings }: TopicDefinition = topics[name];
  const replicated: Record<string, string> = config.REPLICATION_FACTOR > 1 ? { 'min.insync.replicas': '2' } : {};
  return {
    name: topicName(config.TOPIC_PREFIX, name),
    partitions,
    replication_factor: config.REPLICATION_FACTOR,
    config: { ...settings, ...replicated, ...eventsSettings(name, config) },
  };
}

/** Returns the names of the topics that were missing, and of those whose settings of events were different. */
export async function createTopics(
  kafka: KafkaClient,
  config: Config,
): Promise<{ created: string[]; changed: string[] }> {
  const names = Object.keys(topics) as TopicName[];
  const created = await ensureTopics(
    kafka,
    names.map((name) => topicSpec(name, config)),
  );
  const ofEvents = names.flatMap((name) => {
    const settings = eventsSettings(name, config);
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
