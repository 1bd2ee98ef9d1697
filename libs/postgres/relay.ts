import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { createLease } from './lease.ts';
import type { Lease } from './lease.ts';
import { listen } from './listen.ts';
import type { Listener } from './listen.ts';
import { outboxChannel, wakeRelay } from './outbox.ts';
import { outboxStats, progress, purge, readChunk, start, toMessage } from './relay-read.ts';
import type { Cursor, OutboxRow, OutboxStats, OutgoingMessage } from './relay-read.ts';

export type { OutboxStats, OutgoingMessage } from './relay-read.ts';

export interface RelayOptions {
  /** Best a pool of its own (max 3), so that a busy service cannot starve the lease. */
  pool: Pool;
  /** publishAll resolves when all are acknowledged by all replicas, and never has two calls overtake each other. */
  publisher: { publishAll(messages: OutgoingMessage[], options: { timeoutMs: number }): Promise<void> };
  schema: string;
  /** The topic's name on the broker. */
  topicName: (topic: string) => string;
  /** ce_source. */
  source: string;
  logger: Logger;
  pollMs?: number;
  /** Chunks that are not full begin at least so far apart (default 4 ms): under load there are fewer and larger ones, which cost less. */
  paceMs?: number;
  publishTimeoutMs?: number;
  /** How many rows are read and published at once. */
  maxRows?: number;
  /** How long published rows are kept. */
  retainMs?: number;
}

const heartbeatMs = 800;
const purgeEveryMs = 5000;
const maxBackOffMs = 1000;

/**
 * Publishes what transactions wrote into the outbox: at least once (again with the same ce_id and the same bytes), in
 * order per key, marked only when every replica has it. Of all relays of one schema one is active at a time (lease.ts);
 * another takes over within leaseMs + pollMs of its death. Nothing is skipped: while the broker or the database is
 * away it tries again, at most a second apart. A message that the broker will never take (too large, no such partition)
 * therefore holds up all behind it: who writes into the outbox must rule that out; the log names the batch.
 * No lease can call back what was already handed to the publisher when a process froze: it may then come once more, late,
 * with its old ce_id.
 */
export class Relay {
  readonly #options: Required<RelayOptions>;
  readonly #lease: Lease;
  #stopping = false;
  #active = false;
  #woken = false;
  #endWait: () => void = () => undefined;
  #cursor: Cursor = start;
  /** What comes behind the chunk that is being published. */
  #ahead: Promise<OutboxRow[]> | undefined;
  #failures = 0;
  /** For the log: what a failure is about. Undefined where the database failed. */
  #publishing: { batch_id: string; rows: number } | undefined;
  #lastTurnAt = performance.now();
  #loop: Promise<void> = Promise.resolve();
  #listener: Listener | undefined;
  #timers: NodeJS.Timeout[] = [];
  #notifying: Promise<void> | undefined;
  #notifyAgain = false;
  #purging = false;

  constructor(options: RelayOptions) {
    this.#options = { pollMs: 500, paceMs: 4, publishTimeoutMs: 10_000, maxRows: 1000, retainMs: 60 * 60 * 1000, ...options };
    this.#lease = createLease(options.pool, randomUUID());
  }

  start(): void {
    const { pool, schema, logger } = this.#options;
    this.#listener = listen(pool, outboxChannel(schema), () => this.#wakeHere(), logger);
    this.#timers = [
      setInterval(() => void this.#heartbeat(), heartbeatMs), setInterval(() => void this.#purge(), purgeEveryMs),
    ];
    this.#loop = this.#run();
  }

  /** Ends after the chunk in flight (bounded by its time-outs) and lets another relay take over at once. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#timers.forEach((timer) => clearInterval(timer));
    this.#endWait();
    await this.#loop;
    await this.#listener?.stop();
    await this.#notifying;
    if (this.#active) await this.#lease.release().catch(() => undefined);
    this.#active = false;
  }

  /** Call after each commit that wrote into the outbox. Never waits; many calls become one. */
  wake(): void {
    if (this.#active) this.#wakeHere();
    else this.#notifyOthers();
  }

  /** False where the loop itself hangs. A broker or database that is away is no reason to restart the process. */
  health(): { ok: boolean; reason?: string } {
    const silentMs = performance.now() - this.#lastTurnAt;
    const hung = silentMs > 2 * this.#options.publishTimeoutMs + 15_000;
    return hung ? { ok: false, reason: `the outbox relay has not turned for ${Math.round(silentMs)} ms` } : { ok: true };
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
      const begunAt = performance.now();
      const pauseMs = await this.#turn(begunAt).catch((error: unknown) => this.#failed(error));
      this.#lastTurnAt = performance.now();
      if (pauseMs > 0) await this.#wait(pauseMs, this.#failures === 0);
    }
  }

  /** One chunk. Returns how long to wait for a wake before the next. */
  async #turn(begunAt: number): Promise<number> {
    const { pool, maxRows, pollMs, paceMs } = this.#options;
    if (!this.#lease.held() && !(await this.#takeLease())) return pollMs;
    const isRest = this.#cursor !== start;
    const ahead = this.#ahead;
    this.#ahead = undefined;
    const rows = await (ahead ?? readChunk(pool, this.#cursor, maxRows));
    // There is more: read while this is published.
    if (rows.length === maxRows) this.#readAhead(rows);
    if (rows.length > 0) await this.#publish(rows);
    else this.#startOver();
    this.#failures = 0;
    if (rows.length === maxRows || isRest) return 0;
    const restMs = begunAt + paceMs - performance.now();
    if (rows.length > 0 && restMs > 0) await sleep(restMs);
    // Whatever commits behind this read wakes.
    return pollMs;
  }

  async #takeLease(): Promise<boolean> {
    const taken = await this.#lease.acquire();
    if (taken !== this.#active) this.#options.logger.info(taken ? 'this outbox relay publishes' : 'this outbox relay stands by');
    this.#active = taken;
    this.#startOver();
    return taken;
  }

  #readAhead(rows: OutboxRow[]): void {
    const { complete, next } = progress(rows);
    this.#ahead = readChunk(this.#options.pool, next, this.#options.maxRows, complete);
    this.#ahead.catch(() => undefined);
  }

  /** What is not marked is read again, in its order. */
  #startOver(): void {
    this.#cursor = start;
    this.#ahead = undefined;
  }

  async #publish(rows: OutboxRow[]): Promise<void> {
    const { publisher, source, topicName, publishTimeoutMs, logger } = this.#options;
    const messages = rows.map((row) => toMessage(row, source, topicName));
    if (this.#stopping || !this.#lease.held()) return;
    this.#publishing = { batch_id: String(rows[0]?.batch_id), rows: rows.length };
    await publisher.publishAll(messages, { timeoutMs: publishTimeoutMs });
    this.#publishing = undefined;
    const { complete, next } = progress(rows);
    const marked = await this.#lease.mark(complete);
    this.#cursor = next;
    if (marked) return;
    this.#startOver();
    logger.warn('the outbox relay lost its lease while it published; another publishes these again');
  }

  #failed(error: unknown): number {
    this.#failures += 1;
    this.#startOver();
    const level = this.#failures % 10 === 0 ? 'error' : 'warn';
    this.#options.logger[level]({ err: error, failures: this.#failures, from: this.#publishing }, 'publishing from the outbox failed; trying again');
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

  #wakeHere(): void {
    if (!this.#active) return;
    this.#woken = true;
    this.#endWait();
  }

  /** NOTIFY for the relay of another process: one on the way, at most one more behind it. */
  #notifyOthers(): void {
    if (this.#notifying !== undefined) {
      this.#notifyAgain = true;
      return;
    }
    const { pool, schema } = this.#options;
    this.#notifying = wakeRelay(pool, schema)
      .catch(() => undefined)
      .then(() => {
        this.#notifying = undefined;
        if (this.#notifyAgain && !this.#stopping) this.#notifyOthers();
        this.#notifyAgain = false;
      });
  }

  /** Keeps the lease while a chunk takes long or nothing is to be done. */
  async #heartbeat(): Promise<void> {
    if (!this.#active || !this.#lease.held()) return;
    await this.#lease.mark([]).catch((error: unknown) => this.#options.logger.debug({ err: error }, 'heartbeat failed'));
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
