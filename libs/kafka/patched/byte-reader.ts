/** Reads the types of the Kafka protocol (big-endian) sequentially, without copying. */
export class ByteReader {
  readonly bytes: Buffer;
  /** The position of the next byte to read. */
  at: number;

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  int16(): number {
    const value = this.bytes.readInt16BE(this.at);
    this.at += 2;
    return value;
  }

  int32(): number {
    const value = this.bytes.readInt32BE(this.at);
    this.at += 4;
    return value;
  }

  int64(): bigint {
    const value = this.bytes.readBigInt64BE(this.at);
    this.at += 8;
    return value;
  }

  /** Length (int16, -1 for null, which is returned as '') and UTF-8. */
  string(): string {
    const length = this.int16();
    return length > 0 ? this.text(length) : '';
  }

  /** The next `length` bytes as UTF-8. */
  text(length: number): string {
    const start = this.at;
    this.at = start + length;
    return this.bytes.toString('utf8', start, this.at);
  }

  /** Zigzag. It uses arithmetic, because bit operations are limited to 32 bits. */
  varInt(): number {
    let byte = this.bytes[this.at++] as number;
    let value = byte & 0x7f;
    for (let scale = 0x80; byte >= 0x80; scale *= 0x80) {
      byte = this.bytes[this.at++] as number;
      value += (byte & 0x7f) * scale;
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}
