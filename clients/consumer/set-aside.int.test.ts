import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../tests/support/eventually.ts';
import { accountPositions, type BankConsumer, DeadLetter, type Gap, type SequencedEvent } from './index.ts';
import {
  accountId,
  completed,
  consumer,
  event,
  type Options,
  range,
  send,
  topicPrefix,
  useTopics,
} from './test/topics.fixture.ts';

/** What a consumer with a database knows of its dead letters after a restart, on a real broker and Postgres. */
useTopics();
const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 4 });
const table = `set_aside_${randomUUID().slice(0, 8)}`;
const positions = accountPositions(table);
beforeAll(async () => {
  await positions.create(pool);
  await pool.query(`create table ${table}_lines (topic text, account_id text, sequence bigint)`);
});
afterAll(async () => {
  await pool.query(`drop table ${table}, ${table}_set_aside, ${table}_lines`);
  await pool.end();
});

/** An account of its own for each test, because they share the tables. */
const own = () => `${topicPrefix}a`;
const lines = async () =>
  (
    await pool.query<{ sequence: string }>(`select sequence from ${table}_lines where topic = $1 order by 1`, [
      topicPrefix,
    ])
  ).rows.map(({ sequence }) => Number(sequence));

/** A statement builder: one transaction claims an event and writes its line. Its onGap throws. */
function builder(dead: string[] = [], options: Partial<Options> = {}) {
  const gaps: Gap[] = [];
  const handle = async (given: SequencedEvent) => {
    if (dead.includes(given.id)) throw new DeadLetter('not yet');
    const db = await pool.connect();
    try {
      await db.query('begin');
      if (await positions.claim(db, given))
        await db.query(`insert into ${table}_lines values ($1, $2, $3)`, [
          topicPrefix,
          given.subject,
          given.data.sequence,
        ]);
      await db.query('commit');
    } finally {
      db.release();
    }
  };
  const made = consumer({
    handlers: { [completed]: handle },
    store: positions.store(pool),
    retry: { firstPauseMs: 20, maxPauseMs: 50 },
    onGap: (gap) => {
      gaps.push(gap);
      throw new Error('a gap');
    },
    ...options,
  });
  return Object.assign(made, { gaps });
}

const isDead = (made: BankConsumer) => eventually(async () => made.metrics().dead_letters > 0);

it.each(['that a handler rejects', 'that violates the schema'])(
  'an event %s leaves no gap after a restart, and its sequence counts when it is redriven',
  async (which) => {
    const value = which === 'that a handler rejects' ? undefined : '{"sequence": 2, "balance_after": 12.5}';
    const bad = event(own(), 2, 0, value === undefined ? {} : { value });
    const first = builder(value === undefined ? [`${own()}-2`] : []);
    await send(event(own(), 1, 0), bad);
    await first.start();
    await isDead(first);
    await first.stop();
    await send(event(own(), 3, 0), event(own(), 4, 0));
    const second = builder();
    await second.start();
    await eventually(async () => (await lines()).includes(4));
    expect([await lines(), second.gaps]).toEqual([[1, 3, 4], []]);
    if (value !== undefined) return;
    expect(await second.redrive()).toEqual({ handled: 1, failed: 0 });
    expect(await lines()).toEqual([1, 2, 3, 4]);
    await second.stop();
    await send(event(own(), 5, 0));
    const third = builder();
    await third.start();
    await eventually(async () => (await lines()).includes(5));
    expect(third.gaps).toEqual([]);
  },
);

it('an event of which a process died between its dead letter and its commit is written once, by its repeat or its redrive', async () => {
  const dead = `${own()}-2`;
  await send(...range(3).map((n) => event(own(), n, 0)));
  // The process ends where a dead letter has been written: before the store knows it, and after that.
  const ends = { store: { ...positions.store(pool), setAside: () => new Promise<void>(() => undefined) } };
  const first = builder([dead], ends);
  await first.start();
  await isDead(first);
  await first.stop({ timeoutMs: 100 });
  const second = builder();
  await second.start();
  await eventually(async () => (await lines()).includes(3));
  expect(await second.redrive()).toEqual({ handled: 1, failed: 0 });
  expect(await lines()).toEqual([1, 2, 3]);
});

it('an event that violates the schema does not hide what follows it, whatever sequence it has', async () => {
  const value = '{"sequence": 1000, "balance_after": 12.5}';
  await send(event(own(), 1, 0), event(own(), 9, 0, { id: 'odd', value }), event(own(), 2, 0));
  const made = builder();
  await made.start();
  await eventually(async () => (await lines()).includes(2));
  expect([await lines(), made.gaps, made.metrics().dead_letters]).toEqual([[1, 2], [], 1]);
});

it('a dead letter that the store could not record is recorded later, and written once', async () => {
  await send(event(own(), 1, 0), event(own(), 2, 0));
  let failures = 0;
  const { setAside, lastSequence } = positions.store(pool);
  const store = {
    lastSequence,
    setAside: async (...given: Parameters<typeof setAside>) => {
      if (++failures <= 5) throw new Error('the database is away');
      await setAside(...given);
    },
  };
  const made = builder([`${own()}-1`], { store });
  await made.start();
  await eventually(async () => (await lines()).includes(2));
  expect([failures, made.metrics().dead_letters]).toEqual([6, 1]);
});

it('a group that starts from a moment, or after the newest event, is told no gap by accounts that its store does not know', async () => {
  await send(...range(5).map((n) => event(own(), n, 0)));
  const start = new Date(Date.now() + 1_000);
  await sleep(1_500);
  const moment = builder([], { from: start });
  await moment.start();
  await send(event(own(), 6, 0), event(own(), 7, 0));
  await eventually(async () => (await lines()).includes(7));
  expect([await lines(), moment.gaps]).toEqual([[6, 7], []]);
});

it('the first event of an account, if it violates the schema, is set aside by a group that starts from a moment', async () => {
  const made = builder([], { from: new Date(Date.now() - 3_600_000) });
  await send(event(own(), 7, 0, { value: '{"sequence": 7, "balance_after": 12.5}' }), event(own(), 8, 0));
  await made.start();
  await eventually(async () => (await lines()).includes(8));
  const { rows } = await pool.query(`select sequence::int from ${table}_set_aside where event_id = $1`, [`${own()}-7`]);
  expect([rows, made.gaps]).toEqual([[{ sequence: 7 }], []]);
});

it('a group that reads from the beginning is told that the first events of an account are missing', async () => {
  await send(event(own(), 3, 0));
  const made = builder();
  await made.start();
  await eventually(async () => made.gaps.length > 0);
  expect(made.gaps[0]).toEqual({ account_id: accountId(own()), from: 1, to: 2 });
});

it('the first retries of an event do not wait for the messages that kafkajs has of other partitions', async () => {
  await send(event('victim', 1, 0));
  const order: string[] = [];
  const made = consumer({
    handlers: {
      [completed]: async ({ id }) => {
        order.push(id);
        if (order.filter((one) => one === 'victim-1').length <= 3 && id === 'victim-1') {
          await send(...range(100).map((n) => event('other', n + 100 * order.length, 1)));
          throw new Error('not yet');
        }
        await sleep(2);
      },
    },
    retry: { firstPauseMs: 100 },
    onGap: () => undefined,
  });
  await made.start();
  await eventually(async () => made.metrics().handled >= 301, 60_000);
  expect(order.slice(0, 4)).toEqual(['victim-1', 'victim-1', 'victim-1', 'victim-1']);
}, 90_000);

it('a handler that is retried for longer than the limit does not make alive false', async () => {
  await send(event('a', 1, 0));
  let isAway = true;
  const attempts: { alive: boolean; ok: boolean }[] = [];
  const made = consumer({
    handlers: {
      [completed]: () => {
        const { alive, ok } = made.health();
        attempts.push({ alive, ok });
        if (isAway) throw new Error('away');
      },
    },
    handlerLimitMs: 300,
    retry: { firstPauseMs: 20, maxPauseMs: 50 },
  });
  await made.start();
  await eventually(async () => attempts.filter(({ ok }) => !ok).length > 5);
  isAway = false;
  expect(attempts.filter(({ alive }) => !alive)).toEqual([]);
  await eventually(async () => made.health().ok);
});
