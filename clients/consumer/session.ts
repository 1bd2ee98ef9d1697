import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import { events } from '../../libs/contracts/events.ts';
import type { BankEventType } from './event.ts';
import type { Logger } from './options.ts';
import { Partition, type Shared } from './partition.ts';
import { pause } from './pause.ts';

/** How a broker says that the group has moved on without this member, or is about to. */
const rebalanceTypes = new Set(['REBALANCE_IN_PROGRESS', 'NOT_COORDINATOR_FOR_GROUP', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);
/** In a rebalance, a member whose handler takes longer than this is left behind, and its event goes to another. */
const rebalanceTimeoutMs = 60_000;
const commitIntervalMs = 500;
/** After so many session time-outs without a sign, the connections are taken for dead. */
const silentSessions = 3;
const disconnectTimeoutMs = 2_000;

/** One session of a kafkajs consumer: from joining the group until it is stopped or has crashed. */
export class Session {
  readonly #kafka: Kafka;
  readonly #consumer: Consumer;
  readonly #options: Shared['options'];
  readonly #logger: Logger;
  readonly #shared: Shared;
  readonly #heartbeatMs: number;
  readonly #ended = Promise.withResolvers<Error>();
  readonly #onSign: (hasJoined: boolean) => void;
  readonly #pauses = new Set<NodeJS.Timeout>();
  #held = new Set<string>();
  #memberId = '';
  #stopping = false;
  #isOver = false;
  /** Then the others' handlers are waited for, without a sign. */
  #isJoining = true;
  #lastSign = performance.now();
  /** Set when the group rebalances: what runs is finished, and the rest left to whom the partition is given. */
  #lost: Error | undefined;
  #lastCommit = 0;

  constructor(kafka: Kafka, shared: Shared, onSign: (hasJoined: boolean) => void) {
    this.#kafka = kafka;
    this.#options = shared.options;
    this.#logger = shared.options.logger;
    this.#shared = shared;
    this.#onSign = onSign;
    const { groupId, sessionTimeoutMs } = this.#options;
    this.#heartbeatMs = Math.min(Math.floor(sessionTimeoutMs / 3), 1_000);
    this.#consumer = kafka.consumer({
      groupId,
      sessionTimeout: sessionTimeoutMs,
      heartbeatInterval: this.#heartbeatMs,
      rebalanceTimeout: rebalanceTimeoutMs,
      // An empty fetch waits this long, and the end of a pause or of the consumer waits for it.
      maxWaitTimeInMs: this.#heartbeatMs / 2,
      allowAutoTopicCreation: false,
      // What kafkajs takes for final it reports and leaves to us: so that there is one way back, not two.
      retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 5, restartOnFailure: async () => false },
    });
  }

  /** Resolves with the reason when this session is over. */
  async run(): Promise<Error> {
    const consumer = this.#consumer;
    const { HEARTBEAT, REBALANCING, GROUP_JOIN, CRASH } = consumer.events;
    consumer.on(HEARTBEAT, () => this.#sign(false));
    consumer.on(REBALANCING, () => void (this.#isJoining = true));
    consumer.on(GROUP_JOIN, ({ payload }) => this.#join(payload.memberId, payload.memberAssignment));
    consumer.on(CRASH, ({ payload }) => this.#ended.resolve(payload.error));
    const { handlers, topicPrefix = '', from, fromBeginning = true, parallelism = 1 } = this.#options;
    const topics = new Set((Object.keys(handlers) as BankEventType[]).map((type) => topicPrefix + events[type].topic));
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: [...topics], fromBeginning: fromBeginning || from !== undefined });
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, partitionsConsumedConcurrently: parallelism, eachBatch: (payload) => this.#eachBatch(payload) });
    } catch (error) {
      this.#ended.resolve(error as Error);
    }
    const watch = setInterval(() => this.#endWhenSilent(), this.#heartbeatMs);
    const reason = await this.#ended.promise;
    this.#isOver = true;
    clearInterval(watch);
    this.#clearPauses();
    await Promise.race([consumer.disconnect().catch(() => undefined), pause(disconnectTimeoutMs)]);
    return reason;
  }

  /** Resolves when the running handlers are finished, their offsets committed and the group left. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#clearPauses();
    await this.#consumer.disconnect().catch(() => undefined);
    this.#ended.resolve(new Error('stopped'));
  }

  /**
   * Places in sequences hold as long as nobody else has read the partition: since this member held it before, under the same
   * id. One that was left behind comes back under a new one.
   */
  #join(memberId: string, assignment: Record<string, number[]>): void {
    const { partitions } = this.#shared;
    const kept = memberId === this.#memberId ? this.#held : new Set<string>();
    this.#held = new Set(Object.entries(assignment).flatMap(([topic, numbers]) => numbers.map((partition) => `${topic}/${partition}`)));
    for (const name of this.#held) {
      const partition = partitions.get(name) ?? new Partition(this.#shared);
      partitions.set(name, partition);
      if (!kept.has(name)) partition.forgetPlaces();
    }
    this.#memberId = memberId;
    this.#lost = undefined;
    this.#isJoining = false;
    this.#logger.info({ groupId: this.#options.groupId, assignment }, 'joined the consumer group');
    this.#sign(true);
  }

  #sign(hasJoined: boolean): void {
    if (this.#isOver) return;
    this.#lastSign = performance.now();
    this.#onSign(hasJoined);
  }

  /** kafkajs goes on asking on connections whose other end has vanished; by now the broker has given this member up. */
  #endWhenSilent(): void {
    const silentMs = performance.now() - this.#lastSign;
    const limitMs = silentSessions * this.#options.sessionTimeoutMs + (this.#isJoining ? rebalanceTimeoutMs : 0);
    if (!this.#stopping && silentMs > limitMs) this.#ended.resolve(new Error(`nothing heard for ${Math.round(silentMs)} ms`));
  }

  async #eachBatch(payload: EachBatchPayload): Promise<void> {
    const { topic, partition, messages } = payload.batch;
    const state = this.#shared.partitions.get(`${topic}/${partition}`);
    if (!state || this.#lost || this.#isOver) throw this.#lost ?? new Error(`${topic}/${partition} is not held`);
    const beats = setInterval(() => void this.#beat(payload), this.#heartbeatMs);
    try {
      if (await this.#skipTo(payload)) return;
      for (const message of messages) {
        if (this.#stopping || this.#lost || this.#isOver) break;
        const outcome = await state.take({ topic, partition, offset: BigInt(message.offset), message });
        if (outcome !== 'done') {
          this.#pause(payload, outcome);
          break;
        }
        payload.resolveOffset(message.offset);
        if (performance.now() - this.#lastCommit > commitIntervalMs) await this.#commit(payload);
      }
      await this.#commit(payload);
    } finally {
      clearInterval(beats);
    }
    // Only a batch that throws has kafkajs join again at once.
    if (this.#lost) throw this.#lost;
  }

  /** True where the batch begins before `from`, and the partition is fetched again from that moment on. */
  async #skipTo({ batch: { topic, partition, messages } }: EachBatchPayload): Promise<boolean> {
    const { from } = this.#options;
    const [first] = messages;
    if (from === undefined || first === undefined || Number(first.timestamp) >= from.getTime()) return false;
    const offset = await this.#offsetAt(topic, partition, from);
    // Not so where the clock of a new leader is behind: what comes after an event of the period is of the period.
    if (offset <= BigInt(first.offset)) return false;
    this.#consumer.seek({ topic, partition, offset: String(offset) });
    return true;
  }

  async #offsetAt(topic: string, partition: number, moment: Date): Promise<bigint> {
    const admin = this.#kafka.admin();
    try {
      await admin.connect();
      const offsets = await admin.fetchTopicOffsetsByTimestamp(topic, moment.getTime());
      return BigInt(offsets.find((found) => found.partition === partition)?.offset ?? 0);
    } finally {
      await admin.disconnect();
    }
  }

  /** Leaves the partition alone for a while; kafkajs then fetches on behind what was resolved, which is at the failed event. */
  #pause(payload: EachBatchPayload, pauseMs: number): void {
    const resume = payload.pause();
    const timer = setTimeout(() => {
      this.#pauses.delete(timer);
      resume();
    }, pauseMs);
    this.#pauses.add(timer);
  }

  #clearPauses(): void {
    for (const timer of this.#pauses) clearTimeout(timer);
    this.#pauses.clear();
  }

  /** Keeps the membership while handlers take long, and learns here that the group rebalances. */
  async #beat(payload: EachBatchPayload): Promise<void> {
    try {
      await payload.heartbeat();
    } catch (error) {
      if (rebalanceTypes.has((error as { type?: string }).type ?? '')) this.#lost = error as Error;
    }
  }

  /** Commits what was handled in all partitions. Throws what kafkajs then retries, or joins again for. */
  async #commit(payload: EachBatchPayload): Promise<void> {
    this.#lastCommit = performance.now();
    await payload.commitOffsetsIfNecessary(payload.uncommittedOffsets());
  }
}
