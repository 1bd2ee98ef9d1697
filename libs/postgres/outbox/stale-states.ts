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

interface Range {
  /** The last batch whose states were republished. */
  at: bigint;
  last: bigint;
  dueAt: number;
  /** The states that were republished since. */
  done: Set<string>;
  isSweep: boolean;
}

const eventsAtOnce = 2500;
const statesAtOnce = 500;
/** Beyond this, a state may be republished twice. */
const maxDone = 100_000;
/** The pause between pages, so that publishing and postings go on. */
const restMs = 25;
const stopMs = 2000;
/** How long after a failure the same range is tried again. */
const retryMs = 1000;

/**
 * Batches of the outbox of which a late copy may be, or become, the last record of a key in a compacted topic.
 * When no copy of them can be written any more, the current states of all their keys are published again.
 */
export class StaleStates {
  readonly #pool: Pool;
  readonly #states: States;
  readonly #logger: Logger;
  /**
   * By kind and the number before the first batch, because a chunk whose send fails again begins with the same
   * batch.
   */
  readonly #ranges = new Map<string, Range>();
  /** A takeover whose batches have not been looked up yet. */
  #takenOver: { endedAt: string; dueAt: number } | undefined;
  #running: Promise<void> | undefined;
  #endsAt = Infinity;

  constructor(pool: Pool, states: States, logger: Logger) {
    this.#pool = pool;
    this.#states = states;
    this.#logger = logger;
  }

  get isEmpty(): boolean {
    return this.#ranges.size === 0 && this.#takenOver === undefined;
  }

  /** Has the states of these batches republished at that time (performance.now). */
  add({ after, last }: BatchRange, dueAt: number, isSweep = false): void {
    const id = `${isSweep ? 'sweep' : 'doubt'} ${after}`;
    const known = this.#ranges.get(id) ?? { last, dueAt };
    const range = { last: last > known.last ? last : known.last, dueAt: Math.max(dueAt, known.dueAt) };
    if (last > after) this.#ranges.set(id, { ...range, at: after, done: new Set(), isSweep });
  }

  /**
   * Has the states of these batches republished when nothing else is due, except those that were only written again: each
   * sweep would otherwise republish what the sweeps before it wrote. A late copy is older than the last record only if a change
   * was written meanwhile, and that is swept.
   */
  sweep(range: BatchRange): void {
    this.add(range, 0, true);
  }

  /** The same for what a former holder of the lease, which ended at `endedAt`, may have been publishing. */
  takeOver(endedAt: string, dueAt: number): void {
    this.#takenOver = { endedAt: this.#takenOver?.endedAt ?? endedAt, dueAt };
  }

  /** Republishes what is due. Never fails: what could not be republished remains due. */
  republishDue(): Promise<void> {
    this.#running ??= this.#republish()
      .catch((error: unknown) => this.#logFailure(error))
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  /** Republishes what is due, for at most two seconds. */
  async stop(): Promise<void> {
    this.#endsAt = performance.now() + stopMs;
    await this.#running;
    await this.republishDue();
  }

  async #republish(): Promise<void> {
    while (performance.now() < this.#endsAt) {
      await this.#lookUpTakeover();
      const due = [...this.#ranges].filter(([, { dueAt }]) => dueAt <= performance.now());
      if (due.length === 0) return;
      // One page of each in turn, and of a sweep, which may take minutes, only if nothing else is due.
      const doubtful = due.filter(([, { isSweep }]) => !isSweep);
      for (const [id, range] of doubtful.length > 0 ? doubtful : due) {
        const isEnd = await this.#republishPage(range).catch((error: unknown) => {
          this.#logFailure(error);
          range.dueAt = performance.now() + retryMs;
          return false;
        });
        // A range to which something was added meanwhile remains.
        if (isEnd && this.#ranges.get(id) === range) this.#ranges.delete(id);
      }
      await sleep(restMs);
    }
  }

  async #lookUpTakeover(): Promise<void> {
    const taken = this.#takenOver;
    if (taken === undefined) return;
    this.add(await readDoubtful(this.#pool, taken.endedAt), taken.dueAt);
    if (this.#takenOver === taken) this.#takenOver = undefined;
  }

  #logFailure(error: unknown): void {
    this.#logger.warn({ err: error }, 'republishing the latest states failed; retrying');
  }

  /** Returns whether it was the last page. */
  async #republishPage(range: Range): Promise<boolean> {
    const { at, last, done, isSweep } = range;
    const batches = await readRange(this.#pool, { after: at, last }, eventsAtOnce);
    const names = new Map<string, StateName>();
    for (const { topic, key, isAgain } of batches.flatMap(({ events }) => events)) {
      if (isSweep && isAgain) continue;
      const name = `${topic} ${key}`;
      if (this.#states.topics.includes(topic) && !done.has(name)) names.set(name, { topic, key });
    }
    const all = [...names.values()];
    for (let i = 0; i < all.length; i += statesAtOnce) await this.#states.republish(all.slice(i, i + statesAtOnce));
    if (done.size > maxDone) done.clear();
    for (const name of names.keys()) done.add(name);
    range.at = batches.at(-1)?.batch_id ?? last;
    return range.at >= last;
  }
}
