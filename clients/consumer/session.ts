import type { Consumer, EachBatchPayload, Kafka, TopicPartitionOffset } from 'kafkajs';
import { eventTopics, topics } from '../../libs/contracts/topics.ts';
import { type BankEventType, listTopics, type Origin } from './event.ts';
import type { Logger } from './options.ts';
import { Partition, type Shared } from './partition.ts';
import { hasSettled, pause } from './pause.ts';
import type { Places } from './places.ts';

/** Errors of a broker which mean that the group has rebalanced, or is about to, without this member. */
const rebalanceTypes = new Set([
  'REBALANCE_IN_PROGRESS',
  'NOT_COORDINATOR_FOR_GROUP',
  'ILLEGAL_GENERATION',
  'UNKNOWN_MEMBER_ID',
]);
/** A rebalance waits this long for a member's handler. After that, another member gets its event. */
const rebalanceTimeoutMs = 60_000;
const commitIntervalMs = 500;
/**
 * If nothing is received for this many session timeouts although the brokers respond, the connections are
 * considered dead.
 */
const silentSessions = 2;
const disconnectTimeoutMs = 2_000;
const lookIntervalMs = 5_000;
const beginAgainMs = 500;
/** The number of retries that are made in place, and the longest pause before one. */
const retriesInPlace = 3;
const maxRestMs = 1_000;
const compactedTopics = eventTopics.filter((name) => topics[name].config['cleanup.policy'] === 'compact');

/** Pauses between attempts to reach the brokers: after a broker has restarted, the next attempt follows within 0.5 s. */
export const brokerRetry = { initialRetryTime: 100, maxRetryTime: 500 };

/** When the brokers were last heard, and last found unreachable, by performance.now(). */
export interface Contact {
  heardMs: number;
  /** Until then, receiving nothing does not mean that the connections are dead. */
  awayMs: number;
}

/**
 * For how long nothing may be received although the brokers respond. While a member joins, the
 * group may wait for handlers of other members, and sends nothing.
 */
export function silentLimitMs(sessionTimeoutMs: number, isJoining: boolean): number {
  return silentSessions * sessionTimeoutMs + (isJoining ? rebalanceTimeoutMs : 0);
}

export function pickHeartbeatMs(sessionTimeoutMs: number): number {
  return Math.min(Math.floor(sessionTimeoutMs / 3), 1_000);
}

/** One session of a kafkajs consumer: from joining the group until it is stopped or has crashed. */
export class Session {
  readonly #places: Places;
  readonly #consumer: Consumer;
  readonly #options: Shared['options'];
  readonly #logger: Logger;
  readonly #shared: Shared;
  readonly #heartbeatMs: number;
  readonly #ended = Promise.withResolvers<Error>();
  readonly #contact: Contact;
  readonly #onJoined: () => void;
  readonly #pauses = new Set<NodeJS.Timeout>();
  readonly #leaving = new AbortController();
  #held = new Set<string>();
  /** The assigned partitions whose starting offset is known. */
  #begun = new Set<string>();
  #memberId = '';
  /** The number of assignments. Each one makes the previous one, and the work begun for it, obsolete. */
  #assignment = 0;
  #stopping = false;
  #isOver = false;
  #isJoining = true;
  readonly #startMs = performance.now();
  /** Set when the group rebalances. Running handlers then finish, and the next member handles the remaining events. */
  #lost: Error | undefined;
  #lastCommit = 0;
  /** The number of partitions whose events are being handled. */
  #handling = 0;

  constructor(kafka: Kafka, places: Places, shared: Shared, contact: Contact, onJoined: () => void) {
    this.#options = shared.options;
    this.#logger = shared.options.logger;
    this.#shared = shared;
    this.#contact = contact;
    this.#onJoined = onJoined;
    const { groupId, sessionTimeoutMs } = this.#options;
    this.#places = places;
    this.#heartbeatMs = pickHeartbeatMs(sessionTimeoutMs);
    this.#consumer = kafka.consumer({
      groupId,
      sessionTimeout: sessionTimeoutMs,
      heartbeatInterval: this.#heartbeatMs,
      rebalanceTimeout: rebalanceTimeoutMs,
      // An empty fetch waits this long, which delays the end of a pause and the stop of the consumer.
      maxWaitTimeInMs: this.#heartbeatMs / 2,
      allowAutoTopicCreation: false,
      // kafkajs reports final errors and leaves recovery to us, so that there is only one recovery path.
      retry: { restartOnFailure: async () => false },
    });
  }

  /** Resolves with the reason when this session is over. */
  async run(): Promise<Error> {
    const consumer = this.#consumer;
    const { HEARTBEAT, REBALANCING, GROUP_JOIN, CRASH } = consumer.events;
    consumer.on(HEARTBEAT, () => this.#hear());
    consumer.on(REBALANCING, () => void (this.#isJoining = true));
    consumer.on(GROUP_JOIN, ({ payload }) => this.#join(payload.memberId, payload.memberAssignment));
    consumer.on(CRASH, ({ payload }) => this.#ended.resolve(payload.error));
    const { handlers, topicPrefix, parallelism = 1 } = this.#options;
    const topics = listTopics(Object.keys(handlers) as BankEventType[], topicPrefix);
    const join = async (): Promise<void> => {
      await consumer.connect();
      if (this.#isOver || this.#stopping) return;
      // The starting offset is set when a partition is assigned to this member; kafkajs's own default must not
      // skip any event.
      await consumer.subscribe({ topics, fromBeginning: true });
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: parallelism,
        eachBatch: (payload) => this.#eachBatch(payload),
      });
    };
    void join().catch((error: Error) => this.#ended.resolve(error));
    const watch = setInterval(() => this.#endWhenSilent(), this.#heartbeatMs);
    const look = setInterval(() => void this.#lookAtEnds(topics), lookIntervalMs);
    const reason = await this.#ended.promise;
    this.#isOver = true;
    clearInterval(watch);
    clearInterval(look);
    this.#clearPauses();
    const ending = Promise.all([consumer.disconnect().catch(() => undefined), this.#places.close()]);
    await hasSettled(ending, disconnectTimeoutMs);
    return reason;
  }

  /** Resolves when running handlers have finished, their offsets are committed, and this member has left the group. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#leaving.abort();
    this.#clearPauses();
    const left = this.#consumer.disconnect();
    // While the brokers are unreachable, kafkajs would keep retrying. Nothing can be committed, so wait only
    // for handlers.
    const isUseless = () => this.#handling === 0 && this.#contact.awayMs >= this.#contact.heardMs;
    while (!(await hasSettled(left, disconnectTimeoutMs)) && !isUseless() && !this.#isOver);
    this.end();
  }

  /** Ends this session without waiting for its handlers. */
  end(): void {
    this.#ended.resolve(new Error('stopped'));
  }

  /**
   * Sequences in memory are valid only if no other member has read the partition, that is, if this member was
   * reading it under the same id before. A member that was expelled gets a new id.
   */
  #join(memberId: string, assignment: Record<string, number[]>): void {
    const { partitions } = this.#shared;
    const kept = memberId === this.#memberId ? this.#begun : new Set<string>();
    const given = Object.entries(assignment).flatMap(([topic, numbers]) =>
      numbers.map((partition) => ({ topic, partition, name: `${topic}/${partition}` })),
    );
    this.#held = new Set(given.map(({ name }) => name));
    this.#begun = new Set([...kept].filter((name) => this.#held.has(name)));
    const current = ++this.#assignment;
    for (const { name, ...place } of given) {
      const partition = partitions.get(name) ?? new Partition(this.#shared, place);
      partitions.set(name, partition);
      if (!kept.has(name)) partition.forgetPlaces();
    }
    this.#memberId = memberId;
    this.#lost = undefined;
    this.#isJoining = false;
    // Nothing is fetched before the starting offset is known: kafkajs would set the group's offsets
    // itself if they no longer exist.
    const fresh = Object.entries(assignment).flatMap(([topic, numbers]) => {
      const partitions = numbers.filter((partition) => !kept.has(`${topic}/${partition}`));
      return partitions.length > 0 ? [{ topic, partitions }] : [];
    });
    this.#consumer.pause(fresh);
    this.#logger.info({ groupId: this.#options.groupId, assignment }, 'joined the consumer group');
    this.#hear();
    void Promise.all(fresh.map(({ topic, partitions }) => this.#begin(topic, partitions))).then(() => {
      if (current === this.#assignment && !this.#isOver) this.#onJoined();
    });
  }

  /** Determines the starting offsets of newly assigned partitions, and enables fetching, unless they are assigned anew. */
  async #begin(topic: string, given: number[]): Promise<void> {
    const current = this.#assignment;
    const isObsolete = () => this.#isOver || this.#stopping || current !== this.#assignment;
    while (!isObsolete()) {
      try {
        const places = await this.#places.next(topic, this.#options);
        if (isObsolete()) return;
        const begun: TopicPartitionOffset[] = [];
        for (const partition of given) {
          const place = places.get(partition);
          const state = this.#shared.partitions.get(`${topic}/${partition}`);
          if (!place || !state) continue;
          state.position = place.position;
          state.isWhole = place.isWhole;
          if (place.lostFrom !== undefined)
            state.lose({ topic, partition, from: place.lostFrom, to: place.position - 1n });
          this.#consumer.seek({ topic, partition, offset: String(place.position) });
          begun.push({ topic, partition, offset: String(place.position) });
        }
        // The starting offset is committed at once, so that a restart before the first event is handled does
        // not choose a later one. kafkajs returns without a commit if this member has crashed.
        await this.#consumer.commitOffsets(begun);
        const committed = await this.#places.committed(topic);
        if (isObsolete()) return;
        if (begun.some(({ partition }) => !committed.has(partition)))
          throw new Error('the starting offset was not committed');
        for (const { partition } of begun) this.#begun.add(`${topic}/${partition}`);
        this.#consumer.resume([{ topic, partitions: given }]);
        await this.#lookAtEnds([topic]);
        return;
      } catch (error) {
        this.#logger.warn({ topic, err: error }, 'the starting offset is not known yet; retrying');
        await pause(beginAgainMs);
      }
    }
  }

  /** Updates lag even while nothing is fetched. */
  async #lookAtEnds(topics: Iterable<string>): Promise<void> {
    for (const topic of topics) {
      const ranges = await this.#places.ranges(topic).catch(() => {
        if (!this.#isOver) this.#contact.awayMs = performance.now();
        // kafkajs keeps using a connection whose peer has disappeared.
        return this.#places.close();
      });
      for (const [partition, { high }] of ranges ?? []) {
        const state = this.#shared.partitions.get(`${topic}/${partition}`);
        if (state) state.end = high;
      }
    }
  }

  /** The partitions currently assigned to this member. */
  held(): readonly string[] {
    return [...this.#held];
  }

  #hear(): void {
    if (!this.#isOver) this.#contact.heardMs = performance.now();
  }

  /** kafkajs keeps using connections whose peer has disappeared. By now, the broker has expelled this member. */
  #endWhenSilent(): void {
    const silentMs = performance.now() - Math.max(this.#startMs, this.#contact.heardMs, this.#contact.awayMs);
    if (!this.#stopping && silentMs > silentLimitMs(this.#options.sessionTimeoutMs, this.#isJoining))
      this.#ended.resolve(new Error(`nothing received for ${Math.round(silentMs)} ms, although the brokers respond`));
  }

  async #eachBatch(payload: EachBatchPayload): Promise<void> {
    const { topic, partition, messages, highWatermark } = payload.batch;
    const state = this.#shared.partitions.get(`${topic}/${partition}`);
    if (!state || this.#lost || this.#isOver) throw this.#lost ?? new Error(`${topic}/${partition} is not assigned`);
    state.end = BigInt(highWatermark);
    this.#noticeLoss(payload, state);
    // A handler that has not returned when a stop times out must not keep the process alive.
    const beats = setInterval(() => void this.#beat(payload), this.#heartbeatMs).unref();
    this.#handling++;
    try {
      for (const message of messages) {
        if (this.#stopping || this.#lost || this.#isOver) break;
        const outcome = await this.#take(state, { topic, partition, offset: BigInt(message.offset), message });
        if (outcome !== 'done') {
          this.#pause(payload, outcome);
          break;
        }
        payload.resolveOffset(message.offset);
        if (performance.now() - this.#lastCommit > commitIntervalMs) await this.#commit(payload);
      }
      await this.#commit(payload);
    } finally {
      this.#handling--;
      clearInterval(beats);
    }
    // kafkajs rejoins immediately only if a batch throws.
    if (this.#lost) throw this.#lost;
  }

  /**
   * Makes the first retries in place. A paused partition is fetched again only after the messages that kafkajs has of
   * all others, so that a pause of 0.2 s could take half a minute.
   */
  async #take(state: Partition, origin: Origin): Promise<'done' | number> {
    for (;;) {
      const outcome = await state.take(origin);
      if (outcome === 'done' || outcome > maxRestMs || state.failures > retriesInPlace) return outcome;
      await pause(outcome, this.#leaving.signal);
      if (this.#stopping || this.#lost || this.#isOver) return outcome;
    }
  }

  /**
   * Detects that a partition was stopped for longer than its topic's retention: kafkajs then continues
   * at the oldest message. Offsets of these topics have no gaps, except in compacted topics, which keep
   * the latest states.
   */
  #noticeLoss({ batch: { topic, partition, messages } }: EachBatchPayload, state: Partition): void {
    const first = messages[0] && BigInt(messages[0].offset);
    if (first === undefined || state.position === undefined || first <= state.position) return;
    const { topicPrefix = '' } = this.#options;
    if (!compactedTopics.some((name) => topic === topicPrefix + name))
      state.lose({ topic, partition, from: state.position, to: first - 1n });
    state.position = first;
  }

  /**
   * Pauses the partition for a while; kafkajs then continues after the last resolved offset, which is
   * at the failed event.
   */
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

  /** Sends heartbeats during long handlers, which keeps the membership and detects rebalances. */
  async #beat(payload: EachBatchPayload): Promise<void> {
    try {
      await payload.heartbeat();
    } catch (error) {
      if (!rebalanceTypes.has((error as { type?: string }).type ?? '')) return;
      this.#lost = error as Error;
      // This is a response, too, and the only kind while the group waits for this handler.
      this.#hear();
    }
  }

  /** Commits handled events of all partitions. Throws errors for which kafkajs retries or rejoins. */
  async #commit(payload: EachBatchPayload): Promise<void> {
    this.#lastCommit = performance.now();
    await payload.commitOffsetsIfNecessary(payload.uncommittedOffsets());
  }
}
