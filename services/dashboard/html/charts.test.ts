import { describe, expect, it } from 'vitest';
import { barChart, type ChartDay, dayChart } from './charts.ts';

const day = (balance: bigint, moneyIn = 0n, moneyOut = 0n): ChartDay => ({
  balance,
  moneyIn,
  moneyOut,
  title: `<${balance}>`,
});
const drawn = (days: ChartDay[]) => dayChart(days, 'What it "says"').text;
const pointsOf = (svg: string) => /<polyline class="line" points="([^"]*)"/.exec(svg)?.[1];
const heights = (svg: string, kind: string) =>
  [...svg.matchAll(new RegExp(`<rect class="${kind}"[^>]* height="([^"]+)"`, 'g'))].map(([, height]) => height);

describe('a chart of days', () => {
  it('draws each balance from zero, as a step, and what it says in words', () => {
    const svg = drawn([day(0n), day(50n), day(100n)]);
    expect(pointsOf(svg)).toBe('0.0,118.0 300.0,118.0 300.0,62.0 600.0,62.0 600.0,6.0 900.0,6.0');
    expect(svg).toContain('role="img" aria-label="What it &quot;says&quot;"');
    expect(svg).toContain('<title>&lt;50&gt;</title>');
    expect(svg.match(/<g class="last">/g)).toHaveLength(1);
  });

  it('goes below zero, and takes balances that never change', () => {
    expect(pointsOf(drawn([day(-100n), day(100n)]))).toBe('0.0,118.0 450.0,118.0 450.0,6.0 900.0,6.0');
    expect(pointsOf(drawn([day(0n), day(0n)]))).toBe('0.0,118.0 450.0,118.0 450.0,118.0 900.0,118.0');
  });

  it('has a bar for what arrived and one for what left, of which the least can be seen', () => {
    const svg = drawn([day(0n, 200n, 100n), day(0n, 1n)]);
    expect([heights(svg, 'in'), heights(svg, 'out')]).toEqual([['36.0', '1.0'], ['18.0']]);
  });

  it('compares amounts that are too large for numbers exactly', () => {
    const most = 10n ** 30n;
    expect(heights(drawn([day(most, most, most / 2n)]), 'out')).toEqual(['18.0']);
  });
});

describe('a chart of bars', () => {
  it('has a bar from zero for each period, of which the least can be seen, and says its number', () => {
    const svg = barChart(
      [0n, 1n, 10n ** 30n].map((value) => ({ value, title: `<${value}>` })),
      'Amounts',
    ).text;
    expect(heights(svg, 'in')).toEqual(['0.0', '1.0', '120.0']);
    expect(svg).toContain('role="img" aria-label="Amounts"');
    expect(svg).toContain('<title>&lt;1&gt;</title>');
  });
});
