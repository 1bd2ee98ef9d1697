import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { events, schemaId } from '#libs/contracts/events.ts';
import { isOlderForm, readOlderForm } from './older-form.ts';
import type { OutboxEvent } from './outbox.ts';

/** An event as it is published. */
export interface PublishedEvent {
  topic: string;
  key: string | null;
  value: string | null;
  headers: Record<string, string>;
  partition?: number;
}

/** Level 1: the levels above take longer and give nothing here. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 };
/** What is decompressed should fit into one: pieces are copied together. */
const minChunkBytes = 16_384;
/** How a zstd frame begins (RFC 8878, 3.1.1). What migrations have made of older rows is not compressed. */
const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/**
 * The events of one batch as the table outbox keeps them: lines of JSON, zstd-compressed as one,
 * since postings of one batch say much the same (a twelfth of the size). An event is a line with
 * everything but its payload, and the payload is the line behind it; where it is no line (null, or
 * a text with a line feed) it stands in the first line. `zstd -d` and `jq` show it. What UTF-8
 * cannot hold (a lone surrogate) becomes U+FFFD in a payload.
 */
export function packEvents(events: readonly OutboxEvent[]): Buffer {
  let lines = '';
  for (const event of events) {
    const { payload } = event;
    if (payload === null || payload.includes('\n')) lines += `${JSON.stringify(event)}\n`;
    else lines += `${JSON.stringify({ ...event, payload: undefined })}\n${payload}\n`;
  }
  const bytes = Buffer.from(lines);
  // Where the size is given, zstd does not set up tables for megabytes: half of the time for a small batch.
  return zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.length });
}

/** What packEvents has packed. With `mentioning` nothing of a batch in which that text does not occur. */
export function unpackEvents(packed: Buffer, mentioning = ''): OutboxEvent[] {
  const isCompressed = packed.subarray(0, magic.length).equals(magic);
  const bytes = isCompressed
    ? zstdDecompressSync(packed, { chunkSize: Math.max(minChunkBytes, packed.length * 16) })
    : packed;
  if (mentioning !== '' && !bytes.includes(mentioning)) return [];
  return isOlderForm(bytes) ? readOlderForm(bytes) : readLines(bytes.toString());
}

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
    if (event.payload === undefined) event.payload = line();
    events.push(event);
  }
  return events;
}

/**
 * The message that an event is published as. `source` is its ce_source, `topicName` gives the name
 * that its topic has on the broker.
 */
export function messageOf(event: OutboxEvent, source: string, topicName: (topic: string) => string): PublishedEvent {
  const { topic, key, payload, partition } = event;
  const message = { topic: topicName(topic), key, value: payload, headers: headersOf(event, source) };
  return partition === undefined ? message : { ...message, partition };
}

/** CloudEvents 1.0, Kafka binary content mode: attributes as ce_ headers, the value as it was written. */
export function headersOf({ id, type, time, key, headers }: OutboxEvent, source: string): Record<string, string> {
  const all: Record<string, string> = {
    ce_specversion: '1.0',
    ce_id: uuidOf(id),
    ce_type: type,
    ce_source: source,
    ce_time: time,
  };
  if (key !== null) all['ce_subject'] = key;
  if (Object.hasOwn(events, type)) all['ce_dataschema'] = schemaId(type);
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
