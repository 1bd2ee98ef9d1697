import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../tests/support/eventually.ts';
import type { KafkaClient } from '../client.ts';
import { Publisher } from '../publish/publish.ts';
import { anyTopic, FaultProxy, logger, sleep, testKafka, testTopic } from '../test/test-kit.ts';
import type { Follower } from './follow.ts';
import { follow } from './follow.ts';
import { readMessage } from './read-message.ts';

let kafka: KafkaClient;
let proxy: FaultProxy;
let publisher: Publisher;
const followers: Follower[] = [];

beforeAll(async () => {
  kafka = testKafka();
  proxy = await new FaultProxy().open();
  publisher = new Publisher(kafka, { logger, topics: anyTopic(), name: 'test' });
  await publisher.start();
});

afterAll(async () => {
  await Promise.all(followers.map((follower) => follower.stop()));
  await publisher.stop();
  await proxy.set({ kind: 'refuse' });
});

async function put(topic: string, key: string, value: string | null): Promise<void> {
  await publisher.publish({ topic, key, value, headers: { kind: 'state' } }, { timeoutMs: 5_000 });
}

function following(topic: string, client = kafka) {
  const state = new Map<string | null, string>();
  const log: string[] = [];
  const follower = follow(client, {
    topic,
    logger,
    onMessage: (key, value, headers) => {
      log.push(`${key} ${value} ${headers.kind}`);
      if (key === 'bad') throw new Error('cannot read it');
      if (value === null) state.delete(key);
      else state.set(key, String(value));
    },
  });
  followers.push(follower);
  return { follower, state, log };
}

test('from the end: earlier messages are skipped, those after the call of start are not', async () => {
  const topic = await testTopic(kafka, 'news', 3);
  for (let i = 0; i < 9; i++) await put(topic, `key-${i}`, 'old');
  const seen: string[] = [];
  const follower = follow(kafka, {
    topic,
    logger,
    from: 'end',
    onMessage: (key, value) => void seen.push(`${key} ${value}`),
  });
  followers.push(follower);
  await follower.start();
  for (let i = 0; i < 9; i++) await put(topic, `key-${i}`, 'new');
  await eventually(() => seen.length >= 9);
  expect(seen.toSorted()).toEqual(Array.from({ length: 9 }, (_, i) => `key-${i} new`));
});

test('from a time: earlier messages are skipped, and start resolves with all later ones', async () => {
  const topic = await testTopic(kafka, 'since', 3, { 'message.timestamp.type': 'LogAppendTime' });
  const value = (n: number) => ({ topic, key: 'k', value: String(n), headers: {}, partition: n % 2 });
  for (const n of [1, 2, 3]) await publisher.publish(value(n), { timeoutMs: 5_000 });
  // The broker assigns the timestamp, so the test does not depend on the clock of this process.
  await sleep(5);
  await publisher.publish(value(4), { timeoutMs: 5_000 });
  const fourth = await readMessage(kafka, { topic, partition: 0, offset: 1n }, 5_000);
  await publisher.publish(value(5), { timeoutMs: 5_000 });
  const seen: string[] = [];
  const follower = follow(kafka, {
    topic,
    logger,
    from: new Date(fourth?.timestamp_ms ?? 0),
    onMessage: (_key, text) => void seen.push(String(text)),
  });
  followers.push(follower);
  await follower.start();
  expect(seen.toSorted()).toEqual(['4', '5']);
  await publisher.publish(value(6), { timeoutMs: 5_000 });
  await eventually(() => seen.length >= 3);
  expect(seen.toSorted()).toEqual(['4', '5', '6']);
});

test('start resolves with all messages, then updates and removals follow', async () => {
  const topic = await testTopic(kafka, 'state', 3, { 'cleanup.policy': 'compact' });
  await publisher.publishAll(
    Array.from({ length: 1_000 }, (_, i) => ({
      topic,
      key: `key-${i % 100}`,
      value: String(i),
      headers: { kind: 'state' },
    })),
    { timeoutMs: 10_000 },
  );
  await put(topic, 'bad', 'x');
  await put(topic, 'key-7', null);
  const [one, two] = [following(topic), following(topic)];
  await Promise.all([one.follower.start(), two.follower.start()]);
  for (const { state, log } of [one, two]) {
    expect(log).toHaveLength(1_002);
    expect(state.size).toBe(99);
    expect(state.get('key-42')).toBe('942');
    expect(state.has('key-7')).toBe(false);
  }
  // A stall of the machine may delay one update, so the fastest one counts.
  const durations: number[] = [];
  for (const n of [1, 2, 3]) {
    const begun = performance.now();
    await put(topic, 'key-1', `new ${n}`);
    await put(topic, `key-${n + 1}`, null);
    await eventually(() => one.state.get('key-1') === `new ${n}` && !two.state.has(`key-${n + 1}`));
    durations.push(performance.now() - begun);
  }
  expect(Math.min(...durations)).toBeLessThan(1_000);
});

test('start resolves immediately for an empty topic, and never for a missing one', async () => {
  const { follower } = following(await testTopic(kafka, 'empty', 3));
  await follower.start();
  expect(follower.health()).toEqual({ ok: true });
  expect(await Promise.race([following('nowhere-at-all').follower.start(), sleep(500).then(() => 'waits')])).toBe(
    'waits',
  );
});

test('a follower continues after an outage', async () => {
  const topic = await testTopic(kafka, 'outage', 2);
  await put(topic, 'a', '1');
  const { follower, state, log } = following(topic, testKafka(proxy.route));
  await follower.start();
  await proxy.set({ kind: 'refuse' });
  await put(topic, 'b', '2');
  await eventually(() => !follower.health().ok, 20_000);
  await proxy.heal();
  await eventually(() => state.get('b') === '2');
  expect(log).toEqual(['a 1 state', 'b 2 state']);
});

test('a follower waits for brokers that become unavailable while it starts', async () => {
  const topic = await testTopic(kafka, 'start', 1);
  await put(topic, 'a', '1');
  const routed = testKafka(proxy.route);
  let calls = 0;
  // The administrative call asks for the first and the end offsets.
  const client: KafkaClient = {
    ...routed,
    withAdmin: async (run, timeoutMs) => {
      calls += 1;
      if (calls === 1) await proxy.set({ kind: 'refuse' });
      return routed.withAdmin(run, timeoutMs);
    },
  };
  const { follower, state } = following(topic, client);
  const started = follower.start();
  await eventually(() => calls >= 1);
  await sleep(1_500);
  await proxy.heal();
  await started;
  expect(state).toEqual(new Map([['a', '1']]));
});
