import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../tests/support/eventually.ts';
import type { KafkaClient } from '../client.ts';
import { Consumer, type ReceivedMessage } from '../consume/consume.ts';
import { Publisher } from '../publish/publish.ts';
import { anyTopic, FaultProxy, logger, sleep, testKafka, testTopic, unique } from '../test/test-kit.ts';
import type { RequesterOptions } from './request-reply.ts';
import { RequestError, Requester } from './request-reply.ts';

const partitions = 8;
let kafka: KafkaClient;
let proxy: FaultProxy;
let publisher: Publisher;
let commands: string;
let replies: string;
let service: Consumer;
let requesters: Requester[] = [];
let received: ReceivedMessage[] = [];
/** The time that the service takes for one batch. */
let delayMs = 0;

beforeAll(async () => {
  kafka = testKafka();
  proxy = await new FaultProxy().open();
  commands = await testTopic(kafka, 'commands', 4);
  replies = await testTopic(kafka, 'replies', partitions);
  publisher = new Publisher(kafka, { logger, topics: anyTopic(), name: 'test' });
  await publisher.start();
  service = new Consumer(kafka, { groupId: unique('service'), topics: [commands], handle: answer, logger });
  await service.start();
});

beforeEach(async () => {
  await proxy.heal();
  received = [];
  delayMs = 0;
});

afterEach(async () => {
  await Promise.all(requesters.map((requester) => requester.stop({ timeoutMs: 500 })));
  requesters = [];
});

afterAll(async () => {
  await service.stop();
  await publisher.stop();
  await proxy.set({ kind: 'refuse' });
});

/** The service, which echoes every request except those with the key `silent`. */
async function answer(messages: ReceivedMessage[]): Promise<void> {
  if (delayMs > 0) await sleep(delayMs);
  received.push(...messages);
  await publisher.publishAll(
    messages
      .filter(({ key }) => key !== 'silent')
      .map(({ value, headers }) => ({
        topic: headers['reply-topic'] ?? '',
        key: null,
        value,
        headers: { 'correlation-id': headers['correlation-id'] ?? '', status: 'done' },
        partition: Number(headers['reply-partition']),
      })),
    { timeoutMs: 5_000 },
  );
}

async function started(options: Partial<RequesterOptions> = {}, client = kafka, over = publisher): Promise<Requester> {
  const requester = new Requester(client, over, {
    topic: replies,
    partitions,
    instance: unique('instance'),
    logger,
    ...options,
  });
  requesters.push(requester);
  await requester.start();
  return requester;
}

function ask(
  requester: Requester,
  value: string,
  key = 'key',
  ackTimeoutMs = 3_000,
  replyTimeoutMs = 5_000,
): Promise<string> {
  return requester
    .request({ topic: commands, key, value, headers: { 'x-own': '1' } }, { ackTimeoutMs, replyTimeoutMs })
    .then((reply) => String(reply.value));
}

async function failureStage(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RequestError);
  return (error as RequestError).stage;
}

describe('replies', () => {
  test('two concurrent requesters each get their own replies, also on one partition', async () => {
    const same = { partitions: 1 };
    const [one, two] = [await started(same), await started(same)];
    const late: string[] = [];
    const third = await started({ onLate: (id) => late.push(id) });
    const values = Array.from({ length: 500 }, (_, i) => i);
    const answers = await Promise.all(
      values.flatMap((i) => [ask(one, `one ${i}`), ask(two, `two ${i}`), ask(third, `three ${i}`)]),
    );
    expect(answers).toEqual(values.flatMap((i) => [`one ${i}`, `two ${i}`, `three ${i}`]));
    expect(late).toEqual([]);
    expect([one, two, third].map((requester) => requester.pending())).toEqual([0, 0, 0]);
    expect(received[0]?.headers).toMatchObject({
      'x-own': '1',
      'reply-topic': replies,
      'correlation-id': expect.any(String),
    });
  });

  test('unknown ids are dropped, late replies are counted', async () => {
    const late: string[] = [];
    const requester = await started({ onLate: (id) => late.push(id) });
    await ask(requester, 'known');
    const partition = Number(received[0]?.headers['reply-partition']);
    for (const id of ['foreign.1', ''])
      await publisher.publish(
        { topic: replies, key: null, value: 'x', headers: { 'correlation-id': id }, partition },
        { timeoutMs: 5_000 },
      );
    delayMs = 4_000;
    expect(await failureStage(ask(requester, 'slow', 'key', 2_000, 2_000))).toBe('no_reply');
    await eventually(() => late.length === 1);
    delayMs = 0;
    expect(await ask(requester, 'next')).toBe('next');
    expect(late).toHaveLength(1);
  });
});

describe('an error names the stage that failed', () => {
  test('no_reply: the request is acknowledged, but there is no reply', async () => {
    const requester = await started();
    // The time for the acknowledgement, which is longer than this test may take, is not waited for.
    expect(await failureStage(ask(requester, 'x', 'silent', 300_000, 2_000))).toBe('no_reply');
  });

  test('not_sent: too many waiting, not ready, broker unavailable; unacknowledged: the broker is silent', async () => {
    const proxied = new Publisher(testKafka(proxy.route), { logger, topics: anyTopic(), name: 'proxied' });
    await proxied.start();
    const requester = await started({ maxPending: 1 }, kafka, proxied);
    const first = ask(requester, 'first');
    expect(await failureStage(ask(requester, 'second'))).toBe('not_sent');
    await first;
    await proxy.set({ kind: 'black_hole' });
    expect(await failureStage(ask(requester, 'x', 'key', 300))).toBe('unacknowledged');
    await proxy.set({ kind: 'refuse' });
    await sleep(50);
    expect(await failureStage(ask(requester, 'x', 'key', 300))).toBe('not_sent');
    await requester.stop({ timeoutMs: 0 });
    expect(await failureStage(ask(requester, 'x'))).toBe('not_sent');
    await proxied.stop({ timeoutMs: 0 });
  });

  test('not_sent at once while the publisher has had no connection for a second, until it has one again', async () => {
    const proxied = new Publisher(testKafka(proxy.route), { logger, topics: anyTopic(), name: 'proxied' });
    await proxied.start();
    const requester = await started({}, kafka, proxied);
    await proxy.set({ kind: 'refuse' });
    // A lost connection is usually replaced within the time of a request.
    const early = ask(requester, 'early', 'key', 30_000, 30_000);
    await eventually(() => !proxied.health().ok, 10_000);
    const begun = performance.now();
    expect(await failureStage(ask(requester, 'x', 'key', 30_000, 30_000))).toBe('not_sent');
    expect(performance.now() - begun).toBeLessThan(500);
    await proxy.heal();
    expect(await early).toBe('early');
    expect(await ask(requester, 'after')).toBe('after');
    await proxied.stop();
  });

  test('unacknowledged: the process stops before the broker has acknowledged the request', async () => {
    const proxied = new Publisher(testKafka(proxy.route), { logger, topics: anyTopic(), name: 'proxied' });
    await proxied.start();
    const requester = await started({}, kafka, proxied);
    await ask(requester, 'first');
    await proxy.set({ kind: 'black_hole' });
    const stage = failureStage(ask(requester, 'x'));
    await requester.stop({ timeoutMs: 100 });
    expect(await stage).toBe('unacknowledged');
    await proxied.stop({ timeoutMs: 0 });
  });

  test('stop waits for pending replies', async () => {
    const requester = await started();
    delayMs = 300;
    const last = ask(requester, 'last');
    await eventually(() => requester.pending() === 1);
    await requester.stop();
    expect(await last).toBe('last');
  });
});

describe('replies that cannot be read', () => {
  test('are read over another connection when the broker does not respond on the first one', async () => {
    const requester = await started({}, testKafka(proxy.route));
    expect(await ask(requester, 'before')).toBe('before');
    proxy.stall();
    expect(await ask(requester, 'meanwhile', 'key', 3_000, 20_000)).toBe('meanwhile');
    expect(requester.health().ok).toBe(true);
  });

  test('are waited for during an outage; requests are refused if it lasts', async () => {
    const requester = await started({}, testKafka(proxy.route));
    await proxy.set({ kind: 'refuse' });
    const meanwhile = ask(requester, 'meanwhile', 'key', 3_000, 40_000);
    await eventually(() => !requester.health().ok, 30_000);
    expect(await failureStage(ask(requester, 'x'))).toBe('not_sent');
    await proxy.heal();
    expect(await meanwhile).toBe('meanwhile');
    await eventually(() => requester.health().ok);
  });

  test('are skipped if their record batch is corrupt', async () => {
    const requester = await started({}, testKafka(proxy.route));
    expect(await ask(requester, 'before')).toBe('before');
    proxy.alter((data) => {
      const at = data.indexOf('corrupted');
      if (at >= 0) data[at] = 0x43;
      return data;
    });
    expect(await failureStage(ask(requester, 'corrupted', 'key', 2_000, 2_000))).toBe('no_reply');
    expect(requester.health().ok).toBe(true);
    expect(await ask(requester, 'after')).toBe('after');
    proxy.alter(undefined);
  });

  test('delay the start, which can be stopped', async () => {
    await proxy.set({ kind: 'refuse' });
    const requester = new Requester(testKafka(proxy.route), publisher, {
      topic: replies,
      partitions,
      instance: 'x',
      logger,
    });
    expect(await Promise.race([requester.start(), sleep(600).then(() => 'waits')])).toBe('waits');
    await requester.stop({ timeoutMs: 0 });
  });
});
