import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { History } from './history.ts';
import type { Lease } from './lease.ts';
import { createLease } from './lease.ts';
import { listen } from './listen.ts';
import { Notifier } from './notify.ts';
import { outboxChannel } from './outbox.ts';
import { messageOf, type PublishedEvent } from './outbox-messages.ts';
import type { OutboxStats, UnpublishedBatch } from './relay-read.ts';
import { outboxStats, purge, readUnpublished } from './relay-read.ts';

export interface RelayOptions {
  /** Preferably a separate pool (max 3) with lookupPlans (pool.ts), so that a busy service cannot starve the lease. */
  pool: Pool;
  /** publishAll resolves when all in-sync replicas have the messages. Calls never overtake each other. */
  publisher: { publishAll(messages: PublishedEvent[], options: { timeoutMs: number }): Promise<void> };
  schema: string;
  /** Returns the topic's name on the broker. */
  topicName: (topic: string) => string;
  /** The ce_source of all messages. */
  source: string;
  logger: Logger;
  /** How often the lease is renewed and the table polled, in ms; at most 1 s (lease.ts), which is the default. */
  pollMs?: number;
  publishTimeoutMs?: number;
  /** The number of events read and published at once, rounded up to the end of a batch. */
  maxEvents?: number;
  /** How long published events are kept, in ms. */
  retainMs?: number;
  /**
   * Writes the latest states behind these messages to the outbox again, because they may have been
   * written after newer ones. Required if a topic is compacted.
   */
  republish?: (messages: readonly PublishedEvent[]) => Promise<void>;
  /** If given, every chunk is published with the number of its last batch (history.ts). */
  history?: Pick<History, 'event'>;
  /**
   * Called with events that all in-sync replicas have. `begunAt` (performance.now) is when they were passed to
   * the publisher.
   */
  observe?: (messages: readonly PublishedEvent[], begunAt: number) => void;
}

/** The minimum time between the starts of chunks that are not full. Under load, chunks are then fewer and larger. */
const paceMs = 4;
const purgeEveryMs = 5000;
const maxBackOffMs = 1000;
/** How often a standby relay tries to take the lease. */
const standbyMs = 500;
/** After so many failed sends in a row, the lease is left to a relay that may reach the brokers. */
const maxFailedSends = 3;
/**
 * How long the lease is then left to others. This is not less than trustMs (lease.ts), so that the
 * response to an earlier heartbeat no longer counts.
 */
const standAsideMs = 2500;
/**
 * How long messages may still be written after their send has failed, or after a takeover from
 * their sender. Linux retransmits the bytes of a closed connection for about 100 s
 * (tcp_orphan_retries). If the network recovers meanwhile, the broker accepts them, because they
 * have the sequence number that it expects from that producer.
 */
const lateMs = 120_000;
/** How long, and for how many batches, marking is delayed, because each mark is a separate transaction. */
const putOffMs = 50;
const maxPutOff = 1000;

/**
 * Publishes the messages that transactions wrote to the outbox: at least once (repeats have the same ce_id and bytes),
 * in order per key. A message is marked as published only when all in-sync replicas have it.
 *
 * The order depends on one fact: batch_id is assigned while the transaction holds the locks that order its keys
 * (outbox.ts). A batch that is not yet visible therefore belongs to a transaction that still holds its locks, and no
 * later batch with the same keys can have been committed. All unpublished batches found by one read of the table can be
 * published in the order of batch_id.
 *
 * Of all relays of a schema, one is active at a time (lease.ts). If its process ends, another one
 * takes over within leaseMs + standbyMs. If it cannot reach the brokers, it leaves the lease to
 * another one after maxFailedSends. Nothing is skipped: while the broker or the database is
 * unreachable, the relay retries, at most standAsideMs apart. A message that the broker never
 * accepts (too large, no such partition) therefore blocks all later messages. Writers must prevent
 * such messages; the log names the batch.
 *
 * A lease cannot revoke messages that were already passed to the publisher when a process was
 * paused or a send failed. Such a message may be written late, with its old ce_id, after newer
 * messages of its key. The latest states are therefore published again (republish): by a relay that
 * finds, after publishing, that it no longer has the lease; lateMs after a failed send; and lateMs
 * after a takeover from a holder that had stopped renewing its lease, or whose messages may still
 * be written.
 */
export class Relay {
  readonly #options: Required<Omit<RelayOptions, 'history'>> & Pick<RelayOptions, 'history'>;
  readonly #lease: Lease;
  readonly #notifier: Notifier;
  #stopping = false;
  #active = false;
  #woken = false;
  #endWait: () => void = () => undefined;
  /**
   * Published but not yet marked. Reads exclude them by id, because a batch with a lower number may still be
   * committed.
   */
  #unmarked: bigint[] = [];
  /** The messages of these batches. */
  #unmarkedMessages: PublishedEvent[] = [];
  /** Messages that may have been written after newer ones and must be republished. */
  #late: PublishedEvent[] = [];
  /** Messages that may still be written, and until when, by topic and key, in order of time. */
  readonly #doubtful = new Map<string, { message: PublishedEvent; until: number }>();
  #isTakeover = false;
  #markedAt = 0;
  /** The number of events passed to the publisher at once. */
  #pieceEvents: number;
  #failures = 0;
  /** The number of failed sends in a row. */
  #failedSends = 0;
  /** The batches that are being published, for the log. Undefined if the database failed. */
  #publishing: { batch_id: string; events: number } | undefined;
  /** Undefined until started; the start waits for unreachable brokers. */
  #lastTurnAt: number | undefined;
  #loop: Promise<void> = Promise.resolve();
  #listener: ReturnType<typeof listen> | undefined;
  #timers: NodeJS.Timeout[] = [];
  #purging = false;

  constructor(options: RelayOptions) {
    const defaults = { pollMs: 1000, publishTimeoutMs: 10_000, maxEvents: 2500, retainMs: 60 * 60 * 1000 };
    this.#options = { ...defaults, observe: () => undefined, republish: async () => undefined, ...options };
    this.#pieceEvents = this.#options.maxEvents;
    this.#lease = createLease(options.pool, randomUUID());
    this.#notifier = new Notifier(options.pool, options.schema);
  }

  start(): void {
    const { pool, schema, logger, pollMs } = this.#options;
    this.#listener = listen(
      pool,
      outboxChannel(schema),
      () => {
        if (this.#active) this.wake();
      },
      logger,
    );
    this.#timers = [
      setInterval(() => void this.#heartbeat(), pollMs),
      setInterval(() => void this.#purge(), purgeEveryMs),
    ];
    this.#lastTurnAt = performance.now();
    this.#loop = this.#run();
  }

  /** Stops after the current chunk (bounded by its timeouts) and releases the lease. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#timers.forEach((timer) => clearInterval(timer));
    this.#endWait();
    await this.#loop;
    await this.#listener?.stop();
    await this.#notifier.stop();
    if (this.#active) await this.#release();
  }

  /** Call after each commit that wrote to the outbox. Never waits; several calls are combined. */
  wake(): void {
    if (!this.#active) return this.#notifier.notify();
    this.#woken = true;
    this.#endWait();
  }

  /** Not ok if the loop hangs. An unreachable broker or database is not a reason to restart the process. */
  health(): { ok: boolean; reason?: string } {
    const silentMs = performance.now() - (this.#lastTurnAt ?? performance.now());
    const hung = silentMs > 2 * this.#options.publishTimeoutMs + 15_000;
    return hung
      ? { ok: false, reason: `the loop of the outbox relay has not run for ${Math.round(silentMs)} ms` }
      : { ok: true };
  }

  /** True while this relay publishes. */
  active(): boolean {
    return this.#active && this.#lease.held();
  }

  stats(): Promise<OutboxStats> {
    return outboxStats(this.#options.pool);
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      this.#woken = false;
      const pauseMs = await this.#turn().catch((error: unknown) => this.#failed(error));
      this.#lastTurnAt = performance.now();
      if (pauseMs > 0) await this.#wait(pauseMs, this.#failures === 0);
    }
  }

  /** Publishes one chunk. Returns how long to wait for a wake-up before the next one, in ms. */
  async #turn(): Promise<number> {
    const { pool, maxEvents, pollMs } = this.#options;
    const begunAt = performance.now();
    await this.#republishLate();
    if (!this.#lease.held() && !(await this.#takeLease())) return Math.min(standbyMs, pollMs);
    if (this.#isMarkDue() && !(await this.#mark())) return 0;
    const batches = await readUnpublished(pool, maxEvents, this.#unmarked);
    const count = batches.length === 0 ? 0 : await this.#publish(batches);
    this.#failures = 0;
    this.#publishing = undefined;
    if (count >= maxEvents) return 0;
    const restMs = begunAt + paceMs - performance.now();
    if (count > 0 && restMs > 0) await sleep(restMs);
    return this.#unmarked.length > 0 ? putOffMs : pollMs;
  }

  async #takeLease(): Promise<boolean> {
    const taken = await this.#lease.acquire();
    if ((taken !== false) !== this.#active)
      this.#options.logger.info(taken ? 'this outbox relay is active' : 'this outbox relay is on standby');
    this.#active = taken !== false;
    // A relay that asks for the lease may have lost it. The next holder then publishes the unmarked
    // batches again, possibly after older ones were marked unpublished (republish.ts), so they must
    // not be marked now. It may have published newer ones before these were written.
    this.#late.push(...this.#forgetUnmarked());
    if (taken) this.#isTakeover ||= taken.isFromSilent;
    return this.#active;
  }

  /** Publishes batches. Returns the number of messages, or 0 if the lease was lost. */
  async #publish(batches: readonly UnpublishedBatch[]): Promise<number> {
    const { source, topicName, observe, history } = this.#options;
    const last = batches.at(-1);
    if (last === undefined || this.#stopping) return 0;
    // The position comes first: if any message of the chunk is written, the position of its batch is recorded.
    const position = history === undefined ? [] : [history.event(last)];
    const messages = [...position, ...batches.flatMap(({ events }) => events)].map((event) =>
      messageOf(event, source, topicName),
    );
    if (!this.#lease.held()) return 0;
    this.#publishing = { batch_id: String(batches[0]?.batch_id), events: messages.length };
    const begunAt = performance.now();
    if (this.#isTakeover) this.#doubt(messages);
    this.#isTakeover = false;
    try {
      for (let at = 0; at < messages.length; at += await this.#send(messages.slice(at, at + this.#pieceEvents))) {
        if (!this.#lease.held()) return 0;
      }
    } catch (error) {
      this.#doubt(messages);
      throw error;
    } finally {
      if (!this.#lease.held()) this.#late.push(...messages);
    }
    this.#unmarked.push(...batches.map(({ batch_id }) => batch_id));
    this.#unmarkedMessages.push(...messages);
    observe(messages.slice(position.length), begunAt);
    return messages.length;
  }

  /**
   * Sends one piece of a chunk. If the broker takes too long, the next pieces are half as large. They grow again
   * slowly.
   */
  async #send(piece: PublishedEvent[]): Promise<number> {
    const { publisher, publishTimeoutMs: timeoutMs } = this.#options;
    const begunAt = performance.now();
    try {
      await publisher.publishAll(piece, { timeoutMs });
      this.#failedSends = 0;
      this.#pieceEvents = Math.min(100_000, this.#pieceEvents + Math.ceil(this.#pieceEvents / 8));
      return piece.length;
    } catch (error) {
      this.#failedSends += 1;
      if (performance.now() - begunAt >= timeoutMs) this.#pieceEvents = Math.ceil(piece.length / 2);
      throw error;
    }
  }

  /** Has these messages republished when no send of them until now can be written any more. */
  #doubt(messages: readonly PublishedEvent[]): void {
    const until = performance.now() + lateMs;
    for (const message of messages) {
      const name = `${message.topic} ${message.key}`;
      // Only a new entry is the last one of a map.
      this.#doubtful.delete(name);
      this.#doubtful.set(name, { message, until });
    }
  }

  async #republishLate(): Promise<void> {
    for (const [name, { message, until }] of this.#doubtful) {
      if (performance.now() < until) break;
      this.#doubtful.delete(name);
      this.#late.push(message);
    }
    if (this.#late.length === 0) return;
    const count = this.#late.length;
    await this.#options.republish(this.#late.slice());
    this.#late = this.#late.slice(count);
    // Wakes the active relay, which publishes these states.
    this.#notifier.notify();
  }

  #isMarkDue(): boolean {
    return (
      this.#unmarked.length > 0 && (this.#unmarked.length > maxPutOff || performance.now() >= this.#markedAt + putOffMs)
    );
  }

  /** Returns false if the lease was lost: nothing is marked, and the unmarked batches are published again. */
  async #mark(): Promise<boolean> {
    const held = await this.#lease.mark(this.#unmarked);
    this.#markedAt = performance.now();
    const messages = this.#forgetUnmarked();
    if (!held) {
      // The lease may have been taken before they were written, while this relay still trusted it.
      this.#late.push(...messages);
      this.#options.logger.warn(
        'the outbox relay lost its lease while publishing; another relay publishes these batches again',
      );
    }
    return held;
  }

  /** Forgets the unmarked batches and returns their messages. */
  #forgetUnmarked(): PublishedEvent[] {
    const messages = this.#unmarkedMessages;
    this.#unmarked = [];
    this.#unmarkedMessages = [];
    return messages;
  }

  /** Marks what was published and releases the lease. If this fails, the lease ends by itself. */
  async #release(): Promise<void> {
    this.#active = false;
    try {
      if (this.#unmarked.length > 0) await this.#mark();
      await this.#lease.release(this.#doubtful.size > 0);
    } catch (error) {
      this.#options.logger.debug({ err: error }, 'releasing the lease failed');
    }
  }

  /** Returns how long to wait, in ms. */
  async #failed(error: unknown): Promise<number> {
    this.#failures += 1;
    const level = this.#failures % 10 === 0 ? 'error' : 'warn';
    this.#options.logger[level](
      { err: error, failures: this.#failures, from: this.#publishing },
      'publishing from the outbox failed; retrying',
    );
    this.#publishing = undefined;
    if (this.#failedSends >= maxFailedSends) {
      this.#failedSends = 0;
      this.#options.logger.warn('the outbox relay cannot publish and leaves the lease to another one');
      await this.#release();
      return standAsideMs;
    }
    return Math.min(maxBackOffMs, 50 * 2 ** Math.min(this.#failures, 10));
  }

  /** Waits unless woken; only stop ends a back-off. */
  async #wait(ms: number, wakeable: boolean): Promise<void> {
    if (this.#stopping || (wakeable && this.#woken)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endWait = () => {
        if (!wakeable && !this.#stopping) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Renews the lease during long chunks and idle times. */
  async #heartbeat(): Promise<void> {
    if (!this.#active) return;
    await this.#lease
      .mark([])
      .catch((error: unknown) => this.#options.logger.debug({ err: error }, 'heartbeat failed'));
  }

  async #purge(): Promise<void> {
    if (this.#purging || !this.active()) return;
    this.#purging = true;
    try {
      while (!this.#stopping && (await purge(this.#options.pool, this.#options.retainMs)));
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'purging the outbox failed');
    } finally {
      this.#purging = false;
    }
  }
}
