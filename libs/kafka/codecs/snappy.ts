/**
 * Decompresses Snappy as written by Kafka clients: framed blocks of the Java library (xerial), or a single
 * block from librdkafka.
 */

const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
/** The magic number and two version numbers. */
const xerialHeaderBytes = 16;
/** No decompressed record batch is larger than this. One whose header says so is corrupt. */
const maxBytes = 1 << 30;

export function decompressSnappy(bytes: Buffer): Buffer {
  if (!bytes.subarray(0, xerialMagic.length).equals(xerialMagic)) return decompressBlock(bytes);
  const blocks: Buffer[] = [];
  for (let at = xerialHeaderBytes; at < bytes.length; ) {
    const size = bytes.readInt32BE(at);
    if (size < 0 || at + 4 + size > bytes.length) throw new RangeError('a snappy block is truncated');
    blocks.push(decompressBlock(bytes.subarray(at + 4, at + 4 + size)));
    at += 4 + size;
  }
  return Buffer.concat(blocks);
}

/** github.com/google/snappy, format_description.txt */
function decompressBlock(from: Buffer): Buffer {
  let [at, size, shift] = [0, 0, 0];
  for (let more = true; more; shift += 7) {
    const byte = byteAt(from, at++);
    size += (byte & 0x7f) * 2 ** shift;
    more = byte >= 0x80;
  }
  if (size > maxBytes) throw new RangeError('a snappy block is too large');
  const to = Buffer.allocUnsafe(size);
  let written = 0;
  while (at < from.length) {
    const tag = byteAt(from, at++);
    const kind = tag & 3;
    if (kind === 0) {
      let length = tag >> 2;
      const lengthBytes = Math.max(0, length - 59);
      if (lengthBytes > 0) length = uint(from, at, lengthBytes);
      at += lengthBytes;
      length += 1;
      if (at + length > from.length || written + length > size) throw new RangeError('a snappy literal is truncated');
      written += from.copy(to, written, at, at + length);
      at += length;
      continue;
    }
    const offsetBytes = kind === 3 ? 4 : kind;
    const offset = uint(from, at, offsetBytes) + (kind === 1 ? (tag >> 5) << 8 : 0);
    const length = kind === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
    at += offsetBytes;
    if (offset === 0 || offset > written || written + length > size)
      throw new RangeError('a snappy copy has an invalid offset');
    // Copied byte by byte, because the source may overlap the destination.
    for (let left = length; left > 0; left--, written++) to[written] = to[written - offset] as number;
  }
  if (written !== size) throw new RangeError('a snappy block is shorter than its header says');
  return to;
}

function uint(bytes: Buffer, at: number, count: number): number {
  if (at + count > bytes.length) throw new RangeError('a snappy block is truncated');
  return bytes.readUIntLE(at, count);
}

function byteAt(bytes: Buffer, at: number): number {
  return uint(bytes, at, 1);
}
