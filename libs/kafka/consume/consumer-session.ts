import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { withTimeout } from '../wait.ts';
import type { BatchPayload } from './fetched-messages.ts';
import type { MessagePool } from './message-pool.ts';
import type { Spares } from './spares.ts';

/** A consumer group and what its members read. */
export interface Group {
  groupId: string;
  topics: string[];
  fromBeginning: boolean;
  sessionTimeoutMs: number;
  spares: Spares | undefined;
}

/** One kafkajs consumer, from its connection until it ends. */
export interface ConsumerSession {
  /** Resolves at the first join; never rejects. */
  joined: Promise<void>;
  /** Resolves with the reason when the session has ended. */
  ended: Promise<Error>;
  /** Describes an assigned partition that cannot be read; undefined if there is none. */
  corrupt(): string | undefined;
  /** Leaves the group after the running call of handle and its commit, each for at most `timeoutMs`. */
  stop(timeoutMs: number): Promise<void>;
  /** Leaves the group at once. The messages of a running call of handle are delivered to another member too. */
  leave(): Promise<void>;
  kill(reason: Error): void;
}

const maxHeartbeatMs = 1_000;
const rebalanceTimeoutMs = 20_000;
const leaveTimeoutMs = 3_000;
/**
 * The pause before a partition with a corrupt batch is read again. A batch that was corrupted in transit is
 * then correct.
 */
const corruptPauseMs = 1_000;

/** Returns the heartbeat interval for a session timeout: a third of it, and at most one second. */
export function heartbeatMs(sessionTimeoutMs: number): number {
  return Math.min(Math.floor(sessionTimeoutMs / 3), maxHeartbeatMs);
}

/**
 * Starts a session, which reads `partitions` partitions at most and passes their messages to the pool. All errors,
 * including those of the start, are reported by `ended`. `onSign` is called whenever the broker has responded: after
 * a join, a heartbeat, or a message. (kafkajs also reports failed fetches as fetches.)
 */
export function openSession(
  kafka: KafkaClient,
  { groupId, topics, fromBeginning, sessionTimeoutMs, spares }: Group,
  partitions: number,
  pool: MessagePool,
  logger: Logger,
  onSign: () => void,
): ConsumerSession {
  const beatMs = heartbeatMs(sessionTimeoutMs);
  const { client, gate, close } = kafka.newConsumer({
    groupId,
    sessionTimeout: sessionTimeoutMs,
    heartbeatInterval: beatMs,
    rebalanceTimeout: rebalanceTimeoutMs,
    // An empty fetch waits at the broker for this time, and then a heartbeat is due. It determines how soon a
    // rebalance is noticed and how often an idle consumer wakes up.
    maxWaitTimeInMs: beatMs,
    minBytes: 1,
    // There are no transactional producers, so waiting for the last stable offset would gain nothing.
    readUncommitted: true,
    ...(spares ? { partitionAssigners: spares.assigners() } : {}),
  });
  const joined = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Error>();
  const corrupt = new Map<string, string>();
  // A session that has ended may still invoke callbacks while the next one already uses the same pool.
  let over = false;

  const lose = (isStillMember: boolean): void => {
    corrupt.clear();
    if (!over) pool.endAssignment(isStillMember);
  };
  const end = (reason: Error): void => {
    lose(false);
    over = true;
    spares?.left();
    void close(0);
    ended.resolve(reason);
  };
  const checkCorrupt = ({ batch, pause }: BatchPayload): void => {
    const place = `${batch.topic}/${batch.partition}`;
    if (batch.corrupt === undefined) return void corrupt.delete(place);
    corrupt.set(place, `${place}: ${batch.corrupt}`);
    logger.error(
      { topic: batch.topic, partition: batch.partition, corrupt: batch.corrupt },
      'a record batch is corrupt; the partition is paused',
    );
    setTimeout(pause(), corruptPauseMs);
  };
  const take = async (payload: BatchPayload): Promise<void> => {
    if (over) return;
    onSign();
    if (payload.batch.messages.length > 0) await pool.add(payload);
    checkCorrupt(payload);
  };

  const { GROUP_JOIN, HEARTBEAT, REBALANCING, CRASH } = client.events;
  client.on(HEARTBEAT, () => {
    if (!over) onSign();
  });
  client.on(REBALANCING, () => {
    logger.info('the consumer group is rebalancing');
    lose(true);
  });
  client.on(GROUP_JOIN, ({ payload: { memberId, memberAssignment, duration } }) => {
    if (over) return;
    onSign();
    const assignment = Object.entries(memberAssignment).map(([topic, assigned]) => ({ topic, partitions: assigned }));
    logger.info({ assignment, took_ms: duration }, 'joined the consumer group');
    lose(false);
    pool.join(assignment);
    spares?.joined(memberId, Object.values(memberAssignment).flat());
    joined.resolve();
  });
  // kafkajs stops permanently after an error that it considers final (kafkajs issues 1441, 558, 1299).
  client.on(CRASH, ({ payload }) => end(payload.error));

  const run = async (): Promise<void> => {
    await client.connect();
    await client.subscribe({ topics, fromBeginning });
    await client.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      // One worker per partition: a fetch ends when all its partitions are processed, and with fewer workers they
      // would be processed one after another.
      partitionsConsumedConcurrently: Math.max(1, partitions),
      // The patched kafkajs passes our batch type instead of its own.
      eachBatch: (payload: unknown) => take(payload as BatchPayload),
    });
  };
  const leave = async (timeoutMs = leaveTimeoutMs): Promise<void> => {
    if (over) return;
    over = true;
    spares?.left();
    const closed = close(Math.min(timeoutMs, leaveTimeoutMs));
    // kafkajs leaves the group only when its fetch returns, and an empty fetch waits at the broker.
    gate.cutFetches();
    // The calls that kafkajs waits for may return only now that it is stopping.
    pool.endAssignment(true);
    await closed;
    ended.resolve(new Error('left the group'));
  };
  const stop = async (timeoutMs: number): Promise<void> => {
    if (over) return;
    await withTimeout(pool.stop(), timeoutMs, 'finishing').catch(() => undefined);
    await leave(timeoutMs);
  };
  run().catch(end);
  return {
    joined: joined.promise,
    ended: ended.promise,
    corrupt: () => [...corrupt.values()][0],
    stop,
    leave,
    kill: end,
  };
}
