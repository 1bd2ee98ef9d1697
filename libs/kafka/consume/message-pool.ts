import type { Logger } from 'pino';
import type { Assignment } from './consumer-session.ts';
import type { BatchPayload } from './fetched-messages.ts';
import { OffsetTracker } from './offset-tracker.ts';
import type { Chunk } from './offset-tracker.ts';
import type { FetchedMessage, ReceivedMessage } from './received-message.ts';
import { createBackoff, pause, withTimeout } from '../wait.ts';

export type Handle = (messages: ReceivedMessage[], context: { assigned: Assignment[] }) => Promise<void>;

export interface PoolOptions {
  handle: Handle;
  maxBatch: number;
  concurrency: number;
  heartbeatMs: number;
  logger: Logger;
}

/** One partition's messages of one fetch: kafkajs waits for `settled` before it fetches again. */
interface Lot {
  payload: BatchPayload;
  taken: number;
  handled: number;
  settled: PromiseWithResolvers<void>;
}

interface Batch {
  messages: ReceivedMessage[];
  parts: { lot: Lot; count: number; chunk: Chunk }[];
}

/** What ends with an assignment: its lots, its offsets, the retries of its messages. Lots are few and brief: no Set (short-lived-map.ts). */
interface Tenure {
  assigned: Assignment[];
  lots: Lot[];
  waiting: Lot[];
  tracker: OffsetTracker;
  over: AbortController;
  /** Set when the group rebalances: what comes in is sent back with it, so that kafkajs joins again. */
  lost: unknown;
  payload: BatchPayload | undefined;
  committing: Promise<unknown>;
}

const commitIntervalMs = 500;
const lastCommitTimeoutMs = 2_000;
const goneTypes = new Set(['REBALANCE_IN_PROGRESS', 'NOT_COORDINATOR_FOR_GROUP', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);

/**
 * Pours the messages of all partitions into one stream of batches, and keeps the promises of consume:
 * in order per partition, never skipped, offsets committed only after handle has resolved.
 */
export class MessagePool {
  readonly #options: PoolOptions;
  #active: Promise<void>[] = [];
  #tenure = newTenure([]);
  #scheduled = false;
  #stopping = false;
  #beats: NodeJS.Timeout | undefined;
  #commits: NodeJS.Timeout | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  get assigned(): Assignment[] {
    return this.#tenure.assigned;
  }

  join(assigned: Assignment[]): void {
    this.#tenure = newTenure(assigned);
  }

  /** What was held is held no more: nothing of it is started or repeated from here on, nothing committed but by this call. */
  lose(mayCommit: boolean): void {
    const tenure = this.#tenure;
    if (mayCommit) void this.#commit(tenure);
    tenure.over.abort();
    tenure.waiting.length = 0;
    for (const lot of tenure.lots) lot.settled.resolve();
    tenure.lots = [];
    this.#tenure = newTenure([]);
    clearInterval(this.#beats);
    clearTimeout(this.#commits);
    this.#beats = undefined;
    this.#commits = undefined;
  }

  /** kafkajs' eachBatch: resolves when the messages are handled (concurrency 1) or all under way (more). */
  add(payload: BatchPayload): Promise<void> {
    const tenure = this.#tenure;
    if (tenure.lost) return Promise.reject(tenure.lost);
    const lot: Lot = { payload, taken: 0, handled: 0, settled: Promise.withResolvers() };
    tenure.payload = payload;
    tenure.lots.push(lot);
    tenure.waiting.push(lot);
    this.#beats ??= setInterval(() => void this.#beat(this.#tenure), this.#options.heartbeatMs / 2);
    this.#schedule();
    return lot.settled.promise;
  }

  /** Finishes what handle is at, commits, and starts nothing more. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#tenure.over.abort();
    await Promise.allSettled(this.#active);
    await withTimeout(this.#commit(this.#tenure), lastCommitTimeoutMs, 'committing').catch(() => undefined);
  }

  /** Waits one turn of the event loop, so that all partitions of a fetch land in one batch. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#active.length < this.#options.concurrency && this.#pump());
    });
  }

  #pump(): boolean {
    const tenure = this.#tenure;
    if (this.#stopping || tenure.over.signal.aborted) return false;
    const batch = this.#take(tenure);
    if (batch.messages.length === 0) return false;
    const run = this.#run(batch, tenure).finally(() => {
      this.#active = this.#active.filter((one) => one !== run);
      this.#schedule();
    });
    this.#active.push(run);
    return true;
  }

  #take(tenure: Tenure): Batch {
    const batch: Batch = { messages: [], parts: [] };
    const { waiting, tracker } = tenure;
    while (waiting.length > 0 && batch.messages.length < this.#options.maxBatch) {
      const lot = waiting[0] as Lot;
      const { topic, partition, messages } = lot.payload.batch;
      const count = Math.min(messages.length - lot.taken, this.#options.maxBatch - batch.messages.length);
      for (let i = lot.taken; i < lot.taken + count; i++) batch.messages.push((messages[i] as FetchedMessage).received(topic, partition));
      lot.taken += count;
      const isLast = lot.taken === messages.length;
      const lastOffset = isLast ? lot.payload.batch.lastOffset() : (messages[lot.taken - 1] as FetchedMessage).offset;
      batch.parts.push({ lot, count, chunk: tracker.begin(topic, partition, lastOffset + 1n) });
      if (!isLast) break;
      waiting.shift();
      // With several calls at once, a slow one must not hold up the next fetch.
      if (this.#options.concurrency > 1) settle(tenure, lot);
    }
    return batch;
  }

  async #run(batch: Batch, tenure: Tenure): Promise<void> {
    const { handle, logger } = this.#options;
    const backoff = createBackoff(100, 2_000);
    for (let attempt = 1; ; attempt++) {
      try {
        await handle(batch.messages, { assigned: tenure.assigned });
        break;
      } catch (error) {
        logger.error({ err: error, attempt, messages: batch.messages.length }, 'handling failed; the same messages are tried again');
        await pause(backoff.next(), tenure.over.signal);
        if (tenure.over.signal.aborted) return;
      }
    }
    for (const { lot, count, chunk } of batch.parts) {
      tenure.tracker.done(chunk);
      lot.handled += count;
      if (lot.handled === lot.payload.batch.messages.length) settle(tenure, lot);
    }
    this.#commitSoon(tenure);
  }

  /** What was handled meanwhile is committed together. */
  #commitSoon(tenure: Tenure): void {
    if (tenure !== this.#tenure) return;
    this.#commits ??= setTimeout(() => {
      this.#commits = undefined;
      void this.#commit(tenure);
    }, commitIntervalMs);
  }

  /** Keeps the membership while handle takes long; learns here that the group rebalances. */
  async #beat(tenure: Tenure): Promise<void> {
    if (tenure.lots.length === 0 || !tenure.payload) {
      clearInterval(this.#beats);
      this.#beats = undefined;
      return;
    }
    try {
      await tenure.payload.heartbeat();
    } catch (error) {
      if (!goneTypes.has((error as { type?: string }).type ?? '')) {
        this.#options.logger.debug({ err: error }, 'a heartbeat failed');
      } else if (!tenure.lost) {
        await this.#handOver(tenure, error);
      }
    }
  }

  /** The group rebalances: finish what runs, commit it, and let kafkajs join again. The rest is read again by its new holder. */
  async #handOver(tenure: Tenure, error: unknown): Promise<void> {
    tenure.lost = error;
    tenure.over.abort();
    tenure.waiting.length = 0;
    await Promise.allSettled(this.#active);
    await this.#commit(tenure);
    for (const lot of tenure.lots) lot.settled.reject(error);
    tenure.lots = [];
  }

  /** Commits what is due. The request is on its way when this returns, unless nothing is due. */
  #commit(tenure: Tenure): Promise<unknown> {
    const positions = tenure.payload ? tenure.tracker.takeDirty() : [];
    if (positions.length === 0) return tenure.committing;
    // One after the other is not needed for order: the requests share a connection.
    tenure.committing = Promise.all([tenure.committing, this.#commitNow(tenure, positions)]).then(() => undefined);
    return tenure.committing;
  }

  async #commitNow(tenure: Tenure, positions: ReturnType<OffsetTracker['takeDirty']>): Promise<void> {
    const topics = Map.groupBy(positions, ({ topic }) => topic);
    try {
      await tenure.payload?.commitOffsetsIfNecessary({
        topics: [...topics].map(([topic, list]) => ({ topic, partitions: list.map(({ partition, offset }) => ({ partition, offset: String(offset) })) })),
      });
    } catch (error) {
      tenure.tracker.markDirty(positions);
      this.#commitSoon(tenure);
      this.#options.logger.debug({ err: error }, 'committing offsets failed; it is tried again');
    }
  }
}

function newTenure(assigned: Assignment[]): Tenure {
  return { assigned, lots: [], waiting: [], tracker: new OffsetTracker(), over: new AbortController(), lost: undefined, payload: undefined, committing: Promise.resolve() };
}

/** Lets kafkajs fetch on behind this lot; unless its assignment is over, for then its offsets are no longer ours to move. */
function settle(tenure: Tenure, lot: Lot): void {
  if (!tenure.lots.includes(lot)) return;
  tenure.lots = tenure.lots.filter((one) => one !== lot);
  const { messages } = lot.payload.batch;
  lot.payload.resolveOffset((messages[messages.length - 1] as FetchedMessage).offset);
  lot.settled.resolve();
}
