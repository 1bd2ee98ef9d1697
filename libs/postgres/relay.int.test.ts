import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeOutbox } from './outbox.ts';
import type { OutboxEvent } from './outbox.ts';
import { createPool } from './pool.ts';
import type { Pool } from './pool.ts';
import { createRelay } from './relay.ts';
import type { OutgoingMessage, Relay, RelayOptions } from './relay.ts';
import { createTestDatabase, silent } from './test-database.ts';
import { createTestProxy } from './test-proxy.ts';
import { transaction } from './transaction.ts';

const database = await createTestDatabase();
const options = { url: database.url, application_name: 'relay-test', schema: 'public', max: 8 };
const pool = createPool(options, silent);
await pool.query(readFileSync(new URL('./outbox.sql', import.meta.url), 'utf8'));
await pool.query(`create table published (n bigint generated always as identity, relay text, ce_id text, key text, value text);
  create table keys (key text primary key, n int not null default 0)`);

let stops: (() => unknown)[] = [];
beforeEach(() => pool.query('truncate outbox, outbox_batches, outbox_lease, published, keys'));
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  stops = [];
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const event = (n: number, more: Partial<OutboxEvent> = {}): OutboxEvent => ({
  id: n.toString(16).padStart(32, '0'), topic: 't', key: 'k', type: 't.v1', time: '2026-01-02T03:04:05.678Z', payload: `{"n":${n}}`, ...more,
});
const write = (...events: OutboxEvent[]) => transaction(pool, (client) => writeOutbox(client, events));
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

/** A broker in memory. `before` runs before a publication counts. */
function fakeBroker(before: (messages: OutgoingMessage[]) => Promise<void> | void = () => undefined) {
  const sent: OutgoingMessage[] = [];
  return {
    sent,
    numbers: () => sent.map((message) => (JSON.parse(message.value ?? '{"n":-1}') as { n: number }).n),
    async publishAll(messages: OutgoingMessage[]) {
      await before(messages);
      sent.push(...messages);
    },
  };
}

function relayWith(publisher: RelayOptions['publisher'], more: Partial<RelayOptions> = {}): Relay {
  const relay = createRelay({ pool, publisher, schema: 'public', topicName: (t) => t, source: 's', logger: silent, ...more });
  relay.start();
  stops.push(() => relay.stop());
  return relay;
}

function processWith(name: string, behaviour = ''): { child: ChildProcess; active: Promise<void> } {
  const child = fork(fileURLToPath(new URL('./relay.fixture.ts', import.meta.url)), [database.url, name, behaviour]);
  stops.push(() => child.kill('SIGKILL'));
  return { child, active: new Promise((resolve) => child.once('message', () => resolve())) };
}

const until = (condition: () => boolean | Promise<boolean>, timeout = 8000) => expect.poll(condition, { timeout, interval: 5 }).toBe(true);
const drained = () => until(async () => (await pool.query('select from outbox_batches where published_at is null')).rowCount === 0, 30_000);
const published = async () => (await pool.query<{ relay: string; ce_id: string; key: string; value: string }>('select relay, ce_id, key, value from published order by n')).rows;

describe('order', () => {
  test('per key it is commit order, with many writers at once', async () => {
    const broker = fakeBroker();
    const relay = relayWith(broker, { maxRows: 7 });
    const writer = async (seed: number) => {
      for (let i = 0; i < 60; i += 1) {
        const key = `k${(seed * 7 + i * 3) % 5}`;
        await transaction(pool, async (client) => {
          const row = await client.query<{ n: number }>('insert into keys values ($1, 1) on conflict (key) do update set n = keys.n + 1 returning n', [key]);
          const n = row.rows[0]?.n ?? 0;
          if (i % 4 === 0) await sleep(Math.random() * 10);
          await writeOutbox(client, [event(n, { key }), event(n, { key: `${key}-copy` })]);
        });
        relay.wake();
      }
    };
    await Promise.all(range(0, 6).map(writer));
    await until(() => broker.sent.length >= 720);
    for (const key of new Set(broker.sent.map((message) => message.key))) {
      const seen = broker.sent.filter((message) => message.key === key).map((message) => (JSON.parse(message.value ?? '') as { n: number }).n);
      expect(seen).toEqual(range(1, seen.length + 1));
    }
    expect(broker.sent).toHaveLength(720);
  });

  test('20,000 rows are drained in order, never more than a chunk in hand', async () => {
    const batches = [...Array.from({ length: 33 }, () => 500), 3500];
    let n = 0;
    for (const size of batches) {
      await write(...range(n, n + size).map((i) => event(i, { payload: `{"n":${i},"text":"${'x'.repeat(1000)}"}` })));
      n += size;
    }
    let largest = 0;
    const broker = fakeBroker((messages) => void (largest = Math.max(largest, messages.length)));
    const begun = performance.now();
    relayWith(broker);
    await until(() => broker.sent.length >= 20_000, 30_000);
    const tookMs = performance.now() - begun;
    await drained();
    expect(broker.numbers()).toEqual(range(0, 20_000));
    expect(largest).toBeLessThanOrEqual(1000);
    console.log(`20,000 rows of 1 kB read and marked in ${Math.round(tookMs)} ms`);
  });
});

describe('waking', () => {
  async function latencies(wake: () => unknown, broker: ReturnType<typeof fakeBroker>): Promise<number[]> {
    const took: number[] = [];
    for (let n = 0; n < 30; n += 1) {
      await write(event(n));
      const begun = performance.now();
      wake();
      while (broker.sent.length <= n) await sleep(0);
      took.push(performance.now() - begun);
    }
    return took.sort((a, b) => a - b);
  }

  test('in the process and by NOTIFY from another: milliseconds, though it polls twice a second', async () => {
    const broker = fakeBroker();
    const relay = relayWith(broker);
    await until(() => relay.active());
    const here = await latencies(() => relay.wake(), broker);
    broker.sent.length = 0;
    const standby = relayWith(fakeBroker(() => { throw new Error('the standby published'); }));
    await sleep(600);
    const there = await latencies(() => standby.wake(), broker);
    console.log(`wake to publish: in process p50 ${here[15]?.toFixed(1)} ms, by NOTIFY p50 ${there[15]?.toFixed(1)} ms`);
    expect(here[15]).toBeLessThan(30);
    expect(there[15]).toBeLessThan(50);
  });

  test('without a wake the poll finds it', async () => {
    const broker = fakeBroker();
    relayWith(broker);
    await sleep(300);
    await write(event(1));
    await until(() => broker.sent.length === 1, 1500);
  });

  test('many wakes of a standby become few NOTIFYs', async () => {
    relayWith(fakeBroker());
    await sleep(300);
    const standby = relayWith(fakeBroker());
    await sleep(300);
    const before = await pool.query<{ n: bigint }>('select sum(xact_commit)::int8 as n from pg_stat_database where datname = current_database()');
    for (let i = 0; i < 5000; i += 1) standby.wake();
    await sleep(300);
    const after = await pool.query<{ n: bigint }>('select sum(xact_commit)::int8 as n from pg_stat_database where datname = current_database()');
    expect(Number((after.rows[0]?.n ?? 0n) - (before.rows[0]?.n ?? 0n))).toBeLessThan(200);
  });
});

describe('one at a time', () => {
  test('of two relays one publishes; when it stops the other takes over at once', async () => {
    const [first, second] = [fakeBroker(), fakeBroker()];
    const relays = [relayWith(first), relayWith(second)];
    await until(() => relays.some((relay) => relay.active()));
    for (const n of range(0, 50)) await write(event(n)).then(() => relays.forEach((relay) => relay.wake()));
    await drained();
    expect(Math.min(first.sent.length, second.sent.length)).toBe(0);
    expect(first.sent.length + second.sent.length).toBe(50);
    const active = relays.findIndex((relay) => relay.active());
    await relays[active]?.stop();
    const begun = performance.now();
    await write(event(50));
    await until(() => [first, second][1 - active]?.sent.length === 1);
    expect(performance.now() - begun).toBeLessThan(1500);
  });

  test('killed between publishing and marking: another publishes the same bytes with the same ce_id within 4 s', async () => {
    await write(event(1, { payload: '{ "n":1.00, "a":"✓" }' }), event(2));
    const { child } = processWith('dies', 'die-before-mark');
    const died = new Promise<number>((resolve) => child.once('exit', () => resolve(performance.now())));
    const diedAt = await died;
    expect(await published()).toHaveLength(2);
    const broker = fakeBroker();
    relayWith(broker);
    await until(() => broker.sent.length === 2);
    expect(performance.now() - diedAt).toBeLessThan(4000);
    const before = await published();
    expect(broker.sent.map((m) => [m.headers['ce_id'], m.key, m.value])).toEqual(before.map((row) => [row.ce_id, row.key, row.value]));
    await drained();
  });

  test('one that hangs is replaced within 4 s, and when it wakes it neither publishes nor marks', async () => {
    const hung = processWith('hung');
    await hung.active;
    await write(event(1));
    hung.child.send('wake');
    await drained();
    hung.child.kill('SIGSTOP');
    const stoppedAt = performance.now();
    await write(event(2));
    const next = processWith('next');
    await until(async () => (await published()).length === 2);
    expect(performance.now() - stoppedAt).toBeLessThan(4500);
    hung.child.kill('SIGCONT');
    for (const n of range(3, 40)) {
      await write(event(n));
      hung.child.send('wake');
      next.child.send('wake');
      await sleep(5);
    }
    await drained();
    const rows = await published();
    expect(rows.map((row) => row.relay)).toEqual(['hung', ...Array.from({ length: 38 }, () => 'next')]);
    expect(rows.map((row) => (JSON.parse(row.value) as { n: number }).n)).toEqual(range(1, 40));
  });

  test('a process that stalls between reading and publishing publishes nothing when it goes on', async () => {
    await write(event(1));
    const next = processWith('next');
    await next.active;
    next.child.kill('SIGSTOP');
    await write(event(2));
    const broker = fakeBroker();
    let stalls = 1;
    const stallOnce = (topic: string) => {
      next.child.kill('SIGCONT');
      if (stalls-- > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5000);
      return topic;
    };
    relayWith(broker, { topicName: stallOnce });
    await drained();
    expect(stalls).toBeLessThan(1);
    expect(broker.numbers()).toEqual([]);
    expect((await published()).map((row) => row.value)).toEqual(['{"n":1}', '{"n":2}']);
  });

  test('a lease lost while publishing: not marked by the loser, published again by the other, in order', async () => {
    let steal = true;
    const broker = fakeBroker(async () => {
      if (!steal) return;
      steal = false;
      await pool.query(`update outbox_lease set holder = 'thief', expires_at = clock_timestamp() + interval '1 second'`);
    });
    await write(event(1));
    await write(event(2));
    const relay = relayWith(broker, { maxRows: 1 });
    await until(() => broker.sent.length === 1);
    await sleep(300);
    expect(relay.active()).toBe(false);
    expect(broker.numbers()).toEqual([1]);
    expect((await relay.stats()).batches).toBe(2);
    await drained();
    expect(broker.numbers()).toEqual([1, 1, 2]);
  });

  test('a publication longer than the lease keeps it', async () => {
    let slow = true;
    const broker = fakeBroker(async () => {
      if (slow) await sleep(4500);
      slow = false;
    });
    await write(event(1));
    const relay = relayWith(broker);
    const other = fakeBroker();
    await until(() => relay.active());
    relayWith(other);
    await drained();
    expect([broker.numbers(), other.numbers()]).toEqual([[1], []]);
  });
});

describe('what is away comes back', () => {
  test('the broker: everything in order, tried at least once a second, soon after it is back', async () => {
    let away = true;
    const tries: number[] = [];
    const broker = fakeBroker(() => {
      tries.push(performance.now());
      if (away) throw new Error('broker away');
    });
    const relay = relayWith(broker, { maxRows: 2 });
    for (const n of range(0, 10)) await write(event(n));
    await sleep(3500);
    expect(broker.sent).toEqual([]);
    expect(tries.length).toBeGreaterThan(4);
    expect(tries.length).toBeLessThan(20);
    const stats = await relay.stats();
    expect(stats).toMatchObject({ batches: 10, rows: 10 });
    expect(stats.oldest_age_ms).toBeGreaterThan(3000);
    expect(relay.health()).toEqual({ ok: true });
    away = false;
    const begun = performance.now();
    await drained();
    expect(performance.now() - begun).toBeLessThan(1500);
    expect(broker.numbers()).toEqual(range(0, 10));
    expect(await relay.stats()).toEqual({ batches: 0, rows: 0, oldest_age_ms: 0 });
  });

  test('the database: cut, silent, then back', async () => {
    const proxy = await createTestProxy(database.url);
    const behind: Pool = createPool({ ...options, url: proxy.url, statement_timeout_ms: 500, connection_timeout_ms: 500 }, silent);
    stops.push(() => proxy.close(), () => behind.end());
    const broker = fakeBroker();
    const relay = relayWith(broker, { pool: behind });
    await write(event(1));
    await drained();
    proxy.cut();
    await write(event(2));
    relay.wake();
    await sleep(1500);
    expect([broker.numbers(), relay.health()]).toEqual([[1], { ok: true }]);
    proxy.open();
    await until(() => broker.sent.length === 2, 3500);
    proxy.silence();
    await write(event(3));
    await sleep(1500);
    proxy.open();
    await drained();
    expect(broker.numbers()).toEqual([1, 2, 3]);
    await write(event(4));
    await pool.query(`select pg_notify('public_outbox', '')`);
    await until(() => broker.sent.length === 4);
  });

  test('stop does not wait for a broker that is away', async () => {
    const relay = relayWith(fakeBroker(() => { throw new Error('away'); }));
    await write(event(1));
    await sleep(1500);
    const begun = performance.now();
    await relay.stop();
    expect(performance.now() - begun).toBeLessThan(500);
  });
});
