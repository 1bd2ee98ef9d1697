/**
 * Postgres' binary array format for parameters: pg sends a Buffer parameter in binary, so a statement that casts it
 * (`$1::text[]`, `$2::int8[]`, …) takes thousands of values without an array literal being built, quoted and parsed.
 * Layout (src/backend/utils/adt/arrayfuncs.c, array_recv): dimensions, null flag, element oid; per dimension its length
 * and lower bound; per element its byte length (-1 = null) and its bytes. Integers are big-endian.
 */
const oid = { bool: 16, int8: 20, int4: 23, text: 25, timestamptz: 1184, uuid: 2950 };

const headerBytes = 20;
const epochOf2000Ms = 946_684_800_000;

/** For `$n::text[]`. A lone surrogate becomes U+FFFD; NUL is refused by the server (22021). */
export function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = 0;
  for (const value of values) bytes += value === null ? 0 : roomFor(value);
  const buffer = arrayBuffer(values, oid.text, bytes);
  let at = values.length === 0 ? buffer.length : headerBytes;
  for (const value of values) {
    const length = value === null ? -1 : buffer.write(value, at + 4);
    buffer.writeInt32BE(length, at);
    at += 4 + Math.max(length, 0);
  }
  return buffer.subarray(0, at);
}

/** Bytes that are enough for a text: short ones are not worth the counting. */
function roomFor(text: string): number {
  return text.length < 128 ? text.length * 3 : Buffer.byteLength(text);
}

/** For `$n::int8[]`. RangeError outside of 64 bits. */
export function bigintArray(values: readonly (bigint | null)[]): Buffer {
  return fixedArray(values, oid.int8, 8, (buffer, value, at) => buffer.writeBigInt64BE(value, at));
}

/** For `$n::int4[]`. RangeError outside of 32 bits. */
export function intArray(values: readonly (number | null)[]): Buffer {
  return fixedArray(values, oid.int4, 4, (buffer, value, at) => buffer.writeInt32BE(value, at));
}

/** For `$n::bool[]`. */
export function boolArray(values: readonly (boolean | null)[]): Buffer {
  return fixedArray(values, oid.bool, 1, (buffer, value, at) => buffer.writeUInt8(value ? 1 : 0, at));
}

/**
 * For `$n::uuid[]`: from a uuid, or from an id that ends in 32 hex digits (`acc_…`). RangeError when they are missing.
 */
export function uuidArray(values: readonly (string | null)[]): Buffer {
  return fixedArray(values, oid.uuid, 16, (buffer, value, at) => {
    const hex = value.length === 36 && value.charAt(8) === '-' ? value.replaceAll('-', '') : value.slice(-32);
    if (hex.length !== 32 || buffer.write(hex, at, 16, 'hex') !== 16) throw new RangeError('not 32 hex digits');
  });
}

/** For `$n::timestamptz[]`: from ISO 8601 text or epoch milliseconds, to the millisecond. RangeError for no moment. */
export function timestampArray(values: readonly (string | number | null)[]): Buffer {
  return fixedArray(values, oid.timestamptz, 8, (buffer, value, at) => {
    const ms = typeof value === 'string' ? Date.parse(value) : value;
    if (!Number.isFinite(ms)) throw new RangeError('not a timestamp');
    buffer.writeBigInt64BE(BigInt(Math.trunc(ms) - epochOf2000Ms) * 1000n, at);
  });
}

function fixedArray<T>(
  values: readonly (T | null)[],
  elementOid: number,
  width: number,
  write: (buffer: Buffer, value: T, at: number) => void,
): Buffer {
  const nulls = values.reduce((count, value) => count + (value === null ? 1 : 0), 0);
  const buffer = arrayBuffer(values, elementOid, (values.length - nulls) * width);
  let at = headerBytes;
  for (const value of values) {
    buffer.writeInt32BE(value === null ? -1 : width, at);
    at += 4;
    if (value === null) continue;
    write(buffer, value, at);
    at += width;
  }
  return buffer;
}

/** A buffer with the header written and room for `bytes` of element data. */
function arrayBuffer(values: readonly unknown[], elementOid: number, bytes: number): Buffer {
  if (values.length === 0) {
    const empty = Buffer.alloc(12);
    empty.writeInt32BE(elementOid, 8);
    return empty;
  }
  const buffer = Buffer.allocUnsafe(headerBytes + values.length * 4 + bytes);
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  buffer.writeInt32BE(elementOid, 8);
  buffer.writeInt32BE(values.length, 12);
  buffer.writeInt32BE(1, 16);
  return buffer;
}
