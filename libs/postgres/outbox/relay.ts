import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { Handed, type Known } from './handed.ts';
import type { History } from './history.ts';
import type { Lease } from './lease.ts';
import { createLease } from './lease.ts';
import { listen } from './listen.ts';
import { createNotifier, outboxChannel, type WrittenBatch } from './outbox.ts';
import { type PublishedEvent, toPublishedEvent } from './outbox-messages.ts';
import type { OutboxBatch, OutboxStats } from './relay-read.ts';
import { batchRange, outboxStats, purge, readSweep, readUnpublished } from './relay-read.ts';
import { StaleStates, type States } from './stale-states.ts';

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
  /** Required if a topic is compacted, and a consumer does not choose among the records of a key by itself. */
  states?: States;
  /** How long a message may still be written after its send has failed, in ms. */
  lateMs?: number;
  /** If given, every chunk is published with the number of its last batch (history.ts). */
  history?: Pick<History, 'event'>;
  /**
   * Called with events that all in-sync replicas have. `begunAt` (performance.now) is when they were passed to
   * the publisher.
   */
  observe?: (messages: readonly PublishedEvent[], begunAt: number) => void;
}

const hourMs = 60 * 60 * 1000;
/**
 * Linux retransmits the bytes of a closed connection for about 100 s (tcp_orphan_retries). If the network recovers
 * meanwhile, the broker accepts them, because they have the sequence number that it expects from that producer.
 */
const lateMs = 120_000;
/** The minimum time between the starts of chunks that are not full. Under load, chunks are then fewer and larger. */
const paceMs = 4;
const purgeEveryMs = 5000;
const maxBackOffMs = 1000;
/** How often a standby relay tries to take the lease. This is less than the pause of one that has released it. */
const standbyMs = 500;
/** After so many failed sends in a row, the lease is released, because another relay may reach the brokers. */
const maxFailedSends = 3;
/**
 * How long marking is delayed, because each mark is a separate transaction. It is not delayed when
 * a full chunk is unmarked.
 */
const putOffMs = 100;
const maxSweepMs = 12 * hourMs;

/**
 * Publishes the messages that transactions wrote to the outbox: at least once (repeats have the same ce_id and bytes),
 * in order per key. A message is marked as published only when all in-sync replicas have it.
 *
 * The order depends on one fact: batch_id is assigned while the transaction holds the locks that order its keys
 * (outbox.ts). A batch that is not yet visible therefore belongs to a transaction that still holds its locks, and no
 * later batch with the same keys can have been committed. All unpublished batches found by one read of the table can be
 * published in the order of batch_id. A batch of this process need not be read if it is the next one (handed.ts).
 *
 * Of all relays of a schema, one is active at a time (lease.ts). If its process ends, another one takes over within
 * leaseMs + standbyMs. Nothing is skipped: while the broker or the database is unreachable, the relay retries. A message
 * that the broker never accepts (too large, no such partition) therefore blocks all later messages. Writers must prevent
 * such messages; the log names the batch.
 *
 * A lease cannot revoke messages that were already passed to the publisher when a process was paused or a send failed.
 * Such a message may be written late, with its old ce_id, after newer messages of its key. The last record of a key in a
 * compacted topic is then an old state, until the states changed since are published again (stale-states.ts): lateMs after
 * a failed send or a takeover; at once by a relay that has published without the lease; and every 12 hours (retainMs / 2 if
 * that is less), because a process may be paused for longer than lateMs, send a message, and be killed.
 */
export class Relay {
  readonly #options: Required<Omit<RelayOptions, 'history' | 'states'>> & Pick<RelayOptions, 'history'>;
  readonly #lease: Lease;
  readonly #notify: () => void;
  readonly #stale: StaleStates | undefined;
  #stopping = false;
  #active = false;
  #woken = false;
  #endWait: () => void = () => undefined;
  /**
   * Published but not yet marked. Reads exclude the batches by id, because one with a lower number
   * may still be committed.
   */
  #unmarked: { ids: bigint[]; events: number } = { ids: [], events: 0 };
  readonly #handed: Handed;
  /** True if the table may contain unpublished batches that were not handed over. */
  #mustRead = true;
  /** The batches that are being published. */
  #inFlight: readonly bigint[] = [];
  /** The highest number of a batch that this relay has tried to publish. */
  #last = 0n;
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
    const defaults = { pollMs: 1000, publishTimeoutMs: 10_000, maxEvents: 2500, retainMs: hourMs, lateMs };
    this.#options = { ...defaults, observe: () => undefined, ...options };
    this.#pieceEvents = this.#options.maxEvents;
    this.#handed = new Handed(2 * this.#options.maxEvents);
    this.#lease = createLease(options.pool, randomUUID());
    this.#notify = createNotifier(options.pool, options.schema);
    this.#stale = options.states && new StaleStates(options.pool, options.states, options.logger);
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
      setInterval(() => void this.#stale?.republishDue(), pollMs),
      setInterval(() => void this.#purge(), purgeEveryMs),
    ];
    this.#lastTurnAt = performance.now();
    this.#loop = this.#run();
  }

  /** Stops after the current chunk (bounded by its timeouts), and releases the lease. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#endWait();
    await this.#loop;
    if (this.#unmarked.ids.length > 0) await this.#mark().catch(() => false);
    this.#forgetUnmarked();
    // What is not due yet is left to the next holder, which takes over from one in doubt.
    await this.#stale?.stop();
    if (this.#active) await this.#release();
    this.#timers.forEach((timer) => clearInterval(timer));
    await this.#listener?.stop();
  }

  /** Returns what a transaction of this process passes to writeOutbox. */
  known(): Known {
    return this.#handed.known([...this.#unmarked.ids, ...this.#inFlight]);
  }

  /**
   * Call after each commit that wrote to the outbox. Never waits; several calls are combined. If the batch is given, it is
   * published without being read from the table, unless another one may have to precede it.
   */
  wake(batch?: WrittenBatch): void {
    if (!this.#active) return this.#notify();
    if (batch === undefined || !this.#handed.add(batch)) this.#mustRead = true;
    this.#woken = true;
    if (this.#failures === 0) this.#endWait();
  }

  /** Not ok if the loop hangs. An unreachable broker or database is not a reason to restart the process. */
  health(): { ok: boolean; reason?: string } {
    const silentMs = performance.now() - (this.#lastTurnAt ?? performance.now());
    const hung = silentMs > 2 * this.#options.publishTimeoutMs + 15_000;
    return hung ? { ok: false, reason: 'the loop of the outbox relay hangs' } : { ok: true };
  }

  /** True while this relay publishes. */
  active(): boolean {
    return this.#active && this.#lease.held();
  }

  stats(): Promise<OutboxStats> {
    return outboxStats(this.#options.pool);
  }

  async #run(): Promise<void> {
    for (let pauseMs = 0; !this.#stopping; ) {
      const isMarkOnly = pauseMs > 0 && this.#failures === 0 && this.#unmarked.ids.length > 0 && !this.#woken;
      this.#woken = false;
      pauseMs = await this.#turn(isMarkOnly).catch((error: unknown) => this.#failed(error));
      this.#lastTurnAt = performance.now();
      if (pauseMs > 0) await this.#wait(pauseMs);
    }
  }

  /**
   * Publishes one chunk, unless it is only time to mark earlier ones. Returns how long to wait for a wake-up before the
   * next turn, in ms.
   */
  async #turn(isMarkOnly: boolean): Promise<number> {
    const { maxEvents, pollMs } = this.#options;
    const begunAt = performance.now();
    if (!this.#lease.held() && !(await this.#takeLease())) return Math.min(standbyMs, pollMs);
    if (this.#isMarkDue() && !(await this.#mark())) return 0;
    if (isMarkOnly) return this.#unmarked.ids.length > 0 ? putOffMs : pollMs;
    const batches = await this.#next();
    const count = await this.#publishFirst(batches);
    this.#failures = 0;
    this.#publishing = undefined;
    if (count >= maxEvents) return 0;
    const restMs = begunAt + paceMs - performance.now();
    if (count > 0 && restMs > 0) await sleep(restMs);
    return this.#unmarked.ids.length > 0 ? putOffMs : pollMs;
  }

  /** Returns the batches to publish next: those handed over or, if others may precede them or there are none, those in the table. */
  async #next(): Promise<OutboxBatch[]> {
    const { pool, maxEvents } = this.#options;
    if (!this.#mustRead && this.#handed.follow(this.#last)) return this.#handed.take();
    // The read finds what was handed over, but not all of it if it finds very much.
    if (!this.#handed.isEmpty) this.#handed.forget();
    this.#mustRead = false;
    return readUnpublished(pool, maxEvents, this.#unmarked.ids);
  }

  /** Called when batches that were known may be unpublished. */
  #forgetHanded(): void {
    this.#handed.forget();
    this.#mustRead = true;
  }

  async #takeLease(): Promise<boolean> {
    const taken = await this.#lease.acquire();
    if ((taken !== false) !== this.#active)
      this.#options.logger.info(taken ? 'this outbox relay is active' : 'this outbox relay is on standby');
    this.#active = taken !== false;
    // A relay that asks for the lease may have lost it. The next holder then publishes the unmarked
    // batches again, possibly after older ones were marked unpublished (republish.ts), so they must
    // not be marked now.
    this.#forgetUnmarked();
    if (taken && taken.formerEndedAt !== null) this.#stale?.takeOver(taken.formerEndedAt, this.#lateAt());
    return this.#active;
  }

  /** Publishes batches before any that is handed over meanwhile. Returns the number of messages, or 0 if the lease was lost. */
  async #publishFirst(batches: readonly OutboxBatch[]): Promise<number> {
    this.#inFlight = batches.map(({ batch_id }) => batch_id);
    const highest = this.#inFlight.at(-1) ?? 0n;
    if (highest > this.#last) this.#last = highest;
    try {
      const count = await this.#publish(batches);
      if (count === 0 && batches.length > 0) this.#forgetHanded();
      return count;
    } finally {
      this.#inFlight = [];
    }
  }

  async #publish(batches: readonly OutboxBatch[]): Promise<number> {
    const { source, topicName, observe, history } = this.#options;
    const ids = batches.map(({ batch_id }) => batch_id);
    const last = batches.at(-1);
    if (last === undefined || this.#stopping) return 0;
    // The position comes first: if any message of the chunk is written, the position of its batch is recorded.
    const position = history === undefined ? [] : [history.event(last)];
    const messages = [...position, ...batches.flatMap(({ events }) => events)].map((event) =>
      toPublishedEvent(event, source, topicName),
    );
    if (!this.#lease.held()) return 0;
    this.#publishing = { batch_id: String(batches[0]?.batch_id), events: messages.length };
    const begunAt = performance.now();
    try {
      for (let at = 0; at < messages.length; at += await this.#send(messages.slice(at, at + this.#pieceEvents))) {
        if (this.#lease.held()) continue;
        this.#stale?.add(batchRange(ids), 0);
        return 0;
      }
    } catch (error) {
      this.#stale?.add(batchRange(ids), this.#lateAt());
      throw error;
    }
    this.#unmarked.ids.push(...ids);
    this.#unmarked.events += messages.length;
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

  /** Returns when a message can no longer be written whose send has failed now. */
  #lateAt(): number {
    return performance.now() + this.#options.lateMs;
  }

  /** Leaves these batches to the next holder, which may have published newer ones before these were written. */
  #forgetUnmarked(): void {
    this.#stale?.add(batchRange(this.#unmarked.ids), 0);
    this.#unmarked = { ids: [], events: 0 };
    this.#forgetHanded();
  }

  #isMarkDue(): boolean {
    const { ids, events } = this.#unmarked;
    const isFull = events >= this.#options.maxEvents;
    return ids.length > 0 && (isFull || performance.now() >= this.#markedAt + putOffMs);
  }

  /** Returns false if the lease was lost: nothing is marked, and the unmarked batches are published again. */
  async #mark(): Promise<boolean> {
    const held = await this.#lease.mark(this.#unmarked.ids);
    this.#markedAt = performance.now();
    if (held) this.#unmarked = { ids: [], events: 0 };
    else
      this.#options.logger.warn(
        'the outbox relay lost its lease while publishing; another relay publishes these batches again',
      );
    return held;
  }

  /** If this fails, the lease ends by itself. */
  async #release(): Promise<void> {
    this.#active = false;
    await this.#lease
      .release(this.#stale?.isEmpty === false)
      .catch((error: unknown) => this.#options.logger.debug({ err: error }, 'releasing the lease failed'));
  }

  /** Returns how long to wait, in ms. */
  async #failed(error: unknown): Promise<number> {
    this.#forgetHanded();
    this.#failures += 1;
    const level = this.#failures % 10 === 0 ? 'error' : 'warn';
    this.#options.logger[level](
      { err: error, failures: this.#failures, from: this.#publishing },
      'publishing from the outbox failed; retrying',
    );
    this.#publishing = undefined;
    if (this.#failedSends >= maxFailedSends) {
      this.#failedSends = 0;
      this.#options.logger.warn('the outbox relay cannot publish and releases the lease for another one');
      await this.#release();
      return maxBackOffMs;
    }
    return Math.min(maxBackOffMs, 50 * 2 ** Math.min(this.#failures, 10));
  }

  /** Waits unless woken. After a failure, only stop ends the pause. */
  async #wait(ms: number): Promise<void> {
    if (this.#stopping || (this.#woken && this.#failures === 0)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endWait = () => {
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
    const { pool, retainMs } = this.#options;
    try {
      this.#stale?.sweep(await readSweep(pool, Math.min(maxSweepMs, retainMs / 2)));
      while (!this.#stopping && (await purge(pool, retainMs)));
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'purging the outbox failed');
    } finally {
      this.#purging = false;
    }
  }
}
