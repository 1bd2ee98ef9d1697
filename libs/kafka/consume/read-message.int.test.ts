import { afterAll, expect, test } from 'vitest';
import { eventually } from '../../../tests/support/eventually.ts';
import { Publisher } from '../publish/publish.ts';
import { anyTopic, FaultProxy, logger, testKafka, testTopic, unique } from '../test/test-kit.ts';
import { topicRanges } from '../topics.ts';
import { readMessage } from './read-message.ts';

const kafka = testKafka();
const publisher = new Publisher(kafka, { logger, name: 'read-message', topics: anyTopic(4_194_304) });
const started = publisher.start();
afterAll(() => publisher.stop());

const timeoutMs = 5_000;

async function topicWith(...values: (string | Buffer | null)[]): Promise<string> {
  await started;
  const topic = await testTopic(kafka, 'read', 2, { 'max.message.bytes': '4194304' });
  await publisher.publishAll(
    values.map((value, i) => ({ topic, partition: 1, key: `k${i}`, value, headers: { n: String(i) } })),
    { timeoutMs },
  );
  return topic;
}

test('reads one message by its offset: key, bytes, and headers, also in the middle of a batch', async () => {
  const bytes = Buffer.from([0, 255, 254, 10, 0xc3, 0x28]);
  const topic = await topicWith('first', bytes, null, 'last');
  for (const [i, value] of ['first', bytes, null, 'last'].entries()) {
    const message = await readMessage(kafka, { topic, partition: 1, offset: BigInt(i) }, timeoutMs);
    expect(message).toMatchObject({ topic, partition: 1, offset: BigInt(i), key: `k${i}`, headers: { n: String(i) } });
    expect(message?.value ?? null).toEqual(value === null ? null : Buffer.from(value));
    expect(message?.timestamp_ms).toBeGreaterThan(Date.now() - 60_000);
  }
});

test('reads a message of several megabytes', async () => {
  const topic = await topicWith('x'.repeat(3_000_000));
  expect((await readMessage(kafka, { topic, partition: 1, offset: 0n }, timeoutMs))?.value?.length).toBe(3_000_000);
});

test('returns undefined for a message that is not yet written or deleted, and for an unknown partition or topic', async () => {
  const topic = await topicWith('a', 'b');
  const at = (partition: number, offset: bigint, name = topic) =>
    readMessage(kafka, { topic: name, partition, offset }, timeoutMs);
  expect(await at(1, 2n)).toBeUndefined();
  expect(await at(1, 1_000_000n)).toBeUndefined();
  expect(await at(0, 0n)).toBeUndefined();
  expect(await at(7, 0n)).toBeUndefined();
  expect(await at(0, 0n, unique('nowhere'))).toBeUndefined();
  await kafka.withAdmin(async (admin) => {
    // kafkajs deletes records only from topics that it already knows.
    await admin.fetchTopicOffsets(topic);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 1, offset: '1' }] });
  });
  await eventually(async () => (await topicRanges(kafka, topic)).some(({ low }) => low === 1n));
  expect(await at(1, 0n)).toBeUndefined();
  expect(String((await at(1, 1n))?.value)).toBe('b');
});

test('rejects in time if the broker does not respond, and leaves no group behind', async () => {
  const topic = await topicWith('a');
  const proxy = await new FaultProxy().open();
  await proxy.set({ kind: 'black_hole' });
  await expect(readMessage(testKafka(proxy.route), { topic, partition: 1, offset: 0n }, 500)).rejects.toThrow(
    /longer than 500 ms/,
  );
  await proxy.set({ kind: 'refuse' });
  const groups = async () =>
    (await kafka.withAdmin((admin) => admin.listGroups())).groups.map((group) => group.groupId);
  // Test files that run at the same time may create groups, but not during every attempt.
  await eventually(async () => {
    const before = await groups();
    await readMessage(kafka, { topic, partition: 1, offset: 0n }, timeoutMs);
    return (await groups()).every((groupId) => before.includes(groupId));
  });
});
