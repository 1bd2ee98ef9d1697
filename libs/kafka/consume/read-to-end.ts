import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import type { ReceivedMessage } from '../received-message.ts';
import { topicRanges } from '../topics.ts';
import { PartitionReader } from './partition-reader.ts';

export interface ReadToEndOptions {
  topics: string[];
  /** The time from which they are read, by their timestamps. Default: from the beginning. */
  from?: Date;
  /** Receives messages, each once, in order per partition. It is called again when the call has resolved. */
  take(messages: ReceivedMessage[]): Promise<void>;
  /** Rejects if nothing is received for this long. */
  idleMs: number;
  logger: Logger;
}

/**
 * Reads topics to their end offsets at the time of the call. Rejects if `take` rejects, if a
 * topic does not exist, or if no more messages arrive before the end.
 */
export async function readToEnd(
  kafka: KafkaClient,
  { topics, from, take, idleMs, logger }: ReadToEndOptions,
): Promise<void> {
  const failure = Promise.withResolvers<never>();
  let heardAt = performance.now();
  let taking: Promise<void> = Promise.resolve();
  const readers = await Promise.all(
    topics.map(async (topic) => {
      const ends = new Map((await topicRanges(kafka, topic)).map(({ partition, high }) => [partition, high]));
      return new PartitionReader(kafka, {
        topic,
        from: from ?? 'oldest',
        logger,
        take(messages, partition) {
          heardAt = performance.now();
          const fresh = messages
            .filter(({ offset }) => offset < (ends.get(partition) ?? 0n))
            .map((message) => message.received(topic, partition));
          if (fresh.length > 0) taking = taking.then(() => take(fresh));
          taking.catch(failure.reject);
          return taking;
        },
      });
    }),
  );
  const watch = setInterval(() => {
    if (performance.now() - heardAt > idleMs)
      failure.reject(new Error(`no more messages arrived from ${topics.join(', ')} within ${idleMs} ms`));
  }, 500);
  try {
    await Promise.race([Promise.all(readers.map((reader) => reader.start())), failure.promise]);
  } finally {
    clearInterval(watch);
    await Promise.all(readers.map((reader) => reader.stop()));
  }
}
