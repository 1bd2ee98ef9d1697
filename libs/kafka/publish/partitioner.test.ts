import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { murmur2, partitionForKey } from './partitioner.ts';

const theirs = createRequire(import.meta.url)('kafkajs/src/producer/partitioners/default/murmur2.js') as (
  key: string,
) => number;

// From Kafka's own UtilsTest.testMurmur2.
test.each([
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
  ['abc', 479470107],
])('murmur2(%s)', (key, hash) => {
  expect(murmur2(key)).toBe(hash);
});

test('every key is assigned to the same partition as by the Java clients and kafkajs', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (key) => {
      expect(murmur2(key)).toBe(theirs(key));
      expect(partitionForKey(key, 24)).toBe((theirs(key) & 0x7fffffff) % 24);
    }),
  );
});
