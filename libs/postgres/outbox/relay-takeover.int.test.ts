import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from '../../../tests/support/eventually.ts';
import { transaction } from '../transaction.ts';
import { writeOutbox, writeStatesAgain } from './outbox.ts';
import type { RelayOptions } from './relay.ts';
import type { StateName, States } from './stale-states.ts';
import { createRelayHarness, event, fakeBroker, parseNumber, range } from './test/relay-harness.ts';

const harness = await createRelayHarness();
const { pool, write, relayWith, processWith, drained, published } = harness;
/** Returns who has the lease, and for how long in database time. */
const lease = async () => {
  const { rows } = await pool.query<{ holder: string; ms: number }>(
    'select holder, (extract(epoch from expires_at - clock_timestamp()) * 1000)::float8 as ms from outbox_lease',
  );
  return rows[0];
};
const steal = () =>
  pool.query(`update outbox_lease set holder = 'thief', expires_at = clock_timestamp() + interval '5 seconds'`);
/** Events with one key each. */
const keyed = (from: number, to: number) => range(from, to).map((n) => event(n, { key: `k${n}` }));
const keys = (from: number, to: number) => keyed(from, to).map(({ key }) => key);
type Gate = PromiseWithResolvers<void>;
function failsOnce() {
  let tries = 0;
  return fakeBroker(() => {
    tries += 1;
    if (tries === 1) throw new Error('the network is cut');
  });
}
/** States of the topic t whose republication records the keys. */
function republished(republish: (names: readonly StateName[]) => Promise<unknown> = async () => undefined) {
  const late: (string | null)[] = [];
  const states: States = {
    topics: ['t'],
    async republish(names) {
      await republish(names);
      late.push(...names.map(({ key }) => key));
    },
  };
  return { late, states };
}
afterEach(() => harness.reset());
afterAll(() => harness.close());

describe('only one relay publishes', () => {
  test('of two relays one publishes; when it stops, the other takes over immediately', async () => {
    const [first, second] = [fakeBroker(), fakeBroker()];
    const relays = [relayWith(first), relayWith(second)];
    await eventually(() => relays.some((relay) => relay.active()));
    for (const n of range(0, 50)) await write(event(n)).then(() => relays.forEach((relay) => relay.wake()));
    await drained();
    expect(Math.min(first.sent.length, second.sent.length)).toBe(0);
    expect(first.sent.length + second.sent.length).toBe(50);
    const active = relays.findIndex((relay) => relay.active());
    const before = await lease();
    await relays[active]?.stop();
    // The lease was released, so that the other relay does not wait until it ends.
    const after = await lease();
    expect(after?.holder !== before?.holder || (after?.ms ?? 1) <= 0).toBe(true);
    await write(event(50));
    await eventually(() => [first, second][1 - active]?.sent.length === 1);
  });

  test('after a relay was killed between publishing and marking, another one publishes the same bytes with the same ce_id when the lease of 3 s has ended', async () => {
    await write(event(1, { payload: '{ "n":1.00, "a":"✓" }' }), event(2));
    const { child } = processWith('dies', 'die-before-mark');
    await new Promise((resolve) => child.once('exit', resolve));
    expect((await lease())?.ms).toBeLessThanOrEqual(3000);
    expect(await published()).toHaveLength(2);
    const broker = fakeBroker();
    relayWith(broker);
    await eventually(() => broker.sent.length === 2);
    const before = await published();
    expect(broker.sent.map((m) => [m.headers['ce_id'], m.key, m.value])).toEqual(
      before.map((row) => [row.ce_id, row.key, row.value]),
    );
    await drained();
  });

  test('a hanging relay is replaced when its lease of 3 s has ended, and afterwards neither publishes nor marks', async () => {
    const hung = processWith('hung');
    await hung.active;
    await write(event(1));
    hung.child.send('wake');
    await drained();
    hung.child.kill('SIGSTOP');
    expect((await lease())?.ms).toBeLessThanOrEqual(3000);
    await write(event(2));
    const next = processWith('next');
    await eventually(async () => (await published()).length === 2);
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
    expect(rows.map((row) => parseNumber(row.value))).toEqual(range(1, 40));
  });

  test('a process that stalls between reading and publishing publishes nothing when it continues', async () => {
    await write(event(1));
    const next = processWith('next');
    await next.active;
    // Published and marked. If the process were stopped in between, the batch would be published again.
    await drained();
    next.child.kill('SIGSTOP');
    await write(event(2));
    const broker = fakeBroker();
    let stalls = 1;
    const stallOnce = (topic: string) => {
      next.child.kill('SIGCONT');
      if (stalls-- > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 8000);
      return topic;
    };
    relayWith(broker, { topicName: stallOnce });
    await drained();
    expect(stalls).toBeLessThan(1);
    expect(broker.numbers()).toEqual([]);
    expect((await published()).map((row) => row.value)).toEqual(['{"n":1}', '{"n":2}']);
  });

  test('after a lease is lost while publishing, the loser marks nothing and republishes, and the other publishes again in order', async () => {
    const { late, states } = republished();
    let isFirst = true;
    const broker = fakeBroker(async () => {
      if (isFirst) await steal();
      isFirst = false;
    });
    for (const each of keyed(1, 3)) await write(each);
    const relay = relayWith(broker, { maxEvents: 1, states });
    await eventually(() => broker.sent.length === 1 && !relay.active());
    await sleep(300);
    expect(relay.active()).toBe(false);
    expect(broker.numbers()).toEqual([1]);
    expect((await relay.stats()).rows).toBe(2);
    await drained();
    expect(broker.numbers()).toEqual([1, 1, 2]);
    await eventually(() => late.length > 0);
    expect(new Set(late)).toEqual(new Set(['k1']));
  });

  test('what a relay that stops has published without the lease is republished', async () => {
    const { late, states } = republished();
    let stopped: Promise<void> | undefined;
    const broker = fakeBroker(async () => {
      await steal();
      stopped = relay.stop();
    });
    const relay = relayWith(broker, { states });
    await write(...keyed(0, 3));
    await eventually(() => stopped !== undefined);
    await stopped;
    expect(late).toEqual(keys(0, 3));
  });

  test('publishing for longer than the lease keeps the lease', async () => {
    let slow = true;
    const broker = fakeBroker(async () => {
      if (slow) await sleep(4500);
      slow = false;
    });
    await write(event(1));
    const relay = relayWith(broker);
    const other = fakeBroker();
    await eventually(() => relay.active());
    relayWith(other);
    await drained();
    expect([broker.numbers(), other.numbers()]).toEqual([[1], []]);
  });
});

describe('messages that may be written late', () => {
  /** Lets the relays' clock run ahead by advanceTimersByTime. */
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'], shouldAdvanceTime: true }));
  afterEach(() => void vi.useRealTimers());
  /** Runs a relay until everything is published, and then until the states are republished that it found in doubt. */
  async function expectRepublished(expected: (string | null | undefined)[], options: Partial<RelayOptions> = {}) {
    const { late, states } = republished();
    const relay = relayWith(fakeBroker(), { states, pollMs: 100, ...options });
    await drained();
    await eventually(() => relay.active());
    await sleep(500);
    expect(late).toEqual([]);
    vi.advanceTimersByTime(120_000);
    await eventually(() => late.length >= expected.length);
    await sleep(500);
    await relay.stop();
    expect(late).toEqual(expected);
  }
  const formerEnds = () =>
    pool.query(`insert into outbox_lease (holder, expires_at) values ('former', clock_timestamp())
      on conflict (only_row) do update set holder = 'former', expires_at = clock_timestamp()`);

  test('a relay that cannot publish leaves the lease to another one, which republishes the chunk when it can no longer be written late', async () => {
    for (const each of keyed(0, 10)) await write(each);
    let tries = 0;
    const failing = relayWith(
      fakeBroker(() => {
        tries += 1;
        throw new Error('no way to the brokers');
      }),
      { states: republished().states },
    );
    await eventually(() => tries > 0);
    const broker = fakeBroker();
    const { late, states } = republished();
    const other = relayWith(broker, { states });
    await drained();
    expect(broker.numbers()).toEqual(range(0, 10));
    await eventually(() => other.active() && !failing.active());
    await sleep(1200);
    expect(late).toEqual([]);
    vi.advanceTimersByTime(120_000);
    await eventually(() => late.length > 0);
    expect(late).toEqual(keys(0, 10));
  });

  test('a relay that takes over republishes what the former one had not published, or not long before its lease ended', async () => {
    const old = relayWith(fakeBroker());
    const publishedAgo = async (from: number, ago: string) => {
      await write(...keyed(from, from + 2));
      old.wake();
      await drained();
      await pool.query(
        `update outbox_batches set created_at = created_at - $1::interval, published_at = published_at - $1::interval
         where batch_id = (select max(batch_id) from outbox_batches)`,
        [ago],
      );
    };
    await publishedAgo(0, '2 hours');
    await publishedAgo(2, '10 minutes');
    await publishedAgo(4, '4 minutes');
    await old.stop();
    await formerEnds();
    for (const each of keyed(6, 60)) await write(each);
    // The newest batch published before then is included, for one with a lower number that was committed later.
    await expectRepublished(keys(2, 60), { maxEvents: 5 });
  });

  test('a transaction that was committed long after a later one is in doubt, although the later one is not', async () => {
    await write(...keyed(0, 2));
    await write(...keyed(2, 4));
    await pool.query(`update outbox_batches set created_at = created_at - interval '30 minutes'`);
    await pool.query(`update outbox_batches set published_at = case when batch_id = (select max(batch_id) from outbox_batches)
      then clock_timestamp() - interval '30 minutes' else clock_timestamp() end`);
    await formerEnds();
    await write(...keyed(4, 5));
    await expectRepublished(keys(0, 5));
  });

  test('the messages of a failed send are republished when it can no longer be written', async () => {
    const { late, states } = republished();
    const broker = failsOnce();
    await write(...keyed(1, 2));
    relayWith(broker, { states });
    await drained();
    vi.advanceTimersByTime(100_000);
    await write(...keyed(2, 3));
    await drained();
    expect([broker.numbers(), late]).toEqual([[1, 2], []]);
    vi.advanceTimersByTime(20_000);
    await eventually(() => late.length > 0);
    expect(late).toEqual(['k1']);
  });

  test('they are republished 500 at a time and once each, and publication waits neither while that fails nor while it takes long', async () => {
    const pages: number[] = [];
    const [failed, waits, goesOn] = [0, 0, 0].map(() => Promise.withResolvers<void>()) as [Gate, Gate, Gate];
    const { states } = republished(async (names) => {
      pages.push(names.length);
      if (pages.length === 1) {
        failed.resolve();
        throw new Error('a lock is not free');
      }
      waits.resolve();
      await goesOn.promise;
    });
    for (const from of [0, 600, 0]) await write(...keyed(from, from + 600));
    const relay = relayWith(failsOnce(), { states });
    await drained();
    vi.advanceTimersByTime(120_000);
    for (const { promise } of [failed, waits]) {
      await promise;
      await write(...keyed(0, 1));
      relay.wake();
      await drained();
    }
    goesOn.resolve();
    await eventually(() => pages.length === 4);
    await relay.stop();
    expect(pages).toEqual([500, 500, 500, 200]);
  });

  test('a relay that stops in doubt leaves it to the next one; one that is in no doubt leaves nothing', async () => {
    const first = relayWith(failsOnce(), { states: republished().states });
    await write(...keyed(0, 3));
    await drained();
    await first.stop();
    await expectRepublished(keys(0, 3));
    await expectRepublished([]);
  });

  test('twice in the time that the outbox keeps them, the states of all batches written in that time are republished', async () => {
    // As the services do, which a later sweep must not find again.
    const { late, states } = republished((names) =>
      transaction(pool, (client) =>
        writeStatesAgain(
          client,
          names.map(({ key }) => event(0, { key })),
        ),
      ),
    );
    await write(...keyed(0, 2));
    const relay = relayWith(fakeBroker(), { states, retainMs: 60_000 });
    await drained();
    const republishedThen = async () => {
      await pool.query(`update outbox_lease set swept_at = swept_at - interval '31 seconds'`);
      await eventually(() => late.length > 0);
      return late.splice(0);
    };
    expect(await republishedThen()).toEqual(keys(0, 2));
    await write(...keyed(2, 4));
    relay.wake();
    await drained();
    expect(await republishedThen()).toEqual(keys(0, 4));
    expect(await republishedThen()).toEqual(keys(2, 4));
    await write(...keyed(4, 5));
    relay.wake();
    await drained();
    expect(await republishedThen()).toEqual(keys(4, 5));
  });

  test('what was written again is republished after a failed send', async () => {
    const { late, states } = republished();
    await transaction(pool, (client) => writeStatesAgain(client, keyed(0, 2)));
    relayWith(failsOnce(), { states });
    await drained();
    vi.advanceTimersByTime(120_000);
    await eventually(() => late.length > 0);
    expect(late).toEqual(keys(0, 2));
  });

  /** Starts a sweep of three pages with these keys, and holds it in the first one. */
  async function startLongSweep(broker = fakeBroker()) {
    const [begun, goesOn] = [0, 0].map(() => Promise.withResolvers<void>()) as [Gate, Gate];
    const { late, states } = republished(() => {
      begun.resolve();
      return goesOn.promise;
    });
    for (const from of [0, 2500, 5000]) await write(...keyed(from, from + 2500));
    const relay = relayWith(broker, { states, maxEvents: 5000, retainMs: 10 * 24 * 60 * 60 * 1000 });
    await drained();
    await pool.query(`update outbox_batches set created_at = created_at - age, published_at = published_at - age
      from (select batch_id, row_number() over (order by batch_id desc) * interval '1 hour' as age from outbox_batches) as ages
      where ages.batch_id = outbox_batches.batch_id`);
    await pool.query(`update outbox_lease set swept_at = swept_at - interval '10 days'`);
    await begun.promise;
    return { relay, late, goesOn };
  }

  test('the messages of a failed send do not wait for the end of a sweep', async () => {
    let isCut = false;
    const broker = fakeBroker(() => {
      const fails = isCut;
      isCut = false;
      if (fails) throw new Error('the network is cut');
    });
    const { relay, late, goesOn } = await startLongSweep(broker);
    isCut = true;
    await transaction(pool, async (client) => {
      for (const from of [10_000, 12_500]) await writeOutbox(client, keyed(from, from + 2500));
    });
    relay.wake();
    await drained();
    vi.advanceTimersByTime(120_000);
    goesOn.resolve();
    await eventually(() => late.length === 12_500);
    expect(late).toEqual([...keys(0, 2500), ...keys(10_000, 15_000), ...keys(2500, 7500)]);
  });

  test('what a former holder left in doubt does not wait for the end of a sweep', async () => {
    const { relay, late, goesOn } = await startLongSweep();
    await formerEnds();
    await eventually(async () => (await lease())?.holder !== 'former' && relay.active());
    vi.advanceTimersByTime(120_000);
    goesOn.resolve();
    await eventually(() => late.length === 10_000);
    expect(late).toEqual([...keys(0, 2500), ...keys(5000, 7500), ...keys(2500, 7500)]);
  });

  test('a range that cannot be republished does not delay others', async () => {
    const { late, states } = republished(async (names) => {
      if (names.some(({ key }) => key === 'k0')) throw new Error('not this one');
    });
    let tries = 0;
    const broker = fakeBroker(() => {
      tries += 1;
      if (tries === 1 || tries === 3) throw new Error('the network is cut');
    });
    await write(...keyed(0, 1));
    const relay = relayWith(broker, { states });
    await drained();
    await write(...keyed(1, 2));
    relay.wake();
    await eventually(() => tries === 3);
    vi.advanceTimersByTime(120_000);
    await eventually(() => late.length > 0);
    expect(late).toEqual(['k1']);
  });

  test('a relay that stops does not wait for the end of a sweep, and leaves it in doubt', async () => {
    const { late, states } = republished(() => sleep(300));
    for (const n of range(0, 12)) await write(...keyed(n * 1000, (n + 1) * 1000));
    const relay = relayWith(fakeBroker(), { states });
    await drained();
    await pool.query(`update outbox_lease set swept_at = swept_at - interval '1 day'`);
    await eventually(() => late.length > 0);
    await relay.stop();
    expect(late.length).toBeLessThan(12_000);
    expect((await lease())?.holder).not.toBe('nobody');
  });
});
