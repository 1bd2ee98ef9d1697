import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { ByteReader } from '#libs/contracts/byte-reader.ts';
import { ByteWriter } from '#libs/contracts/byte-writer.ts';
import { type Content, type EncodedMessage, readContent, writeContent } from '#libs/contracts/record.ts';
import type { OutboxEvent } from './outbox.ts';

/** Level 1: the levels above take longer and give nothing here. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 };
/** What is decompressed should fit into one: pieces are copied together. */
const minChunkBytes = 16_384;
/** How a zstd frame begins (RFC 8878, 3.1.1). */
const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
/** How the form below begins. Versions before it wrote lines of JSON, each with a `{` in front. */
const form = 1;
const noPartition = -1;

/** One for the process: it is filled and emptied without a pause. */
const writer = new ByteWriter();

/**
 * The messages of one batch as the table outbox keeps them, and the same to be passed on, with topics that lack
 * the common prefix. A message is its topic, its partition
 * (-1 where its key chooses it), a length, and the content of its record; all of them zstd-compressed as one: postings of one batch say
 * much the same, it is a twelfth of the size. What UTF-8 cannot hold (a lone surrogate) becomes U+FFFD.
 */
export function packMessages(events: readonly OutboxEvent[], source: string): { packed: Buffer; messages: EncodedMessage[] } {
  const { bytes, messages } = encode(events, source);
  // Told of the size it does not set up tables for megabytes: half of the time for a small batch.
  return { packed: zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.length }), messages };
}

/** Events as they are published, one behind the other in `bytes`. `source` is their ce_source. */
export function encode(events: readonly OutboxEvent[], source: string): { bytes: Buffer; messages: EncodedMessage[] } {
  writer.clear();
  writer.int8(form);
  const messages = events.map((event) => {
    writer.string(event.topic);
    writer.int32(event.partition ?? noPartition);
    writer.int32(0);
    const start = writer.position;
    writeContent(writer, { key: event.key, value: event.payload, headers: headersOf(event, source) });
    writer.int32At(start - 4, writer.position - start);
    return messageOf(event.topic, event.key, event.partition, { bytes: writer.bytes, start, end: writer.position });
  });
  const bytes = writer.take();
  for (const { content } of messages) content.bytes = bytes;
  return { bytes, messages };
}

function messageOf(topic: string, key: string | null, partition: number | undefined, content: Content): EncodedMessage {
  return partition === undefined ? { topic, key, content } : { topic, key, content, partition };
}

/** CloudEvents 1.0, Kafka binary content mode: attributes as ce_ headers, the value as it was written. */
export function headersOf({ id, type, time, key, headers }: OutboxEvent, source: string): Record<string, string> {
  const all: Record<string, string> = { ce_specversion: '1.0', ce_id: uuidOf(id), ce_type: type, ce_source: source, ce_time: time };
  if (key !== null) all['ce_subject'] = key;
  all['content-type'] = 'application/json';
  for (const name in headers) all[name] = headers[name] ?? '';
  return all;
}

/** The id of an event as Postgres prints it. */
export function uuidOf(id: string): string {
  if (id.length === 36 && id.charAt(8) === '-') return id;
  const bits = id.slice(-32);
  return `${bits.slice(0, 8)}-${bits.slice(8, 12)}-${bits.slice(12, 16)}-${bits.slice(16, 20)}-${bits.slice(20)}`;
}

/**
 * What packMessages has packed. With `mentioning` nothing of a batch in which that text does not occur. `source` is that of what
 * versions before have written, which did not keep it.
 */
export function unpackMessages(packed: Buffer, source: string, mentioning = ''): EncodedMessage[] {
  const isCompressed = packed.subarray(0, magic.length).equals(magic);
  const bytes = isCompressed ? zstdDecompressSync(packed, { chunkSize: Math.max(minChunkBytes, packed.length * 16) }) : packed;
  if (mentioning !== '' && !bytes.includes(mentioning)) return [];
  if (bytes[0] !== form) return encode(readLines(bytes.toString()), source).messages;
  const reader = new ByteReader(bytes, 1);
  const messages: EncodedMessage[] = [];
  while (reader.at < bytes.length) {
    const topic = reader.string();
    const partition = reader.int32();
    const length = reader.int32();
    const start = reader.at;
    const keyLength = reader.varInt();
    const key = keyLength < 0 ? null : reader.text(keyLength);
    reader.at = start + length;
    messages.push(messageOf(topic, key, partition === noPartition ? undefined : partition, { bytes, start, end: reader.at }));
  }
  return messages;
}

/** The form before: lines of JSON with everything but the payload, which is a line of its own where it can be one. */
function readLines(lines: string): OutboxEvent[] {
  const events: OutboxEvent[] = [];
  let at = 0;
  const line = (): string => {
    const end = lines.indexOf('\n', at);
    const text = lines.slice(at, end);
    at = end + 1;
    return text;
  };
  while (at < lines.length) {
    const event = JSON.parse(line()) as OutboxEvent;
    events.push('payload' in event ? event : Object.assign(event, { payload: line() }));
  }
  return events;
}

/** What a message says. Its id is its ce_id; its headers are those that headersOf has not made. */
export function eventOf({ topic, content, partition }: EncodedMessage): OutboxEvent {
  const { key, value, headers: all } = readContent(content.bytes, content.start);
  const { ce_specversion: _version, ce_id: id = '', ce_type: type = '', ce_source: _source, ce_time: time = '', ce_subject, 'content-type': _type, ...headers } = all;
  if (ce_subject !== undefined && ce_subject !== key) headers['ce_subject'] = ce_subject;
  const event = { id, topic, key, type, time, headers, payload: value === null ? null : value.toString() };
  return partition === undefined ? event : { ...event, partition };
}
