import { createRequire } from 'node:module';
import fc from 'fast-check';
import type { KafkaMessage } from 'kafkajs';
import { expect, test } from 'vitest';
import { ByteWriter } from './byte-writer.ts';
import { crc32c } from './crc32c.ts';
import { decodeFetchResponse } from './fetch-response.ts';
import { FetchedBatch } from './fetched-batch.ts';

interface TheirPartition {
  partition: number;
  messages: (KafkaMessage & { isControlRecord: boolean })[];
}

interface TheirBatch {
  messages: KafkaMessage[];
  isEmpty(): boolean;
  firstOffset(): string;
  lastOffset(): string;
  offsetLag(): string;
  offsetLagLow(): string;
}

interface BatchInput {
  firstOffset: number;
  messages: {
    key: Buffer | null;
    value: Buffer | null;
    headers: Record<string, string | string[]>;
    timestampDelta: number;
  }[];
  /** The number of records after the last one that compaction has removed. */
  hole: number;
  isControl: boolean;
  isAppendTime: boolean;
  compression: number;
}

const require = createRequire(import.meta.url);
const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0') as {
  RecordBatch(input: object): Promise<{ buffer: Buffer }>;
};
const Record_ = require('kafkajs/src/protocol/recordBatch/record/v0') as (input: object) => object;
const theirs = require('kafkajs/src/protocol/requests/fetch/v11/response') as {
  decode(bytes: Buffer): Promise<{ responses: { topicName: string; partitions: TheirPartition[] }[] }>;
};
const TheirBatch = require('kafkajs/src/consumer/batch') as new (
  topic: string,
  fetchedOffset: string,
  data: TheirPartition,
) => TheirBatch;

const maybeBytes = fc.option(fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)));
const message = fc.record({
  key: maybeBytes,
  value: maybeBytes,
  headers: fc.dictionary(
    fc.string({ unit: 'grapheme' }).filter((name) => name !== '__proto__'),
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.array(fc.string(), { minLength: 2, maxLength: 3 })),
    { maxKeys: 5 },
  ),
  timestampDelta: fc.integer({ min: -100_000, max: 10 ** 11 }),
});
const batch = fc.record({
  gap: fc.nat({ max: 3 }),
  messages: fc.array(message, { minLength: 1, maxLength: 4 }),
  hole: fc.nat({ max: 2 }),
  isControl: fc.boolean(),
  isAppendTime: fc.boolean(),
  compression: fc.constantFrom(0, 0, 0, 1),
});
/** The batches of one partition, in sequence. */
const batches = fc.array(batch, { maxLength: 4 }).map((list) => {
  let at = 1_000;
  return list.map(({ gap, ...rest }): BatchInput => {
    const firstOffset = at + gap;
    at = firstOffset + rest.messages.length + rest.hole;
    return { firstOffset, ...rest };
  });
});

async function encodeBatch({
  firstOffset,
  messages,
  hole,
  isControl,
  isAppendTime,
  compression,
}: BatchInput): Promise<Buffer> {
  const records = messages.map((input, offsetDelta) => Record_({ ...input, offsetDelta }));
  const { buffer } = await RecordBatch({
    firstOffset,
    records,
    compression,
    firstTimestamp: 1_700_000_000_000,
    maxTimestamp: 1_800_000_000_000,
    lastOffsetDelta: messages.length - 1 + hole,
  });
  buffer.writeInt16BE(buffer.readInt16BE(21) | (isControl ? 0x20 : 0) | (isAppendTime ? 0x08 : 0), 21);
  buffer.writeUInt32BE(crc32c(buffer, 21, buffer.length), 17);
  return buffer;
}

async function encodeResponse(partitions: BatchInput[][], cut: number): Promise<Buffer> {
  const writer = new ByteWriter();
  writer.int32(0);
  writer.int16(0);
  writer.int32(0);
  writer.int32(1);
  writer.string('topic');
  writer.int32(partitions.length);
  for (const [partition, list] of partitions.entries()) {
    writer.int32(partition);
    writer.int16(0);
    for (const offset of [2_000n, 2_000n, 0n]) writer.int64(offset);
    writer.int32(partition % 2 === 0 ? -1 : 1);
    if (partition % 2 === 1) writer.raw(Buffer.alloc(16));
    writer.int32(-1);
    const set = Buffer.concat(await Promise.all(list.map(encodeBatch)));
    // A broker sends the first batch completely.
    const firstLength = list[0] ? (await encodeBatch(list[0])).length : 0;
    const sent = set.subarray(0, set.length - cut < firstLength ? 0 : set.length - cut);
    writer.int32(sent.length);
    writer.raw(sent);
  }
  return writer.take();
}

/** Converts kafkajs' message to our form. */
function asReceived({ key, value, headers = {}, timestamp, offset }: KafkaMessage) {
  const texts = Object.entries(headers).map(([name, header]) => [
    name,
    String(Array.isArray(header) ? header.at(-1) : header),
  ]);
  return {
    topic: 'topic',
    partition: 0,
    offset: BigInt(offset),
    key: key && key.toString(),
    value,
    headers: Object.fromEntries(texts),
    timestamp_ms: Number(timestamp),
  };
}

test('reads the same as kafkajs, however batches are split, and wherever the fetch began or was cut', async () => {
  await fc.assert(
    fc.asyncProperty(batches, fc.nat({ max: 12 }), fc.constantFrom(0, 0, 1, 60, 90), async (list, from, cut) => {
      const bytes = await encodeResponse([list], cut);
      const [theirData] = (await theirs.decode(bytes)).responses.flatMap(({ partitions }) => partitions);
      const [ourData] = (await decodeFetchResponse(bytes)).responses.flatMap(({ partitions }) => partitions);
      const their = new TheirBatch('topic', String(1_000 + from), theirData as TheirPartition);
      if (!ourData) {
        expect(theirData?.messages).toEqual([]);
        return;
      }
      const our = new FetchedBatch('topic', String(1_000 + from), ourData);
      expect(our.messages.map((record) => record.received('topic', 0))).toEqual(their.messages.map(asReceived));
      expect(our.isEmpty()).toBe(their.isEmpty());
      // kafkajs continues after the last message, our decoder after the last complete batch.
      const sizes = await Promise.all(list.map(async (batch) => (await encodeBatch(batch)).length));
      const sumTo = (i: number) => sizes.slice(0, i + 1).reduce((sum, size) => sum + size, 0);
      const whole = list
        .filter((_, i) => sumTo(i) <= sumTo(sizes.length) - cut)
        .map(({ firstOffset, messages, hole }) => firstOffset + messages.length + hole - 1);
      expect(our.lastOffset()).toBe(BigInt(Math.max(1_000 + from, whole.at(-1) ?? 0)));
      if (!our.isEmpty())
        expect([String(our.firstOffset()), our.offsetLagLow()]).toEqual([
          String(our.messages[0]?.offset),
          String(1_999n - our.firstOffset()),
        ]);
    }),
    { numRuns: 500 },
  );
});

test('partitions without new messages are left out; those with only control records or gaps advance', async () => {
  const one = {
    messages: [{ key: null, value: null, headers: {}, timestampDelta: 0 }],
    hole: 5,
    isControl: false,
    isAppendTime: false,
    compression: 0,
  };
  const bytes = await encodeResponse(
    [[], [{ ...one, firstOffset: 7, isControl: true }], [], [{ ...one, firstOffset: 7 }]],
    0,
  );
  const [answer] = (await decodeFetchResponse(bytes)).responses;
  const found = answer?.partitions.map((data) => new FetchedBatch('topic', '8', data)) ?? [];
  expect(found.map(({ partition }) => partition)).toEqual([1, 3]);
  for (const each of found) {
    expect([
      each.isEmpty(),
      each.isEmptyDueToFiltering(),
      each.firstOffset(),
      each.lastOffset(),
      each.offsetLag(),
    ]).toEqual([true, true, 8n, 12n, '1987']);
  }
});

test('the last header with a name counts', async () => {
  const headers = { a: 'x', ab: ['1', '2'], b: '' };
  const bytes = await encodeResponse(
    [
      [
        {
          firstOffset: 0,
          messages: [{ key: Buffer.from('k'), value: null, headers, timestampDelta: 0 }],
          hole: 0,
          isControl: false,
          isAppendTime: false,
          compression: 0,
        },
      ],
    ],
    0,
  );
  const record = (await decodeFetchResponse(bytes)).responses[0]?.partitions[0]?.messages[0];
  expect(record?.received('t', 3)).toEqual({
    topic: 't',
    partition: 3,
    offset: 0n,
    key: 'k',
    value: null,
    headers: { a: 'x', ab: '2', b: '' },
    timestamp_ms: 1_700_000_000_000,
  });
});

test('unreadable data is an error, not a loss', async () => {
  const list = [
    {
      firstOffset: 0,
      messages: [{ key: null, value: Buffer.from('v'), headers: {}, timestampDelta: 0 }],
      hole: 0,
      isControl: false,
      isAppendTime: false,
      compression: 0,
    },
  ];
  const bytes = await encodeResponse([list], 0);
  const old = Buffer.from(bytes);
  const batchAt = old.length - (await encodeBatch(list[0] as BatchInput)).length;
  old[batchAt + 16] = 1;
  await expect(decodeFetchResponse(old)).rejects.toThrow('a record batch of format 1 cannot be read');
});

test('neither a batch with one changed bit or an impossible length nor anything after it is read', async () => {
  const one = {
    messages: [{ key: null, value: Buffer.from('100.00'), headers: {}, timestampDelta: 0 }],
    hole: 0,
    isControl: false,
    isAppendTime: false,
    compression: 0,
  };
  const whole = await encodeResponse([[0, 1, 2].map((firstOffset) => ({ ...one, firstOffset }))], 0);
  const { length } = await encodeBatch({ ...one, firstOffset: 1 });
  const second = whole.length - 2 * length;
  const first = (await decodeFetchResponse(whole)).responses[0]?.partitions[0];
  expect([first?.messages.length, first?.corrupt]).toEqual([3, undefined]);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 17 * 8, max: length * 8 - 1 }), async (bit) => {
      const bytes = Buffer.from(whole);
      bytes.writeUInt8(bytes.readUInt8(second + (bit >> 3)) ^ (1 << (bit & 7)), second + (bit >> 3));
      const found = (await decodeFetchResponse(bytes)).responses[0]?.partitions[0];
      expect([found?.messages.length, found?.nextOffset]).toEqual([1, 1n]);
      expect(found?.corrupt).toContain('the record batch at offset 1');
    }),
  );
  for (const wrongLength of [-5, 0, 48]) {
    const bytes = Buffer.from(whole);
    bytes.writeInt32BE(wrongLength, second + 8);
    expect((await decodeFetchResponse(bytes)).responses[0]?.partitions[0]).toMatchObject({
      nextOffset: 1n,
      corrupt: expect.stringContaining('impossible length'),
    });
  }
});

test('a first batch that is longer than the response is corrupt, because the broker sends it completely', async () => {
  const list = [
    {
      firstOffset: 3,
      messages: [{ key: null, value: Buffer.from('v'), headers: {}, timestampDelta: 0 }],
      hole: 0,
      isControl: false,
      isAppendTime: false,
      compression: 0,
    },
  ];
  const bytes = await encodeResponse([list], 0);
  bytes.writeInt32BE(1_000_000, bytes.length - (await encodeBatch(list[0] as BatchInput)).length + 8);
  const data = (await decodeFetchResponse(bytes)).responses[0]?.partitions[0];
  expect(data?.corrupt).toContain('the record batch at offset 3 has an impossible length');
  const batch = new FetchedBatch('topic', '3', data as never);
  expect([batch.isEmpty(), batch.isEmptyDueToFiltering(), batch.messages.length]).toEqual([false, false, 0]);
});
