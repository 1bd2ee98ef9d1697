import type { Consumer as KafkaJsConsumer, PartitionAssigner } from 'kafkajs';
import type { Logger } from 'pino';
import type { KafkaClient, Link } from './client.ts';
import type { BatchPayload } from './fetched-batch.ts';
import { kafkajs } from './kafkajs.ts';
import { withTimeout } from './wait.ts';

/** The partitions of one topic that this consumer holds. */
export interface Assignment {
  topic: string;
  partitions: number[];
}

/** What reads: the shape shared by consume, follow and request-reply. */
export interface Reader {
  groupId: string;
  topics: string[];
  fromBeginning: boolean;
  sessionTimeoutMs: number;
  assigner?: PartitionAssigner;
  /** Nobody else is ever a member of its group: there are no rebalances to be noticed soon. */
  isAlone?: true;
  /** Handles one partition's messages of one fetch; the next fetch waits for it. */
  eachBatch(payload: BatchPayload): Promise<void>;
  /** Called at every join, before the first fetch; may seek. */
  onJoin(assignment: Assignment[], seek: (topic: string, partition: number, offset: bigint) => void): void;
  /**
   * Called when what was held is held no more: before a new join, or at the end. `isStillMember` while the
   * group waits for this member to join again: what is sent now, the coordinator gets before that.
   */
  onLost(isStillMember: boolean): void;
  /** Called before the group is left: finish what runs, commit. Must be bounded. */
  beforeStop(): Promise<void>;
}

/** One life of a kafkajs consumer, from connecting to its end. */
export interface ConsumerSession {
  /** Resolves at the first join; never rejects. */
  joined: Promise<void>;
  /** Resolves with the reason when this life is over. */
  ended: Promise<Error>;
  stop(timeoutMs: number): Promise<void>;
  kill(reason: Error): void;
}

const maxHeartbeatMs = 1_000;
const maxHeartbeatAloneMs = 2_000;
const rebalanceTimeoutMs = 20_000;
const leaveTimeoutMs = 3_000;

/** The heartbeat interval that goes with a session time-out: a third of it, at most a second where others may join. */
export function heartbeatMs(sessionTimeoutMs: number, isAlone = false): number {
  return Math.min(Math.floor(sessionTimeoutMs / 3), isAlone ? maxHeartbeatAloneMs : maxHeartbeatMs);
}

/**
 * Starts one life. Errors come through `ended`, also those of the start. `onSign` is called whenever the
 * broker has answered: at a join, a heartbeat, a message (kafkajs reports a fetch also when it has failed).
 */
export function openSession(kafka: KafkaClient, reader: Reader, partitions: number, logger: Logger, onSign: () => void): ConsumerSession {
  const beatMs = heartbeatMs(reader.sessionTimeoutMs, reader.isAlone);
  const link = kafka.newConsumer({
    groupId: reader.groupId,
    sessionTimeout: reader.sessionTimeoutMs,
    heartbeatInterval: beatMs,
    rebalanceTimeout: rebalanceTimeoutMs,
    // A fetch that finds nothing waits this long at the broker, then a heartbeat is due: it bounds how soon a rebalance is
    // noticed, and how often an idle consumer wakes.
    maxWaitTimeInMs: beatMs,
    minBytes: 1,
    // Without transactional producers nothing is ever aborted, and waiting for the last stable offset gains nothing.
    readUncommitted: true,
    ...(reader.assigner ? { partitionAssigners: [reader.assigner] } : {}),
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
  // A life that is over may still twitch, while the next one already uses the same reader.
  const living: Reader = {
    ...reader,
    eachBatch: async (payload) => {
      if (over) return;
      onSign();
      await reader.eachBatch(payload);
    },
    onJoin: (assignment, seek) => { if (!over) reader.onJoin(assignment, seek); },
    onLost: (isStillMember) => { if (!over) reader.onLost(isStillMember); },
  };
  listen(link, living, logger, { sign: () => { if (!over) onSign(); }, joined: joined.resolve, end });
  run(link.client, living, partitions).catch(end);
  return {
    joined: joined.promise,
    ended: ended.promise,
    stop: (timeoutMs) => (over ? Promise.resolve() : stop(link, living, timeoutMs)).finally(() => end(new Error('stopped'))),
    kill: end,
  };
}

async function run(consumer: KafkaJsConsumer, reader: Reader, partitions: number): Promise<void> {
  await consumer.connect();
  await consumer.subscribe({ topics: reader.topics, fromBeginning: reader.fromBeginning });
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    // A fetch is over when all its partitions are handled; fewer workers would handle them one after the other.
    partitionsConsumedConcurrently: Math.max(1, partitions),
    // What kafkajs hands over holds our batch, not its own (kafkajs.ts).
    eachBatch: (payload: unknown) => reader.eachBatch(payload as BatchPayload),
  });
}

function listen(link: Link<KafkaJsConsumer>, reader: Reader, logger: Logger, on: { sign(): void; joined(): void; end(reason: Error): void }): void {
  const { client } = link;
  const { GROUP_JOIN, HEARTBEAT, REBALANCING, CRASH } = client.events;
  client.on(HEARTBEAT, on.sign);
  client.on(REBALANCING, () => {
    logger.info('the consumer group rebalances');
    reader.onLost(true);
  });
  client.on(GROUP_JOIN, ({ payload }) => {
    on.sign();
    const assignment = Object.entries(payload.memberAssignment).map(([topic, partitions]) => ({ topic, partitions }));
    logger.info({ assignment, took_ms: payload.duration }, 'joined the consumer group');
    reader.onLost(false);
    reader.onJoin(assignment, (topic, partition, offset) => client.seek({ topic, partition, offset: String(offset) }));
    on.joined();
  });
  // kafkajs stops for good after an error that it takes for final (kafkajs issues 1441, 558, 1299).
  client.on(CRASH, ({ payload }) => on.end(payload.error));
}

async function stop(link: Link<KafkaJsConsumer>, reader: Reader, timeoutMs: number): Promise<void> {
  await withTimeout(reader.beforeStop(), timeoutMs, 'finishing').catch(() => undefined);
  const closed = link.close(Math.min(timeoutMs, leaveTimeoutMs));
  // kafkajs leaves the group when its fetch is back, and a fetch that finds nothing takes its time.
  link.gate.cutFetches();
  // Only now, with kafkajs told to stop, may the calls that it still waits for come back.
  reader.onLost(false);
  await closed;
}

/** An assigner for groups of one member: it takes the given partition and leaves the others alone. */
export function onePartitionAssigner(topic: string, partition: number): PartitionAssigner {
  const { MemberAssignment, MemberMetadata } = kafkajs.AssignerProtocol;
  const name = 'one-partition';
  const version = 0;
  const userData = Buffer.alloc(0);
  return () => ({
    name,
    version,
    assign: async ({ members }) => members.map(({ memberId }) => ({
      memberId,
      memberAssignment: MemberAssignment.encode({ version, assignment: { [topic]: [partition] }, userData }),
    })),
    protocol: ({ topics }) => ({ name, metadata: MemberMetadata.encode({ version, topics, userData }) }),
  });
}
