import type { FetchedMessage, ReceivedMessage } from '../received-message.ts';
import { readContent } from './record.ts';

/** An encoded message. It is decoded only on access. */
export class FetchedRecord implements FetchedMessage {
  readonly offset: bigint;
  readonly #timestampMs: number;
  readonly #bytes: Buffer;
  /** The position of the key's length; value and headers follow. */
  readonly #at: number;

  constructor(offset: bigint, timestampMs: number, bytes: Buffer, at: number) {
    this.offset = offset;
    this.#timestampMs = timestampMs;
    this.#bytes = bytes;
    this.#at = at;
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
