import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KafkaClient } from '../client.ts';
import { readToEnd } from '../consume/read-to-end.ts';
import { Publisher } from '../publish/publish.ts';
import { anyTopic, logger, testKafka, testTopic } from '../test/test-kit.ts';

/**
 * A broker compresses records with the topic's codec, using the same libraries as other clients.
 */
let kafka: KafkaClient;
let publisher: Publisher;
beforeAll(async () => {
  kafka = testKafka();
  publisher = new Publisher(kafka, { logger, topics: anyTopic(), name: 'test' });
  await publisher.start();
});
afterAll(() => publisher.stop());

test.each(['gzip', 'zstd'])('a topic compressed with %s can be read', async (compression) => {
  const topic = await testTopic(kafka, compression, 1, { 'compression.type': compression });
  // Near and far repetitions, and random bytes, in more than one block of any format.
  const noise = randomBytes(50_000).toString('hex');
  const values = Array.from(
    { length: 200 },
    (_, i) => `${i} ${'x'.repeat(i)} ${noise.slice(i * 10, i * 10 + (i % 7) * 3_000)}`,
  );
  const messages = values.map((value) => ({ topic, key: 'k', value, headers: { n: '1' } }));
  await publisher.publishAll(messages, { timeoutMs: 30_000 });
  const read: string[] = [];
  const take = async (messages: { value: Buffer | null }[]) =>
    void read.push(...messages.map(({ value }) => String(value)));
  await readToEnd(kafka, { topics: [topic], take, idleMs: 30_000, logger });
  expect(read).toEqual(values);
});
