import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { z } from 'zod';
import { replayEndedType, type replayEndedSchema } from '#libs/contracts/events.ts';
import type { EncodedMessage } from '#libs/contracts/record.ts';
import { sideTopic } from '#libs/contracts/topics.ts';
import { encode } from './outbox-messages.ts';
import { claimReplay, endReplay, type HeldReplay, nextStep, type Step, putOffReplay, saveStep, startOf, transactionsEnded } from './replay-steps.ts';
import { replayOf } from './replays.ts';

export interface ReplayerOptions {
  /** Two connections are enough. */
  pool: Pool;
  /** One of its own, so that no event of the relay waits behind a replay. */
  publisher: { publishAll(messages: EncodedMessage[], options: { timeoutMs: number }): Promise<void> };
  /** The topic's name on the broker. */
  topicName: (topic: string) => string;
  /** How many partitions a topic of the broker has. */
  partitionsOf: (topic: string) => Promise<number>;
  /** ce_source of the events, as the relay has it. */
  source: string;
  logger: Logger;
  pollMs?: number;
  /** The pause behind every step, which leaves broker and database to others. */
  paceMs?: number;
  /** Events looked at in one step; at most so many are in memory, or those of one batch. */
  stepEvents?: number;
  /** How long one that fell silent keeps others off its replay. */
  leaseMs?: number;
}

/** Below the lease: a step that takes longer is done by another one too. */
const publishTimeoutMs = 4000;
/** Attempts in which nothing could be published; with their pauses about a quarter of an hour. */
const maxAttempts = 20;
const maxPauseMs = 60_000;
const settleMs = 4000;

/** A replay cannot be finished, however often it is tried. The message is shown to who asked for it. */
class Hopeless extends Error {
  override name = 'Hopeless';
}

/**
 * Works off the replays of one schema, oldest first, one at a time per process: reads what the outbox has kept, in the
 * order of its publication, and publishes it into side topics, with ce_ids and headers as they were and `replay-id`. Each
 * step is noted with the replay, so that who takes over a dead process's replay goes on behind its last step; the messages
 * of that step then come twice. A replay that was taken ends: completed, or failed with a reason, never "running" for ever.
 */
export class Replayer {
  readonly #options: Required<ReplayerOptions>;
  readonly #holder = randomUUID();
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  constructor(options: ReplayerOptions) {
    this.#options = { pollMs: 3000, paceMs: 50, stepEvents: 1000, leaseMs: 6000, ...options };
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Ends after the step in flight; another process, or the next start, goes on at once. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { pool, leaseMs, logger, pollMs } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const replay = await claimReplay(pool, this.#holder, leaseMs).catch((error: unknown) => void logger.debug({ err: error }, 'no replay could be taken'));
      if (replay) await this.#attempt(replay).catch((error: unknown) => logger.warn({ err: error }, 'a replay could not be ended'));
      else await sleep(pollMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #attempt(replay: HeldReplay): Promise<void> {
    const { pool, logger } = this.#options;
    const about = { replay_id: replayOf(replay).replay_id, topic: replay.topic, attempt: replay.attempts };
    try {
      if (replay.attempts > maxAttempts) throw new Hopeless(`nothing could be published in ${maxAttempts} attempts`);
      if (await this.#replay(replay)) logger.info(about, 'a replay is complete');
    } catch (error) {
      if (error instanceof Hopeless) {
        logger.error({ ...about, err: error }, 'a replay has failed');
        await this.#end(replay, error.message);
        return;
      }
      const pauseMs = Math.min(maxPauseMs, 500 * 2 ** replay.attempts);
      logger.warn({ ...about, err: error, pauseMs }, 'a replay is interrupted; trying again');
      await putOffReplay(pool, replay, pauseMs);
    }
  }

  /** True at its end; false where another one has taken it, or this process stops. */
  async #replay(replay: HeldReplay): Promise<boolean> {
    const { pool, paceMs, stepEvents, leaseMs, source } = this.#options;
    if (!(await transactionsEnded(pool, settleMs))) throw new Error('transactions of the period may still be under way');
    const begin = (await startOf(pool, replay)) - 1n;
    for (;;) {
      const step = await nextStep(pool, source, replay, replay.done_batch_id ?? begin, stepEvents);
      if (step.isOvertaken) throw new Hopeless('events of the period were deleted after the retention of the outbox before they were published again');
      await this.#publish(step, replay);
      if (!(await saveStep(pool, replay, step, leaseMs))) return false;
      if (step.isLast) return this.#end(replay, null);
      if (this.#stopping.signal.aborted) {
        await putOffReplay(pool, replay, 0);
        return false;
      }
      await sleep(paceMs);
    }
  }

  async #publish({ events }: Step, replay: HeldReplay): Promise<void> {
    const { publisher, source, topicName } = this.#options;
    if (events.length === 0) return;
    const { replay_id } = replayOf(replay);
    const topic = topicName(sideTopic(replay.topic));
    const replayed = events.map((event) => ({ ...event, topic, headers: { ...event.headers, 'replay-id': replay_id } }));
    await publisher.publishAll(encode(replayed, source).messages, { timeoutMs: publishTimeoutMs });
  }

  /** What is said to be complete has its last messages; what has failed gets them where the broker takes them. */
  async #end(replay: HeldReplay, failure: string | null): Promise<boolean> {
    const { pool, logger } = this.#options;
    if (failure === null) {
      await this.#publishEnds(replay, null);
      return endReplay(pool, replay, null);
    }
    const ended = await endReplay(pool, replay, failure);
    await this.#publishEnds(replay, failure).catch((error: unknown) => logger.warn({ err: error }, 'the side topic is not told that a replay has failed'));
    return ended;
  }

  async #publishEnds(replay: HeldReplay, failure: string | null): Promise<void> {
    const { publisher, topicName, partitionsOf, source } = this.#options;
    const { replay_id, topic, side_topic, from, to, account_id, event_count } = replayOf(replay);
    const data: z.infer<typeof replayEndedSchema> = { replay_id, topic, from, to, account_id, state: failure === null ? 'completed' : 'failed', failure, event_count };
    const payload = JSON.stringify(data);
    const time = new Date().toISOString();
    const ends = Array.from({ length: await partitionsOf(topicName(side_topic)) }, (_, partition) => {
      const id = createHash('sha256').update(`${replay_id} ${partition}`).digest('hex').slice(0, 32);
      return { id, topic: topicName(side_topic), key: replay_id, type: replayEndedType, time, headers: { 'replay-id': replay_id }, payload, partition };
    });
    await publisher.publishAll(encode(ends, source).messages, { timeoutMs: publishTimeoutMs });
  }
}

export function createReplayer(options: ReplayerOptions): Replayer {
  return new Replayer(options);
}
