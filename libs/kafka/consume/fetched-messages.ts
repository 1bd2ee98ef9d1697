import type { EachBatchPayload, KafkaMessage, OffsetsByTopicPartition } from 'kafkajs';
import type { FetchedMessage, ReceivedMessage } from '../received-message.ts';

/** The part of kafkajs' batch that is used: the messages of one partition in one fetch. */
export interface BatchPayload {
  batch: {
    topic: string;
    partition: number;
    messages: readonly FetchedMessage[];
    /** Describes corruption after these messages. */
    corrupt?: string | undefined;
    /** The last offset of this batch, whether or not it has a message. The next fetch starts after it. */
    lastOffset(): bigint;
  };
  /**
   * Makes the next fetch start after this offset, or after the whole batch if this is the offset of its last
   * message.
   */
  resolveOffset(offset: bigint): void;
  heartbeat(): Promise<void>;
  /** Stops fetching from this partition. Returns a function that resumes it. */
  pause(): () => void;
  /** Returns the offsets after resolved ones that were not yet committed. */
  uncommittedOffsets(): OffsetsByTopicPartition;
  commitOffsetsIfNecessary(offsets: OffsetsByTopicPartition): Promise<void>;
}

/** Converts a batch of the unpatched kafkajs, which has offsets as text and decoded messages. */
export function fromPublished(payload: EachBatchPayload): BatchPayload {
  const { topic, partition, messages } = payload.batch;
  return {
    ...payload,
    batch: {
      topic,
      partition,
      messages: messages.map((message) => new PublishedMessage(message)),
      lastOffset: () => BigInt(payload.batch.lastOffset()),
    },
    resolveOffset: (offset) => payload.resolveOffset(String(offset)),
  };
}

export class PublishedMessage implements FetchedMessage {
  readonly #message: KafkaMessage;

  constructor(message: KafkaMessage) {
    this.#message = message;
  }

  get offset(): bigint {
    return BigInt(this.#message.offset);
  }

  received(topic: string, partition: number): ReceivedMessage {
    const { key, value, timestamp } = this.#message;
    const headers: Record<string, string> = {};
    for (const [name, values] of Object.entries(this.#message.headers ?? {})) {
      const value = [values].flat().at(-1);
      if (value !== undefined && value !== null) headers[name] = String(value);
    }
    return {
      topic,
      partition,
      offset: this.offset,
      key: key === null ? null : String(key),
      value,
      headers,
      timestamp_ms: Number(timestamp),
    };
  }
}
