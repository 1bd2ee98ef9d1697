import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { OutgoingMessage, PublishError } from './outgoing-message.ts';
import { batchHeaderBytes, recordBytes } from './outgoing-message.ts';
import { partitionForKey } from './partitioner.ts';
import type { Entry, PublishCall } from './publish-queue.ts';
import { acknowledgeOne, fail, PublishQueue } from './publish-queue.ts';

const require = createRequire(import.meta.url);
const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0') as {
  RecordBatch(input: object): Promise<{ buffer: Buffer }>;
};
const encodeRecord = require('kafkajs/src/protocol/recordBatch/record/v0') as (input: object) => object;

const limits =
  (maxBatchBytes = 100_000) =>
  () => ({ partitions: 4, maxBatchBytes });
const values = (entries: Entry[]): string[] => entries.map(({ message }) => String(message.value));

function message(value: string, partition = 0, topic = 'topic'): OutgoingMessage {
  return { topic, key: 'key', value, headers: {}, partition };
}

function push(
  queue: PublishQueue,
  messages: OutgoingMessage[],
  deadline = 1_000,
): { call: PublishCall; outcome: Promise<undefined | PublishError> } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const call: PublishCall = {
    unacknowledged: messages.length,
    deadline,
    isBegun: false,
    isSettled: false,
    resolve,
    reject,
  };
  queue.push(messages, call);
  return {
    call,
    outcome: promise.then(
      () => undefined,
      (error: PublishError) => error,
    ),
  };
}

const text = fc.string({ unit: 'grapheme', maxLength: 300 });
const anyMessage = fc.record({
  topic: fc.constant('topic'),
  key: fc.option(text),
  value: fc.option(
    fc.oneof(
      text,
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    ),
  ),
  headers: fc.dictionary(
    text.filter((name) => name !== '__proto__'),
    text,
    { maxKeys: 15 },
  ),
});

test('an encoded batch is never larger than calculated', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyMessage, { minLength: 1, maxLength: 20 }),
      fc.nat({ max: 2 ** 40 }),
      async (messages, timestampDelta) => {
        const counted = messages.reduce((sum, each) => sum + recordBytes(each), batchHeaderBytes);
        const records = messages.map((each, i) =>
          encodeRecord({ ...each, offsetDelta: i + 1_000_000, timestampDelta }),
        );
        const { buffer } = await RecordBatch({ records, firstTimestamp: 1, maxTimestamp: 1 });
        expect(buffer.length).toBeLessThanOrEqual(counted);
      },
    ),
  );
});

test('one send contains the waiting messages in order, for each partition up to the batch size of its topic', () => {
  const queue = new PublishQueue();
  const large = 'x'.repeat(60_000);
  push(queue, [message(large), message('1', 1), message(`${large}2`, 1), message(large)]);
  push(queue, [message('other', 0, 'other')]);
  expect(values(queue.take(limits()))).toEqual([large, '1', `${large}2`]);
  expect(queue.length).toBe(2);
  expect(values(queue.take(limits()))).toEqual([large, 'other']);
  expect(queue.take(limits())).toEqual([]);
});

test('the key determines the partition; without a key it is partition 0', () => {
  const queue = new PublishQueue();
  push(queue, [
    { topic: 't', key: 'some key', value: 'v', headers: {} },
    { topic: 't', key: null, value: 'v', headers: {} },
  ]);
  expect(queue.take(limits()).map(({ copy }) => copy?.partition)).toEqual([partitionForKey('some key', 4), 0]);
});

test('a message that is too large or has no valid destination fails alone and is not sent', async () => {
  const queue = new PublishQueue();
  const bad = [message('x'.repeat(100_000)), message('v', 4), message('v', 0, 'unknown')].map(
    (each) => push(queue, [each]).outcome,
  );
  push(queue, [message('good')]);
  expect(values(queue.take((topic) => (topic === 'unknown' ? undefined : limits()())))).toEqual(['good']);
  const errors = await Promise.all(bad);
  expect(errors.map((error) => error?.sent)).toEqual([false, false, false]);
  expect(errors.map((error) => error?.message)).toEqual([
    expect.stringContaining('larger than the 100000'),
    'topic: there is no partition 4',
    'unknown: there is no such topic',
  ]);
});

test('expired messages are removed; the outcome of a call that was begun is unknown', async () => {
  const queue = new PublishQueue();
  const [late, begun, other] = [
    push(queue, [message('1')], 10),
    push(queue, [message('2'), message('3')], 10),
    push(queue, [message('4')], 20),
  ];
  begun.call.isBegun = true;
  queue.expire(9, 'too late');
  expect(queue.length).toBe(4);
  queue.expire(10, 'too late');
  expect(await late.outcome).toMatchObject({ sent: false, message: 'too late' });
  expect(await begun.outcome).toMatchObject({ sent: true });
  expect(values(queue.take(limits()))).toEqual(['4']);
  acknowledgeOne(other.call);
  fail(other.call, 'too late');
  expect(await other.outcome).toBeUndefined();
});
