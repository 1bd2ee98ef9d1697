type Bytes = string | Buffer | null | undefined;

/** A record as kafkajs hands it to its encoder: a message, with its place in the batch. */
export interface RecordInput {
  offsetDelta?: number;
  timestampDelta?: number;
  key?: Bytes;
  value?: Bytes;
  headers?: Record<string, Bytes | Bytes[]>;
}

/** What kafkajs takes for one of its encoders: it reads these two fields. */
export interface EncodedRecord {
  buf: Buffer;
  buffer: Buffer;
}

/**
 * Encodes one record of a record batch (Kafka protocol, record format v2) into one buffer of the exact size.
 * Byte for byte what kafkajs makes, which however allocates and clears 512 bytes for every header: with a dozen
 * headers on each message that was a third of the CPU time of a process that publishes.
 */
export function encodeRecord({ offsetDelta = 0, timestampDelta = 0, key, value, headers = {} }: RecordInput): EncodedRecord {
  const list = headerList(headers);
  let body = 1 + varIntSize(timestampDelta) + varIntSize(offsetDelta) + bytesSize(key) + bytesSize(value) + varIntSize(list.length / 2);
  for (const part of list) body += bytesSize(part);
  const buf = Buffer.allocUnsafe(varIntSize(body) + body);
  let at = writeVarInt(buf, 0, body);
  buf[at++] = 0;
  at = writeVarInt(buf, at, timestampDelta);
  at = writeVarInt(buf, at, offsetDelta);
  at = writeBytes(buf, at, key);
  at = writeBytes(buf, at, value);
  at = writeVarInt(buf, at, list.length / 2);
  for (const part of list) at = writeBytes(buf, at, part);
  return { buf, buffer: buf };
}

/** Names and values in turn. */
function headerList(headers: Record<string, Bytes | Bytes[]>): Bytes[] {
  const list: Bytes[] = [];
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (Array.isArray(value)) for (const each of value) list.push(name, each);
    else list.push(name, value);
  }
  return list;
}

function bytesSize(value: Bytes): number {
  if (value === null || value === undefined) return 1;
  const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
  return varIntSize(length) + length;
}

function writeBytes(buf: Buffer, at: number, value: Bytes): number {
  if (value === null || value === undefined) return writeVarInt(buf, at, -1);
  const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
  const start = writeVarInt(buf, at, length);
  if (typeof value === 'string') buf.write(value, start, length, 'utf8');
  else value.copy(buf, start);
  return start + length;
}

/** Zigzag makes small negative numbers small; plain arithmetic keeps it right beyond 32 bits. */
function zigZag(value: number): number {
  return value >= 0 ? value * 2 : -value * 2 - 1;
}

function varIntSize(value: number): number {
  let size = 1;
  for (let rest = zigZag(value); rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}

function writeVarInt(buf: Buffer, at: number, value: number): number {
  let rest = zigZag(value);
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) buf[at++] = (rest % 0x80) | 0x80;
  buf[at++] = rest;
  return at;
}
