import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { History } from './history.ts';
import type { Lease } from './lease.ts';
import { createLease } from './lease.ts';
import type { Listener } from './listen.ts';
import { listen } from './listen.ts';
import { Notifier } from './notify.ts';
import { outboxChannel } from './outbox.ts';
import { messageOf, type PublishedEvent } from './outbox-messages.ts';
import type { OutboxStats, UnpublishedBatch } from './relay-read.ts';
import { outboxStats, purge, readUnpublished } from './relay-read.ts';

export interface RelayOptions {
  /** Best a pool of its own (max 3), so that a busy service cannot starve the lease, with lookupPlans (pool.ts). */
  pool: Pool;
  /** publishAll resolves when all are acknowledged by all replicas, and never has two calls overtake each other. */
  publisher: { publishAll(messages: PublishedEvent[], options: { timeoutMs: number }): Promise<void> };
  schema: string;
  /** The topic's name on the broker. */
  topicName: (topic: string) => string;
  /** ce_source of everything. */
  source: string;
  logger: Logger;
  /**
   * How often the lease is kept, and the table looked at without a wake; at most 1 s (lease.ts),
   * which is the default.
   */
  pollMs?: number;
  /**
   * Chunks that are not full begin at least so far apart (default 4 ms): under load there are fewer
   * and larger ones, which cost less.
   */
  paceMs?: number;
  publishTimeoutMs?: number;
  /** How many events are read and published at once, to the next end of a batch. */
  maxEvents?: number;
  /** How long published events are kept. */
  retainMs?: number;
  /**
   * Writes the latest states that these messages tell of into the outbox again. Called with what
   * may have been written, or may still be, behind newer messages: by a relay that had lost its
   * lease. Needed where a topic is compacted.
   */
  restate?: (messages: readonly PublishedEvent[]) => Promise<void>;
  /** Where it is given, every chunk is published with the number of its last batch (history.ts). */
  history?: Pick<History, 'event'>;
  /**
   * Called with the events that every replica has now; `begunAt` (performance.now) is when it was
   * passed to the publisher.
   */
  observe?: (messages: readonly PublishedEvent[], begunAt: number) => void;
}

const purgeEveryMs = 5000;
const maxBackOffMs = 1000;
/** How often one that stands by asks for the lease. */
const standbyMs = 500;
/** How long after a takeover the former holder is expected to send what it was publishing, if it does at all. */
const lateMs = 60_000;
/** How long, and for how many batches, marks are put off: each mark is a transaction of its own. */
const putOffMs = 50;
const maxPutOff = 1000;

/**
 * Publishes what transactions wrote into the outbox: at least once (again with the same ce_id and the same bytes), in
 * order per key, marked only when every replica has it.
 *
 * Order rests on one fact: batch_id is drawn while the transaction holds the locks that order its
 * keys (outbox.ts). So a batch that no read can see yet belongs to a transaction that still holds
 * its locks, and no later batch of the same keys can have been committed. Whatever one read of the
 * table finds unpublished may be published in the order of batch_id.
 *
 * Of all relays of one schema one is active at a time (lease.ts); another takes over within leaseMs + standbyMs of its
 * death. Nothing is skipped: while the broker or the database is away it tries again, at most a second apart. A message
 * that the broker will never take (too large, no such partition) therefore holds up all behind it: who writes into the
 * outbox must rule that out; the log names the batch.
 *
 * No lease can call back what was already passed to the publisher when a process froze: it may then
 * come once more, late, with its old ce_id, behind newer messages of its key. So the latest states
 * are published again (restate): by who finds that it had no lease any more when its publication
 * ended, and a minute after a takeover from a holder that fell silent.
 */
export class Relay {
  readonly #options: Required<Omit<RelayOptions, 'history'>> & Pick<RelayOptions, 'history'>;
  readonly #lease: Lease;
  readonly #notifier: Notifier;
  #stopping = false;
  #active = false;
  #woken = false;
  #endWait: () => void = () => undefined;
  /** Published and not marked yet: left out of every read by name, since a lower number may still be committed. */
  #unmarked: bigint[] = [];
  /** May have been written behind newer messages, and is to be restated. */
  #late: PublishedEvent[] = [];
  #isTakeover = false;
  #markedAt = 0;
  /** How many events are passed to the publisher at once. */
  #pieceEvents: number;
  #failures = 0;
  /** For the log: what a failure is about. Undefined where the database failed. */
  #publishing: { batch_id: string; events: number } | undefined;
  /** Undefined until it is started, which waits for brokers for as long as they are away. */
  #lastTurnAt: number | undefined;
  #loop: Promise<void> = Promise.resolve();
  #listener: Listener | undefined;
  #timers: NodeJS.Timeout[] = [];
  #purging = false;

  constructor(options: RelayOptions) {
    const defaults = { pollMs: 1000, paceMs: 4, publishTimeoutMs: 10_000, maxEvents: 2500, retainMs: 60 * 60 * 1000 };
    this.#options = { ...defaults, observe: () => undefined, restate: async () => undefined, ...options };
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

  /** Ends after the chunk in flight (bounded by its time-outs) and lets another relay take over at once. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#timers.forEach((timer) => clearInterval(timer));
    this.#endWait();
    await this.#loop;
    await this.#listener?.stop();
    await this.#notifier.stop();
    if (this.#active) await this.#lease.release(this.#unmarked).catch(() => undefined);
    this.#active = false;
  }

  /** Call after each commit that wrote into the outbox. Never waits; many calls become one. */
  wake(): void {
    if (!this.#active) return this.#notifier.notify();
    this.#woken = true;
    this.#endWait();
  }

  /** False where the loop itself hangs. A broker or database that is away is no reason to restart the process. */
  health(): { ok: boolean; reason?: string } {
    const silentMs = performance.now() - (this.#lastTurnAt ?? performance.now());
    const hung = silentMs > 2 * this.#options.publishTimeoutMs + 15_000;
    return hung
      ? { ok: false, reason: `the outbox relay has not turned for ${Math.round(silentMs)} ms` }
      : { ok: true };
  }

  /** True while this relay is the one that publishes. */
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

  /** One chunk. Returns how long to wait for a wake before the next. */
  async #turn(): Promise<number> {
    const { pool, maxEvents, pollMs, paceMs } = this.#options;
    const begunAt = performance.now();
    await this.#restateLate();
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
      this.#options.logger.info(taken ? 'this outbox relay publishes' : 'this outbox relay stands by');
    this.#active = taken !== false;
    // Who asks for the lease may have lost it. Then what was published is the next holder's to
    // publish again, behind what is older (republish.ts): marked by its number now, it would never
    // come.
    this.#unmarked = [];
    if (taken) this.#isTakeover ||= taken.isFromSilent;
    return this.#active;
  }

  /** Returns how many events; 0 where the lease was lost before. */
  async #publish(batches: readonly UnpublishedBatch[]): Promise<number> {
    const { source, topicName, observe, history } = this.#options;
    const last = batches.at(-1);
    if (last === undefined || this.#stopping) return 0;
    // First the position: whatever of the chunk is written, it is said that the batch was committed.
    const position = history === undefined ? [] : [history.event(last)];
    const messages = [...position, ...batches.flatMap(({ events }) => events)].map((event) =>
      messageOf(event, source, topicName),
    );
    if (!this.#lease.held()) return 0;
    this.#publishing = { batch_id: String(batches[0]?.batch_id), events: messages.length };
    const begunAt = performance.now();
    if (this.#isTakeover) this.#timers.push(setTimeout(() => this.#late.push(...messages), lateMs));
    this.#isTakeover = false;
    try {
      for (let at = 0; at < messages.length; at += await this.#send(messages.slice(at, at + this.#pieceEvents))) {
        if (!this.#lease.held()) return 0;
      }
    } finally {
      if (!this.#lease.held()) this.#late.push(...messages);
    }
    this.#unmarked.push(...batches.map(({ batch_id }) => batch_id));
    observe(messages.slice(position.length), begunAt);
    return messages.length;
  }

  /**
   * One piece of a chunk. Where the broker takes too long for it, the next are half as large; they
   * grow again slowly.
   */
  async #send(piece: PublishedEvent[]): Promise<number> {
    const { publisher, publishTimeoutMs: timeoutMs } = this.#options;
    const begunAt = performance.now();
    try {
      await publisher.publishAll(piece, { timeoutMs });
      this.#pieceEvents = Math.min(100_000, this.#pieceEvents + Math.ceil(this.#pieceEvents / 8));
      return piece.length;
    } catch (error) {
      if (performance.now() - begunAt >= timeoutMs) this.#pieceEvents = Math.ceil(piece.length / 2);
      throw error;
    }
  }

  async #restateLate(): Promise<void> {
    if (this.#late.length === 0) return;
    const count = this.#late.length;
    await this.#options.restate(this.#late.slice());
    this.#late = this.#late.slice(count);
    // Whoever publishes now publishes these.
    this.#notifier.notify();
  }

  #isMarkDue(): boolean {
    return (
      this.#unmarked.length > 0 && (this.#unmarked.length > maxPutOff || performance.now() >= this.#markedAt + putOffMs)
    );
  }

  /** False where the lease was lost: then nothing is marked, and what is not marked is published again. */
  async #mark(): Promise<boolean> {
    const held = await this.#lease.mark(this.#unmarked);
    this.#unmarked = [];
    this.#markedAt = performance.now();
    if (!held)
      this.#options.logger.warn('the outbox relay lost its lease while it published; another publishes these again');
    return held;
  }

  #failed(error: unknown): number {
    this.#failures += 1;
    const level = this.#failures % 10 === 0 ? 'error' : 'warn';
    this.#options.logger[level](
      { err: error, failures: this.#failures, from: this.#publishing },
      'publishing from the outbox failed; trying again',
    );
    this.#publishing = undefined;
    return Math.min(maxBackOffMs, 50 * 2 ** Math.min(this.#failures, 10));
  }

  /** Waits, unless woken meanwhile; a back-off is only ended by stop. */
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

  /** Keeps the lease while a chunk takes long or nothing is to be done. */
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

export function createRelay(options: RelayOptions): Relay {
  return new Relay(options);
}
