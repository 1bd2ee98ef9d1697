import type { EachBatchPayload, KafkaMessage } from 'kafkajs';
import type { FetchedMessage, ReceivedMessage } from './received-message.ts';

/** What kafkajs gives with the messages of one partition in one fetch, as far as it is used. */
export interface BatchPayload {
  batch: {
    topic: string;
    partition: number;
    messages: readonly FetchedMessage[];
    /** What is wrong with what follows these messages. */
    corrupt?: string | undefined;
    /** The last offset that this batch covers, be there a message at it or not: the next fetch begins behind it. */
    lastOffset(): bigint;
  };
  /** Moves the place of the next fetch behind this offset; behind the whole batch where it is the last message's. */
  resolveOffset(offset: bigint): void;
  heartbeat(): Promise<void>;
  /** Stops fetching from this partition; returns what starts it again. */
  pause(): () => void;
  commitOffsetsIfNecessary(offsets: {
    topics: { topic: string; partitions: { partition: number; offset: string }[] }[];
  }): Promise<void>;
}

/** The same of kafkajs as published, which has offsets as text and messages decoded. */
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

  header(name: string): string | null {
    const value = [this.#message.headers?.[name]].flat().at(-1);
    return value === undefined || value === null ? null : String(value);
  }

  received(topic: string, partition: number): ReceivedMessage {
    const { key, value, timestamp } = this.#message;
    const headers: Record<string, string> = {};
    for (const name of Object.keys(this.#message.headers ?? {})) {
      const text = this.header(name);
      if (text !== null) headers[name] = text;
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
