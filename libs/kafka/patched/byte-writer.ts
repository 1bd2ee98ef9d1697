/** Longer strings are written by the runtime; below, its call costs more than a loop. */
const loopChars = 64;
const maxVarIntBytes = 10;
/** Of one UTF-16 unit. */
const maxUtf8Bytes = 3;

/** About how many bytes are kept between two uses; what was needed beyond that is let go. */
const keptBytes = 4 * 1024 * 1024;

/**
 * Writes the types of the Kafka protocol (big-endian) one behind the other into one buffer, which
 * grows as needed and is used again.
 */
export class ByteWriter {
  #bytes: Buffer;
  #at = 0;

  constructor(initialBytes = 256 * 1024) {
    this.#bytes = Buffer.allocUnsafeSlow(initialBytes);
  }

  /** Where the next byte goes. */
  get position(): number {
    return this.#at;
  }

  /** The buffer itself, valid until the next write. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /** What was written, as a buffer of its own; this writer starts anew. */
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

  /** Puts a value where four bytes were left for it. */
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

  /** Zigzag makes small negative numbers small; plain arithmetic keeps it right beyond 32 bits. */
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
    // Written before its length is known: one pass over the text instead of two.
    const start = this.beginSized();
    this.#reserve(value.length * maxUtf8Bytes);
    this.#at += this.#bytes.write(value, this.#at);
    this.endSized(start);
  }

  /**
   * Begins what has its length as a varint before it; give the returned value to endSized. In one
   * pass: two bytes are left for the length, and what was written moves in the rare case that it
   * takes another number of them.
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

  /** False, with nothing written, when the string is not ASCII. */
  #ascii(value: string): boolean {
    this.#reserve(2 + value.length);
    const bytes = this.#bytes;
    const { length } = value;
    let at = this.#at;
    if (length >= 64) {
      bytes[at++] = 0x80 | ((length * 2) & 0x7f);
      bytes[at++] = length >>> 6;
    } else {
      bytes[at++] = length * 2;
    }
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
