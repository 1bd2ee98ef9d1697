import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { PublishedEvent } from './outbox-messages.ts';
import { createRelayHarness, event, fakeBroker, numberOf, range, until } from './test/relay-harness.ts';

const harness = await createRelayHarness();
const { pool, write, relayWith, processWith, drained, published } = harness;
/** Returns who has the lease, and for how long in database time. */
const lease = async () => {
  const { rows } = await pool.query<{ holder: string; ms: number }>(
    'select holder, (extract(epoch from expires_at - clock_timestamp()) * 1000)::float8 as ms from outbox_lease',
  );
  return rows[0];
};
/** A `republish` that records the numbers of the messages. */
function republished() {
  const numbers: number[] = [];
  return {
    numbers,
    republish: async (messages: readonly PublishedEvent[]) =>
      void numbers.push(...messages.map(({ value }) => numberOf(value))),
  };
}
afterEach(() => harness.reset());
afterAll(() => harness.close());

describe('only one relay publishes', () => {
  test('of two relays one publishes; when it stops, the other takes over immediately', async () => {
    const [first, second] = [fakeBroker(), fakeBroker()];
    const relays = [relayWith(first), relayWith(second)];
    await until(() => relays.some((relay) => relay.active()));
    for (const n of range(0, 50)) await write(event(n)).then(() => relays.forEach((relay) => relay.wake()));
    await drained();
    expect(Math.min(first.sent.length, second.sent.length)).toBe(0);
    expect(first.sent.length + second.sent.length).toBe(50);
    const active = relays.findIndex((relay) => relay.active());
    const holder = (await lease())?.holder;
    await relays[active]?.stop();
    // The lease was released, so that the other relay does not wait until it ends.
    expect((await lease())?.holder).not.toBe(holder);
    await write(event(50));
    await until(() => [first, second][1 - active]?.sent.length === 1);
  });

  test('after a relay was killed between publishing and marking, another one publishes the same bytes with the same ce_id when the lease of 3 s has ended', async () => {
    await write(event(1, { payload: '{ "n":1.00, "a":"✓" }' }), event(2));
    const { child } = processWith('dies', 'die-before-mark');
    await new Promise((resolve) => child.once('exit', resolve));
    expect((await lease())?.ms).toBeLessThanOrEqual(3000);
    expect(await published()).toHaveLength(2);
    const broker = fakeBroker();
    relayWith(broker);
    await until(() => broker.sent.length === 2);
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
    await until(async () => (await published()).length === 2);
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
    expect(rows.map((row) => numberOf(row.value))).toEqual(range(1, 40));
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
    const late = republished();
    let steal = true;
    const broker = fakeBroker(async () => {
      if (!steal) return;
      steal = false;
      await pool.query(
        `update outbox_lease set holder = 'thief', expires_at = clock_timestamp() + interval '5 seconds'`,
      );
    });
    await write(event(1));
    await write(event(2));
    const relay = relayWith(broker, { maxEvents: 1, republish: late.republish });
    await until(() => broker.sent.length === 1 && !relay.active());
    await sleep(300);
    expect(relay.active()).toBe(false);
    expect(broker.numbers()).toEqual([1]);
    expect((await relay.stats()).rows).toBe(2);
    await drained();
    expect(broker.numbers()).toEqual([1, 1, 2]);
    expect(new Set(late.numbers)).toEqual(new Set([1]));
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
    await until(() => relay.active());
    relayWith(other);
    await drained();
    expect([broker.numbers(), other.numbers()]).toEqual([[1], []]);
  });
});

describe('failed sends', () => {
  /** Lets the relays' clock run ahead by advanceTimersByTime. */
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'], shouldAdvanceTime: true }));
  afterEach(() => void vi.useRealTimers());

  test('a relay that cannot publish leaves the lease to another one, which republishes the chunk when it can no longer be written late', async () => {
    for (const n of range(0, 10)) await write(event(n, { key: `k${n}` }));
    let tries = 0;
    const failing = relayWith(
      fakeBroker(() => {
        tries += 1;
        throw new Error('no way to the brokers');
      }),
    );
    await until(() => tries > 0);
    const [broker, late] = [fakeBroker(), republished()];
    const other = relayWith(broker, { republish: late.republish });
    await drained();
    expect(broker.numbers()).toEqual(range(0, 10));
    await until(() => other.active() && !failing.active());
    expect(late.numbers).toEqual([]);
    vi.advanceTimersByTime(120_000);
    await until(() => late.numbers.length > 0);
    expect(late.numbers).toEqual(range(0, 10));
  });

  test('the messages of a failed send are republished when it can no longer be written', async () => {
    const late = republished();
    let tries = 0;
    const broker = fakeBroker(() => {
      tries += 1;
      if (tries === 1) throw new Error('the network is cut');
    });
    await write(event(1));
    relayWith(broker, { republish: late.republish });
    await drained();
    vi.advanceTimersByTime(100_000);
    await write(event(2));
    await drained();
    expect([broker.numbers(), late.numbers]).toEqual([[1, 2], []]);
    vi.advanceTimersByTime(20_000);
    await until(() => late.numbers.length > 0);
    expect(late.numbers).toEqual([1]);
  });
});
