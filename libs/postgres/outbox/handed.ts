import type { WrittenBatch } from './outbox.ts';
import { numbered } from './outbox-messages.ts';
import type { OutboxBatch } from './relay-read.ts';

/** The batches that a relay has published, or publishes before any other. It is valid until the relay forgets them. */
export interface Known {
  readonly ids: readonly bigint[];
  /** Identifies the time between two losses of them. */
  readonly period: object;
}

/**
 * The batches that this process committed and its relay publishes next, without reading them from the table.
 *
 * One fact makes this safe: the transaction of a batch holds the locks of its keys before it writes the batch, so all batches
 * that must precede it are committed, and visible to the statement that writes it. If that statement finds all of them
 * published, except for batches that this relay publishes first, the batch can follow these. In every other case the
 * relay reads the table.
 */
export class Handed {
  readonly #maxEvents: number;
  #batches: OutboxBatch[] = [];
  #events = 0;
  #period = {};

  /** No more are accepted while `maxEvents` events wait. */
  constructor(maxEvents: number) {
    this.#maxEvents = maxEvents;
  }

  /** Returns these published batches and those that wait. */
  known(published: readonly bigint[]): Known {
    return { ids: [...published, ...this.#batches.map(({ batch_id }) => batch_id)], period: this.#period };
  }

  /** Adds a committed batch. Returns false if it must be read from the table. */
  add({ batch_id, created_at, events, known, isNext }: WrittenBatch): boolean {
    const isLater = batch_id > (this.#batches.at(-1)?.batch_id ?? 0n);
    if (!isNext || !isLater || known.period !== this.#period || this.#events >= this.#maxEvents) return false;
    this.#batches.push({ batch_id, created_at, events: numbered(batch_id, events) });
    this.#events += events.length;
    return true;
  }

  /** Removes and returns the waiting batches, which are then published before all others. */
  take(): OutboxBatch[] {
    const taken = this.#batches;
    this.#batches = [];
    this.#events = 0;
    return taken;
  }

  /** Reports whether batches wait and their numbers follow this one. A read may find a batch before it is added here. */
  follow(last: bigint): boolean {
    const [first] = this.#batches;
    return first !== undefined && first.batch_id > last;
  }

  /** Called when batches that were known may remain unpublished: none that was written until now follows them without a read. */
  forget(): void {
    this.take();
    this.#period = {};
  }

  get isEmpty(): boolean {
    return this.#batches.length === 0;
  }
}
