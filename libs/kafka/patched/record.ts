import { ByteReader } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';

type Bytes = string | Buffer | null | undefined;

/** The part of a message that its record contains besides length, time, and offset (record format v2, KIP-98). */
export interface ContentInput {
  key?: Bytes;
  value?: Bytes;
  headers?: Record<string, Bytes | Bytes[]>;
}

export function writeContent(writer: ByteWriter, { key, value, headers = {} }: ContentInput): void {
  writer.varBytes(key);
  writer.varBytes(value);
  let count = 0;
  for (const name in headers) count += Array.isArray(headers[name]) ? headers[name].length : 1;
  writer.varInt(count);
  for (const name in headers) {
    const each = headers[name];
    if (!Array.isArray(each)) writeHeader(writer, name, each);
    else for (const one of each) writeHeader(writer, name, one);
  }
}

function writeHeader(writer: ByteWriter, name: string, value: Bytes): void {
  writer.varBytes(name);
  writer.varBytes(value);
}

/** Reads key, value, and headers. The value shares the memory of `bytes`. */
export function readContent(
  bytes: Buffer,
  at: number,
): { key: string | null; value: Buffer | null; headers: Record<string, string> } {
  const reader = new ByteReader(bytes, at);
  const key = readText(reader);
  const valueLength = reader.varInt();
  const value = valueLength < 0 ? null : bytes.subarray(reader.at, reader.at + valueLength);
  reader.at += Math.max(valueLength, 0);
  const headers: Record<string, string> = {};
  for (let left = reader.varInt(); left > 0; left--) {
    const name = reader.text(reader.varInt());
    // Kafka allows a header name several times; the last one counts.
    const text = readText(reader);
    if (text !== null) headers[name] = text;
    else delete headers[name];
  }
  return { key, value, headers };
}

function readText(reader: ByteReader): string | null {
  const length = reader.varInt();
  return length < 0 ? null : reader.text(length);
}
