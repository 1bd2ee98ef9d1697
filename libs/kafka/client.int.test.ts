import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { eventually } from '../../tests/support/eventually.ts';
import { Consumer, type ReceivedMessage } from './consume/consume.ts';
import { deadLetter } from './consume/dead-letter.ts';
import { Publisher } from './publish/publish.ts';
import { anyTopic, logger, sleep, testKafka, testTopic, unique } from './test/test-kit.ts';
import { ensureTopics, groupLag, partitionCounts, topicRanges } from './topics.ts';

const kafka = testKafka();

test('an idle publisher and consumer set few timers', async () => {
  const topic = await testTopic(kafka, 'idle', 2);
  const publisher = new Publisher(kafka, { logger, topics: anyTopic(), name: 'idle' });
  await publisher.start();
  const consumer = new Consumer(kafka, {
    groupId: unique('idle'),
    topics: [topic],
    handle: async () => undefined,
    logger,
  });
  await consumer.start();
  await publisher.publish({ topic, key: null, value: 'x', headers: {} }, { timeoutMs: 5_000 });
  await sleep(500);
  const timers = vi.spyOn(globalThis, 'setTimeout');
  await sleep(1_000);
  const count = timers.mock.calls.length;
  timers.mockRestore();
  await consumer.stop();
  await publisher.stop();
  // Unpatched, each of the four connections sets one every millisecond.
  expect(count).toBeLessThan(50);
});

test('a dead letter contains the original key and bytes, the reason, and the origin', async () => {
  const topic = await testTopic(kafka, 'poison', 1);
  await ensureTopics(kafka, [{ name: `${topic}.dlq`, partitions: 1, replication_factor: 1, config: {} }]);
  const publisher = new Publisher(kafka, { logger, topics: anyTopic(), name: 'dlq' });
  await publisher.start();
  const bytes = Buffer.from([0, 255, 254, 10, 0xc3, 0x28]);
  await publisher.publishAll(
    [
      { topic, key: 'ключ', value: bytes, headers: { traceparent: 't', 'dlq-reason': 'old' } },
      { topic, key: null, value: null, headers: {} },
    ],
    { timeoutMs: 5_000 },
  );
  const dead: ReceivedMessage[] = [];
  const source = new Consumer(kafka, {
    groupId: unique('source'),
    topics: [topic],
    logger,
    handle: async (messages) => {
      for (const message of messages)
        await deadLetter(publisher, message, { reason: 'no JSON', code: 'malformed_json' });
    },
  });
  const reader = new Consumer(kafka, {
    groupId: unique('reader'),
    topics: [`${topic}.dlq`],
    logger,
    handle: async (messages) => {
      dead.push(...messages);
    },
  });
  await Promise.all([source.start(), reader.start()]);
  await eventually(() => dead.length === 2);
  expect(dead[0]).toMatchObject({
    key: 'ключ',
    headers: {
      traceparent: 't',
      'dlq-reason': 'no JSON',
      'dlq-code': 'malformed_json',
      'dlq-topic': topic,
      'dlq-partition': '0',
      'dlq-offset': '0',
    },
  });
  expect(dead[0]?.value?.equals(bytes)).toBe(true);
  expect(dead[0]?.headers['dlq-time']).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(dead[1]).toMatchObject({ key: null, value: null, headers: { 'dlq-offset': '1' } });
  await Promise.all([source.stop(), reader.stop()]);
  await publisher.stop();
});

test('concurrent callers create topics once, and existing topics are not changed', async () => {
  const names = [unique('made'), unique('made')];
  const specs = names.map((name) => ({
    name,
    partitions: 3,
    replication_factor: 1,
    config: { 'retention.ms': '600000' },
  }));
  const made = await Promise.all([ensureTopics(kafka, specs), ensureTopics(kafka, specs), ensureTopics(kafka, specs)]);
  expect(new Set(made.flat())).toEqual(new Set(names));
  expect(
    await ensureTopics(
      kafka,
      specs.map((spec) => ({ ...spec, partitions: 5 })),
    ),
  ).toEqual([]);
  expect(await partitionCounts(kafka, names)).toEqual(new Map(names.map((name) => [name, 3])));
  await expect(partitionCounts(kafka, [unique('nowhere')])).rejects.toThrow();
  const ranges = await topicRanges(kafka, names[0] ?? '');
  expect(ranges.toSorted((one, other) => one.partition - other.partition)).toEqual(
    [0, 1, 2].map((partition) => ({ partition, low: 0n, high: 0n })),
  );
});

test('the lag of a group counts its uncommitted messages', async () => {
  const topic = await testTopic(kafka, 'lag', 2);
  const groupId = unique('lag');
  const publisher = new Publisher(kafka, { logger, topics: anyTopic(), name: 'lag' });
  await publisher.start();
  const publish = (count: number) =>
    publisher.publishAll(
      Array.from({ length: count }, () => ({ topic, key: null, value: 'x', headers: {}, partition: 1 })),
      { timeoutMs: 5_000 },
    );
  const lag = async () => (await groupLag(kafka, groupId, [topic])).map((part) => part.lag);
  await publish(5);
  expect(await lag()).toEqual([0n, 5n]);
  const consumer = new Consumer(kafka, { groupId, topics: [topic], logger, handle: async () => undefined });
  await consumer.start();
  await eventually(async () => (await lag())[1] === 0n);
  await consumer.stop();
  await publish(3);
  expect(await lag()).toEqual([0n, 3n]);
  await publisher.stop();
});

test('the locked version of kafkajs is the one that is patched', () => {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: Record<string, string> };
  expect(dependencies.kafkajs).toBe('2.2.4');
});

test('metadata contains the epoch of each leader', async () => {
  const topic = await testTopic(kafka, 'epochs', 2);
  const {
    topics: [found],
  } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [topic] }));
  expect(found?.partitions.map((partition) => (partition as { leaderEpoch?: number }).leaderEpoch)).toEqual([0, 0]);
});
