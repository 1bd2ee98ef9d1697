import type { Kafka } from 'kafkajs';
import { type DeadLetters, readOrigin } from './dead-letter.ts';
import type { Origin } from './event.ts';
import type { Redriven } from './options.ts';
import type { Settings } from './partition.ts';
import { hasSettled } from './pause.ts';
import { pickHeartbeatMs } from './session.ts';

const lookIntervalMs = 3_000;

/**
 * Passes the existing dead letters of a group to `handle`, in order. A separate group, `<groupId>.redrive`,
 * stores the progress, so that none is redriven twice except after a crash.
 */
export async function redrive(
  kafka: Kafka,
  { groupId, sessionTimeoutMs }: Settings,
  letters: DeadLetters,
  handle: (origin: Origin) => Promise<void>,
): Promise<Redriven> {
  const result = { handled: 0, failed: 0 };
  const { topic } = letters;
  const redriveGroup = `${groupId}.redrive`;
  const { next, end } = await remaining(kafka, redriveGroup, topic);
  if (next >= end) return result;
  const heartbeatMs = pickHeartbeatMs(sessionTimeoutMs);
  const over = Promise.withResolvers<void>();
  const consumer = kafka.consumer({
    groupId: redriveGroup,
    sessionTimeout: sessionTimeoutMs,
    heartbeatInterval: heartbeatMs,
    allowAutoTopicCreation: false,
    retry: { restartOnFailure: async () => false },
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => over.reject(payload.error));
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ message, heartbeat }) => {
        const offset = BigInt(message.offset);
        // Events that fail again are published after the end, for the next redrive.
        if (offset >= end) return;
        const origin = readOrigin({ message });
        // Errors are left to kafkajs, which sends a heartbeat after each message, too.
        const beats = setInterval(() => void heartbeat().catch(() => undefined), heartbeatMs).unref();
        try {
          if (origin) await handle(origin);
          result.handled += 1;
        } catch (error) {
          await letters.put(origin as Origin, error as Error);
          result.failed += 1;
        } finally {
          clearInterval(beats);
        }
        await consumer.commitOffsets([{ topic, partition: 0, offset: String(offset + 1n) }]);
        if (offset + 1n >= end) over.resolve();
      },
    });
    // If a concurrent redrive of the group handles the last letters, this member receives nothing.
    while (!(await hasSettled(over.promise, lookIntervalMs))) {
      const left = await remaining(kafka, redriveGroup, topic).catch(() => undefined);
      if (left && left.next >= end) over.resolve();
    }
    await over.promise;
  } finally {
    await consumer.disconnect().catch(() => undefined);
  }
  return result;
}

/** Returns the offsets of the first dead letter that was not redriven, and after the newest one. */
async function remaining(kafka: Kafka, groupId: string, topic: string): Promise<{ next: bigint; end: bigint }> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    if (!(await admin.listTopics()).includes(topic)) return { next: 0n, end: 0n };
    const [[range], [read]] = await Promise.all([
      admin.fetchTopicOffsets(topic),
      admin.fetchOffsets({ groupId, topics: [topic] }),
    ]);
    const committed = BigInt(read?.partitions[0]?.offset ?? -1);
    const [low, end] = [BigInt(range?.low ?? 0), BigInt(range?.high ?? 0)];
    return { next: committed > low ? committed : low, end };
  } finally {
    await admin.disconnect();
  }
}
