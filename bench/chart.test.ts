import { describe, expect, it } from 'vitest';
import { svg } from './chart.ts';
import { accountsChart, latencyChart } from './docs.ts';

const latency = (p50: number, p99: number) => ({ mean: p50, p50, p90: p50, p99, p999: p99, max: p99 });

describe('svg', () => {
  it('draws each series inside the picture, and omits values that a log scale cannot show', () => {
    const points = [
      { x: 0, y: 1 },
      { x: 10, y: 0.5 },
      { x: 3_000, y: 700 },
    ];
    const picture = svg({
      title: 'a < b & "c"',
      x: { label: 'x', scale: 'log' },
      y: { label: 'y', scale: 'log' },
      series: [{ name: 'one', colour: 0, points }],
    });
    const [, path = ''] = /<path d="([^"]+)" stroke="#0072b2"\/>/.exec(picture) ?? [];
    const places = [...path.matchAll(/[ML]([\d.]+) ([\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)] as const);
    expect(places).toHaveLength(2);
    for (const [x, y] of places) {
      expect(x).toBeGreaterThanOrEqual(70);
      expect(x).toBeLessThanOrEqual(550);
      expect(y).toBeGreaterThanOrEqual(44);
      expect(y).toBeLessThanOrEqual(384);
    }
    expect(picture).toContain('a &lt; b &amp; &quot;c&quot;');
    expect(picture).toContain('prefers-color-scheme:dark');
  });

  it('works without any points', () => {
    const picture = svg({
      title: 't',
      x: { label: 'x', scale: 'log' },
      y: { label: 'y', scale: 'linear' },
      series: [],
    });
    expect(picture).not.toContain('NaN');
  });
});

describe('pictures', () => {
  it('have two latency lines per contender, and one for throughput, from several groups', () => {
    const outcomes = [
      {
        lines: [],
        latencies: [{ contender: 'bank', perSecond: 100, latency: latency(2, 5) }],
        growth: [
          { contender: 'bank', accounts: 1_000, perSecond: 5 },
          { contender: 'direct', accounts: 2, perSecond: 1 },
        ],
      },
      { lines: [], growth: [{ contender: 'bank', accounts: 10, perSecond: 7 }] },
    ];
    expect(latencyChart(outcomes).series.map(({ name, dashed, points }) => [name, dashed ?? false, points])).toEqual([
      ['bank p99', false, [{ x: 100, y: 5 }]],
      ['bank p50', true, [{ x: 100, y: 2 }]],
    ]);
    expect(accountsChart(outcomes).series.map(({ name, points }) => [name, points])).toEqual([
      [
        'bank',
        [
          { x: 10, y: 7 },
          { x: 1_000, y: 5 },
        ],
      ],
      ['direct', [{ x: 2, y: 1 }]],
    ]);
  });
});
