import { describe, expect, it } from 'vitest';
import type { Figure } from '../peers/peer.ts';
import { outcome, type Result } from './peers.ts';

const figure = (perSecond: number, p50 = 1, unanswered = 0): Figure => ({
  perSecond,
  latency: { mean: p50, p50, p90: p50, p99: 2 * p50, p999: p50, max: p50 },
  cpuMicrosPerRequest: 100,
  wrong: unanswered,
  unanswered,
});
const result = (figures: Figure[], stalledAt?: number): Result => ({
  connections: 16,
  figures,
  ...(stalledAt === undefined ? {} : { stalledAt }),
});
const sql = "pgledger's SQL functions, pgbench without HTTP";

describe('goals against peers', () => {
  it('compare the bank with the fastest peer over HTTP, and separately with pgledger', () => {
    const transfers = {
      bank: result([figure(800), figure(1000)]),
      Slow: result([figure(10), figure(10)]),
      Fast: result([figure(100), figure(100)]),
      [sql]: result([figure(2000), figure(2000)]),
    };
    const { lines } = outcome(['peers-transfers', 'peers-sql-transfers'], { transfers }, {});
    expect(lines).toEqual([
      { goal: 'peers-transfers', value: 9, note: '900/s ÷ the best of Slow 10/s, Fast 100/s' },
      { goal: 'peers-sql-transfers', value: 0.45, note: `900/s ÷ the best of ${sql} 2000/s` },
    ]);
  });

  it('compare its latency with that of the peer with the lowest one', () => {
    const paced = { bank: result([figure(200, 3)]), Slow: result([figure(200, 6)]), Fast: result([figure(200, 2)]) };
    const { lines } = outcome(['peers-p50', 'peers-p99'], { paced }, {});
    expect(lines).toMatchObject([{ value: 1.5 }, { value: 1.5 }]);
  });

  it('omit a peer that is missing or does not respond, and never count it as zero', () => {
    const missing = { Gone: 'not installed' };
    const deposits = {
      bank: result([figure(500)]),
      Stuck: result([figure(0, 1, 64)], 64),
      Slow: result([figure(50)], 32),
    };
    const { lines, figures } = outcome(['peers-deposits'], { deposits }, missing);
    expect(lines).toEqual([
      { goal: 'peers-deposits', value: 10, note: '500/s ÷ the best of Slow 50/s; Gone is left out: not installed' },
    ]);
    const remarks = figures?.[0]?.rows.map((row) => [row[0], row.at(-1)]);
    expect(remarks).toEqual([
      ['bank', ''],
      ['Stuck', 'stops responding at 64 callers'],
      ['Slow', 'stops responding at 32 callers'],
      ['Gone', 'left out: not installed'],
    ]);
    expect(outcome(['peers-deposits'], { deposits: { bank: result([figure(500)]) } }, missing).lines).toEqual([
      { goal: 'peers-deposits', missing: 'Gone is left out: not installed' },
    ]);
  });

  it('show a dash if a contender has no such figure', () => {
    const { latency: _none, ...bare } = figure(70);
    const { figures } = outcome([], { transfers: { [sql]: result([bare]) } }, {});
    expect(figures?.[0]?.rows).toEqual([[sql, '16', '70', '–', '–', '100', '0', '']]);
  });
});
