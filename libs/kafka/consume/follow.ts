import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { PartitionReader } from './partition-reader.ts';

export interface FollowOptions {
  /** Usually a compacted topic: the latest message of each key is its state, and a null value removes the key. */
  topic: string;
  /**
   * Where to start. `end`: skip existing messages and read everything written after the call of start(). A
   * date: the first message of each partition from that time on, by the topic's timestamps. Default: the oldest
   * message.
   */
  from?: 'oldest' | 'end' | Date;
  /** Called for each message, in order per key. If it throws, the error is logged and the next message follows. */
  onMessage(
    key: string | null,
    value: Buffer | null,
    headers: Record<string, string>,
    place: { partition: number; offset: bigint },
  ): void;
  logger: Logger;
}

export type Follower = Pick<PartitionReader, 'start' | 'stop' | 'health'>;

/**
 * Reads a topic from the beginning, unless `from` is given, and follows it. Nothing is stored about its position: a
 * new process reads everything again.
 */
export function follow(kafka: KafkaClient, { topic, from = 'oldest', onMessage, logger }: FollowOptions): Follower {
  return new PartitionReader(kafka, {
    topic,
    from,
    logger,
    take(messages, partition) {
      for (const message of messages) {
        const { key, value, headers, offset } = message.received(topic, partition);
        try {
          onMessage(key, value, headers, { partition, offset });
        } catch (error) {
          const place = { topic, partition, offset: String(offset) };
          logger.error({ err: error, ...place }, 'a followed message could not be processed');
        }
      }
    },
  });
}
