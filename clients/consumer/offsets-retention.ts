import kafkajs, { type Kafka } from 'kafkajs';
import { type BankEventType, listTopics } from './event.ts';
import type { Settings } from './partition.ts';

/**
 * Brokers delete the offsets of a group that has had no member for `offsets.retention.minutes`, by default a
 * week, but keep topics of events for longer. Such a group starts over, at the oldest event or, with
 * `fromBeginning: false`, after the newest. This warns if brokers expire offsets sooner, or if it may not read the
 * settings of the brokers and the topics.
 */
export async function checkOffsetsRetention(kafka: Kafka, { handlers, topicPrefix, logger }: Settings): Promise<void> {
  const admin = kafka.admin();
  try {
    await admin.connect();
    const { brokers } = await admin.describeCluster();
    const names = listTopics(Object.keys(handlers) as BankEventType[], topicPrefix);
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [
        {
          type: kafkajs.ConfigResourceTypes.BROKER,
          name: String(brokers[0]?.nodeId),
          configNames: ['offsets.retention.minutes'],
        },
        ...names.map((name) => ({
          type: kafkajs.ConfigResourceTypes.TOPIC,
          name,
          configNames: ['retention.ms', 'cleanup.policy'],
        })),
      ],
    });
    const value = (name: string, config: string) =>
      resources
        .find(({ resourceName }) => resourceName === name)
        ?.configEntries.find(({ configName }) => configName === config)?.configValue;
    const offsetsMs = Number(value(String(brokers[0]?.nodeId), 'offsets.retention.minutes')) * 60_000;
    const longer = names.filter((name) => {
      const keptMs = Number(value(name, 'retention.ms'));
      return value(name, 'cleanup.policy') === 'delete' && (keptMs < 0 || keptMs > offsetsMs);
    });
    if (longer.length > 0)
      logger.warn(
        { topics: longer, offsets_days: offsetsMs / 86_400_000 },
        'brokers delete the offsets of a group sooner than these topics delete their events: a group without members for longer starts over',
      );
  } catch (error) {
    logger.warn({ err: error }, 'the retention of offsets cannot be read from the brokers');
  } finally {
    await admin.disconnect().catch(() => undefined);
  }
}
