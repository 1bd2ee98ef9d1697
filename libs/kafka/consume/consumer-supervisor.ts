import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { partitionCounts } from '../topics.ts';
import { createBackoff, pause, withTimeout } from '../wait.ts';
import type { ConsumerSession, Reader } from './consumer-session.ts';
import { openSession } from './consumer-session.ts';

const firstBackoffMs = 100;
const maxBackoffMs = 1_000;
const joinGraceMs = 30_000;
const silentSessions = 3;
const hopelessMs = 60_000;
/** Failed starts in a row that are nothing to worry about: brokers that start, groups that move. */
const quietFailures = 3;

/** A consumer that comes back: rebuilt after every crash, and whenever it has gone silent. */
export class Supervisor {
  readonly #kafka: KafkaClient;
  readonly #nextReader: () => Reader;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  readonly #firstJoin = Promise.withResolvers<void>();
  #session: ConsumerSession | undefined;
  #running: Promise<void> | undefined;
  #sessionTimeoutMs = 0;
  #lastSign = 0;
  /** When the brokers were last seen to be away: silence until then is no fault of this consumer. */
  #lastAway = performance.now();
  #lastError: unknown;
  #failures = 0;

  /** `nextReader` is asked before every session, so that a reader may change its group or partition. */
  constructor(kafka: KafkaClient, nextReader: () => Reader, logger: Logger) {
    this.#kafka = kafka;
    this.#nextReader = nextReader;
    this.#logger = logger;
  }

  /** Resolves at the first join; rejects after `timeoutMs`, with the last failure as its cause, and is stopped then. */
  async start(timeoutMs: number): Promise<void> {
    this.#lastAway = performance.now();
    this.#running ??= this.#run();
    try {
      await withTimeout(this.#firstJoin.promise, timeoutMs, 'joining the consumer group');
    } catch (error) {
      await this.stop(0);
      throw new Error((error as Error).message, { cause: this.#lastError });
    }
  }

  /** Finishes, commits and leaves the group; returns after about `timeoutMs` in any case. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#session?.stop(timeoutMs);
    if (this.#running) await withTimeout(this.#running, Math.max(timeoutMs, 100), 'stopping').catch(() => undefined);
  }

  /** Not ok when there was no fetch or heartbeat for two session time-outs, or when a partition cannot be read on. */
  health(): { ok: boolean; reason?: string } {
    if (!this.#lastSign || this.#stopping.signal.aborted) return { ok: false, reason: 'the consumer is not running' };
    const corrupt = this.#session?.corrupt();
    if (corrupt !== undefined) return { ok: false, reason: corrupt };
    const silentMs = performance.now() - this.#lastSign;
    return silentMs <= 2 * this.#sessionTimeoutMs
      ? { ok: true }
      : { ok: false, reason: `no fetch or heartbeat for ${Math.round(silentMs)} ms` };
  }

  /**
   * Not ok when nothing was heard although the brokers answer, for longer than building the
   * consumer again takes: what only a new process can cure. Brokers that are away, also at the
   * start, are no reason to end this one.
   */
  alive(): { ok: boolean; reason?: string } {
    if (!this.#running) return { ok: true };
    const silentMs = performance.now() - Math.max(this.#lastSign, this.#lastAway);
    return silentMs <= hopelessMs + silentSessions * this.#sessionTimeoutMs
      ? { ok: true }
      : { ok: false, reason: `nothing heard for ${Math.round(silentMs)} ms, although the brokers answer` };
  }

  /** Ends the present session; the next one begins at once. */
  rebuild(reason: string): void {
    this.#session?.kill(new Error(reason));
  }

  async #run(): Promise<void> {
    const backoff = createBackoff(firstBackoffMs, maxBackoffMs);
    while (!this.#stopping.signal.aborted) {
      const reader = this.#nextReader();
      this.#failures += 1;
      this.#lastError = await this.#runSession(reader).catch((error: unknown) => error);
      if (this.#stopping.signal.aborted) return;
      // A session that had joined has set the count to 0; its end is always worth a line.
      const isQuiet = this.#failures > 0 && this.#failures <= quietFailures;
      this.#logger[isQuiet ? 'debug' : 'warn'](
        { group: reader.groupId, err: this.#lastError, failures: this.#failures },
        'the consumer has ended and is built again',
      );
      if (this.#failures === 0) backoff.reset();
      await pause(backoff.next(), this.#stopping.signal);
    }
  }

  async #runSession(reader: Reader): Promise<Error> {
    this.#sessionTimeoutMs = reader.sessionTimeoutMs;
    const counts = await this.#countPartitions(reader);
    if (this.#stopping.signal.aborted) return new Error('stopped');
    const partitions = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const session = openSession(this.#kafka, reader, partitions, this.#logger.child({ group: reader.groupId }), () => {
      this.#lastSign = performance.now();
    });
    this.#session = session;
    void session.joined.then(() => {
      this.#failures = 0;
      this.#firstJoin.resolve();
    });
    const over = new AbortController();
    void this.#watch(session, reader, over.signal);
    return session.ended.finally(() => over.abort());
  }

  /**
   * Ends a session that hears nothing although the brokers answer, and have answered for a session
   * time-out. While they do not, and just after, it is left alone: kafkajs tries on, and gets back
   * under its old member id at once, where a new member waits for the session time-out of the old.
   */
  async #watch(session: ConsumerSession, reader: Reader, over: AbortSignal): Promise<void> {
    let patienceMs = joinGraceMs;
    void session.joined.then(() => {
      patienceMs = silentSessions * reader.sessionTimeoutMs;
    });
    const begunAt = performance.now();
    const isSilent = (): boolean => performance.now() - Math.max(this.#lastSign, begunAt) > patienceMs;
    let answeredSince: number | undefined;
    while (!over.aborted) {
      await pause(reader.sessionTimeoutMs / 2, over);
      const isReachable =
        isSilent() &&
        (await this.#countPartitions(reader).then(
          () => true,
          () => false,
        ));
      if (!isReachable || !isSilent()) answeredSince = undefined;
      else answeredSince ??= performance.now();
      if (answeredSince === undefined || over.aborted || performance.now() - answeredSince < reader.sessionTimeoutMs)
        continue;
      session.kill(
        new Error(
          `nothing heard for ${Math.round(performance.now() - this.#lastSign)} ms, although the brokers answer`,
        ),
      );
    }
  }

  async #countPartitions({ topics }: Reader): Promise<Map<string, number>> {
    try {
      return await partitionCounts(this.#kafka, topics);
    } catch (error) {
      this.#lastAway = performance.now();
      throw error;
    }
  }
}
