import { expect, it } from 'vitest';
import { createHistory, sampleMs } from './history.ts';

it('keeps an hour of samples: lag without that of queries, and the requests of a minute', async () => {
  let ms = Date.parse('2026-01-02T03:00:00.000Z');
  let lag: number | undefined = 2;
  const row = { group: 'ledger', partition: 0 };
  const history = createHistory({
    now: () => ms,
    consumerLag: async () => {
      if (lag === undefined) throw new Error('the broker is away');
      return [
        { ...row, topic: 'ledger.commands', lag },
        { ...row, topic: 'ledger.queries', lag: 9 },
        { ...row, topic: 'accounts.commands', lag: 1 },
      ];
    },
    recent: () => ({ window_seconds: 60, count: 5, server_errors: 0, mean_ms: 1.5, slowest_ms: 4 }),
  });
  await history.sample();
  lag = undefined;
  ms += sampleMs;
  await history.sample();
  const counts = { count: 5, mean_ms: 1.5, slowest_ms: 4 };
  expect(history.read()).toEqual([
    { at: '2026-01-02T03:00:00.000Z', lag: 3, ...counts },
    { at: '2026-01-02T03:01:00.000Z', lag: null, ...counts },
  ]);
  for (let i = 0; i < 100; i++) {
    ms += sampleMs;
    await history.sample();
  }
  expect(history.read()).toHaveLength(60);
  expect(history.read().at(-1)?.at).toBe(new Date(ms).toISOString());
});
