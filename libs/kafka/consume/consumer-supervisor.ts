import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { partitionCounts } from '../topics.ts';
import { createBackoff, pause, withTimeout } from '../wait.ts';
import { type ConsumerSession, type Group, openSession } from './consumer-session.ts';
import type { MessagePool } from './message-pool.ts';

const firstBackoffMs = 100;
const maxBackoffMs = 1_000;
const joinGraceMs = 30_000;
const silentSessions = 3;
const hopelessMs = 60_000;
/** The number of consecutive failed starts that are expected while brokers start or groups rebalance. */
const quietFailures = 3;

/** Keeps a consumer running: it starts a new session after every crash and whenever the consumer receives nothing. */
export class Supervisor {
  readonly #kafka: KafkaClient;
  readonly #group: Group;
  readonly #pool: MessagePool;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  readonly #firstJoin = Promise.withResolvers<void>();
  #session: ConsumerSession | undefined;
  #running: Promise<void> | undefined;
  #lastSign = 0;
  /** The last time at which the brokers were unreachable. Until then it is expected that nothing is received. */
  #lastAway = performance.now();
  #failures = 0;

  constructor(kafka: KafkaClient, group: Group, pool: MessagePool, logger: Logger) {
    this.#kafka = kafka;
    this.#group = group;
    this.#pool = pool;
    this.#logger = logger.child({ group: group.groupId });
  }

  /** Resolves at the first join. */
  start(): Promise<void> {
    this.#lastAway = performance.now();
    this.#running ??= this.#run();
    return this.#firstJoin.promise;
  }

  /** Finishes running work, commits, and leaves the group. Returns after about `timeoutMs` at the latest. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#session?.stop(timeoutMs);
    if (this.#running) await withTimeout(this.#running, Math.max(timeoutMs, 100), 'stopping').catch(() => undefined);
  }

  /** Not ok if there was no fetch or heartbeat for two session timeouts, or if a partition cannot be read. */
  health(): { ok: boolean; reason?: string } {
    if (!this.#lastSign || this.#stopping.signal.aborted) return { ok: false, reason: 'the consumer is not running' };
    const corrupt = this.#session?.corrupt();
    if (corrupt !== undefined) return { ok: false, reason: corrupt };
    const silentMs = performance.now() - this.#lastSign;
    return silentMs <= 2 * this.#group.sessionTimeoutMs
      ? { ok: true }
      : { ok: false, reason: `no fetch or heartbeat for ${Math.round(silentMs)} ms` };
  }

  /**
   * Not ok if nothing was received although the brokers respond, for longer than it takes to rebuild the
   * consumer. The process must then be restarted. Unreachable brokers are not a reason to restart, nor are they
   * during the start.
   */
  alive(): { ok: boolean; reason?: string } {
    if (!this.#running) return { ok: true };
    const silentMs = performance.now() - Math.max(this.#lastSign, this.#lastAway);
    return silentMs <= hopelessMs + silentSessions * this.#group.sessionTimeoutMs
      ? { ok: true }
      : { ok: false, reason: `nothing received for ${Math.round(silentMs)} ms, although the brokers respond` };
  }

  async #run(): Promise<void> {
    const backoff = createBackoff(firstBackoffMs, maxBackoffMs);
    while (!this.#stopping.signal.aborted) {
      this.#failures += 1;
      const err = await this.#runSession().catch((error: unknown) => error);
      if (this.#stopping.signal.aborted) return;
      // A session that had joined has reset the count to 0, so its end is always logged.
      const isQuiet = this.#failures > 0 && this.#failures <= quietFailures;
      this.#logger[isQuiet ? 'debug' : 'warn']({ err, failures: this.#failures }, 'the consumer ended; rebuilding it');
      if (this.#failures === 0) backoff.reset();
      await pause(backoff.next(), this.#stopping.signal);
    }
  }

  async #runSession(): Promise<Error> {
    const counts = await this.#countPartitions();
    if (this.#stopping.signal.aborted) return new Error('stopped');
    const partitions = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const session = openSession(this.#kafka, this.#group, partitions, this.#pool, this.#logger, () => {
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
