import { ByteReader } from './byte-reader.ts';

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

/** A message in the answer to a fetch. Nothing of it is decoded before it is asked for. */
export class FetchedRecord {
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

  /** The value of the last header of this name, which is ASCII; null when there is none. */
  header(name: string): string | null {
    const reader = new ByteReader(this.#bytes, this.#at);
    skip(reader);
    skip(reader);
    let found: string | null = null;
    for (let left = reader.varInt(); left > 0; left--) {
      const length = reader.varInt();
      const isFound = length === name.length && isAt(this.#bytes, reader.at, name);
      reader.at += length;
      if (isFound) found = readText(reader);
      else skip(reader);
    }
    return found;
  }

  /** The whole message; its value shares the memory of the answer. */
  received(topic: string, partition: number): ReceivedMessage {
    const reader = new ByteReader(this.#bytes, this.#at);
    const key = readText(reader);
    const valueLength = reader.varInt();
    const value = valueLength < 0 ? null : this.#bytes.subarray(reader.at, reader.at + valueLength);
    reader.at += Math.max(valueLength, 0);
    const headers: Record<string, string> = {};
    for (let left = reader.varInt(); left > 0; left--) {
      const name = reader.text(reader.varInt());
      // Kafka allows a header name several times; the last one counts.
      const text = readText(reader);
      if (text !== null) headers[name] = text;
      else delete headers[name];
    }
    return { topic, partition, offset: this.offset, key, value, headers, timestamp_ms: this.#timestampMs };
  }
}

function readText(reader: ByteReader): string | null {
  const length = reader.varInt();
  return length < 0 ? null : reader.text(length);
}

function skip(reader: ByteReader): void {
  const length = reader.varInt();
  if (length > 0) reader.at += length;
}

function isAt(bytes: Buffer, at: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) if (bytes[at + i] !== name.charCodeAt(i)) return false;
  return true;
}
