import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32c } from './crc32c.ts';

const theirs = createRequire(import.meta.url)('kafkajs/src/protocol/recordBatch/crc32C') as (bytes: Buffer) => number;

test('known values', () => {
  // The check value of the catalogue of CRCs, and the four of RFC 3720 (iSCSI), B.4.
  expect(crc32c(Buffer.from('123456789'), 0, 9)).toBe(0xe3069283);
  expect(crc32c(Buffer.alloc(32), 0, 32)).toBe(0x8a9136aa);
  expect(crc32c(Buffer.alloc(32, 0xff), 0, 32)).toBe(0x62a8ab43);
  expect(crc32c(Buffer.from(Array.from({ length: 32 }, (_, i) => i)), 0, 32)).toBe(0x46dd794e);
  expect(crc32c(Buffer.from(Array.from({ length: 32 }, (_, i) => 31 - i)), 0, 32)).toBe(0x113fdb5c);
  expect(crc32c(Buffer.alloc(0), 0, 0)).toBe(0);
});

test('equals kafkajs for every length and alignment', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat({ max: 20 }), fc.nat({ max: 20 }), (array, offset, from) => {
      const bytes = Buffer.from(new Uint8Array([...new Uint8Array(offset), ...array]).buffer, offset);
      const start = Math.min(from, bytes.length);
      expect(crc32c(bytes, start, bytes.length)).toBe(theirs(bytes.subarray(start)));
    }),
    { numRuns: 2_000 },
  );
});
