import type { FetchedPartition } from './fetch-response.ts';
import type { FetchedRecord } from './fetched-record.ts';

/**
 * The messages of one partition in one fetch: in place of kafkajs' class of that name, which
 * computes every offset as text.
 */
export class FetchedBatch {
  readonly topic: string;
  readonly partition: number;
  readonly highWatermark: bigint;
  readonly messages: readonly FetchedRecord[];
  /** What is wrong with what follows these messages. */
  readonly corrupt: string | undefined;
  readonly #firstOffset: bigint;
  readonly #nextOffset: bigint;

  /** Leaves out what lies before the offset asked for: the broker sends whole record batches. */
  constructor(
    topic: string,
    fetchedOffset: string,
    { partition, highWatermark, messages, nextOffset, corrupt }: FetchedPartition,
  ) {
    this.corrupt = corrupt;
    this.topic = topic;
    this.partition = partition;
    this.highWatermark = highWatermark;
    this.#firstOffset = BigInt(fetchedOffset);
    this.#nextOffset = nextOffset > this.#firstOffset ? nextOffset : this.#firstOffset + 1n;
    const first = messages.findIndex(({ offset }) => offset >= this.#firstOffset);
    this.messages = first === 0 ? messages : first < 0 ? [] : messages.slice(first);
  }

  /** kafkajs passes over an empty batch; what is corrupt must be heard of. */
  isEmpty(): boolean {
    return this.messages.length === 0 && this.corrupt === undefined;
  }

  /** A partition with nothing new has no batch at all: so its records were compacted away, or for control only. */
  isEmptyDueToFiltering(): boolean {
    return this.isEmpty();
  }

  firstOffset(): bigint {
    return this.messages[0]?.offset ?? this.#firstOffset;
  }

  /** The last offset that this batch covers, be there a message at it or not: the next fetch begins behind it. */
  lastOffset(): bigint {
    return this.#nextOffset - 1n;
  }

  offsetLag(): string {
    return String(this.highWatermark - this.#nextOffset);
  }

  offsetLagLow(): string {
    return String(this.highWatermark - 1n - this.firstOffset());
  }
}
