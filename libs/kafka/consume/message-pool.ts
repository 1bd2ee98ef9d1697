import type { Logger } from 'pino';
import type { FetchedMessage, ReceivedMessage } from '../received-message.ts';
import { createBackoff, pause, withTimeout } from '../wait.ts';
import type { BatchPayload } from './fetched-messages.ts';

/** The partitions of one topic that are assigned to this consumer. */
export interface Assignment {
  topic: string;
  partitions: number[];
}

export type Handle = (messages: ReceivedMessage[]) => Promise<void>;

export interface PoolOptions {
  handle: Handle;
  maxBatch: number;
  concurrency: number;
  heartbeatMs: number;
  logger: Logger;
}

/** One partition's messages of one fetch. kafkajs fetches again after `settled`. */
interface PartitionFetch {
  payload: BatchPayload;
  taken: number;
  settled: PromiseWithResolvers<void>;
}

interface Batch {
  messages: ReceivedMessage[];
  /** The fetches that the messages are from, each with the offset of its last one. */
  parts: { fetch: PartitionFetch; lastOffset: bigint }[];
}

/**
 * The state of one assignment (a generation of the group): its fetches and retries; kafkajs keeps its offsets.
 * Fetches are few and short-lived, so they are not in a Set (short-lived-map.ts).
 */
interface Generation {
  assigned: Assignment[];
  fetches: PartitionFetch[];
  waiting: PartitionFetch[];
  over: AbortController;
  /** Set when the group rebalances. Incoming batches are rejected with it, so that kafkajs rejoins. */
  lost: unknown;
  payload: BatchPayload | undefined;
}

const commitIntervalMs = 500;
const lastCommitTimeoutMs = 2_000;
/** The coordinator has expelled this member. */
const expelledTypes = ['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID'];
const goneTypes = new Set(['REBALANCE_IN_PROGRESS', 'NOT_COORDINATOR_FOR_GROUP', ...expelledTypes]);

/**
 * Merges the messages of all partitions into one stream of batches and implements the guarantees of consume: in
 * order per partition, never skipped, offsets committed only after handle has resolved. With concurrent calls, a
 * slow one must delay neither the next fetch nor the commits, so offsets are committed when a call begins.
 */
export class MessagePool {
  readonly #options: PoolOptions;
  #active: Promise<void>[] = [];
  #generation = newGeneration([]);
  #scheduled = false;
  #stopping = false;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #commitTimer: NodeJS.Timeout | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  get assigned(): Assignment[] {
    return this.#generation.assigned;
  }

  join(assigned: Assignment[]): void {
    this.#generation = newGeneration(assigned);
  }

  /**
   * Ends the current assignment: its messages are neither started nor retried, and its offsets are committed
   * for the last time if `mayCommit`.
   */
  endAssignment(mayCommit: boolean): void {
    const generation = this.#generation;
    if (mayCommit) void this.#commit(generation);
    generation.over.abort();
    generation.waiting.length = 0;
    for (const fetch of generation.fetches) fetch.settled.resolve();
    generation.fetches = [];
    this.#generation = newGeneration([]);
    clearInterval(this.#heartbeatTimer);
    clearTimeout(this.#commitTimer);
    this.#heartbeatTimer = undefined;
    this.#commitTimer = undefined;
  }

  /**
   * kafkajs' eachBatch. Resolves when the messages are processed (concurrency 1) or all started (higher
   * concurrency).
   */
  add(payload: BatchPayload): Promise<void> {
    const generation = this.#generation;
    if (generation.lost) return Promise.reject(generation.lost);
    const fetch: PartitionFetch = { payload, taken: 0, settled: Promise.withResolvers() };
    generation.payload = payload;
    generation.fetches.push(fetch);
    generation.waiting.push(fetch);
    this.#heartbeatTimer ??= setInterval(() => void this.#heartbeat(this.#generation), this.#options.heartbeatMs / 2);
    this.#schedule();
    return fetch.settled.promise;
  }

  /** Waits for the running call of handle, commits, and starts nothing new. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#generation.over.abort();
    await Promise.allSettled(this.#active);
    await withTimeout(this.#commit(this.#generation), lastCommitTimeoutMs, 'committing').catch(() => undefined);
  }

  /**
   * Gives the assignment up as if the group was rebalancing, so that kafkajs joins again, at the latest with the next message.
   * The broker then rebalances if what this member announces has changed.
   */
  rejoin(): Promise<void> {
    const generation = this.#generation;
    if (generation.lost || this.#stopping) return Promise.resolve();
    return this.#handOver(
      generation,
      Object.assign(new Error('rebalancing on request'), { type: 'REBALANCE_IN_PROGRESS' }),
    );
  }

  /** Waits for one turn of the event loop, so that all partitions of a fetch form one batch. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#active.length < this.#options.concurrency && this.#pump());
    });
  }

  #pump(): boolean {
    const generation = this.#generation;
    if (this.#stopping || generation.over.signal.aborted) return false;
    const batch = this.#take(generation);
    if (batch.messages.length === 0) return false;
    const run = this.#run(batch, generation).finally(() => {
      this.#active = this.#active.filter((one) => one !== run);
      this.#schedule();
    });
    this.#active.push(run);
    return true;
  }

  #take(generation: Generation): Batch {
    const batch: Batch = { messages: [], parts: [] };
    const { waiting } = generation;
    while (waiting.length > 0 && batch.messages.length < this.#options.maxBatch) {
      const fetch = waiting[0] as PartitionFetch;
      const { topic, partition, messages } = fetch.payload.batch;
      const count = Math.min(messages.length - fetch.taken, this.#options.maxBatch - batch.messages.length);
      for (let i = fetch.taken; i < fetch.taken + count; i++)
        batch.messages.push((messages[i] as FetchedMessage).received(topic, partition));
      fetch.taken += count;
      batch.parts.push({ fetch, lastOffset: (messages[fetch.taken - 1] as FetchedMessage).offset });
      if (fetch.taken === messages.length) waiting.shift();
    }
    return batch;
  }

  async #run(batch: Batch, generation: Generation): Promise<void> {
    const { handle, concurrency, logger } = this.#options;
    if (concurrency > 1) this.#advance(batch, generation);
    const backoff = createBackoff(100, 2_000);
    for (let attempt = 1; ; attempt++) {
      try {
        await handle(batch.messages);
        break;
      } catch (error) {
        logger.error(
          { err: error, attempt, messages: batch.messages.length },
          'processing failed; retrying the same messages',
        );
        await pause(backoff.next(), generation.over.signal);
        if (generation.over.signal.aborted) return;
      }
    }
    if (concurrency === 1) this.#advance(batch, generation);
  }

  /**
   * Makes the offsets after this batch due, and lets kafkajs fetch past the fetches that have been taken completely,
   * unless the assignment has ended: the offsets then belong to another member.
   */
  #advance({ parts }: Batch, generation: Generation): void {
    if (generation !== this.#generation) return;
    for (const { fetch, lastOffset } of parts) {
      fetch.payload.resolveOffset(lastOffset);
      if (fetch.taken < fetch.payload.batch.messages.length) continue;
      generation.fetches = generation.fetches.filter((one) => one !== fetch);
      fetch.settled.resolve();
    }
    this.#commitSoon(generation);
  }

  /** Commits the processed offsets together, once per interval. */
  #commitSoon(generation: Generation): void {
    if (generation !== this.#generation) return;
    this.#commitTimer ??= setTimeout(() => {
      this.#commitTimer = undefined;
      void this.#commit(generation);
    }, commitIntervalMs);
  }

  /** Sends heartbeats while handle runs. They also reveal a rebalance. */
  async #heartbeat(generation: Generation): Promise<void> {
    if (generation.fetches.length === 0 || !generation.payload) {
      clearInterval(this.#heartbeatTimer);
      this.#heartbeatTimer = undefined;
      return;
    }
    try {
      await generation.payload.heartbeat();
    } catch (error) {
      if (!goneTypes.has((error as { type?: string }).type ?? '')) {
        this.#options.logger.debug({ err: error }, 'a heartbeat failed');
      } else if (!generation.lost) {
        await this.#handOver(generation, error);
      }
    }
  }

  /**
   * Handles a rebalance: waits for running work, commits it, and lets kafkajs rejoin. The next owner reads the
   * rest again.
   */
  async #handOver(generation: Generation, error: unknown): Promise<void> {
    generation.lost = error;
    generation.over.abort();
    generation.waiting.length = 0;
    await Promise.allSettled(this.#active);
    await this.#commit(generation);
    for (const fetch of generation.fetches) fetch.settled.reject(error);
    generation.fetches = [];
  }

  /**
   * Commits due offsets, including those of a commit without response. The request has been sent
   * when this returns. If it reveals that this member was expelled, which a heartbeat may not have
   * shown, the assignment ends. Other errors do not end it: a new coordinator, for example, knows
   * the member.
   */
  async #commit(generation: Generation): Promise<void> {
    const due = generation.payload?.uncommittedOffsets();
    if (due === undefined || due.topics.length === 0) return;
    try {
      await generation.payload?.commitOffsetsIfNecessary(due);
    } catch (error) {
      this.#options.logger.debug({ err: error }, 'committing offsets failed');
      if (!expelledTypes.includes((error as { type?: string }).type ?? '')) this.#commitSoon(generation);
      else if (!generation.lost && !this.#stopping && generation === this.#generation)
        await this.#handOver(generation, error);
    }
  }
}

function newGeneration(assigned: Assignment[]): Generation {
  return {
    assigned,
    fetches: [],
    waiting: [],
    over: new AbortController(),
    lost: undefined,
    payload: undefined,
  };
}
