import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../tests/support/eventually.ts';
import { Proxy } from '../../../tests/support/proxy.ts';
import { createPool } from '../pool.ts';
import { silent } from '../test/test-database.ts';
import { transaction } from '../transaction.ts';
import { writeOutbox } from './outbox.ts';
import type { RelayOptions } from './relay.ts';
import { createRelayHarness, event, fakeBroker, parseNumber, range } from './test/relay-harness.ts';

const harness = await createRelayHarness();
const { pool, write, relayWith, drained } = harness;
afterEach(() => harness.reset());
afterAll(() => harness.close());

describe('order', () => {
  test('of publication is the commit order per key, with many concurrent writers', async () => {
    const broker = fakeBroker();
    const relay = relayWith(broker, { maxEvents: 7 });
    const writer = async (seed: number) => {
      for (let i = 0; i < 60; i += 1) {
        const key = `k${(seed * 7 + i * 3) % 5}`;
        await transaction(pool, async (client) => {
          const row = await client.query<{ n: number }>(
            'insert into keys values ($1, 1) on conflict (key) do update set n = keys.n + 1 returning n',
            [key],
          );
          const n = row.rows[0]?.n ?? 0;
          if (i % 4 === 0) await sleep(Math.random() * 10);
          await writeOutbox(client, [event(n, { key }), event(n, { key: `${key}-copy` })]);
        });
        relay.wake();
      }
    };
    await Promise.all(range(0, 6).map(writer));
    await eventually(() => broker.sent.length >= 720);
    for (const key of new Set(broker.sent.map((message) => message.key))) {
      const seen = broker.sent.filter((message) => message.key === key).map((message) => parseNumber(message.value));
      expect(seen).toEqual(range(1, seen.length + 1));
    }
    expect(broker.sent).toHaveLength(720);
  });

  test('a batch that commits while a later larger one is being published precedes the following ones of its key', async () => {
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const broker = fakeBroker(() => {
      begun.resolve();
      return held.promise;
    });
    const commit = Promise.withResolvers<void>();
    const numbered = Promise.withResolvers<void>();
    const early = transaction(pool, async (client) => {
      await writeOutbox(client, [event(1, { key: 'shared' })]);
      numbered.resolve();
      await commit.promise;
    });
    await numbered.promise;
    await write(...range(100, 110).map((n) => event(n, { key: 'large' })));
    relayWith(broker, { maxEvents: 4 });
    await begun.promise;
    commit.resolve();
    await early;
    await write(event(2, { key: 'shared' }));
    held.resolve();
    await eventually(() => broker.sent.length >= 12);
    expect(broker.sent.filter(({ key }) => key === 'shared').map(({ value }) => parseNumber(value))).toEqual([1, 2]);
    expect(broker.sent.filter(({ key }) => key === 'large').map(({ value }) => parseNumber(value))).toEqual(
      range(100, 110),
    );
  });

  test('a batch committed late under a lower batch_id is not overtaken by a later batch of its key', async () => {
    let fails = false;
    const broker = fakeBroker(() => {
      if (fails) throw new Error('broker away');
    });
    const relay = relayWith(broker);
    await eventually(() => relay.active());
    const locked = (n: number, before: () => Promise<void>) =>
      transaction(pool, async (client) => {
        await client.query(`insert into keys values ('shared', 1) on conflict (key) do update set n = keys.n + 1`);
        await writeOutbox(client, [event(n, { key: 'shared' })]);
        await before();
      });
    for (let n = 0; n < 10; n += 2) {
      // After a failure the relay knows only the batches that it reads.
      fails = true;
      await write(event(100 + n));
      relay.wake();
      await sleep(20);
      const numbered = Promise.withResolvers<void>();
      const commit = Promise.withResolvers<void>();
      const other = locked(n, () => (numbered.resolve(), commit.promise));
      await numbered.promise;
      fails = false;
      await eventually(() => broker.sent.some(({ value }) => parseNumber(value) === 100 + n));
      for (let look = 0; look < 3; look += 1) {
        relay.wake();
        await sleep(10);
      }
      commit.resolve();
      await other;
      await locked(n + 1, async () => undefined);
      relay.wake();
      await drained();
    }
    expect(broker.numbers().filter((n) => n < 100)).toEqual(range(0, 10));
  });

  test('20,000 events are published in order, with at most a chunk and a batch in memory', async () => {
    const batches = [...Array.from({ length: 33 }, () => 500), 3500];
    let n = 0;
    for (const size of batches) {
      await write(...range(n, n + size).map((i) => event(i, { payload: `{"n":${i},"text":"${'x'.repeat(1000)}"}` })));
      n += size;
    }
    let largest = 0;
    const broker = fakeBroker((messages) => void (largest = Math.max(largest, messages.length)));
    const begun = performance.now();
    relayWith(broker, { maxEvents: 1000 });
    await eventually(() => broker.sent.length >= 20_000, 30_000);
    const tookMs = performance.now() - begun;
    await drained();
    expect(broker.numbers()).toEqual(range(0, 20_000));
    expect(largest).toBeLessThanOrEqual(500 + 3500);
    console.log(`20,000 events of 1 kB read and marked in ${Math.round(tookMs)} ms`);
  });
});

describe('waking', () => {
  /** Returns the median time until an event is published, in ms, and that of a query, which shows how busy the machine is. */
  async function latencies(
    wake: () => unknown,
    broker: ReturnType<typeof fakeBroker>,
  ): Promise<{ publish: number; query: number }> {
    const took: number[] = [];
    const queries: number[] = [];
    const median = (values: number[]) => values.sort((a, b) => a - b)[15] ?? Number.NaN;
    for (let n = 0; n < 30; n += 1) {
      await write(event(n));
      const begun = performance.now();
      wake();
      while (broker.sent.length <= n) await sleep(0);
      took.push(performance.now() - begun);
      const asked = performance.now();
      await pool.query('select 1');
      queries.push(performance.now() - asked);
    }
    return { publish: median(took), query: median(queries) };
  }

  test('a relay takes milliseconds, within the process and by NOTIFY from another one, although it polls twice a second', async () => {
    const broker = fakeBroker();
    const relay = relayWith(broker);
    await eventually(() => relay.active());
    const here = await latencies(() => relay.wake(), broker);
    broker.sent.length = 0;
    const standby = relayWith(
      fakeBroker(() => {
        throw new Error('the standby published');
      }),
    );
    await sleep(600);
    const there = await latencies(() => standby.wake(), broker);
    console.log(
      `wake to publish: in process p50 ${here.publish.toFixed(1)} ms, by NOTIFY p50 ${there.publish.toFixed(1)} ms`,
    );
    // Polling alone would take up to 500 ms.
    for (const { publish, query } of [here, there]) expect(publish).toBeLessThan(100 + 10 * query);
  });

  test('is not needed: the poll finds new events, too', async () => {
    const broker = fakeBroker();
    relayWith(broker);
    await sleep(300);
    await write(event(1));
    await eventually(() => broker.sent.length === 1);
  });

  test('a standby relay often causes few NOTIFYs', async () => {
    relayWith(fakeBroker());
    await sleep(300);
    const standby = relayWith(fakeBroker());
    await sleep(300);
    const listener = await pool.connect();
    harness.onStop(() => listener.release(true));
    let notified = 0;
    listener.on('notification', () => void (notified += 1));
    await listener.query('listen public_outbox');
    for (let i = 0; i < 5000; i += 1) standby.wake();
    await eventually(() => notified > 0);
    await sleep(300);
    expect(notified).toBeLessThan(200);
  });
});

describe('unavailable servers', () => {
  test('after an unavailable broker, everything is published in order; retries are at most 2.5 s apart', async () => {
    let away = true;
    const tries: number[] = [];
    const broker = fakeBroker(() => {
      tries.push(performance.now());
      if (away) throw new Error('broker away');
    });
    const relay = relayWith(broker, { maxEvents: 2 });
    for (const n of range(0, 10)) await write(event(n));
    await sleep(3500);
    expect(broker.sent).toEqual([]);
    expect(tries.length).toBeLessThan(20);
    // Without the limit of a second, the tenth try would come after 50 s.
    await eventually(() => tries.length >= 10, 20_000);
    const stats = await relay.stats();
    expect(stats).toMatchObject({ rows: 10 });
    expect(stats.oldest_age_ms).toBeGreaterThan(3000);
    expect(relay.health()).toEqual({ ok: true });
    away = false;
    await drained();
    expect(broker.numbers()).toEqual(range(0, 10));
    expect(await relay.stats()).toEqual({ rows: 0, oldest_age_ms: 0 });
  });

  test('a chunk for which the broker is too slow is sent in smaller pieces, in order, until they are acknowledged in time', async () => {
    const sizes: number[] = [];
    const sent: number[] = [];
    // The broker writes a message even if its sender has timed out. It takes 1 ms per event.
    let written = Promise.resolve();
    const publisher: RelayOptions['publisher'] = {
      publishAll(messages, { timeoutMs }) {
        sizes.push(messages.length);
        written = written
          .then(() => sleep(messages.length))
          .then(() => void sent.push(...messages.map((message) => parseNumber(message.value))));
        const late = sleep(timeoutMs).then(() => {
          throw new Error('not acknowledged in time');
        });
        return Promise.race([written, late]);
      },
    };
    await write(...range(0, 500).map((n) => event(n)));
    relayWith(publisher, { publishTimeoutMs: 150 });
    await drained();
    expect(sizes[0]).toBe(500);
    expect(sent.slice(-500)).toEqual(range(0, 500));
    // Once the broker is fast again, the pieces grow.
    const before = sizes.length;
    for (const n of range(0, 10)) {
      await write(...range(0, 100).map((each) => event(n * 100 + each)));
      await drained();
    }
    expect(Math.max(...sizes.slice(before))).toBe(100);
  });

  test('a relay continues after its database was disconnected and then silent', async () => {
    const proxy = await new Proxy({ target: harness.url }).start();
    const behind = createPool(
      { ...harness.poolOptions, url: proxy.url, statement_timeout_ms: 500, connection_timeout_ms: 500 },
      silent,
    );
    harness.onStop(() => proxy.stop());
    harness.onStop(() => behind.end());
    const broker = fakeBroker();
    const relay = relayWith(broker, { pool: behind });
    await write(event(1));
    await drained();
    await proxy.set({ kind: 'cut' });
    await write(event(2));
    relay.wake();
    await sleep(1500);
    expect([broker.numbers(), relay.health()]).toEqual([[1], { ok: true }]);
    await proxy.heal();
    await eventually(() => broker.sent.length === 2);
    await proxy.set({ kind: 'silent' });
    await write(event(3));
    await sleep(1500);
    await proxy.heal();
    await drained();
    expect(broker.numbers()).toEqual([1, 2, 3]);
    await write(event(4));
    await pool.query(`select pg_notify('public_outbox', '')`);
    await eventually(() => broker.sent.length === 4);
  });

  test('stop does not wait for an unavailable broker', async () => {
    const relay = relayWith(
      fakeBroker(() => {
        throw new Error('away');
      }),
    );
    await write(event(1));
    await sleep(1500);
    await relay.stop();
  });
});
