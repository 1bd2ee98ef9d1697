import { expect, test } from 'vitest';
import type { Evidence } from '../faults/evidence.ts';
import type { Attempt } from '../faults/journal.ts';
import type { Bench } from '../faults/row.ts';
import { haRow } from './measure.ts';

const attempt = (sentAt: number, tookMs: number, status: Attempt['status']) => ({
  operation: {},
  attempt: { sentAt, tookMs, status, gateway: 'gateway', body: {}, replayed: false } as unknown as Attempt,
});

/** Returns the findings of a row with two faults, `apartMs` apart. */
async function measureFindings(
  apartMs: number,
  attempts: (start: number) => ReturnType<typeof attempt>[],
): Promise<{ findings: string[]; outageMs: number }> {
  const clock = performance.now();
  const now = performance.now;
  let at = clock;
  performance.now = () => at;
  const row = haRow({
    name: 'row',
    title: 'row',
    touches: [],
    outageMs: 5000,
    async inject(_bench, mark) {
      mark('first');
      at += apartMs;
      mark('second');
    },
  });
  const bench = { say: () => undefined } as unknown as Bench;
  try {
    await row.inject(bench);
  } finally {
    performance.now = now;
  }
  const evidence = { attempts: attempts(clock), slowness: 1, t0: clock } as unknown as Evidence;
  const findings = (await row.check?.(evidence, bench)) ?? [];
  return { findings, outageMs: row.figures?.outageMs ?? Number.NaN };
}

test('a write that is in flight at the next fault is attributed to that fault', async () => {
  const { findings, outageMs } = await measureFindings(20_000, (start) => [
    attempt(start + 19_900, 5000, 504),
    attempt(start + 23_000, 5000, 202),
  ]);
  expect(findings).toEqual([]);
  expect(outageMs).toBeCloseTo(3000);
});

test('a write that fails long after a fault, and before the next, is a finding', async () => {
  const { findings, outageMs } = await measureFindings(20_000, (start) => [
    attempt(start + 12_000, 5000, 504),
    attempt(start + 13_000, 10, 201),
  ]);
  expect(findings).toEqual(['HA: first: of 2 writes sent 5000 ms later and after, 1 were not answered 2xx']);
  expect(outageMs).toBeCloseTo(12_000);
});
