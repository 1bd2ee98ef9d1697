import type { FetchedMessage, ReceivedMessage } from '../consume/received-message.ts';
import { readContent, readHeader } from './record.ts';

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
    return {
      topic,
      partition,
      offset: this.offset,
      ...readContent(this.#bytes, this.#at),
      timestamp_ms: this.#timestampMs,
    };
  }
}
