import { createRequire } from 'node:module';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ByteWriter } from './byte-writer.ts';
import type { MessageInput, ProduceArguments, Request } from './produce-request.ts';
import { produceRequestWith, writeRecord } from './produce-request.ts';

const require = createRequire(import.meta.url);
const theirRecord = require('kafkajs/src/protocol/recordBatch/record/v0') as (
  record: MessageInput & { offsetDelta?: number; timestampDelta?: number },
) => { buffer: Buffer };
const theirProduce = require('kafkajs/src/protocol/requests/produce/v3/request') as (
  options: ProduceArguments,
) => Request;
const ourProduce = produceRequestWith(theirProduce);

const text = fc.string({ unit: 'grapheme', maxLength: 300 });
const bytes = fc.oneof(
  text,
  fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
);
const message: fc.Arbitrary<MessageInput> = fc.record(
  {
    key: fc.option(bytes),
    value: fc.option(bytes),
    headers: fc.dictionary(text, fc.oneof(bytes, fc.array(text, { maxLength: 3 })), { maxKeys: 15 }),
  },
  { requiredKeys: [] },
);
const partitions = fc.array(
  fc.record({
    partition: fc.nat({ max: 63 }),
    messages: fc.array(message, { minLength: 1, maxLength: 5 }),
    firstSequence: fc.nat(),
  }),
  { maxLength: 4 },
);
const request = fc.record({
  acks: fc.constantFrom(-1, 1),
  timeout: fc.nat(),
  producerId: fc.bigInt({ min: -1n, max: 2n ** 63n - 1n }).map(String),
  producerEpoch: fc.nat({ max: 32_767 }),
  compression: fc.constant(0),
  topicData: fc.array(fc.record({ topic: text, partitions }), { maxLength: 3 }),
});

function ourRecord(input: MessageInput, offsetDelta: number, timestampDelta: number): Buffer {
  const writer = new ByteWriter(1);
  writeRecord(writer, input, offsetDelta, timestampDelta);
  return writer.take();
}

beforeEach(() => {
  vi.spyOn(Date, 'now').mockReturnValue(1_800_000_000_123);
});
afterEach(() => {
  vi.restoreAllMocks();
});

test('every record has the same bytes as in kafkajs', () => {
  fc.assert(
    fc.property(
      message,
      fc.nat({ max: 100_000 }),
      fc.integer({ min: -1_000_000, max: 10 ** 13 }),
      (input, offsetDelta, timestampDelta) => {
        expect(
          ourRecord(input, offsetDelta, timestampDelta).equals(
            theirRecord({ ...input, offsetDelta, timestampDelta }).buffer,
          ),
        ).toBe(true);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('records with length fields of every size', () => {
  for (const size of [
    0, 1, 40, 50, 56, 57, 58, 60, 63, 64, 65, 127, 128, 8_160, 8_180, 8_192, 16_383, 16_384, 2_097_151, 2_097_152,
  ]) {
    for (const value of ['x'.repeat(size), 'é'.repeat(size / 2)]) {
      const input = { value, headers: { h: Buffer.alloc(size), k: value } };
      expect(ourRecord({ value }, 0, 0).equals(theirRecord({ value }).buffer)).toBe(true);
      expect(ourRecord(input, 0, 0).equals(theirRecord(input).buffer)).toBe(true);
    }
  }
});

test('every produce request has the same bytes as in kafkajs', async () => {
  await fc.assert(
    fc.asyncProperty(request, async (options) => {
      const [ours, theirs] = await Promise.all([ourProduce(options).encode(), theirProduce(options).encode()]);
      expect(ours.buffer.equals(theirs.buffer)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

test('unsupported requests are left to kafkajs', async () => {
  const partition = { partition: 1, messages: [{ value: 'v' }], firstSequence: 0 };
  const options = {
    acks: -1,
    timeout: 1,
    producerId: '1',
    producerEpoch: 0,
    compression: 0,
    topicData: [{ topic: 't', partitions: [partition] }],
  };
  const dated = {
    ...options,
    topicData: [{ topic: 't', partitions: [{ ...partition, messages: [{ value: 'v', timestamp: '1700000000000' }] }] }],
  };
  for (const different of [{ ...options, compression: 1 }, { ...options, transactionalId: 'id' }, dated]) {
    const [ours, theirs] = await Promise.all([ourProduce(different).encode(), theirProduce(different).encode()]);
    expect(ours.buffer.equals(theirs.buffer)).toBe(true);
  }
});
