import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { topicRanges } from '../topics.ts';
import { consume } from './consume.ts';
import type { ReceivedMessage } from './received-message.ts';

export interface ReadToEndOptions {
  topics: string[];
  /** The prefix of a temporary consumer group, which is deleted at the end. */
  groupId: string;
  /** Receives messages, each once, in order per partition. It is called again when the call has resolved. */
  take(messages: ReceivedMessage[]): Promise<void>;
  /** Rejects if nothing is received for this long. */
  idleMs: number;
  logger: Logger;
}

/**
 * Reads topics from the beginning to their end offsets at the time of the call. Rejects if `take` rejects, if a
 * topic does not exist, or if no more messages arrive before the end.
 */
export async function readToEnd(
  kafka: KafkaClient,
  { topics, take, idleMs, logger, ...options }: ReadToEndOptions,
): Promise<void> {
  const ranges = await Promise.all(
    topics.map(async (topic) =>
      (await topicRanges(kafka, topic)).map((range) => ({ ...range, place: `${topic}/${range.partition}` })),
    ),
  );
  const ends = new Map(ranges.flat().flatMap(({ place, low, high }) => (high > low ? [[place, high] as const] : [])));
  if (ends.size === 0) return;
  const positions = new Map<string, bigint>();
  const over = Promise.withResolvers<void>();
  let heardAt = performance.now();
  const groupId = `${options.groupId}-${randomUUID()}`;
  const consumer = consume(kafka, {
    groupId,
    topics,
    logger,
    handle: async (messages) => {
      heardAt = performance.now();
      // After a lost membership, the same messages are delivered again.
      const fresh = messages.filter(
        (message) =>
          message.offset < (ends.get(placeOf(message)) ?? 0n) &&
          message.offset >= (positions.get(placeOf(message)) ?? 0n),
      );
      await take(fresh).catch(over.reject);
      for (const message of messages) positions.set(placeOf(message), message.offset + 1n);
      if ([...ends].every(([place, end]) => (positions.get(place) ?? 0n) >= end)) over.resolve();
    },
  });
  const watch = setInterval(
    () =>
      performance.now() - heardAt > idleMs &&
      over.reject(new Error(`no more messages arrived from ${topics.join(', ')} within ${idleMs} ms`)),
    500,
  );
  try {
    await consumer.start();
    await over.promise;
  } finally {
    clearInterval(watch);
    await consumer.stop();
    await kafka
      .withAdmin((admin) => admin.deleteGroups([groupId]))
      .catch((error: unknown) => logger.debug({ err: error, group: groupId }, 'the group was not deleted'));
  }
}

function placeOf({ topic, partition }: ReceivedMessage): string {
  return `${topic}/${partition}`;
}
