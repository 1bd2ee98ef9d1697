import type { Kafka } from 'kafkajs';
import { type DeadLetters, originOf } from './dead-letter.ts';
import type { Origin } from './event.ts';

/** The results of redriving the existing dead letters. */
export interface Redriven {
  handled: number;
  /** The number of events that failed again and became new dead letters. */
  failed: number;
}

/**
 * Passes the existing dead letters of a group to `handle`, in order. A separate group, `<groupId>.redrive`,
 * stores the progress, so that none is redriven twice except after a crash.
 */
export async function redrive(
  kafka: Kafka,
  groupId: string,
  letters: DeadLetters,
  handle: (origin: Origin) => Promise<void>,
): Promise<Redriven> {
  const result = { handled: 0, failed: 0 };
  const { topic } = letters;
  const redriveGroup = `${groupId}.redrive`;
  const end = await endOf(kafka, redriveGroup, topic);
  if (end === undefined) return result;
  const over = Promise.withResolvers<void>();
  const consumer = kafka.consumer({
    groupId: redriveGroup,
    allowAutoTopicCreation: false,
    retry: { restartOnFailure: async () => false },
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => over.reject(payload.error));
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ message }) => {
        const offset = BigInt(message.offset);
        // Events that fail again are published after the end, for the next redrive.
        if (offset >= end) return;
        const origin = originOf({ message });
        try {
          if (origin) await handle(origin);
          result.handled += 1;
        } catch (error) {
          await letters.put(origin as Origin, error as Error);
          result.failed += 1;
        }
        await consumer.commitOffsets([{ topic, partition: 0, offset: String(offset + 1n) }]);
        if (offset + 1n >= end) over.resolve();
      },
    });
    await over.promise;
  } finally {
    await consumer.disconnect().catch(() => undefined);
  }
  return result;
}

/** Returns the offset after the newest dead letter, or undefined if all were redriven. */
async function endOf(kafka: Kafka, groupId: string, topic: string): Promise<bigint | undefined> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    if (!(await admin.listTopics()).includes(topic)) return undefined;
    const [[range], [read]] = await Promise.all([
      admin.fetchTopicOffsets(topic),
      admin.fetchOffsets({ groupId, topics: [topic] }),
    ]);
    const next = BigInt(read?.partitions[0]?.offset ?? -1);
    const [low, high] = [BigInt(range?.low ?? 0), BigInt(range?.high ?? 0)];
    return high > (next > low ? next : low) ? high : undefined;
  } finally {
    await admin.disconnect();
  }
}
