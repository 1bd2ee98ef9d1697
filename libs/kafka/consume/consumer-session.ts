import type { EachBatchPayload, Consumer as KafkaJsConsumer, PartitionAssigner } from 'kafkajs';
import type { Logger } from 'pino';
import type { KafkaClient, Link } from '../client.ts';
import { withTimeout } from '../wait.ts';
import { type BatchPayload, fromPublished } from './fetched-messages.ts';

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

/** One kafkajs consumer, from connecting to its end. */
export interface ConsumerSession {
  /** Resolves at the first join; never rejects. */
  joined: Promise<void>;
  /** Resolves with the reason when the session is over. */
  ended: Promise<Error>;
  /** What cannot be read of a partition that it holds; undefined where nothing is wrong. */
  corrupt(): string | undefined;
  stop(timeoutMs: number): Promise<void>;
  kill(reason: Error): void;
}

const maxHeartbeatMs = 1_000;
const maxHeartbeatAloneMs = 2_000;
const rebalanceTimeoutMs = 20_000;
const leaveTimeoutMs = 3_000;
/** Until a partition with a corrupt batch is tried again: what was corrupted on the way is right then. */
const corruptPauseMs = 1_000;

/** The heartbeat interval that goes with a session time-out: a third of it, at most a second where others may join. */
export function heartbeatMs(sessionTimeoutMs: number, isAlone = false): number {
  return Math.min(Math.floor(sessionTimeoutMs / 3), isAlone ? maxHeartbeatAloneMs : maxHeartbeatMs);
}

/**
 * Starts a session. Errors come through `ended`, also those of the start. `onSign` is called whenever the
 * broker has answered: at a join, a heartbeat, a message (kafkajs reports a fetch also when it has failed).
 */
export function openSession(
  kafka: KafkaClient,
  reader: Reader,
  partitions: number,
  logger: Logger,
  onSign: () => void,
): ConsumerSession {
  const beatMs = heartbeatMs(reader.sessionTimeoutMs, reader.isAlone);
  const link = kafka.newConsumer({
    groupId: reader.groupId,
    sessionTimeout: reader.sessionTimeoutMs,
    heartbeatInterval: beatMs,
    rebalanceTimeout: rebalanceTimeoutMs,
    // A fetch that finds nothing waits this long at the broker, then a heartbeat is due: it bounds
    // how soon a rebalance is noticed, and how often an idle consumer wakes.
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
  const corrupt = new Map<string, string>();
  const checkCorrupt = ({ batch, pause }: BatchPayload): void => {
    const place = `${batch.topic}/${batch.partition}`;
    if (batch.corrupt === undefined) return void corrupt.delete(place);
    corrupt.set(place, `${place}: ${batch.corrupt}`);
    logger.error(
      { topic: batch.topic, partition: batch.partition, corrupt: batch.corrupt },
      'a record batch is corrupt: the partition is not read on',
    );
    setTimeout(pause(), corruptPauseMs);
  };
  // A session that is over may still report, while the next one already uses the same reader.
  const current: Reader = {
    ...reader,
    eachBatch: async (payload) => {
      if (over) return;
      onSign();
      if (payload.batch.messages.length > 0) await reader.eachBatch(payload);
      checkCorrupt(payload);
    },
    onJoin: (assignment, seek) => {
      if (!over) reader.onJoin(assignment, seek);
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
    // A fetch is over when all its partitions are handled; fewer workers would handle them one after the other.
    partitionsConsumedConcurrently: Math.max(1, partitions),
    // Patched, kafkajs gives our form of a batch, not its own.
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
  // Only now, when kafkajs has been asked to stop, may the calls that it still waits for come back.
  reader.onLost(false);
  await closed;
}

/** An assigner for groups of one member: it takes the given partition and leaves the others alone. */
export function onePartitionAssigner({ kafkajs }: KafkaClient, topic: string, partition: number): PartitionAssigner {
  const { MemberAssignment, MemberMetadata } = kafkajs.AssignerProtocol;
  const name = 'one-partition';
  const version = 0;
  const userData = Buffer.alloc(0);
  return () => ({
    name,
    version,
    assign: async ({ members }) =>
      members.map(({ memberId }) => ({
        memberId,
        memberAssignment: MemberAssignment.encode({ version, assignment: { [topic]: [partition] }, userData }),
      })),
    protocol: ({ topics }) => ({ name, metadata: MemberMetadata.encode({ version, topics, userData }) }),
  });
}
