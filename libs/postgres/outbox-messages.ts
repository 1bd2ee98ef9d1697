import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { OutboxEvent } from './outbox.ts';

/** Level 1: the levels above take longer and give nothing here. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 };
/** What is decompressed should fit into one: pieces are copied together. */
const minChunkBytes = 16_384;
/** How a zstd frame begins (RFC 8878, 3.1.1). */
const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/**
 * The messages of one batch as the table outbox keeps them: lines of JSON in UTF-8, zstd-compressed. A message is a line with
 * everything but its payload, and behind it the payload as it is, byte for byte; one that is no line of its own (a tombstone's null,
 * or with line feeds in it) is in the first line instead. Postings of one batch say much the same: it is a twelfth of the size.
 */
export function packMessages(events: readonly OutboxEvent[]): Buffer {
  let lines = '';
  for (const { payload, id, topic, key, type, time, headers, partition } of events) {
    const isLine = payload !== null && !payload.includes('\n');
    lines += `${JSON.stringify({ id, topic, key, type, time, headers, partition, payload: isLine ? undefined : payload })}\n`;
    if (isLine) lines += `${payload}\n`;
  }
  const bytes = Buffer.from(lines);
  // Told of the size it does not set up tables for megabytes: half of the time for a small batch.
  return zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.length });
}

/**
 * What packMessages was given; also where it is not compressed, as a migration writes it. With `mentioning` nothing of a batch in
 * which that text does not occur.
 */
export function unpackMessages(packed: Buffer, mentioning = ''): OutboxEvent[] {
  const lines = (packed.subarray(0, magic.length).equals(magic) ? zstdDecompressSync(packed, { chunkSize: Math.max(minChunkBytes, packed.length * 16) }) : packed).toString();
  if (!lines.includes(mentioning)) return [];
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
