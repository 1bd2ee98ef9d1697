import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import type { Cluster } from '../cluster.ts';
import type { FetchedMessage } from '../received-message.ts';
import { offsetsAt, topicRanges } from '../topics.ts';
import { createBackoff, pause, withTimeout } from '../wait.ts';

/** The messages of one partition in one fetch. */
export interface PartitionBatch {
  partition: number;
  /** Those from the requested offset on. */
  messages: readonly FetchedMessage[];
  /** The offset after these messages and after those that were compacted. */
  nextOffset: bigint;
  /** Describes corruption after these messages. */
  corrupt: string | undefined;
}

/** The broker returns at least one record batch, regardless of its size. */
const maxPartitionBytes = 1024 * 1024;
const maxBytes = 10 * maxPartitionBytes;

/** Fetches from partitions of which this broker is the leader, in any order, without a consumer group. */
export async function fetchFrom(
  cluster: Cluster,
  nodeId: string,
  topic: string,
  offsets: ReadonlyMap<number, bigint>,
  maxWaitTime: number,
): Promise<PartitionBatch[]> {
  const broker = await cluster.findBroker({ nodeId });
  const partitions = [...offsets].map(([partition, offset]) => ({
    partition,
    fetchOffset: String(offset),
    maxBytes: maxPartitionBytes,
  }));
  const { responses } = await broker.fetch({ maxWaitTime, minBytes: 1, maxBytes, topics: [{ topic, partitions }] });
  return responses.flatMap((response) =>
    response.partitions.map(({ partition, messages: all, nextOffset, corrupt }) => {
      const offset = offsets.get(partition) ?? 0n;
      // The broker returns whole record batches, including messages before the requested offset.
      const first = all.findIndex((message) => message.offset >= offset);
      const messages = first === 0 ? all : first < 0 ? [] : all.slice(first);
      return { partition, messages, nextOffset: nextOffset > offset ? nextOffset : offset, corrupt };
    }),
  );
}

export interface PartitionReaderOptions {
  topic: string;
  /** The only partition to read. Default: all partitions that exist at the start. */
  partition?: number;
  /** Where to start. A date: the first message from that time on, by the topic's timestamps. */
  from: 'oldest' | 'end' | Date;
  /** Receives messages of a partition, in order. If it rejects, they are read again. */
  take(messages: readonly FetchedMessage[], partition: number): void | Promise<void>;
  /** Skip what is in the partition when a record batch is corrupt. Default: read the batch again until it is not. */
  skipsCorrupt?: true;
  logger: Logger;
}

/** How long an empty fetch waits at its broker. */
const [aloneWaitMs, sharedWaitMs] = [1_000, 100];
/** Longer than kafkajs' own timeouts, in case it never returns. */
const limitMs = 15_000;
/** For how long reading may fail before the reader reports it. A change of leaders takes less. */
const patienceMs = 10_000;
const stopTimeoutMs = 5_000;

class CorruptBatchError extends Error {
  override name = 'CorruptBatchError';
}

/**
 * Reads partitions without a consumer group, as `assign()` of Kafka's own client does: no other process affects it,
 * and nothing about it is stored at the brokers. After any failure it continues at its positions with new
 * connections, until stopped. A position that no longer exists is replaced by the oldest one, or by the end if it
 * started there.
 */
export class PartitionReader {
  readonly #kafka: KafkaClient;
  readonly #options: PartitionReaderOptions;
  readonly #stopping = new AbortController();
  readonly #caughtUp = Promise.withResolvers<void>();
  readonly #positions = new Map<number, bigint>();
  /** The end offsets when the reader started. Emptied when they have been reached. */
  readonly #ends = new Map<number, bigint>();
  #arePositionsValid = false;
  #fault: { since: number; reason: string } | undefined = { since: -Infinity, reason: 'nothing was read yet' };
  #running: Promise<void> | undefined;

  constructor(kafka: KafkaClient, options: PartitionReaderOptions) {
    this.#kafka = kafka;
    this.#options = { ...options, logger: options.logger.child({ topic: options.topic }) };
  }

  /** Resolves when everything that was written before the call has been taken. */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return this.#caughtUp.promise;
  }

  /** Waits for the current call of take, for at most 5 s. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#running) await withTimeout(this.#running, stopTimeoutMs, 'stopping').catch(() => undefined);
  }

  /** Not ok before the first response, while a batch is corrupt, and when reading has failed for 10 s. */
  health(): { ok: boolean; reason?: string } {
    if (this.#stopping.signal.aborted) return { ok: false, reason: 'the reader was stopped' };
    const fault = this.#fault;
    return fault !== undefined && performance.now() - fault.since > patienceMs
      ? { ok: false, reason: `${this.#options.topic}: ${fault.reason}` }
      : { ok: true };
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const backoff = createBackoff(50, 1_000);
    while (!signal.aborted) {
      const { client: cluster, gate, close } = this.#kafka.newCluster();
      const abort = (): void => gate.close();
      signal.addEventListener('abort', abort);
      try {
        await withTimeout(this.#connect(cluster), limitMs, 'connecting');
        while (!signal.aborted) {
          await this.#readOnce(cluster);
          backoff.reset();
        }
      } catch (error) {
        if (!signal.aborted) this.#failed(error);
      }
      signal.removeEventListener('abort', abort);
      await close(0);
      await pause(backoff.next(), signal);
    }
  }

  async #connect(cluster: Cluster): Promise<void> {
    await cluster.connect();
    await cluster.addTargetTopic(this.#options.topic);
    if (!this.#arePositionsValid) await this.#locate();
  }

  /** Fetches once from every leader. */
  async #readOnce(cluster: Cluster): Promise<void> {
    const { topic, take, skipsCorrupt } = this.#options;
    await cluster.refreshMetadataIfNecessary();
    const leaders = Object.entries(cluster.findLeaderForPartitions(topic, [...this.#positions.keys()]));
    const led = leaders.reduce((sum, [, partitions]) => sum + partitions.length, 0);
    if (led < this.#positions.size) throw new Error('a partition has no leader');
    // A leader without new messages delays those of the others.
    const maxWaitMs = leaders.length === 1 ? aloneWaitMs : sharedWaitMs;
    const fetches = leaders.map(([nodeId, partitions]) => {
      const offsets = new Map(partitions.map((partition) => [partition, this.#positions.get(partition) ?? 0n]));
      return fetchFrom(cluster, nodeId, topic, offsets, maxWaitMs);
    });
    const batches = await withTimeout(Promise.all(fetches), limitMs, 'a fetch');
    for (const { partition, messages, nextOffset, corrupt } of batches.flat()) {
      if (messages.length > 0) await take(messages, partition);
      this.#positions.set(partition, nextOffset);
      if (corrupt === undefined) continue;
      if (skipsCorrupt) this.#positions.delete(partition);
      throw new CorruptBatchError(`${partition}: ${corrupt}`);
    }
    this.#fault = undefined;
    this.#checkCaughtUp();
  }

  /** Sets the positions that are missing or do not exist. */
  async #locate(): Promise<void> {
    const { topic, partition: only, from } = this.#options;
    const isFirst = this.#positions.size === 0;
    const atTime = from instanceof Date && isFirst ? await offsetsAt(this.#kafka, topic, from) : [];
    const starts = new Map(atTime.map(({ partition, offset }) => [partition, offset]));
    for (const { partition, low, high } of await topicRanges(this.#kafka, topic)) {
      if (only !== undefined && partition !== only) continue;
      const position = this.#positions.get(partition) ?? starts.get(partition) ?? -1n;
      const exists = position >= low && position <= high;
      this.#positions.set(partition, exists ? position : from === 'end' ? high : low);
      if (isFirst) this.#ends.set(partition, high);
    }
    if (this.#positions.size === 0) throw new Error(`there is no partition ${only}`);
    this.#arePositionsValid = true;
  }

  #checkCaughtUp(): void {
    if (this.#ends.size === 0) return;
    for (const [partition, end] of this.#ends) if ((this.#positions.get(partition) ?? 0n) < end) return;
    this.#ends.clear();
    this.#caughtUp.resolve();
  }

  #failed(error: unknown): void {
    const isCorrupt = error instanceof CorruptBatchError;
    if (isCorrupt || (error as { type?: string }).type === 'OFFSET_OUT_OF_RANGE') this.#arePositionsValid = false;
    const since = isCorrupt ? -Infinity : (this.#fault?.since ?? performance.now());
    this.#fault = { since, reason: error instanceof Error ? error.message : String(error) };
    const { logger } = this.#options;
    if (isCorrupt) logger.error({ err: error }, 'a record batch is corrupt');
    else logger.debug({ err: error }, 'reading failed; continuing');
  }
}
