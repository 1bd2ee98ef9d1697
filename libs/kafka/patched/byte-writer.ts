/**
 * Strings that are longer than this are written by the runtime. For shorter ones, calling it costs more than a
 * loop. Their lengths fit into one byte.
 */
const loopChars = 63;
const maxVarIntBytes = 10;
/** The maximum UTF-8 bytes of one UTF-16 unit. */
const maxUtf8Bytes = 3;

/** The approximate number of bytes kept between uses. A larger buffer is released. */
const keptBytes = 4 * 1024 * 1024;

/**
 * Writes the types of the Kafka protocol (big-endian) sequentially into one buffer, which grows as needed and
 * is reused.
 */
export class ByteWriter {
  #bytes: Buffer;
  #at = 0;

  constructor(initialBytes = 256 * 1024) {
    this.#bytes = Buffer.allocUnsafeSlow(initialBytes);
  }

  get position(): number {
    return this.#at;
  }

  /** The buffer itself, valid until the next write. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /** Returns the written bytes in a separate buffer, and resets the writer. */
  take(): Buffer {
    const taken = Buffer.allocUnsafe(this.#at);
    this.#bytes.copy(taken, 0, 0, this.#at);
    this.clear();
    return taken;
  }

  clear(): void {
    this.#at = 0;
    if (this.#bytes.length > keptBytes) this.#bytes = Buffer.allocUnsafeSlow(keptBytes);
  }

  int8(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value;
  }

  int16(value: number): void {
    this.#reserve(2);
    this.#at = this.#bytes.writeInt16BE(value, this.#at);
  }

  int32(value: number): void {
    this.#reserve(4);
    this.#at = this.#bytes.writeInt32BE(value, this.#at);
  }

  /** Writes a value at a position where four bytes were reserved. */
  int32At(position: number, value: number): void {
    this.#bytes.writeInt32BE(value | 0, position);
  }

  int64(value: bigint): void {
    this.#reserve(8);
    this.#at = this.#bytes.writeBigInt64BE(value, this.#at);
  }

  /** Length (int16, -1 for null) and UTF-8. */
  string(value: string | null): void {
    if (value === null) return this.int16(-1);
    const length = Buffer.byteLength(value);
    this.int16(length);
    this.#reserve(length);
    this.#at += this.#bytes.write(value, this.#at, length, 'utf8');
  }

  raw(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  /** Zigzag keeps small negative numbers small. It uses arithmetic, because bit operations are limited to 32 bits. */
  varInt(value: number): void {
    this.#reserve(maxVarIntBytes);
    let rest = value >= 0 ? value * 2 : -value * 2 - 1;
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#at++] = rest;
  }

  /** Length as a varint (-1 for null) and the bytes, or the string in UTF-8. */
  varBytes(value: string | Buffer | null | undefined): void {
    if (value === null || value === undefined) return this.varInt(-1);
    if (typeof value !== 'string') {
      this.varInt(value.length);
      return this.raw(value);
    }
    if (value.length <= loopChars && this.#ascii(value)) return;
    // The length is written after the text: one pass over the text instead of two.
    const start = this.beginSized();
    this.#reserve(value.length * maxUtf8Bytes);
    this.#at += this.#bytes.write(value, this.#at);
    this.endSized(start);
  }

  /**
   * Begins data that is preceded by its length as a varint; pass the returned value to endSized. One pass
   * suffices: two bytes are reserved for the length, and the data is moved in the rare case that the length has
   * a different size.
   */
  beginSized(): number {
    this.int16(0);
    return this.#at;
  }

  endSized(start: number): void {
    const length = this.#at - start;
    const sizeBytes = varIntBytes(length);
    this.#reserve(sizeBytes);
    if (sizeBytes !== 2) this.#bytes.copyWithin(start - 2 + sizeBytes, start, this.#at);
    this.#at = start - 2;
    this.varInt(length);
    this.#at += length;
  }

  /** Returns false, with nothing written, if the string is not ASCII. */
  #ascii(value: string): boolean {
    this.#reserve(1 + value.length);
    const bytes = this.#bytes;
    const { length } = value;
    let at = this.#at;
    bytes[at++] = length * 2;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code >= 0x80) return false;
      bytes[at++] = code;
    }
    this.#at = at;
    return true;
  }

  #reserve(more: number): void {
    if (this.#at + more <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + more));
    this.#bytes.copy(larger);
    this.#bytes = larger;
  }
}

function varIntBytes(length: number): number {
  let size = 1;
  for (let rest = length * 2; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}
