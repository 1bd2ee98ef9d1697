import type { FetchedPartition } from './fetch-response.ts';
import type { FetchedRecord } from './fetched-record.ts';

/**
 * The messages of one partition in one fetch. It replaces kafkajs' class of the same name, which converts every
 * offset to text.
 */
export class FetchedBatch {
  readonly topic: string;
  readonly partition: number;
  readonly highWatermark: bigint;
  readonly messages: readonly FetchedRecord[];
  /** Describes corruption after these messages. */
  readonly corrupt: string | undefined;
  readonly #firstOffset: bigint;
  readonly #nextOffset: bigint;

  /** Skips messages before the requested offset, because the broker sends whole record batches. */
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

  /** kafkajs skips an empty batch, but corruption must be reported. */
  isEmpty(): boolean {
    return this.messages.length === 0 && this.corrupt === undefined;
  }

  /**
   * A partition without new data has no batch, so the records of an empty batch were compacted or are all
   * control records.
   */
  isEmptyDueToFiltering(): boolean {
    return this.isEmpty();
  }

  firstOffset(): bigint {
    return this.messages[0]?.offset ?? this.#firstOffset;
  }

  /** The last offset of this batch, whether or not it has a message. The next fetch starts after it. */
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
