import { expect, test } from 'vitest';
import { Publisher } from './publish/publish.ts';
import { anyTopic, FaultProxy, logger, testKafka, testTopic } from './test/test-kit.ts';
import { requireSafeTopics } from './topics.ts';

test('topics that could be lost with one broker, or accept less than the table says, are rejected by name', async () => {
  const kafka = testKafka();
  const topics = [
    await testTopic(kafka, 'alone', 1),
    await testTopic(kafka, 'unclean', 1, { 'unclean.leader.election.enable': 'true' }),
    await testTopic(kafka, 'small', 1, { 'max.message.bytes': '20000' }),
  ];
  const table = new Map(topics.map((name) => [name, anyTopic().get()]));
  const failure = await requireSafeTopics(kafka, table).catch((error: Error) => error.message);
  expect(failure).toContain('BANK_MODE=trial');
  expect(failure).toMatch(new RegExp(`${topics[0]}: 1 of 3 replicas, min.insync.replicas 1 of 2$`, 'm'));
  expect(failure).toContain(
    `${topics[1]}: 1 of 3 replicas, min.insync.replicas 1 of 2, unclean.leader.election.enable`,
  );
  expect(failure).toContain(
    `${topics[2]}: 1 of 3 replicas, min.insync.replicas 1 of 2, max.message.bytes 20000 of 1000000`,
  );
});

test('an unresponsive connection is closed before a caller times out', async () => {
  const proxy = await new FaultProxy().open();
  const kafka = testKafka(proxy.route);
  const topic = await testTopic(testKafka(), 'silent', 1);
  const publisher = new Publisher(kafka, { logger, name: 'silent', topics: anyTopic() });
  await publisher.start();
  try {
    await publisher.publish({ topic, key: null, value: 'before', headers: {} }, { timeoutMs: 5_000 });
    proxy.stall();
    await publisher.publish({ topic, key: null, value: 'after', headers: {} }, { timeoutMs: 9_000 });
  } finally {
    await publisher.stop({ timeoutMs: 0 });
    await proxy.set({ kind: 'refuse' });
  }
});
