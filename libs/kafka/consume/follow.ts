import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { offsetsAt, type PartitionOffset, topicRanges } from '../topics.ts';
import { repeatUntilDone } from '../wait.ts';
import { Supervisor } from './consumer-supervisor.ts';
import type { BatchPayload } from './fetched-messages.ts';

export interface FollowOptions {
  /** Usually a compacted topic: the latest message of each key is its state, and a null value removes the key. */
  topic: string;
  /**
   * Where to start. `end`: skip existing messages and read everything written after the call of start(). A
   * date: the first message of each partition from that time on, by the topic's timestamps. Default: the oldest
   * message.
   */
  from?: 'end' | Date;
  /** The prefix of the consumer group. Every follower reads all partitions, regardless of the name. */
  groupId: string;
  /** Called for each message, in order per key. If it throws, the error is logged and the next message follows. */
  onMessage(
    key: string | null,
    value: Buffer | null,
    headers: Record<string, string>,
    place: { partition: number; offset: bigint },
  ): void;
  logger: Logger;
  /** Default 6 s. */
  sessionTimeoutMs?: number;
}

export interface Follower {
  /** Resolves when everything written before the call has been read. */
  start(): Promise<void>;
  stop(): Promise<void>;
  health(): { ok: boolean; reason?: string };
}

const stopTimeoutMs = 5_000;

/**
 * Reads a topic from the beginning, unless `from` is given, and follows it. It commits no offsets: a new
 * process reads everything again.
 */
export function follow(kafka: KafkaClient, options: FollowOptions): Follower {
  const { topic, groupId, sessionTimeoutMs = 6_000 } = options;
  const logger = options.logger.child({ follows: topic });
  const positions = new Map<number, bigint>();
  const caughtUp = Promise.withResolvers<void>();
  let ends: Map<number, bigint> | undefined;

  const checkCaughtUp = (): void => {
    if (ends && [...ends].every(([partition, end]) => (positions.get(partition) ?? 0n) >= end)) caughtUp.resolve();
  };
  const eachBatch = async ({ batch, resolveOffset }: BatchPayload): Promise<void> => {
    for (const message of batch.messages) {
      const { key, value, headers, offset } = message.received(topic, batch.partition);
      try {
        options.onMessage(key, value, headers, { partition: batch.partition, offset });
      } catch (error) {
        logger.error(
          { err: error, partition: batch.partition, offset: String(offset) },
          'a followed message could not be processed',
        );
      }
      resolveOffset(message.offset);
    }
    positions.set(batch.partition, batch.lastOffset() + 1n);
    checkCaughtUp();
  };
  const supervisor = new Supervisor(
    kafka,
    () => ({
      // Each session has its own group, because a member that ended without leaving would keep its share of the
      // partitions.
      groupId: `${groupId}-${randomUUID()}`,
      topics: [topic],
      fromBeginning: true,
      sessionTimeoutMs,
      isAlone: true,
      eachBatch,
      onJoin: (_assignment, seek) => positions.forEach((offset, partition) => seek(topic, partition, offset)),
      onLost: () => undefined,
      beforeStop: async () => undefined,
    }),
    logger,
  );

  return {
    start: async () => {
      for (const { partition, offset } of await repeatUntilDone(() => firstOffsets(kafka, options)))
        positions.set(partition, offset);
      await supervisor.start();
      // An empty partition counts as read, whatever its end offset.
      const ranges = await repeatUntilDone(() => topicRanges(kafka, topic));
      ends = new Map(ranges.filter(({ low, high }) => high > low).map(({ partition, high }) => [partition, high]));
      checkCaughtUp();
      await caughtUp.promise;
    },
    stop: () => supervisor.stop(stopTimeoutMs),
    health: () => supervisor.health(),
  };
}

/** Returns the first offsets at or after `from`; undefined if reading starts with the oldest message. */
async function firstOffsets(kafka: KafkaClient, { topic, from }: FollowOptions): Promise<PartitionOffset[]> {
  if (from === undefined) return [];
  if (from instanceof Date) return offsetsAt(kafka, topic, from);
  return (await topicRanges(kafka, topic)).map(({ partition, high }) => ({ partition, offset: high }));
}
