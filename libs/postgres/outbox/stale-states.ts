import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { OutboxEvent } from './outbox.ts';
import { type BatchRange, readDoubtful, readRange } from './relay-read.ts';

/** A record of a compacted topic: the latest state of something. */
export type StateName = Pick<OutboxEvent, 'topic' | 'key'>;

export interface States {
  /** The compacted topics, without prefix. */
  topics: readonly string[];
  /** Writes the current states of at most 500 names to the outbox, with the locks that order their keys. */
  republish(names: readonly StateName[]): Promise<unknown>;
}

const eventsAtOnce = 2500;
const statesAtOnce = 500;
/** How many names are remembered in order not to republish a state twice. */
const maxNames = 100_000;
/** The pause between pages, so that publishing and postings go on. */
const restMs = 25;

/**
 * Batches of the outbox of which a late copy may be, or become, the last record of a key in a compacted topic.
 * When no copy of them can be written any more, the current states of all their keys are published again.
 */
export class StaleStates {
  readonly #pool: Pool;
  readonly #states: States | undefined;
  readonly #wake: () => void;
  readonly #logger: Logger;
  /** By the number before the first batch, because a chunk whose send fails again begins with the same batch. */
  readonly #ranges = new Map<bigint, { last: bigint; dueAt: number }>();
  /** A takeover whose batches have not been looked up yet. */
  #takenOver: { endedAt: string; dueAt: number } | undefined;
  #running: Promise<void> | undefined;

  constructor(pool: Pool, states: States | undefined, wake: () => void, logger: Logger) {
    this.#pool = pool;
    this.#states = states;
    this.#wake = wake;
    this.#logger = logger;
  }

  get isEmpty(): boolean {
    return this.#ranges.size === 0 && this.#takenOver === undefined;
  }

  /** Has the states of these batches republished after `delayMs`. */
  add(batches: BatchRange, delayMs: number): void {
    this.#add(batches, performance.now() + delayMs);
  }

  /** The same for what a former holder of the lease, which ended at that time, may have been publishing. */
  takeOver(endedAt: string, delayMs: number): void {
    if (this.#states === undefined) return;
    this.#takenOver = { endedAt: this.#takenOver?.endedAt ?? endedAt, dueAt: performance.now() + delayMs };
  }

  #add({ after, last }: BatchRange, dueAt: number): void {
    if (this.#states === undefined || last <= after) return;
    const known = this.#ranges.get(after) ?? { last, dueAt };
    this.#ranges.set(after, { last: last > known.last ? last : known.last, dueAt: Math.max(dueAt, known.dueAt) });
  }

  /** Republishes what is due. Never fails: what could not be republished remains due. */
  republishDue(): Promise<void> {
    this.#running ??= this.#republish()
      .catch((error: unknown) => this.#logger.warn({ err: error }, 'republishing the latest states failed; retrying'))
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  async #republish(): Promise<void> {
    const taken = this.#takenOver;
    if (taken !== undefined) {
      this.#add(await readDoubtful(this.#pool, taken.endedAt), taken.dueAt);
      if (this.#takenOver === taken) this.#takenOver = undefined;
    }
    for (const [after, range] of this.#ranges) {
      if (range.dueAt > performance.now()) continue;
      await this.#republishRange({ after, last: range.last });
      // A range to which something was added meanwhile remains.
      if (this.#ranges.get(after) === range) this.#ranges.delete(after);
    }
  }

  async #republishRange({ after, last }: BatchRange): Promise<void> {
    const { topics = [], republish } = this.#states ?? {};
    const done = new Set<string>();
    for (let at = after; ; await sleep(restMs)) {
      const batches = await readRange(this.#pool, { after: at, last }, eventsAtOnce);
      const names = new Map<string, StateName>();
      for (const { topic, key } of batches.flatMap(({ events }) => events)) {
        const name = `${topic} ${key}`;
        if (topics.includes(topic) && !done.has(name)) names.set(name, { topic, key });
      }
      const all = [...names.values()];
      for (let i = 0; i < all.length; i += statesAtOnce) {
        await republish?.(all.slice(i, i + statesAtOnce));
        this.#wake();
      }
      const newest = batches.at(-1);
      if (newest === undefined) return;
      if (done.size > maxNames) done.clear();
      for (const name of names.keys()) done.add(name);
      at = newest.batch_id;
    }
  }
}
