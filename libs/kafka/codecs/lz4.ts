/**
 * Decompresses LZ4 frames (github.com/lz4/lz4, doc/lz4_Frame_format.md). Checksums are not verified, because
 * Kafka has one over the whole record batch.
 */

const magic = 0x184d2204;
const blockChecksumFlag = 0x10;
const contentSizeFlag = 0x08;
const contentChecksumFlag = 0x04;
const dictionaryFlag = 0x01;
const uncompressedFlag = 0x80000000;
const minMatch = 4;

export function decompressLz4(bytes: Buffer): Buffer {
  const blocks = new Output();
  for (let at = 0; at < bytes.length; ) at = readFrame(bytes, at, blocks);
  return blocks.bytes();
}

/** Decompresses one frame and returns its end. */
function readFrame(bytes: Buffer, start: number, to: Output): number {
  if (bytes.readUInt32LE(start) !== magic) throw new RangeError('not an lz4 frame');
  const flags = bytes.readUInt8(start + 4);
  if (flags & dictionaryFlag) throw new RangeError('an lz4 frame needs a dictionary');
  // Magic number, flags, block size, and header checksum.
  let at = start + 7 + (flags & contentSizeFlag ? 8 : 0);
  to.beginFrame();
  for (;;) {
    const head = bytes.readUInt32LE(at);
    at += 4;
    if (head === 0) return at + (flags & contentChecksumFlag ? 4 : 0);
    const size = head & ~uncompressedFlag;
    if (at + size > bytes.length) throw new RangeError('an lz4 block is truncated');
    const block = bytes.subarray(at, at + size);
    if (head >= uncompressedFlag) to.copyFrom(block, 0, size);
    else readBlock(block, to);
    at += size + (flags & blockChecksumFlag ? 4 : 0);
  }
}

function readBlock(block: Buffer, to: Output): void {
  for (let at = 0; at < block.length; ) {
    const token = block.readUInt8(at++);
    const length = (first: number): number => {
      let sum = first;
      for (let byte = first === 15 ? 255 : 0; byte === 255; sum += byte) byte = block.readUInt8(at++);
      return sum;
    };
    const literals = length(token >> 4);
    to.copyFrom(block, at, literals);
    at += literals;
    if (at === block.length) return;
    const offset = block.readUInt16LE(at);
    at += 2;
    to.repeat(offset, length(token & 15) + minMatch);
  }
}

/** The decompressed bytes. They are contiguous, because blocks may copy from earlier blocks. */
class Output {
  #buffer = Buffer.allocUnsafe(64 * 1024);
  #length = 0;
  #frameStart = 0;

  beginFrame(): void {
    this.#frameStart = this.#length;
  }

  copyFrom(source: Buffer, at: number, count: number): void {
    if (at + count > source.length) throw new RangeError('lz4 literals are truncated');
    this.#reserve(count);
    this.#length += source.copy(this.#buffer, this.#length, at, at + count);
  }

  /** Copied byte by byte, because the source may overlap the destination. */
  repeat(offset: number, count: number): void {
    if (offset === 0 || offset > this.#length - this.#frameStart)
      throw new RangeError('an lz4 copy has an invalid offset');
    this.#reserve(count);
    const buffer = this.#buffer;
    for (let left = count; left > 0; left--, this.#length++)
      buffer[this.#length] = buffer[this.#length - offset] as number;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#length + count));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
