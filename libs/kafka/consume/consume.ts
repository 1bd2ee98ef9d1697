import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { partitionCounts } from '../topics.ts';
import { createBackoff, pause, withTimeout } from '../wait.ts';
import { type ConsumerSession, type Group, heartbeatMs, openSession } from './consumer-session.ts';
import { type Assignment, type Handle, MessagePool } from './message-pool.ts';
import { type FillOptions, Spares } from './spares.ts';

export type { ReceivedMessage } from '../received-message.ts';

export interface ConsumeOptions {
  groupId: string;
  topics: string[];
  /**
   * Receives available messages of all assigned partitions, up to maxBatch, in order per partition. When it
   * resolves, the messages are processed and their offsets will be committed. When it rejects, the same
   * messages are delivered again after 100 ms to 2 s, and no later messages before them. The handler must
   * therefore dead-letter messages that can never be processed. After a crash or a rebalance, messages may be
   * delivered twice.
   */
  handle: Handle;
  logger: Logger;
  /** The maximum number of messages per call of handle. Default 500. */
  maxBatch?: number;
  /**
   * The number of concurrent calls of handle. Default 1. If higher, order is not preserved, and a crash loses the
   * messages of the running calls. This suits queries: their callers no longer wait when another member takes over.
   */
  concurrency?: number;
  /** Where a group without committed offsets starts. Default true: at the oldest message. */
  fromBeginning?: boolean;
  /** After this time without a heartbeat, other members take over the partitions. Default 6 s. */
  sessionTimeoutMs?: number;
  /**
   * Lets as few members as possible work, and the others be hot spares (filling.ts). Default: all work. For groups with one
   * topic.
   */
  fill?: FillOptions;
}

const firstBackoffMs = 100;
const maxBackoffMs = 1_000;
const joinGraceMs = 30_000;
const silentSessions = 3;
const hopelessMs = 60_000;
/** The number of consecutive failed starts that are expected while brokers start or groups rebalance. */
const quietFailures = 3;

/**
 * A consumer group member that delivers all its partitions as one stream of batches: at least once, in order per
 * partition. It starts a new session after every crash and whenever it receives nothing.
 */
export class Consumer {
  readonly #kafka: KafkaClient;
  readonly #group: Group;
  readonly #pool: MessagePool;
  readonly #spares: Spares | undefined;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  readonly #firstJoin = Promise.withResolvers<void>();
  #session: ConsumerSession | undefined;
  /** Pending between leave() and start(). */
  #left: PromiseWithResolvers<void> | undefined;
  /** The number of partitions of its topics. */
  #partitions = 0;
  #running: Promise<void> | undefined;
  #lastSign = 0;
  /** The last time at which the brokers were unreachable. Until then it is expected that nothing is received. */
  #lastAway = performance.now();
  #failures = 0;

  constructor(kafka: KafkaClient, options: ConsumeOptions) {
    const { groupId, topics, handle, maxBatch = 500, concurrency = 1 } = options;
    const { fromBeginning = true, sessionTimeoutMs = 6_000 } = options;
    this.#kafka = kafka;
    this.#logger = options.logger.child({ group: groupId });
    if (options.fill) this.#spares = new Spares(kafka, groupId, options.fill, this.#logger);
    this.#group = { groupId, topics, fromBeginning, sessionTimeoutMs, spares: this.#spares };
    this.#pool = new MessagePool({
      handle,
      maxBatch,
      concurrency,
      heartbeatMs: heartbeatMs(sessionTimeoutMs),
      logger: this.#logger,
    });
  }

  /** Resolves when the consumer has joined its group for the first time. Later it reconnects by itself. */
  start(): Promise<void> {
    if (this.#running && !this.#left) return this.#firstJoin.promise;
    this.#lastAway = performance.now();
    this.#left?.resolve();
    this.#left = undefined;
    this.#running ??= this.#run();
    return this.#firstJoin.promise;
  }

  /**
   * Leaves the group until start() is called, so that other members get its partitions. The running call of handle is
   * not waited for, so its messages may be delivered twice.
   */
  async leave(): Promise<void> {
    if (!this.#running || this.#left) return;
    this.#left = Promise.withResolvers();
    await this.#session?.leave();
  }

  /** Reports whether this member has all partitions and nobody else would get them. */
  isAlone(): boolean {
    // Until the members of a group with spares are known, there may be one.
    if (this.#spares && this.#spares.members?.length !== 1) return false;
    const assigned = this.assigned().reduce((sum, { partitions }) => sum + partitions.length, 0);
    return assigned > 0 && assigned === this.#partitions;
  }

  /**
   * Waits for the running call of handle, commits its offsets, and leaves the group, each for at most `timeoutMs`
   * (default 10 s).
   */
  async stop({ timeoutMs = 10_000 } = {}): Promise<void> {
    this.#stopping.abort();
    this.#left?.resolve();
    await this.#session?.stop(timeoutMs);
    if (this.#running) await withTimeout(this.#running, Math.max(timeoutMs, 100), 'stopping').catch(() => undefined);
  }

  /** Not ok if there was no fetch or heartbeat for two session timeouts, or if a partition cannot be read. */
  health(): { ok: boolean; reason?: string } {
    if (!this.#lastSign || this.#stopping.signal.aborted) return { ok: false, reason: 'the consumer is not running' };
    if (this.#left) return { ok: false, reason: 'the consumer has left its group' };
    const corrupt = this.#session?.corrupt();
    if (corrupt !== undefined) return { ok: false, reason: corrupt };
    const silentMs = performance.now() - this.#lastSign;
    return silentMs <= 2 * this.#group.sessionTimeoutMs
      ? { ok: true }
      : { ok: false, reason: 'no fetch or heartbeat for two session timeouts' };
  }

  /**
   * Not ok if nothing was received although the brokers respond, for longer than it takes to rebuild the
   * consumer. The process must then be restarted. Unreachable brokers are not a reason to restart, nor are they
   * during the start, nor while the consumer has left its group.
   */
  alive(): { ok: boolean; reason?: string } {
    if (!this.#running || this.#left) return { ok: true };
    const silentMs = performance.now() - Math.max(this.#lastSign, this.#lastAway);
    return silentMs <= hopelessMs + silentSessions * this.#group.sessionTimeoutMs
      ? { ok: true }
      : { ok: false, reason: 'nothing is received, although the brokers respond' };
  }

  assigned(): Assignment[] {
    return this.#pool.assigned;
  }

  async #run(): Promise<void> {
    const backoff = createBackoff(firstBackoffMs, maxBackoffMs);
    for (;;) {
      await this.#left?.promise;
      if (this.#stopping.signal.aborted) return;
      this.#failures += 1;
      const err = await this.#runSession().catch((error: unknown) => error);
      if (this.#left || this.#stopping.signal.aborted) continue;
      // A session that had joined has reset the count to 0, so its end is always logged.
      const isQuiet = this.#failures > 0 && this.#failures <= quietFailures;
      this.#logger[isQuiet ? 'debug' : 'warn']({ err, failures: this.#failures }, 'the consumer ended; rebuilding it');
      if (this.#failures === 0) backoff.reset();
      await pause(backoff.next(), this.#stopping.signal);
    }
  }

  async #runSession(): Promise<Error> {
    const counts = await this.#countPartitions();
    if (this.#left || this.#stopping.signal.aborted) return new Error('stopped');
    this.#partitions = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const session = openSession(this.#kafka, this.#group, this.#partitions, this.#pool, this.#logger, () => {
      this.#lastSign = performance.now();
    });
    this.#session = session;
    void session.joined.then(() => {
      this.#failures = 0;
      this.#firstJoin.resolve();
    });
    const over = new AbortController();
    void this.#watch(session, over.signal);
    return session.ended.finally(() => over.abort());
  }

  /**
   * Ends a session that receives nothing although the brokers have responded for two session timeouts. While they
   * do not respond, and shortly afterwards, the session continues: kafkajs keeps retrying and rejoins at once
   * under its old member id, whereas a new member would wait for the session timeout of the old one.
   */
  async #watch(session: ConsumerSession, over: AbortSignal): Promise<void> {
    const { sessionTimeoutMs } = this.#group;
    let patienceMs = joinGraceMs;
    void session.joined.then(() => {
      patienceMs = silentSessions * sessionTimeoutMs;
    });
    const begunAt = performance.now();
    const silentMs = (): number => performance.now() - Math.max(this.#lastSign, begunAt);
    while (!over.aborted) {
      await pause(sessionTimeoutMs / 2, over);
      if (!over.aborted && this.#spares?.wantsRebalance()) void this.#pool.rejoin();
      if (silentMs() > sessionTimeoutMs && !over.aborted) await this.#countPartitions().catch(() => undefined);
      const isReachable = performance.now() - this.#lastAway > 2 * sessionTimeoutMs;
      if (isReachable && silentMs() > patienceMs)
        session.kill(new Error(`nothing received for ${Math.round(silentMs())} ms, although the brokers respond`));
    }
  }

  async #countPartitions(): Promise<Map<string, number>> {
    try {
      return await partitionCounts(this.#kafka, this.#group.topics);
    } catch (error) {
      this.#lastAway = performance.now();
      throw error;
    }
  }
}
