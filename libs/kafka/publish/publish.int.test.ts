import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { topicTable } from '#libs/contracts/topics.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import type { KafkaClient } from '../client.ts';
import { Consumer, type ReceivedMessage } from '../consume/consume.ts';
import { anyTopic, FaultProxy, logger, sleep, testKafka, testTopic, unique } from '../test/test-kit.ts';
import { ensureTopics, topicRanges } from '../topics.ts';
import type { PublisherOptions } from './publish.ts';
import { PublishError, Publisher } from './publish.ts';

let kafka: KafkaClient;
let proxy: FaultProxy;
let topic: string;
const running: Publisher[] = [];

beforeAll(async () => {
  kafka = testKafka();
  proxy = await new FaultProxy().open();
  topic = await testTopic(kafka, 'publish', 4);
});

beforeEach(() => proxy.heal());

afterAll(async () => {
  await Promise.all(running.map((publisher) => publisher.stop({ timeoutMs: 0 })));
  await proxy.set({ kind: 'refuse' });
});

async function started(client: KafkaClient, options: Partial<PublisherOptions> = {}): Promise<Publisher> {
  const publisher = new Publisher(client, { logger, topics: anyTopic(), name: 'test', ...options });
  running.push(publisher);
  await publisher.start();
  return publisher;
}

function message(to: string, key: string | null, value: string) {
  return { topic: to, key, value, headers: { 'x-test': 'ä' } };
}

async function count(of: string): Promise<number> {
  return Number((await topicRanges(kafka, of)).reduce((sum, { high }) => sum + high, 0n));
}

async function readAll(from: string): Promise<ReceivedMessage[]> {
  const expected = await count(from);
  const read: ReceivedMessage[] = [];
  const consumer = new Consumer(kafka, {
    groupId: unique('read'),
    topics: [from],
    logger,
    handle: async (messages) => {
      read.push(...messages);
    },
  });
  await consumer.start();
  await eventually(() => read.length >= expected);
  await consumer.stop();
  return read;
}

/** The values of each key, in the order in which they are in the topic. */
function byKey(messages: ReceivedMessage[]): Map<string | null, string[]> {
  const groups = Map.groupBy(messages, ({ key }) => key);
  return new Map([...groups].map(([key, list]) => [key, list.map(({ value }) => String(value))]));
}

async function rejection(promise: Promise<unknown>): Promise<PublishError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(PublishError);
  return error as PublishError;
}

describe('exactness', () => {
  test('20,000 concurrent publishes arrive once each and in order per key', async () => {
    const publisher = await started(kafka, { maxQueued: 20_000 });
    await Promise.all(
      Array.from({ length: 20_000 }, (_, i) =>
        publisher.publish(message(topic, `key-${i % 50}`, String(i)), { timeoutMs: 20_000 }),
      ),
    );
    const values = byKey(await readAll(topic));
    expect(values.size).toBe(50);
    for (const [key, list] of values) {
      const first = Number(key?.slice(4));
      expect(list).toEqual(Array.from({ length: 400 }, (_, i) => String(first + i * 50)));
    }
  });

  test('with lost responses, no message is lost or duplicated, and order is preserved', async () => {
    const cut = await testTopic(kafka, 'cut', 3);
    const publisher = await started(testKafka(proxy.route));
    const sent: Promise<void>[] = [];
    for (let i = 0; i < 1_500; i++) {
      if (i % 100 === 50) {
        // Each cut interrupts a different send, while more messages are queued.
        await eventually(() => proxy.cuts().left === 0 && publisher.queued() < 60);
        await proxy.set({ kind: 'cut_answers', which: 'produce', times: 1 });
      }
      sent.push(
        publisher.publish(message(cut, i % 10 === 9 ? null : `key-${i % 7}`, String(i)), { timeoutMs: 20_000 }),
      );
      if (i % 10 === 0) await sleep(2);
    }
    await Promise.all(sent);
    expect(proxy.cuts().done).toBeGreaterThanOrEqual(14);
    const messages = await readAll(cut);
    expect(messages.map(({ value }) => Number(value)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 1_500 }, (_, i) => i),
    );
    for (const [key, list] of byKey(messages)) {
      if (key !== null) expect(list.map(Number)).toEqual(list.map(Number).sort((a, b) => a - b));
    }
  });

  test('publishAll preserves order, also across several sends', async () => {
    const large = await testTopic(kafka, 'large', 1, { 'max.message.bytes': '262144' });
    const publisher = await started(kafka, { topics: anyTopic(262_144) });
    const value = 'x'.repeat(3_000);
    await publisher.publishAll(
      Array.from({ length: 1_200 }, (_, i) => message(large, 'key', `${i} ${value}`)),
      { timeoutMs: 20_000 },
    );
    expect((await readAll(large)).map((read) => Number.parseInt(String(read.value), 10))).toEqual(
      Array.from({ length: 1_200 }, (_, i) => i),
    );
  });
});

describe('sizes', () => {
  test('every topic of the table accepts as many messages as one send can contain', async () => {
    const prefix = `${unique('full')}.`;
    const table = topicTable(prefix);
    await ensureTopics(
      kafka,
      [...table].map(([name, { config }]) => ({ name, partitions: 1, replication_factor: 1, config })),
    );
    const publisher = await started(kafka, { topics: table, maxQueued: 100_000 });
    const value = JSON.stringify({ text: 'é'.repeat(500) });
    const sends = [...table.keys()].map(async (name) => {
      await publisher.publishAll(
        Array.from({ length: 2_500 }, () => message(name, 'key', value)),
        { timeoutMs: 30_000 },
      );
      return count(name);
    });
    expect(await Promise.all(sends)).toEqual(sends.map(() => 2_500));
  });
});

describe('errors', () => {
  test('immediately refused messages were not sent', async () => {
    const publisher = new Publisher(kafka, { logger, topics: anyTopic(), name: 'refusing', maxQueued: 2 });
    expect((await rejection(publisher.publish(message(topic, null, 'a'), { timeoutMs: 1_000 }))).sent).toBe(false);
    await publisher.start();
    const results = await Promise.allSettled(
      ['a', 'b', 'c'].map((value) => publisher.publish(message(topic, null, value), { timeoutMs: 5_000 })),
    );
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(
      (await rejection(publisher.publish(message(topic, null, 'x'.repeat(1_100_000)), { timeoutMs: 1_000 }))).sent,
    ).toBe(false);
    await publisher.stop();
    expect((await rejection(publisher.publish(message(topic, null, 'a'), { timeoutMs: 1_000 }))).sent).toBe(false);
  });

  test('a message for an unknown topic or partition fails alone and is not sent', async () => {
    const publisher = await started(kafka);
    const bad = rejection(publisher.publish(message(unique('nowhere'), 'key', 'a'), { timeoutMs: 10_000 }));
    const good = publisher.publish(message(topic, 'key', 'b'), { timeoutMs: 10_000 });
    expect((await bad).sent).toBe(false);
    await good;
    const [outside, inside] = await Promise.allSettled([
      publisher.publish({ ...message(topic, 'key', 'a'), partition: 99 }, { timeoutMs: 5_000 }),
      publisher.publish(message(topic, 'key', 'b'), { timeoutMs: 5_000 }),
    ]);
    expect(outside).toMatchObject({ status: 'rejected', reason: { sent: false } });
    expect(inside.status).toBe('fulfilled');
  });

  test('with an unreachable broker, a message fails in time as not sent and is never sent later', async () => {
    const away = await testTopic(kafka, 'away', 2);
    const publisher = await started(testKafka(proxy.route));
    await publisher.publish(message(away, 'key', 'before'), { timeoutMs: 5_000 });
    await proxy.set({ kind: 'refuse' });
    await sleep(50);
    const errors = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        rejection(publisher.publish(message(away, 'key', `lost ${i}`), { timeoutMs: 700 })),
      ),
    );
    expect(errors.every(({ sent }) => !sent)).toBe(true);
    const waiting = publisher.publish(message(away, 'key', 'after'), { timeoutMs: 10_000 });
    await proxy.heal();
    await waiting;
    await sleep(500);
    expect((await readAll(away)).map(({ value }) => String(value))).toEqual(['before', 'after']);
  });

  test('when a broker stops responding, the outcome is unknown and the publisher recovers', async () => {
    const publisher = await started(testKafka(proxy.route));
    await publisher.publish(message(topic, 'key', 'before'), { timeoutMs: 5_000 });
    await proxy.set({ kind: 'black_hole' });
    const inFlight = rejection(publisher.publish(message(topic, 'key', 'unknown'), { timeoutMs: 600 }));
    await sleep(100);
    const behind = rejection(publisher.publish(message(topic, 'key', 'waiting'), { timeoutMs: 300 }));
    expect((await behind).sent).toBe(false);
    expect((await inFlight).sent).toBe(true);
    await proxy.heal();
    await publisher.publish(message(topic, 'key', 'after'), { timeoutMs: 10_000 });
    expect(publisher.health().ok).toBe(true);
  });

  test('stop sends waiting messages, and returns in time without a broker', async () => {
    const last = await testTopic(kafka, 'last', 1);
    const publisher = await started(testKafka(proxy.route));
    const sent = Promise.all(
      Array.from({ length: 500 }, (_, i) => publisher.publish(message(last, null, String(i)), { timeoutMs: 5_000 })),
    );
    await publisher.stop();
    await sent;
    expect(await count(last)).toBe(500);
    const cutOff = await started(testKafka(proxy.route));
    await proxy.set({ kind: 'refuse' });
    await sleep(50);
    const lost = rejection(cutOff.publish(message(last, null, 'lost'), { timeoutMs: 300_000 }));
    // The message itself would wait for longer than this test may take.
    await cutOff.stop({ timeoutMs: 500 });
    expect((await lost).sent).toBe(false);
  });
});
