import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decompressLz4 } from './lz4.ts';
import { decompressSnappy } from './snappy.ts';

/** Data that no broker sends. codecs.int.test.ts reads data that brokers have compressed. */
const snappy = Buffer.from([12, 0x08, 0x61, 0x62, 0x63, 0x15, 0x03]);
const lz4 = Buffer.from('04224d18604082' + '07000000' + '35616263030000' + '00000000', 'hex');

test('copies that overlap their output', () => {
  expect(String(decompressSnappy(snappy))).toBe('abcabcabcabc');
  expect(String(decompressLz4(lz4))).toBe('abcabcabcabc');
});

test.each([
  ['snappy', decompressSnappy, snappy],
  ['lz4', decompressLz4, lz4],
] as const)(
  '%s: invalid or truncated bytes are an error, never a loop or foreign memory',
  (_name, decompress, whole) => {
    const settled = (bytes: Buffer) => {
      try {
        return decompress(bytes).length >= 0;
      } catch (error) {
        return error instanceof RangeError;
      }
    };
    for (let end = 1; end < whole.length; end++) expect(settled(whole.subarray(0, end)), String(end)).toBe(true);
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => settled(Buffer.from(bytes))));
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
        const changed = Buffer.from(whole);
        changed[at] = byte;
        return settled(changed);
      }),
    );
  },
);
