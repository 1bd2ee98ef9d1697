import kafkajs, { type Kafka } from 'kafkajs';
import { type BankEventType, topicsOf } from './event.ts';
import type { Settings } from './partition.ts';

/**
 * Brokers delete the offsets of a group that has had no member for `offsets.retention.minutes`, by
 * default a week; topics of events are kept longer. Such a group would start again, at the oldest
 * event or, with `fromBeginning: false`, after the newest. Warns if the brokers may be queried.
 */
export async function checkOffsetsRetention(kafka: Kafka, { handlers, topicPrefix, logger }: Settings): Promise<void> {
  const admin = kafka.admin();
  try {
    await admin.connect();
    const { brokers } = await admin.describeCluster();
    const names = topicsOf(Object.keys(handlers) as BankEventType[], topicPrefix);
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
        'the brokers forget how far a group has read sooner than these topics forget their events: a group that is away for longer begins anew',
      );
  } catch (error) {
    logger.info({ err: error }, 'how long the brokers keep offsets cannot be asked');
  } finally {
    await admin.disconnect().catch(() => undefined);
  }
}
