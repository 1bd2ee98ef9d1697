import { Kafka, logLevel } from 'kafkajs';
import { DeadLetters } from './dead-letter.ts';
import type { BankConsumer, ConsumerOptions, Logger } from './options.ts';
import type { Shared } from './partition.ts';
import { pause } from './pause.ts';
import { Session } from './session.ts';

const firstPauseMs = 100;
const maxPauseMs = 2_000;

const consoleLogger: Logger = {
  info: () => undefined,
  warn: (fields, message) => console.warn(`${message}:`, JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? `${value.name}: ${value.message}` : value))),
};

/** A member of a consumer group of a bank's events: at least once, in order per account. It connects nothing before start(). */
export function createConsumer(options: ConsumerOptions): BankConsumer {
  const { groupId, logger = consoleLogger, deadLetterSuffix = '.DLT', sessionTimeoutMs = 6_000 } = options;
  if (Object.keys(options.handlers).length === 0) throw new Error('a consumer needs at least one handler: the topics to read follow from their types');
  // A client of its own: consumers of one group must not share one, for kafkajs keeps their offsets there.
  const kafka = new Kafka({ logLevel: logLevel.NOTHING, connectionTimeout: 3_000, requestTimeout: 10_000, retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 5 }, ...options.kafka });
  const deadLetters = new DeadLetters(kafka, groupId, deadLetterSuffix);
  const shared: Shared = {
    options: { ...options, logger, sessionTimeoutMs },
    reportedTypes: new Set(),
    partitions: new Map(),
    deadLetter: async (origin, error) => {
      const letter = await deadLetters.put(origin, error);
      const { topic, partition, deadLetterTopic } = letter;
      if (options.onDeadLetter) options.onDeadLetter(letter);
      else logger.warn({ topic, partition, offset: String(letter.offset), deadLetterTopic, err: error }, 'an event was dead-lettered');
    },
  };
  const joined = Promise.withResolvers<void>();
  const stopping = new AbortController();
  let session: Session | undefined;
  let running: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;
  let lastSign: number | undefined;
  let pauseMs = firstPauseMs;

  const onSign = (hasJoined: boolean): void => {
    lastSign = performance.now();
    if (!hasJoined) return;
    pauseMs = firstPauseMs;
    joined.resolve();
  };
  const keepRunning = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      session = new Session(kafka, shared, onSign);
      const reason = await session.run();
      if (stopping.signal.aborted) break;
      logger.warn({ groupId, err: reason }, 'the consumer has ended and is built again');
      await pause(pauseMs, stopping.signal);
      pauseMs = Math.min(pauseMs * 2, maxPauseMs);
    }
    joined.resolve();
  };
  const stop = async (timeoutMs: number): Promise<void> => {
    stopping.abort();
    const finished = (session?.stop() ?? Promise.resolve()).then(() => running).then(() => deadLetters.close());
    const late = new AbortController();
    await Promise.race([finished.finally(() => late.abort()), pause(timeoutMs, late.signal)]);
  };
  return {
    start: () => {
      running ??= keepRunning();
      return joined.promise;
    },
    stop: ({ timeoutMs = 30_000 } = {}) => (stopped ??= stop(timeoutMs)),
    health: () => {
      if (lastSign === undefined || stopping.signal.aborted) return { ok: false, reason: 'the consumer is not running' };
      const silentMs = performance.now() - lastSign;
      return silentMs <= 2 * sessionTimeoutMs ? { ok: true } : { ok: false, reason: `nothing heard for ${Math.round(silentMs)} ms` };
    },
  };
}
