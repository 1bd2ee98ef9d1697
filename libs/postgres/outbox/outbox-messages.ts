import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { events, schemaId } from '#libs/contracts/events.ts';
import type { OutboxEvent } from './outbox.ts';

/** An event in the form in which it is published. */
export interface PublishedEvent {
  topic: string;
  key: string | null;
  value: string | null;
  headers: Record<string, string>;
  partition?: number;
}

/** Higher levels take longer and do not compress these batches better. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 };

/**
 * The events of one batch as the table outbox stores them: JSON lines in one zstd frame. Postings of one batch resemble
 * each other, so this takes a twelfth of the space. Each event is a line without its payload, followed by the payload
 * as a separate line; a payload that is null or contains a line feed is part of the first line. `zstd -d` and `jq` can
 * read a batch. In a payload, a lone surrogate, which UTF-8 cannot encode, becomes U+FFFD.
 */
export function packEvents(events: readonly OutboxEvent[]): Buffer {
  let lines = '';
  for (const event of events) {
    const { payload } = event;
    if (payload === null || payload.includes('\n')) lines += `${JSON.stringify(event)}\n`;
    else lines += `${JSON.stringify({ ...event, payload: undefined })}\n${payload}\n`;
  }
  const bytes = Buffer.from(lines);
  // If zstd knows the size, it does not allocate tables for megabytes, which halves the time for a small batch.
  return zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.length });
}

/**
 * Returns the events that packEvents packed. With `mentioning`, returns none if that text does not occur in the batch.
 */
export function unpackEvents(packed: Buffer, mentioning = ''): OutboxEvent[] {
  const bytes = zstdDecompressSync(packed);
  const events: OutboxEvent[] = [];
  if (mentioning !== '' && !bytes.includes(mentioning)) return events;
  const lines = bytes.toString();
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

/** The types whose data contain their batch and their position in it, which only the reader of a batch knows. */
const placed = new Set(
  Object.entries(events).flatMap(([type, { data }]) => ('batch_position' in data.shape ? [type] : [])),
);

/**
 * Returns the events of a batch in the form in which every publication of the batch contains them: with their id and type in
 * the data, and those of the ledger with their place.
 */
export function numbered(batchId: bigint, batch: readonly OutboxEvent[]): OutboxEvent[] {
  return batch.map((event, position) => {
    const { id, type, headers, payload } = event;
    if (payload === null || !Object.hasOwn(events, type)) return event;
    const place = placed.has(type) ? `,"batch_id":${batchId},"batch_position":${position}` : '';
    const identity = `,"event_id":"${headers?.['ce_id'] ?? toUuid(id)}","event_type":"${type}"`;
    return { ...event, payload: `${payload.slice(0, -1)}${place}${identity}}` };
  });
}

/** Returns the message of an event. `source` is its ce_source; `topicName` maps its topic to the name on the broker. */
export function toPublishedEvent(
  event: OutboxEvent,
  source: string,
  topicName: (topic: string) => string,
): PublishedEvent {
  const { topic, key, payload, partition } = event;
  const message = { topic: topicName(topic), key, value: payload, headers: cloudEventHeaders(event, source) };
  return partition === undefined ? message : { ...message, partition };
}

/** Returns CloudEvents 1.0 in Kafka's binary content mode: attributes are ce_ headers, and the value is unchanged. */
export function cloudEventHeaders(
  { id, type, time, key, headers }: OutboxEvent,
  source: string,
): Record<string, string> {
  const all: Record<string, string> = {
    ce_specversion: '1.0',
    ce_id: toUuid(id),
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
export function toUuid(id: string): string {
  if (id.length === 36 && id.charAt(8) === '-') return id;
  const bits = id.slice(-32);
  return `${bits.slice(0, 8)}-${bits.slice(8, 12)}-${bits.slice(12, 16)}-${bits.slice(16, 20)}-${bits.slice(20)}`;
}
