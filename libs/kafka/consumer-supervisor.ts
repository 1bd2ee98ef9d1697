import type { Logger } from 'pino';
import type { KafkaClient } from './client.ts';
import { openSession } from './consumer-session.ts';
import type { ConsumerSession, Reader } from './consumer-session.ts';
import { partitionCounts } from './topics.ts';
import { createBackoff, pause, withTimeout } from './wait.ts';

/** A consumer that comes back: rebuilt after every crash and whenever it has gone silent. */
export interface Supervisor {
  /** Resolves at the first join, or rejects after `timeoutMs`, stopped again. */
  start(timeoutMs: number): Promise<void>;
  stop(timeoutMs: number): Promise<void>;
  /** Not ok when nothing was fetched or beaten for two session time-outs. */
  health(): { ok: boolean; reason?: string };
  /** Ends the present life; a new one begins at once. */
  rebuild(reason: string): void;
}

const firstBackoffMs = 100;
const maxBackoffMs = 1_000;
const joinGraceMs = 30_000;

/** `nextReader` is asked before every life, so that a reader may change its group or partition. */
export function supervise(kafka: KafkaClient, nextReader: () => Reader, logger: Logger): Supervisor {
  const stopping = new AbortController();
  const firstJoin = Promise.withResolvers<void>();
  let session: ConsumerSession | undefined;
  let lives: Promise<void> | undefined;
  let lastSign = Date.now();
  let sessionTimeoutMs = 0;

  const live = async (reader: Reader): Promise<Error> => {
    const counts = await partitionCounts(kafka, reader.topics);
    if (stopping.signal.aborted) return new Error('stopped');
    const partitions = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const current = openSession(kafka, reader, partitions, logger);
    session = current;
    let hasJoined = false;
    void current.joined.then(() => {
      hasJoined = true;
      firstJoin.resolve();
    });
    const watchdog = setInterval(() => {
      const silentMs = current.silentMs();
      lastSign = Math.max(lastSign, Date.now() - silentMs);
      if (silentMs > 3 * reader.sessionTimeoutMs + (hasJoined ? 0 : joinGraceMs)) current.kill(new Error(`nothing heard of the brokers for ${silentMs} ms`));
    }, reader.sessionTimeoutMs / 4);
    return current.ended.finally(() => clearInterval(watchdog));
  };

  const liveOn = async (): Promise<void> => {
    const backoff = createBackoff(firstBackoffMs, maxBackoffMs);
    while (!stopping.signal.aborted) {
      const reader = nextReader();
      sessionTimeoutMs = reader.sessionTimeoutMs;
      const born = Date.now();
      const reason = await live(reader).catch((error: unknown) => error);
      if (stopping.signal.aborted) return;
      if (Date.now() - born > 10_000) backoff.reset();
      logger.warn({ group: reader.groupId, err: reason }, 'the consumer has ended and is built again');
      await pause(backoff.next(), stopping.signal);
    }
  };

  const stop = async (timeoutMs: number): Promise<void> => {
    stopping.abort();
    await session?.stop(timeoutMs);
    await lives;
  };

  return {
    start: async (timeoutMs) => {
      lives ??= liveOn();
      try {
        await withTimeout(firstJoin.promise, timeoutMs, 'joining the consumer group');
      } catch (error) {
        await stop(0);
        throw error;
      }
    },
    stop,
    health: () => {
      if (!lives || stopping.signal.aborted) return { ok: false, reason: 'the consumer is not running' };
      const silentMs = Math.min(session?.silentMs() ?? Infinity, Date.now() - lastSign);
      return silentMs <= 2 * sessionTimeoutMs ? { ok: true } : { ok: false, reason: `nothing fetched or beaten for ${silentMs} ms` };
    },
    rebuild: (reason) => session?.kill(new Error(reason)),
  };
}
