import { afterAll, afterEach, expect, test } from 'vitest';
import { eventually } from '../../../tests/support/eventually.ts';
import { countRepublishable, republish } from './republish.ts';
import { createRelayHarness, event, fakeBroker } from './test/relay-harness.ts';

const harness = await createRelayHarness();
const { pool, write, relayWith, drained } = harness;
afterEach(() => harness.reset());
afterAll(() => harness.close());

const now = async () =>
  new Date((await pool.query<{ now: string }>('select clock_timestamp() as now')).rows[0]?.now ?? '');

test('everything published since a moment is published again in the same order, and nothing older', async () => {
  const broker = fakeBroker();
  const relay = relayWith(broker, { pollMs: 50 });
  await write(event(1), event(2));
  relay.wake();
  await drained();
  const since = new Date((await now()).getTime() + 1);
  await eventually(async () => (await now()) > since);
  for (const n of [3, 4]) await write(event(n, { headers: { 'request-id': `r${n}` } }));
  relay.wake();
  await drained();
  const before = broker.sent.slice(2);
  expect(await countRepublishable(pool, since)).toMatchObject({ batches: 2n, messages: 2n });
  expect(await republish(pool, since)).toBe(2);
  await drained();
  // Publishing is at least once: a relay that learns late that it has lost its lease publishes them again.
  const again = broker.sent.slice(4);
  expect(before).toEqual(expect.arrayContaining(again));
  expect(again.slice(-2)).toEqual(before);
});

test('the outbox reports since when it contains all published batches', async () => {
  expect(await countRepublishable(pool, new Date(0))).toEqual({ batches: 0n, messages: 0n, kept_since: null });
  relayWith(fakeBroker());
  await write(event(1), event(2));
  await drained();
  const {
    rows: [oldest],
  } = await pool.query<{ published_at: string }>('select published_at from outbox_batches');
  expect(await countRepublishable(pool, new Date(0))).toEqual({
    batches: 1n,
    messages: 2n,
    kept_since: oldest?.published_at,
  });
});

test('batches being published at that moment are published again after older ones, so the newest of a key is its last', async () => {
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const broker = fakeBroker((messages) => {
    if (broker.sent.length !== 1 || messages.length !== 1) return undefined;
    begin();
    return held;
  });
  const relay = relayWith(broker, { pollMs: 50 });
  await write(event(1));
  relay.wake();
  await drained();
  await write(event(2));
  relay.wake();
  await begun;
  expect(await republish(pool, new Date(0))).toBe(1);
  letGo();
  await drained();
  expect(broker.sent.length).toBeGreaterThanOrEqual(4);
  expect(broker.numbers().slice(-2)).toEqual([1, 2]);
});
