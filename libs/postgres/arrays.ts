/**
 * Rows as one parameter, in Postgres' binary format for arrays of a composite type. pg sends a Buffer parameter in
 * binary, so the server receives thousands of values without an array literal that must be built, quoted, and parsed.
 * Layout (src/backend/utils/adt/arrayfuncs.c, array_recv): dimensions, null flag, element oid; per dimension its length
 * and lower bound; per element its byte length (-1 = null) and its bytes. Integers are big-endian.
 */
const oid = { int8: 20, date: 1082, text: 25, json: 114, timestamptz: 1184, record: 2249, uuid: 2950 };

/** The header of an array without elements has no dimension, so its length and lower bound are missing. */
const [emptyBytes, headerBytes] = [12, 20];
const epochOf2000Ms = 946_684_800_000;

/** The sizes of fixed-size types in bytes. */
const width = { uuid: 16, int8: 8, timestamptz: 8, date: 4 };

/** Writes a value and returns its length. */
const write = {
  uuid(buffer: Buffer, value: string, at: number): number {
    const hex = value.length === 36 && value.charAt(8) === '-' ? value.replaceAll('-', '') : value.slice(-32);
    if (hex.length !== 32 || buffer.write(hex, at, 16, 'hex') !== 16) throw new RangeError('not 32 hex digits');
    return width.uuid;
  },
  text: (buffer: Buffer, value: string, at: number): number => buffer.write(value, at),
  json: (buffer: Buffer, value: unknown, at: number): number => buffer.write(JSON.stringify(value), at),
  int8(buffer: Buffer, value: bigint, at: number): number {
    buffer.writeBigInt64BE(value, at);
    return width.int8;
  },
  timestamptz(buffer: Buffer, value: string, at: number): number {
    const ms = Date.parse(value);
    if (!Number.isFinite(ms)) throw new RangeError('not a timestamp');
    buffer.writeBigInt64BE(BigInt(ms - epochOf2000Ms) * 1000n, at);
    return width.timestamptz;
  },
  date(buffer: Buffer, value: string, at: number): number {
    const ms = Date.parse(value);
    if (!/^\d{4}-\d\d-\d\d$/.test(value) || !Number.isFinite(ms)) throw new RangeError('not a day');
    buffer.writeInt32BE((ms - epochOf2000Ms) / 86_400_000, at);
    return width.date;
  },
};

function countBytes(type: ColumnType, value: unknown): number {
  if (type === 'text') return Buffer.byteLength(value as string);
  return type === 'json' ? Buffer.byteLength(JSON.stringify(value)) : width[type];
}

type ColumnType = 'uuid' | 'text' | 'json' | 'int8' | 'timestamptz' | 'date';

/** The types of a composite type's attributes, in its order, by the names of the fields that contain the values. */
export type Columns<T> = readonly (readonly [name: keyof T, type: ColumnType])[];

/**
 * Returns the parameter for `$n::name[]`, where `name` is a composite type, with all rows. Each element (record_recv,
 * src/backend/utils/adt/rowtypes.c) contains the number of columns and, for each, the oid of its type and its bytes as
 * in an array. The server takes the composite type from the cast, because its oid differs between databases. A uuid is
 * given as such or as an id that ends in its 32 hex digits (`acc_…`), a time as ISO 8601 with millisecond precision.
 * Throws a RangeError for an invalid uuid or time, and for integers beyond 64 bits. A lone surrogate becomes U+FFFD.
 * The server rejects NUL (22021), and columns that do not match the type (42804).
 */
export function rowArray<T>(rows: readonly T[], columns: Columns<T>): Buffer {
  let bytes = headerBytes + rows.length * (8 + columns.length * 8);
  for (const row of rows)
    for (const [name, type] of columns) {
      const value = row[name];
      if (value !== null) bytes += countBytes(type, value);
    }
  const buffer = Buffer.allocUnsafe(bytes);
  const dimensions = rows.length === 0 ? 0 : 1;
  buffer.writeInt32BE(dimensions, 0);
  buffer.writeInt32BE(0, 4);
  buffer.writeInt32BE(oid.record, 8);
  buffer.writeInt32BE(rows.length, 12);
  buffer.writeInt32BE(1, 16);
  let at = dimensions === 0 ? emptyBytes : headerBytes;
  for (const row of rows) {
    const start = at;
    at = buffer.writeInt32BE(columns.length, at + 4);
    for (const [name, type] of columns) {
      const value = row[name];
      at = buffer.writeInt32BE(oid[type], at);
      const length = value === null ? -1 : write[type](buffer, value as never, at + 4);
      at = buffer.writeInt32BE(length, at) + Math.max(length, 0);
    }
    buffer.writeInt32BE(at - start - 4, start);
  }
  return buffer.subarray(0, at);
}
