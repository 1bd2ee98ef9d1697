import { readContent, readHeader } from '#libs/contracts/record.ts';

/** A message as it was read. */
export interface ReceivedMessage {
  topic: string;
  partition: number;
  offset: bigint;
  key: string | null;
  value: Buffer | null;
  headers: Record<string, string>;
  /** When the message was made, or appended, as the topic is configured; milliseconds since 1970. */
  timestamp_ms: number;
}

/** A message in the answer to a fetch. */
export interface FetchedMessage {
  readonly offset: bigint;
  /** The value of the last header of this name, which is ASCII; null when there is none. */
  header(name: string): string | null;
  /** The whole message; its value shares the memory of the answer. */
  received(topic: string, partition: number): ReceivedMessage;
}

/** A message in its bytes. Nothing of it is decoded before it is asked for. */
export class FetchedRecord implements FetchedMessage {
  readonly offset: bigint;
  readonly #timestampMs: number;
  readonly #bytes: Buffer;
  /** Where the key's length stands; value and headers follow. */
  readonly #at: number;

  constructor(offset: bigint, timestampMs: number, bytes: Buffer, at: number) {
    this.offset = offset;
    this.#timestampMs = timestampMs;
    this.#bytes = bytes;
    this.#at = at;
  }

  header(name: string): string | null {
    return readHeader(this.#bytes, this.#at, name);
  }

  received(topic: string, partition: number): ReceivedMessage {
    return { topic, partition, offset: this.offset, ...readContent(this.#bytes, this.#at), timestamp_ms: this.#timestampMs };
  }
}
