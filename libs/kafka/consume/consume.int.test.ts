import { createRequire } from 'node:module';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from '../../../tests/support/eventually.ts';
import type { KafkaClient } from '../client.ts';
import { Publisher } from '../publish/publish.ts';
import { anyTopic, FaultProxy, logger, sleep, testKafka, testTopic, unique } from '../test/test-kit.ts';
import { groupLag } from '../topics.ts';
import { type ConsumeOptions, Consumer, type ReceivedMessage } from './consume.ts';

const require = createRequire(import.meta.url);
let kafka: KafkaClient;
let proxy: FaultProxy;
let publisher: Publisher;
let topic: string;
let groupId: string;
let consumers: Consumer[] = [];

beforeAll(async () => {
  kafka = testKafka();
  proxy = await new FaultProxy().open();
  publisher = new Publisher(kafka, { logger, topics: anyTopic(), name: 'test' });
  await publisher.start();
});

beforeEach(async () => {
  await proxy.heal();
  topic = await testTopic(kafka, 'consume', 8);
  groupId = unique('group');
});

afterEach(async () => {
  await Promise.all(consumers.map((consumer) => consumer.stop({ timeoutMs: 1_000 })));
  consumers = [];
});

afterAll(async () => {
  await publisher.stop();
  await proxy.set({ kind: 'refuse' });
});

/** Writes the numbers from `from` to before `to`, number n to partition n % 8. */
async function write(from: number, to: number): Promise<void> {
  const messages = Array.from({ length: to - from }, (_, i) => ({
    topic,
    key: `key-${from + i}`,
    value: String(from + i),
    headers: { n: String(from + i) },
    partition: (from + i) % 8,
  }));
  await publisher.publishAll(messages, { timeoutMs: 10_000 });
}

async function started(
  handle: ConsumeOptions['handle'],
  options: Partial<ConsumeOptions> = {},
  client = kafka,
): Promise<Consumer> {
  const consumer = new Consumer(client, { groupId, topics: [topic], handle, logger, ...options });
  consumers.push(consumer);
  await consumer.start();
  return consumer;
}

function numbers(messages: ReceivedMessage[]): number[] {
  return messages.map(({ value }) => Number(value));
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

function sorted(list: number[]): number[] {
  return [...list].sort((a, b) => a - b);
}

/** The number of messages that the group has not committed. */
async function lag(): Promise<number> {
  return (await groupLag(kafka, groupId, [topic])).reduce((sum, part) => sum + Number(part.lag), 0);
}

describe('batches', () => {
  test('one batch contains the waiting messages of all partitions, in order per partition, up to maxBatch', async () => {
    await write(0, 1_000);
    const batches: ReceivedMessage[][] = [];
    const consumer = await started(async (messages) => void batches.push(messages), { maxBatch: 600 });
    await eventually(() => batches.flat().length === 1_000);
    expect(consumer.assigned()).toEqual([{ topic, partitions: expect.arrayContaining([0, 7]) }]);
    expect(batches[0]).toHaveLength(600);
    expect(new Set(batches.flatMap((batch) => batch.map(({ partition }) => partition))).size).toBe(8);
    for (const [partition, list] of Map.groupBy(batches.flat(), (message) => message.partition)) {
      expect(numbers(list)).toEqual(range(0, 125).map((i) => partition + 8 * i));
      expect(list.map(({ offset }) => offset)).toEqual(range(0, 125).map(BigInt));
    }
    const [first] = batches.flat();
    expect(first).toMatchObject({ topic, key: expect.stringMatching(/^key-/), headers: { n: String(first?.value) } });
    expect(Math.abs(Date.now() - (first?.timestamp_ms ?? 0))).toBeLessThan(60_000);
  });

  test('few messages in many partitions form one batch', async () => {
    await write(0, 8);
    const sizes: number[] = [];
    await started(async (messages) => {
      sizes.push(messages.length);
    });
    await eventually(() => sizes.length > 0);
    expect(sizes[0]).toBe(8);
  });

  test('handle is called once at a time, or as often as concurrency allows', async () => {
    const most = async (concurrency: number): Promise<number> => {
      let calls = 0;
      let highest = 0;
      let seen = 0;
      await started(
        async (messages) => {
          highest = Math.max(highest, ++calls);
          await sleep(20);
          calls -= 1;
          seen += messages.length;
        },
        { groupId: unique('group'), maxBatch: 10, concurrency },
      );
      await eventually(() => seen === 200);
      return highest;
    };
    await write(0, 200);
    expect(await most(1)).toBe(1);
    expect(await most(4)).toBe(4);
  });
});

describe('never skipped', () => {
  test('messages whose handler throws are delivered again before later ones', async () => {
    await write(0, 80);
    const done: number[] = [];
    const failed: number[][] = [];
    await started(
      async (messages) => {
        if (failed.length < 3) {
          failed.push(numbers(messages));
          throw new Error('database away');
        }
        done.push(...numbers(messages));
      },
      { maxBatch: 30 },
    );
    await eventually(() => done.length >= 80);
    expect(failed[1]).toEqual(failed[0]);
    expect(done.slice(0, 30)).toEqual(failed[0]);
    expect(sorted(done)).toEqual(range(0, 80));
    await eventually(async () => (await lag()) === 0);
  });

  test('offsets are committed only after handle, in the background, and a restart continues there', async () => {
    await write(0, 40);
    const gate = Promise.withResolvers<void>();
    const first: number[] = [];
    const consumer = await started(
      async (messages) => {
        if (first.length >= 10) await gate.promise;
        first.push(...numbers(messages));
      },
      { maxBatch: 10 },
    );
    await eventually(() => first.length === 10);
    await eventually(async () => (await lag()) === 30);
    await sleep(1_200);
    expect(await lag()).toBe(30);
    gate.resolve();
    await eventually(async () => (await lag()) === 0);
    await consumer.stop();
    await write(40, 48);
    const second: number[] = [];
    await started(async (messages) => {
      second.push(...numbers(messages));
    });
    await eventually(() => second.length >= 8);
    expect(sorted(second)).toEqual(range(40, 48));
  });

  test('stop lets the running call finish, commits it, and leaves the group immediately', async () => {
    await write(0, 16);
    const first: number[] = [];
    let running = false;
    const consumer = await started(
      async (messages) => {
        running = true;
        await sleep(300);
        first.push(...numbers(messages));
      },
      { maxBatch: 4, sessionTimeoutMs: 120_000 },
    );
    await eventually(() => running);
    await consumer.stop();
    const handled = first.length;
    expect(handled).toBeGreaterThan(0);
    expect(handled).toBeLessThan(16);
    const second: number[] = [];
    await started(async (messages) => {
      second.push(...numbers(messages));
    });
    // A member that does not leave would delay the next one for its session timeout of two minutes.
    await eventually(() => second.length === 16 - handled);
    expect(sorted([...first, ...second])).toEqual(range(0, 16));
    expect(first).toHaveLength(handled);
  });

  test('a call that takes longer than the session timeout keeps the membership', async () => {
    await write(0, 8);
    const seen: number[] = [];
    const consumer = await started(
      async (messages) => {
        seen.push(...numbers(messages));
        await sleep(7_500);
      },
      { sessionTimeoutMs: 3_000 },
    );
    await eventually(() => seen.length > 0);
    await sleep(6_500);
    expect(consumer.health()).toEqual({ ok: true });
    await eventually(async () => (await lag()) === 0);
    expect(sorted(seen)).toEqual(range(0, 8));
  });
});

describe('change', () => {
  test('a second consumer takes its share and, when the first stops, everything', async () => {
    const seen: number[] = [];
    const counts = [0, 0];
    const counting = (index: number) => async (messages: ReceivedMessage[]) => {
      await sleep(5);
      seen.push(...numbers(messages));
      counts[index] = (counts[index] ?? 0) + messages.length;
    };
    const first = await started(counting(0), { maxBatch: 5 });
    let written = 0;
    const flow = setInterval(() => void write(written, (written += 8)), 20);
    await eventually(() => seen.length > 50);
    const second = await started(counting(1), { maxBatch: 5 });
    await eventually(() => (counts[1] ?? 0) > 50);
    expect([first, second].map((consumer) => consumer.assigned()[0]?.partitions.length)).toEqual([4, 4]);
    await first.stop();
    await eventually(() => second.assigned()[0]?.partitions.length === 8);
    clearInterval(flow);
    await eventually(() => new Set(seen).size === written);
    expect(sorted([...new Set(seen)])).toEqual(range(0, written));
    // The partition was revoked after its offsets were committed, so nothing is delivered twice.
    expect(seen.length).toBe(written);
  });

  test('a member that leaves although its call hangs hands everything over, and can join again', async () => {
    await write(0, 40);
    const hanging = Promise.withResolvers<void>();
    const [one, two]: [number[], number[]] = [[], []];
    const options = { sessionTimeoutMs: 20_000 };
    const first = await started(async (messages) => {
      one.push(...numbers(messages));
      await hanging.promise;
    }, options);
    expect(first.isAlone()).toBe(true);
    await eventually(() => one.length > 0);
    await first.leave();
    expect([first.health().ok, first.alive().ok]).toEqual([false, true]);
    const second = await started(async (messages) => void two.push(...numbers(messages)), options);
    // Without an error or a commit, so everything is delivered to the other.
    await eventually(() => two.length === 40);
    expect(sorted(two)).toEqual(range(0, 40));
    expect(second.isAlone()).toBe(true);
    hanging.resolve();
    one.length = 0;
    await first.start();
    await eventually(
      () => first.assigned()[0]?.partitions.length === 4 && second.assigned()[0]?.partitions.length === 4,
    );
    expect([first.isAlone(), second.isAlone(), first.health()]).toEqual([false, false, { ok: true }]);
    await write(40, 80);
    await eventually(() => one.length + two.length === 80);
    expect(sorted([...one, ...two])).toEqual(range(0, 80));
    await eventually(async () => (await lag()) === 0);
  });

  test('a rebalance during a long call: it is finished and committed before another consumer takes over', async () => {
    await write(0, 80);
    const [one, two]: [number[], number[]] = [[], []];
    let calls = 0;
    const first = await started(
      async (messages) => {
        calls += 1;
        await sleep(1_000);
        one.push(...numbers(messages));
      },
      // Its calls together take longer than it takes to learn of the second consumer.
      { maxBatch: 10 },
    );
    await eventually(() => calls === 1);
    const second = await started(
      async (messages) => {
        two.push(...numbers(messages));
      },
      { maxBatch: 40 },
    );
    await eventually(() => new Set([...one, ...two]).size === 80);
    await eventually(async () => (await lag()) === 0);
    expect(sorted([...one, ...two])).toEqual(range(0, 80));
    expect(two.length).toBeGreaterThan(0);
    expect([first, second].map((consumer) => consumer.assigned()[0]?.partitions.length)).toEqual([4, 4]);
  });

  test.each(['refuse', 'black_hole'] as const)(
    'the broker is unavailable for a while (%s): not healthy, then it continues',
    async (mode) => {
      const seen: number[] = [];
      const consumer = await started(
        async (messages) => {
          seen.push(...numbers(messages));
        },
        { sessionTimeoutMs: 1_000 },
        testKafka(proxy.route),
      );
      await write(0, 80);
      // A stall may end the short session, and what is not yet committed is delivered again.
      await eventually(() => new Set(seen).size === 80);
      await proxy.set({ kind: mode });
      await eventually(() => !consumer.health().ok);
      // An outage is not a reason to restart the process.
      expect(consumer.alive()).toEqual({ ok: true });
      await write(80, 160);
      await proxy.heal();
      await eventually(() => new Set(seen).size === 160);
      await eventually(() => consumer.health().ok);
    },
  );

  test.each(['refuse', 'cut'] as const)(
    'a broker that returns after a long time (%s) finds the same member, not a new one',
    async (mode) => {
      const lines: string[] = [];
      const seen: number[] = [];
      const told = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
      await started(
        async (messages) => {
          seen.push(...numbers(messages));
        },
        { sessionTimeoutMs: 2_000, logger: told },
        testKafka(proxy.route),
      );
      await proxy.set({ kind: mode });
      // Longer than the time for which a consumer may receive nothing while the brokers respond.
      await sleep(8_000);
      await write(0, 80);
      await proxy.heal();
      await eventually(() => new Set(seen).size === 80);
      await sleep(1_500);
      expect(lines.filter((line) => line.includes('rebuilding it'))).toEqual([]);
    },
  );

  test('a member that was expelled joins again after its next commit, even if it sends no heartbeats', async () => {
    const lines: string[] = [];
    const told = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    const gate = Promise.withResolvers<void>();
    const seen: number[] = [];
    await started(
      async (messages) => {
        // A commit would prolong the membership.
        await gate.promise;
        seen.push(...numbers(messages));
      },
      { sessionTimeoutMs: 5_000, logger: told },
    );
    const { prototype } = require('kafkajs/src/consumer/consumerGroup') as {
      prototype: { heartbeat(): Promise<void> };
    };
    const heartbeats = vi.spyOn(prototype, 'heartbeat').mockResolvedValue();
    let written = 8;
    await write(0, written);
    let flow: NodeJS.Timeout | undefined;
    try {
      await eventually(async () => {
        const { groups } = await kafka.withAdmin((admin) => admin.describeGroups([groupId]));
        return groups[0]?.members.length === 0;
      });
      gate.resolve();
      // Without messages, the consumer would be rebuilt.
      flow = setInterval(() => void write(written, (written += 8)), 100);
      await eventually(() => lines.filter((line) => line.includes('joined the consumer group')).length > 1);
    } finally {
      heartbeats.mockRestore();
      clearInterval(flow);
      gate.resolve();
    }
    await eventually(() => new Set(seen).size === written);
    await eventually(async () => (await lag()) === 0);
    expect(lines.filter((line) => line.includes('rebuilding it'))).toEqual([]);
  });

  test('without a broker or without the topic, a consumer waits, is not healthy, and can be stopped', async () => {
    await proxy.set({ kind: 'refuse' });
    const lost = new Consumer(testKafka(proxy.route), {
      groupId,
      topics: [topic],
      handle: async () => undefined,
      logger,
    });
    const missing = new Consumer(kafka, {
      groupId,
      topics: [unique('nowhere')],
      handle: async () => undefined,
      logger,
    });
    for (const consumer of [lost, missing]) {
      expect(await Promise.race([consumer.start(), sleep(500).then(() => 'waits')])).toBe('waits');
      expect(consumer.health().ok).toBe(false);
      await consumer.stop();
    }
  });
});

describe('fetched data', () => {
  test('a batch with a wrong checksum is neither delivered nor skipped: its partition waits, the others continue', async () => {
    const errors: unknown[] = [];
    const loud = pino({ level: 'error' }, { write: (line: string) => void errors.push(JSON.parse(line)) });
    proxy.alter((data) =>
      Buffer.from(data.toString('latin1').replaceAll('{"amount":"100.00"}', '{"amount":"900.00"}'), 'latin1'),
    );
    const read: ReceivedMessage[] = [];
    const consumer = await started(
      async (messages) => void read.push(...messages),
      { logger: loud },
      testKafka(proxy.route),
    );
    const put = (partition: number, value: string) =>
      publisher.publish({ topic, key: null, value, headers: {}, partition }, { timeoutMs: 5_000 });
    await put(1, 'before');
    await put(1, '{"amount":"100.00"}');
    await put(1, 'behind');
    await put(2, 'elsewhere');
    await eventually(() => !consumer.health().ok && read.some(({ partition }) => partition === 2));
    expect(consumer.health()).toEqual({
      ok: false,
      reason: `${topic}/1: the record batch at offset 1 does not match its checksum`,
    });
    expect(read.filter(({ partition }) => partition === 1).map(({ value }) => String(value))).toEqual(['before']);
    await eventually(async () => (await lag()) === 2);
    expect(errors[0]).toMatchObject({
      topic,
      partition: 1,
      msg: 'a record batch is corrupt; the partition is paused',
    });
    proxy.alter(undefined);
    await eventually(() => read.length === 4);
    expect(read.filter(({ partition }) => partition === 1).map(({ value }) => String(value))).toEqual([
      'before',
      '{"amount":"100.00"}',
      'behind',
    ]);
    expect(consumer.health()).toEqual({ ok: true });
    expect(consumer.alive()).toEqual({ ok: true });
  });
});
