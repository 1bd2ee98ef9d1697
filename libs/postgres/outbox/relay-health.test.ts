import { afterEach, expect, test, vi } from 'vitest';
import { createPool } from '../pool.ts';
import { silent } from '../test/test-database.ts';
import { Relay } from './relay.ts';

const pool = createPool(
  { application_name: 'test', schema: 'ledger', max: 1, url: 'postgres://127.0.0.1:1/none' },
  silent,
);
const newRelay = () =>
  new Relay({
    pool,
    publisher: { publishAll: async () => undefined },
    schema: 'ledger',
    topicName: (topic) => topic,
    source: 'test',
    logger: silent,
  });

afterEach(async () => {
  vi.useRealTimers();
  await pool.end();
});

test('a relay that waits for brokers when it starts counts as alive; one that hangs reports for how long', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const relay = newRelay();
  vi.advanceTimersByTime(3_600_000);
  expect(relay.health()).toEqual({ ok: true });
  relay.start();
  vi.advanceTimersByTime(35_000);
  expect(relay.health()).toEqual({ ok: true });
  vi.advanceTimersByTime(1_000);
  expect(relay.health()).toEqual({ ok: false, reason: 'the loop of the outbox relay hangs' });
  vi.useRealTimers();
  await relay.stop();
});
