import kafkajs from 'kafkajs';
import { addCodecs } from '../../libs/kafka/codecs/codecs.ts';
import { DeadLetters } from './dead-letter.ts';
import { noCounts } from './measures.ts';
import { checkOffsetsRetention } from './offsets-retention.ts';
import type { BankConsumer, ConsumerOptions, Health, Logger, Redriven } from './options.ts';
import { Partition, type Shared } from './partition.ts';
import { hasSettled, pause } from './pause.ts';
import { Places } from './places.ts';
import { redrive } from './redrive.ts';
import { brokerRetry, type Contact, Session, silentLimitMs } from './session.ts';
import { Sockets } from './sockets.ts';

const firstPauseMs = 100;
const maxPauseMs = 1_000;

const consoleLogger: Logger = {
  info: () => undefined,
  warn: (fields, message) =>
    console.warn(
      `${message}:`,
      JSON.stringify(fields, (_, value: unknown) =>
        value instanceof Error ? `${value.name}: ${value.message}` : value,
      ),
    ),
};

/**
 * A member of a consumer group for a bank's events: at least once, in order per account. It does not
 * connect before start().
 */
export function createConsumer(options: ConsumerOptions): BankConsumer {
  const { groupId, logger = consoleLogger, sessionTimeoutMs = 6_000, handlerLimitMs = 60_000 } = options;
  if (Object.keys(options.handlers).length === 0)
    throw new Error('a consumer needs at least one handler, because their types determine the topics to read');
  addCodecs(kafkajs);
  const sockets = new Sockets(options.kafka.socketFactory);
  // Separate clients: consumers of one group must not share one, because kafkajs keeps their offsets in it.
  const client = (retries: number) =>
    new kafkajs.Kafka({
      logLevel: kafkajs.logLevel.NOTHING,
      connectionTimeout: 3_000,
      requestTimeout: 10_000,
      ...options.kafka,
      retry: {
        ...brokerRetry,
        ...options.kafka.retry,
        retries: sockets.retries(options.kafka.retry?.retries ?? retries),
      },
      socketFactory: sockets.create,
    });
  const kafka = client(5);
  // While the brokers are unreachable, a member keeps retrying. Under its own id it continues at once, whereas
  // a new member would wait for the end of the old membership.
  const members = client(Number.MAX_SAFE_INTEGER);
  const counts = noCounts();
  const letters = new DeadLetters(kafka, groupId, options.deadLetterTopic ?? `${groupId}.DLT`);
  const shared: Shared = {
    options: { ...options, logger, sessionTimeoutMs, handlerLimitMs },
    reportedTypes: new Set(),
    counts,
    partitions: new Map(),
    deadLetter: async (origin, error) => {
      const letter = await letters.put(origin, error);
      counts.dead_letters += 1;
      const { topic, partition, deadLetterTopic } = letter;
      if (options.onDeadLetter) options.onDeadLetter(letter);
      else
        logger.warn(
          { topic, partition, offset: String(letter.offset), deadLetterTopic, err: error },
          'an event was dead-lettered',
        );
    },
  };
  const joined = Promise.withResolvers<void>();
  const stopping = new AbortController();
  let session: Session | undefined;
  let running: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;
  let redriving: Promise<Redriven> | undefined;
  const contact: Contact = { heardMs: 0, awayMs: 0 };
  let pauseMs = firstPauseMs;

  const onJoined = (): void => {
    pauseMs = firstPauseMs;
    joined.resolve();
  };
  const keepRunning = async (): Promise<void> => {
    contact.heardMs = performance.now();
    void checkOffsetsRetention(kafka, shared.options);
    while (!stopping.signal.aborted) {
      session = new Session(members, new Places(kafka, groupId), shared, contact, onJoined);
      const reason = await session.run();
      if (stopping.signal.aborted) break;
      logger.warn({ groupId, err: reason }, 'the consumer ended; rebuilding it');
      await pause(pauseMs, stopping.signal);
      pauseMs = Math.min(pauseMs * 2, maxPauseMs);
    }
    joined.resolve();
  };
  const stop = async (timeoutMs: number): Promise<void> => {
    stopping.abort();
    const finished = (session?.stop() ?? Promise.resolve()).then(() => running).then(() => letters.close());
    await hasSettled(finished, timeoutMs);
    session?.end();
    sockets.close();
  };
  const redriveAll = async (): Promise<Redriven> => {
    const handle = (origin: Parameters<Partition['redrive']>[0]) => {
      const name = `${origin.topic}/${origin.partition}`;
      return (shared.partitions.get(name) ?? new Partition(shared, origin)).redrive(origin);
    };
    try {
      return await redrive(kafka, shared.options, letters, handle);
    } finally {
      redriving = undefined;
      // Without start(), stop() is not called.
      if (running === undefined) await letters.close();
    }
  };
  const positions = async (): Promise<Map<number, bigint>> => {
    const places = new Places(kafka, groupId);
    try {
      return await places.committed(`${options.topicPrefix ?? ''}transactions`);
    } finally {
      await places.close();
    }
  };
  const held = () => (session?.held() ?? []).flatMap((name) => shared.partitions.get(name) ?? []);

  const health = (): Health => {
    if (running === undefined || stopping.signal.aborted)
      return { ok: false, alive: false, reason: 'the consumer is not running', standing: [] };
    const standing = held().flatMap((partition) => partition.standing(handlerLimitMs) ?? []);
    const [worst] = standing.toSorted((a, b) => Number(b.isRunning) - Number(a.isRunning));
    const now = performance.now();
    const silentMs = now - contact.heardMs;
    const isAway = contact.awayMs > contact.heardMs;
    // A session that receives nothing is replaced, and the next one may have to wait for a
    // rebalance. Only after that does a restart of the process help.
    const isDead = now - Math.max(contact.heardMs, contact.awayMs) > silentLimitMs(sessionTimeoutMs, true);
    const alive = !isDead && !worst?.isRunning;
    if (silentMs > silentLimitMs(sessionTimeoutMs, !isAway)) {
      const reason = `${isAway ? 'the brokers are unreachable: ' : ''}nothing received for ${Math.round(silentMs)} ms`;
      return { ok: false, alive, reason, standing };
    }
    if (!worst) return { ok: true, alive, standing };
    const { topic, partition, offset, since, isRunning, error } = worst;
    const why = isRunning ? 'its handler has not returned' : `its handler fails: ${error}`;
    const reason = `${topic}/${partition} has been at offset ${offset} since ${since}: ${why}`;
    return { ok: false, alive, reason, standing };
  };
  return {
    start: () => {
      running ??= keepRunning();
      return joined.promise;
    },
    stop: ({ timeoutMs = 30_000 } = {}) => (stopped ??= stop(timeoutMs)),
    health,
    metrics: () => ({ ...counts, partitions: held().map((partition) => partition.metrics()) }),
    positions,
    redrive: () => (redriving ??= redriveAll()),
  };
}
