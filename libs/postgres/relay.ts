import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { EncodedMessage } from '#libs/contracts/record.ts';
import { type CommittedBatch, Handover } from './handover.ts';
import { createLease, putOffMs } from './lease.ts';
import type { Lease } from './lease.ts';
import { listen } from './listen.ts';
import type { Listener } from './listen.ts';
import { Notifier } from './notify.ts';
import { outboxChannel } from './outbox.ts';
import { giveToDebezium } from './outbox-events.ts';
import { chunkOf, outboxStats, probe, purge, readChunk } from './relay-read.ts';
import type { Chunk, OutboxStats } from './relay-read.ts';

export type { OutboxStats } from './relay-read.ts';

export interface RelayOptions {
  /** Best a pool of its own (max 3), so that a busy service cannot starve the lease. */
  pool: Pool;
  /** publishAll resolves when all are acknowledged by all replicas, and never has two calls overtake each other. */
  publisher: { publishAll(messages: EncodedMessage[], options: { timeoutMs: number }): Promise<void> };
  schema: string;
  /** The topic's name on the broker. */
  topicName: (topic: string) => string;
  /** ce_source of what versions before have written (outbox-messages.ts). */
  source: string;
  logger: Logger;
  /** How often the lease is kept, and the table looked at; at most 1 s (lease.ts), which is the default. */
  pollMs?: number;
  /** Chunks that are not full begin at least so far apart (default 4 ms): under load there are fewer and larger ones, which cost less. */
  paceMs?: number;
  publishTimeoutMs?: number;
  /** How many events are read and published at once, to the next end of a batch. */
  maxEvents?: number;
  /** How long published events are kept, to be replayed from. */
  retainMs?: number;
  /** Topics whose events Debezium publishes: they are put where it finds them (outbox-events.ts), and marked like others. */
  isDebeziums?: (topic: string) => boolean;
  /** Told of what every replica has now; `begunAt` (performance.now) is when it was handed to the publisher. */
  observe?: (messages: readonly EncodedMessage[], begunAt: number) => void;
}

/** The loop turns as often with nothing to do: what waits, the heartbeat tells it. */
const idleMs = 5000;
const purgeEveryMs = 5000;
const maxBackOffMs = 1000;
/** How often one that stands by asks for the lease. */
const standbyMs = 500;

/**
 * Publishes what transactions wrote into the outbox: at least once (again with the same ce_id and the same bytes), in
 * order per key, marked only when every replica has it. Of all relays of one schema one is active at a time (lease.ts);
 * another takes over within leaseMs + standbyMs of its death. Nothing is skipped: while the broker or the database is
 * away it tries again, at most a second apart. A message that the broker will never take (too large, no such partition)
 * therefore holds up all behind it: who writes into the outbox must rule that out; the log names the batch.
 * No lease can call back what was already handed to the publisher when a process froze: it may then come once more, late,
 * with its old ce_id.
 */
export class Relay {
  readonly #options: Required<RelayOptions>;
  readonly #lease: Lease;
  readonly #notifier: Notifier;
  #stopping = false;
  #active = false;
  #woken = false;
  #endWait: () => void = () => undefined;
  readonly #handover = new Handover();
  /** When the table was read last: at the latest after pollMs it is read again, whatever is handed over. */
  #readAt = -Infinity;
  /** What comes behind the chunk that is being published. */
  #ahead: Promise<Chunk> | undefined;
  #failures = 0;
  /** For the log: what a failure is about. Undefined where the database failed. */
  #publishing: { batch_id: string; events: number } | undefined;
  #lastTurnAt = performance.now();
  #loop: Promise<void> = Promise.resolve();
  #listener: Listener | undefined;
  #timers: NodeJS.Timeout[] = [];
  #purging = false;

  constructor(options: RelayOptions) {
    this.#options = { pollMs: 1000, paceMs: 4, publishTimeoutMs: 10_000, maxEvents: 2500, retainMs: 60 * 60 * 1000, isDebeziums: () => false, observe: () => undefined, ...options };
    this.#lease = createLease(options.pool, randomUUID());
    this.#notifier = new Notifier(options.pool, options.schema);
  }

  start(): void {
    const { pool, schema, logger } = this.#options;
    this.#listener = listen(pool, outboxChannel(schema), () => { if (this.#active) this.wake(); }, logger);
    this.#timers = [
      setInterval(() => void this.#heartbeat(), this.#options.pollMs), setInterval(() => void this.#purge(), purgeEveryMs),
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
    await this.#notifier.stop();
    if (this.#active) await this.#lease.release().catch(() => undefined);
    this.#active = false;
  }

  /** Call after each commit that wrote into the outbox, best with what it wrote. Never waits; many calls become one. */
  wake(batch?: CommittedBatch): void {
    if (!this.#active) return this.#notifier.notify();
    if (batch) this.#handover.offer(batch);
    else this.#readAt = -Infinity;
    this.#woken = true;
    this.#endWait();
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
    const { maxEvents, pollMs, paceMs } = this.#options;
    if (!this.#lease.held() && !(await this.#takeLease())) return Math.min(standbyMs, pollMs);
    const mayTake = begunAt < this.#readAt + pollMs && !this.#ahead;
    const handed = mayTake ? this.#handover.take(maxEvents) : [];
    const count = handed.length > 0 ? await this.#publish(chunkOf(handed, this.#options)) : await this.#relayRead(begunAt);
    this.#failures = 0;
    if (count >= maxEvents) return 0;
    const restMs = begunAt + paceMs - performance.now();
    if (count > 0 && restMs > 0) await sleep(restMs);
    // Whatever commits behind this wakes.
    return this.#lease.owed().length > 0 ? putOffMs : idleMs;
  }

  /** What the table holds, in chunks. Returns how many events were read. */
  async #relayRead(begunAt: number): Promise<number> {
    const { pool, maxEvents } = this.#options;
    const ahead = this.#ahead;
    this.#ahead = undefined;
    if (ahead === undefined) {
      if (this.#lease.owed().length > 0 && !(await this.#mark())) return 0;
      this.#readAt = begunAt;
      if (this.#handover.isUncertain) this.#handover.probed(await probe(pool));
    }
    const chunk = await (ahead ?? this.#read([]));
    // There is more: read while this is published.
    if (chunk.count >= maxEvents) this.#readAhead(chunk.ids);
    if (chunk.count > 0 && (await this.#publish(chunk)) > 0) this.#handover.published(chunk.ids);
    if (chunk.count < maxEvents) this.#handover.drained();
    return chunk.count;
  }

  async #takeLease(): Promise<boolean> {
    const taken = await this.#lease.acquire();
    if (taken !== this.#active) this.#options.logger.info(taken ? 'this outbox relay publishes' : 'this outbox relay stands by');
    this.#active = taken;
    this.#startOver();
    return taken;
  }

  async #read(underWay: bigint[]): Promise<Chunk> {
    return chunkOf(await readChunk(this.#options.pool, this.#options.source, this.#options.maxEvents, underWay), this.#options);
  }

  #readAhead(underWay: bigint[]): void {
    this.#ahead = this.#read([...this.#lease.owed(), ...underWay]);
    this.#ahead.catch(() => undefined);
  }

  /** What is not marked is read again, in its order. */
  #startOver(): 0 {
    this.#ahead = undefined;
    this.#handover.reset();
    return 0;
  }

  /** Publishes, and marks at once or soon. Returns how many events; 0 where the lease was lost. */
  async #publish({ ids, count, messages, debeziums }: Chunk): Promise<number> {
    const { pool, publisher, publishTimeoutMs, observe } = this.#options;
    if (this.#stopping || !this.#lease.held()) return this.#startOver();
    this.#publishing = { batch_id: String(ids[0]), events: count };
    await giveToDebezium(pool, debeziums);
    const begunAt = performance.now();
    await publisher.publishAll(messages, { timeoutMs: publishTimeoutMs });
    this.#publishing = undefined;
    observe(messages, begunAt);
    return this.#lease.putOff(ids) || (await this.#mark()) ? count : 0;
  }

  /** False where the lease was lost. */
  async #mark(): Promise<boolean> {
    if (await this.#lease.mark()) return true;
    this.#options.logger.warn('the outbox relay lost its lease while it published; another publishes these again');
    this.#startOver();
    return false;
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

  /** Keeps the lease while a chunk takes long or nothing is to be done, and turns the loop where something waits. */
  async #heartbeat(): Promise<void> {
    if (!this.#active) return;
    try {
      const askedAt = performance.now();
      if (!this.#lease.held() || (await this.#lease.beat()) || !this.#lease.held()) this.wake();
      // As good as a read of the table, unless one is asked for meanwhile.
      else if (this.#readAt > -Infinity) this.#readAt = askedAt;
    } catch (error) {
      this.#options.logger.debug({ err: error }, 'heartbeat failed');
    }
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
