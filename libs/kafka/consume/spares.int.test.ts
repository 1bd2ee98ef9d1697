import { type Logger, pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../../tests/support/eventually.ts';
import type { KafkaClient } from '../client.ts';
import { Publisher } from '../publish/publish.ts';
import { anyTopic, logger, sleep, testKafka, testTopic, unique } from '../test/test-kit.ts';
import { groupLag } from '../topics.ts';
import { type ConsumeOptions, Consumer } from './consume.ts';

/** Tests groups in which as few members as possible work. What they choose is tested in filling.test.ts. */
let kafka: KafkaClient;
let publisher: Publisher;
let topic: string;
let groupId: string;
let members: Fake[] = [];
const partitions = 6;

beforeAll(async () => {
  kafka = testKafka();
  publisher = new Publisher(kafka, { logger, topics: anyTopic(), name: 'test' });
  await publisher.start();
});
beforeEach(async () => {
  topic = await testTopic(kafka, 'spares', partitions);
  groupId = unique('group');
});
afterEach(async () => {
  await stop?.();
  await Promise.all(members.map(({ consumer }) => consumer.stop({ timeoutMs: 1_000 })));
  members = [];
});
afterAll(() => publisher.stop());

/** A member that is as busy as the test says. It records what it was given, in order. */
interface Fake {
  consumer: Consumer;
  self: { busy: number; keeps: boolean };
  seen: string[];
  /** One for each time that it has joined the group. */
  joins: unknown[];
  has(): number;
}

/** Returns a logger that records that the group was joined. */
const countingJoins = (joins: unknown[]): Logger =>
  pino(
    { level: 'info' },
    { write: (line: string) => void (line.includes('joined the consumer group') && joins.push(line)) },
  );

async function join(self: Fake['self'], options: Partial<ConsumeOptions> = {}): Promise<Fake> {
  const [seen, joins]: [string[], unknown[]] = [[], []];
  const consumer = new Consumer(kafka, {
    groupId,
    topics: [topic],
    logger: countingJoins(joins),
    async handle(messages) {
      await sleep(5);
      seen.push(...messages.map(({ value }) => String(value)));
    },
    fill: { busy: () => self.busy, keeps: () => self.keeps, pauseMs: 2_000 },
    sessionTimeoutMs: 3_000,
    ...options,
  });
  const member = { consumer, self, seen, joins, has: () => consumer.assigned()[0]?.partitions.length ?? 0 };
  members.push(member);
  await consumer.start();
  return member;
}
const shares = () => members.map(({ has }) => has());

let written = 0;
let stop: (() => Promise<void>) | undefined;
/** Writes to all partitions until stopped. Numbers count up, so partition p gets p, p + 6, … */
function flow() {
  written = 0;
  let stopped = false;
  const writing = (async () => {
    while (!stopped) {
      const batch = Array.from({ length: partitions }, (_, partition) => ({
        topic,
        key: null,
        value: String(written++),
        headers: {},
        partition,
      }));
      await publisher.publishAll(batch, { timeoutMs: 10_000 });
      await sleep(50);
    }
  })();
  return async () => {
    stopped = true;
    await writing;
  };
}
const lag = async () => (await groupLag(kafka, groupId, [topic])).reduce((sum, part) => sum + Number(part.lag), 0);

/** Nothing is lost, and each member gets what is in each partition in order. */
async function expectAll(): Promise<void> {
  await eventually(async () => (await lag()) === 0);
  const all = new Set(members.flatMap(({ seen }) => seen.map(Number)));
  expect([...all].toSorted((a, b) => a - b)).toEqual(Array.from({ length: written }, (_, i) => i));
  for (const { seen } of members)
    for (const list of Map.groupBy(new Set(seen.map(Number)), (n) => n % partitions).values())
      expect(list).toEqual(list.toSorted((a, b) => a - b));
}

test('one member works, the others are healthy spares, and one takes over when it stops', async () => {
  stop = flow();
  await join({ busy: 0.3, keeps: false });
  await eventually(() => members[0]?.consumer.isAlone() === true);
  await join({ busy: 0, keeps: false });
  await join({ busy: 0, keeps: false });
  await eventually(() => shares().join() === '6,0,0');
  // It must leave if it loses its database, because others would take its partitions.
  await eventually(() => members[0]?.consumer.isAlone() === false);
  await sleep(7_000);
  expect(members.map(({ consumer }) => consumer.health())).toEqual(Array(3).fill({ ok: true }));
  expect(shares()).toEqual([6, 0, 0]);
  await members[0]?.consumer.stop();
  await eventually(() => shares().slice(1).toSorted().join() === '0,6', 5_000);
  await stop?.();
  await expectAll();
});

test('a busy member gets help, and the work is put together again when it is calm', async () => {
  stop = flow();
  const first = await join({ busy: 0.3, keeps: true });
  const second = await join({ busy: 0, keeps: false });
  await eventually(() => shares().join() === '6,0');
  first.self.busy = 0.7;
  // The relay's holder gives up everything, without losing or repeating a message.
  await eventually(() => shares().join() === '0,6');
  [first.self.busy, second.self.busy] = [0.3, 0.7];
  await eventually(() => shares().join() === '3,3');
  [first.self.busy, second.self.busy] = [0.1, 0.1];
  await eventually(() => shares().join() === '6,0');
  await stop?.();
  await expectAll();
});

test('a member that asks in vain for less help asks once, and gets more at once when it needs it', async () => {
  stop = flow();
  const [keeper, worker] = [await join({ busy: 0.7, keeps: true }), await join({ busy: 0, keeps: false })];
  await eventually(() => shares().join() === '0,6');
  // To the worker, the keeper is as calm as itself; the leader knows that both together are not.
  [keeper.self.busy, worker.self.busy] = [0.3, 0.15];
  const before = worker.joins.length;
  await eventually(() => worker.joins.length > before);
  await sleep(10_000);
  expect([worker.joins.length - before, shares().join()]).toEqual([1, '0,6']);
  worker.self.busy = 0.7;
  await eventually(() => shares().join() === '3,3', 6_000);
  await stop?.();
  await expectAll();
});

test('beside a member of the release before, all share equally; when it has left, one works', async () => {
  stop = flow();
  const old = await join({ busy: 0, keeps: false }, { fill: undefined } as Partial<ConsumeOptions>);
  await join({ busy: 0, keeps: false });
  await join({ busy: 0, keeps: false });
  await eventually(() => shares().join() === '2,2,2');
  await old.consumer.stop();
  await eventually(() => shares().slice(1).toSorted().join() === '0,6');
  // A rollback: the group goes back to what the old one knows.
  await join({ busy: 0, keeps: false }, { fill: undefined } as Partial<ConsumeOptions>);
  await eventually(() => shares().slice(1).join() === '2,2,2');
  await stop?.();
  await expectAll();
});
