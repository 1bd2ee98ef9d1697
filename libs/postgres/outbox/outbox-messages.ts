import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { events, schemaId } from '#libs/contracts/events.ts';
import { isOlderForm, readOlderForm } from './older-form.ts';
import type { OutboxEvent } from './outbox.ts';

/** An event in the form in which it is published. */
export interface PublishedEvent {
  topic: string;
  key: string | null;
  value: string | null;
  headers: Record<string, string>;
  partition?: number;
}

/** Level 1, because higher levels take longer and gain nothing here. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 };
/** The decompressed data should fit into one chunk, because several chunks must be copied together. */
const minChunkBytes = 16_384;
/** The first bytes of a zstd frame (RFC 8878, 3.1.1). Rows converted by migrations are not compressed. */
const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/**
 * Encodes the events of one batch for the outbox table: JSON lines, zstd-compressed together, because postings
 * of one batch are similar (a twelfth of the size). An event is a line with all fields except the payload,
 * followed by a line with the payload. A payload that is null or contains a line feed is part of the first
 * line. `zstd -d` and `jq` can read it. A lone surrogate, which UTF-8 cannot encode, becomes U+FFFD in a
 * payload.
 */
export function packEvents(events: readonly OutboxEvent[]): Buffer {
  let lines = '';
  for (const event of events) {
    const { payload } = event;
    if (payload === null || payload.includes('\n')) lines += `${JSON.stringify(event)}\n`;
    else lines += `${JSON.stringify({ ...event, payload: undefined })}\n${payload}\n`;
  }
  const bytes = Buffer.from(lines);
  // Given the size, zstd does not allocate tables for megabytes, which halves the time for a small batch.
  return zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.length });
}

/**
 * Decodes events encoded by packEvents. With `mentioning`, returns nothing for a batch that does not contain
 * that text.
 */
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

/** Returns the message of an event. `source` is its ce_source; `topicName` maps its topic to the name on the broker. */
export function messageOf(event: OutboxEvent, source: string, topicName: (topic: string) => string): PublishedEvent {
  const { topic, key, payload, partition } = event;
  const message = { topic: topicName(topic), key, value: payload, headers: headersOf(event, source) };
  return partition === undefined ? message : { ...message, partition };
}

/** CloudEvents 1.0, Kafka binary content mode: attributes are ce_ headers, and the value is unchanged. */
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

/** Returns the id of an event in Postgres' uuid format. */
export function uuidOf(id: string): string {
  if (id.length === 36 && id.charAt(8) === '-') return id;
  const bits = id.slice(-32);
  return `${bits.slice(0, 8)}-${bits.slice(8, 12)}-${bits.slice(12, 16)}-${bits.slice(16, 20)}-${bits.slice(20)}`;
}
