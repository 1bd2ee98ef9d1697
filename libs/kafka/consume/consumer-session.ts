import type { EachBatchPayload, Consumer as KafkaJsConsumer } from 'kafkajs';
import type { Logger } from 'pino';
import type { KafkaClient, Link } from '../client.ts';
import { withTimeout } from '../wait.ts';
import { type BatchPayload, fromPublished } from './fetched-messages.ts';

/** The partitions of one topic that are assigned to this consumer. */
export interface Assignment {
  topic: string;
  partitions: number[];
}

/** The configuration and callbacks of a session. */
export interface Reader {
  groupId: string;
  topics: string[];
  fromBeginning: boolean;
  sessionTimeoutMs: number;
  /** Processes one partition's messages of one fetch. The next fetch waits for it. */
  eachBatch(payload: BatchPayload): Promise<void>;
  /** Called after every join, before the first fetch. */
  onJoin(assignment: Assignment[]): void;
  /**
   * Called when the assignment ends, before a new join or at the end. `isStillMember` is true while the group
   * waits for this member to rejoin: a request sent now reaches the coordinator before the rejoin.
   */
  onLost(isStillMember: boolean): void;
  /** Called before leaving the group, to finish running work and commit. Its duration must be bounded. */
  beforeStop(): Promise<void>;
}

/** One kafkajs consumer, from its connection until it ends. */
export interface ConsumerSession {
  /** Resolves at the first join; never rejects. */
  joined: Promise<void>;
  /** Resolves with the reason when the session has ended. */
  ended: Promise<Error>;
  /** Describes an assigned partition that cannot be read; undefined if there is none. */
  corrupt(): string | undefined;
  stop(timeoutMs: number): Promise<void>;
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
 * Starts a session. All errors, including those of the start, are reported by `ended`. `onSign` is called
 * whenever the broker has responded: after a join, a heartbeat, or a message. (kafkajs also reports failed
 * fetches as fetches.)
 */
export function openSession(
  kafka: KafkaClient,
  reader: Reader,
  partitions: number,
  logger: Logger,
  onSign: () => void,
): ConsumerSession {
  const beatMs = heartbeatMs(reader.sessionTimeoutMs);
  const link = kafka.newConsumer({
    groupId: reader.groupId,
    sessionTimeout: reader.sessionTimeoutMs,
    heartbeatInterval: beatMs,
    rebalanceTimeout: rebalanceTimeoutMs,
    // An empty fetch waits at the broker for this time, and then a heartbeat is due. It determines how soon a
    // rebalance is noticed and how often an idle consumer wakes up.
    maxWaitTimeInMs: beatMs,
    minBytes: 1,
    // There are no transactional producers, so waiting for the last stable offset would gain nothing.
    readUncommitted: true,
  });
  const joined = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Error>();
  let over = false;
  const end = (reason: Error): void => {
    if (over) return;
    over = true;
    reader.onLost(false);
    void link.close(0);
    ended.resolve(reason);
  };
  const corrupt = new Map<string, string>();
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
  // A session that has ended may still invoke callbacks while the next one already uses the same reader.
  const current: Reader = {
    ...reader,
    eachBatch: async (payload) => {
      if (over) return;
      onSign();
      if (payload.batch.messages.length > 0) await reader.eachBatch(payload);
      checkCorrupt(payload);
    },
    onJoin: (assignment) => {
      if (!over) reader.onJoin(assignment);
    },
    onLost: (isStillMember) => {
      corrupt.clear();
      if (!over) reader.onLost(isStillMember);
    },
  };
  listen(link, current, logger, {
    sign: () => {
      if (!over) onSign();
    },
    joined: joined.resolve,
    end,
  });
  run(kafka, link.client, current, partitions).catch(end);
  return {
    joined: joined.promise,
    ended: ended.promise,
    corrupt: () => [...corrupt.values()][0],
    stop: (timeoutMs) =>
      (over ? Promise.resolve() : stop(link, current, timeoutMs)).finally(() => end(new Error('stopped'))),
    kill: end,
  };
}

async function run(
  { asPublished }: KafkaClient,
  consumer: KafkaJsConsumer,
  reader: Reader,
  partitions: number,
): Promise<void> {
  await consumer.connect();
  await consumer.subscribe({ topics: reader.topics, fromBeginning: reader.fromBeginning });
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    // One worker per partition: a fetch ends when all its partitions are processed, and with fewer workers they
    // would be processed one after another.
    partitionsConsumedConcurrently: Math.max(1, partitions),
    // The patched kafkajs passes our batch type instead of its own.
    eachBatch: (payload: unknown) =>
      reader.eachBatch(asPublished ? fromPublished(payload as EachBatchPayload) : (payload as BatchPayload)),
  });
}

function listen(
  link: Link<KafkaJsConsumer>,
  reader: Reader,
  logger: Logger,
  on: { sign(): void; joined(): void; end(reason: Error): void },
): void {
  const { client } = link;
  const { GROUP_JOIN, HEARTBEAT, REBALANCING, CRASH } = client.events;
  client.on(HEARTBEAT, on.sign);
  client.on(REBALANCING, () => {
    logger.info('the consumer group is rebalancing');
    reader.onLost(true);
  });
  client.on(GROUP_JOIN, ({ payload }) => {
    on.sign();
    const assignment = Object.entries(payload.memberAssignment).map(([topic, partitions]) => ({ topic, partitions }));
    logger.info({ assignment, took_ms: payload.duration }, 'joined the consumer group');
    reader.onLost(false);
    reader.onJoin(assignment);
    on.joined();
  });
  // kafkajs stops permanently after an error that it considers final (kafkajs issues 1441, 558, 1299).
  client.on(CRASH, ({ payload }) => on.end(payload.error));
}

async function stop(link: Link<KafkaJsConsumer>, reader: Reader, timeoutMs: number): Promise<void> {
  await withTimeout(reader.beforeStop(), timeoutMs, 'finishing').catch(() => undefined);
  const closed = link.close(Math.min(timeoutMs, leaveTimeoutMs));
  // kafkajs leaves the group only when its fetch returns, and an empty fetch waits at the broker.
  link.gate.cutFetches();
  // The calls that kafkajs waits for may return only now that it is stopping.
  reader.onLost(false);
  await closed;
}
