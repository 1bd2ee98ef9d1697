import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeRecord } from './record-encoder.ts';
import type { RecordInput } from './record-encoder.ts';

const theirs = createRequire(import.meta.url)('kafkajs/src/protocol/recordBatch/record/v0') as (record: RecordInput) => { buffer: Buffer };

const text = fc.string({ unit: 'grapheme', maxLength: 300 });
const bytes = fc.oneof(text, fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)));
const record: fc.Arbitrary<RecordInput> = fc.record({
  offsetDelta: fc.nat({ max: 100_000 }),
  timestampDelta: fc.integer({ min: -1_000_000, max: 10 ** 13 }),
  key: fc.option(bytes),
  value: fc.option(bytes),
  headers: fc.dictionary(text, fc.oneof(bytes, fc.array(text, { maxLength: 3 })), { maxKeys: 15 }),
}, { requiredKeys: [] });

test('every record has the bytes that kafkajs makes', () => {
  fc.assert(fc.property(record, (input) => {
    expect(encodeRecord(input).buffer.equals(theirs(input).buffer)).toBe(true);
  }), { numRuns: 2_000 });
});

test('large values', () => {
  for (const size of [127, 128, 16_383, 16_384, 2_097_151, 2_097_152]) {
    const input = { value: 'x'.repeat(size), headers: { h: Buffer.alloc(size) } };
    expect(encodeRecord(input).buffer.equals(theirs(input).buffer)).toBe(true);
  }
});
