import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { afterAll, afterEach, expect, test } from 'vitest';
import { eventually } from '../../../tests/support/eventually.ts';
import { transaction } from '../transaction.ts';
import { type OutboxEvent, writeOutbox } from './outbox.ts';
import type { Relay } from './relay.ts';
import { createRelayHarness, event, fakeBroker, parseNumber, range } from './test/relay-harness.ts';

/** Tests batches that a relay publishes without reading them from the table (handed.ts). */
const harness = await createRelayHarness();
const { pool, write, relayWith, drained } = harness;
afterEach(() => harness.reset());
afterAll(() => harness.close());

/** The pool of the relays, which counts the reads of the table, and can hold the answer of one. */
let reads = 0;
let answerHeld: Promise<unknown> | undefined;
const counting = Object.create(pool, {
  query: {
    async value(query: { name?: string }, ...values: unknown[]) {
      const isRead = query.name === 'outbox_read';
      if (isRead) reads += 1;
      const answer = await (pool.query as (...parameters: unknown[]) => Promise<unknown>).call(pool, query, ...values);
      if (isRead) await answerHeld;
      return answer;
    },
  },
}) as Pool;

const writeFor = (relay: Relay, ...events: OutboxEvent[]) =>
  transaction(pool, (client) => writeOutbox(client, events, relay.known()));

/** Starts a relay, and waits until it has published what is in the table. */
async function relayInWait(broker: ReturnType<typeof fakeBroker>, maxEvents = 2500): Promise<Relay> {
  const relay = relayWith(broker, { pool: counting, maxEvents });
  await eventually(() => relay.active());
  await write(event(0, { key: 'first' }));
  relay.wake();
  await drained();
  broker.sent.length = 0;
  return relay;
}

test('batches of this process are published and marked without a read of the table', async () => {
  const broker = fakeBroker();
  const relay = await relayInWait(broker);
  reads = 0;
  for (const n of range(1, 21)) relay.wake(await writeFor(relay, event(n)));
  await eventually(() => broker.sent.length === 20);
  expect(broker.numbers()).toEqual(range(1, 21));
  // One can be a poll, and one what the start has left to do.
  expect(reads).toBeLessThan(5);
  await drained();
});

test('the messages are byte for byte those that a read publishes', async () => {
  const broker = fakeBroker();
  const relay = await relayInWait(broker);
  const written = await writeFor(
    relay,
    event(1, {
      type: 'corebanking.transaction.posted.v1',
      headers: { actor: 'x' },
      payload: '{"text":"\\n é \ud800"}',
    }),
    event(2, { type: 'corebanking.hold.placed.v1', partition: 3, key: null }),
    event(3, { payload: null }),
    event(4, { payload: 'two\nlines' }),
  );
  relay.wake(written);
  await drained();
  const direct = broker.sent.splice(0).map((message) => ({ ...message, value: asUtf8(message.value) }));
  expect(direct).toHaveLength(4);
  await pool.query('update outbox_batches set published_at = null where batch_id = $1', [written?.batch_id]);
  relay.wake();
  await drained();
  expect(broker.sent.map((message) => ({ ...message, value: asUtf8(message.value) }))).toEqual(direct);
});

/** Returns the text that a consumer reads. */
const asUtf8 = (text: string | null) => text && Buffer.from(text).toString();

test('a batch that another process wrote, of which the relay was not told, precedes a later one of its key', async () => {
  const broker = fakeBroker();
  const relay = await relayInWait(broker);
  await write(event(1));
  const batch = await writeFor(relay, event(2));
  expect(batch?.isNext).toBe(false);
  relay.wake(batch);
  await eventually(() => broker.sent.length === 2);
  expect(broker.numbers()).toEqual([1, 2]);
});

test('batches that were known, and could not be published, precede a later one of their key', async () => {
  const [first, second] = [heldSend(), heldSend()];
  const sends: (typeof first)[] = [];
  const broker = fakeBroker(() => sends.shift()?.send());
  const relay = await relayInWait(broker, 1);
  sends.push(first, second);
  relay.wake(await writeFor(relay, event(1)));
  await first.begun;
  relay.wake(await writeFor(relay, event(2)));
  const batch = await writeFor(relay, event(3));
  expect(batch?.isNext).toBe(true);
  first.end(new Error('broker away'));
  // The first batch is read and published again, and the second one is not read yet.
  await second.begun;
  relay.wake(batch);
  second.end();
  await drained();
  expect(broker.numbers()).toEqual([1, 2, 3]);
});

test('a batch that is handed over while a read finds it is published once, before later ones', async () => {
  const broker = fakeBroker();
  const relay = await relayInWait(broker);
  const held = Promise.withResolvers<void>();
  answerHeld = held.promise;
  const batch = await writeFor(relay, event(1));
  await write(event(2));
  reads = 0;
  relay.wake();
  await eventually(() => reads > 0);
  await sleep(50);
  relay.wake(batch);
  answerHeld = undefined;
  held.resolve();
  await drained();
  await sleep(50);
  expect(broker.numbers()).toEqual([1, 2]);
});

/** A send that begins when the broker is called, and ends, or fails, when the test says so. */
function heldSend() {
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  return {
    begun: begun.promise,
    send: () => (begun.resolve(), ended.promise),
    end: (error?: Error) => (error ? ended.reject(error) : ended.resolve()),
  };
}

test('a batch that a read has published meanwhile is not published again after later ones', async () => {
  const broker = fakeBroker();
  const relay = await relayInWait(broker);
  const late = await writeFor(relay, event(1));
  await write(event(2));
  relay.wake();
  await eventually(() => broker.sent.length === 2);
  relay.wake(late);
  await drained();
  await sleep(20);
  expect(broker.numbers()).toEqual([1, 2]);
});

test('what waits for a slow broker is limited, and what exceeds the limit is read from the table', async () => {
  const first = heldSend();
  const sends: (typeof first)[] = [];
  const broker = fakeBroker(() => sends.shift()?.send());
  const relay = await relayInWait(broker, 10);
  sends.push(first);
  for (const n of range(0, 60)) relay.wake(await writeFor(relay, event(n)));
  reads = 0;
  first.end();
  await eventually(() => broker.sent.length === 60);
  expect(reads).toBeGreaterThan(0);
  expect(broker.numbers()).toEqual(range(0, 60));
});

test('of many writers, some of which only wake the relay and some not even that, every key is published in the order of its commits', async () => {
  let sends = 0;
  const broker = fakeBroker(() => {
    sends += 1;
    if (sends % 17 === 0) throw new Error('broker away');
  });
  const relay = relayWith(broker, { maxEvents: 7 });
  await eventually(() => relay.active());
  const writer = async (seed: number) => {
    for (let i = 0; i < 60; i += 1) {
      const key = `k${(seed * 7 + i * 3) % 5}`;
      const isHandedOver = seed < 4;
      const written = await transaction(pool, async (client) => {
        const { rows } = await client.query<{ n: number }>(
          'insert into keys values ($1, 1) on conflict (key) do update set n = keys.n + 1 returning n',
          [key],
        );
        const n = rows[0]?.n ?? 0;
        if (i % 4 === 0) await sleep(Math.random() * 10);
        return writeOutbox(client, [event(n, { key })], isHandedOver ? relay.known() : undefined);
      });
      if (i % 5 === 0) await sleep(Math.random() * 20);
      if (isHandedOver) relay.wake(written);
      else if (seed === 4) relay.wake();
    }
  };
  await Promise.all(range(0, 6).map(writer));
  await drained();
  let total = 0;
  for (const ofKey of Object.values(Object.groupBy(broker.sent, ({ key }) => String(key)))) {
    // After a failed send, what had been sent before it is repeated.
    const seen = new Set((ofKey ?? []).map(({ value }) => parseNumber(value)));
    expect([...seen]).toEqual(range(1, seen.size + 1));
    total += seen.size;
  }
  expect(total).toBe(360);
}, 120_000);
