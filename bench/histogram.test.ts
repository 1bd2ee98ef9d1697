import { describe, expect, it } from 'vitest';
import { Histogram } from './histogram.ts';

describe('Histogram', () => {
  it('the error of every percentile is less than one percent', () => {
    const histogram = new Histogram();
    for (let us = 1; us <= 100_000; us++) histogram.record(us);
    for (const share of [0.001, 0.01, 0.5, 0.9, 0.99, 0.999, 1]) {
      const exact = share * 100_000;
      expect(histogram.percentile(share)).toBeGreaterThanOrEqual(exact);
      expect(histogram.percentile(share)).toBeLessThanOrEqual(exact * 1.01);
    }
    expect(histogram.count).toBe(100_000);
  });

  it('small values and the largest one are exact', () => {
    const histogram = new Histogram();
    for (const us of [3, 3, 3, 7, 123_456_789]) histogram.record(us);
    expect(histogram.percentile(0.5)).toBe(3);
    expect(histogram.percentile(0.8)).toBe(7);
    expect(histogram.summary()).toMatchObject({ p50: 0.003, max: 123_456.789 });
  });

  it('values beyond its limits, and no values, are accepted', () => {
    const histogram = new Histogram();
    expect(histogram.summary()).toEqual({ mean: 0, p50: 0, p90: 0, p99: 0, p999: 0, max: 0 });
    histogram.record(-5);
    histogram.record(1e12);
    expect(histogram.percentile(0.5)).toBe(0);
    expect(histogram.percentile(1)).toBe(0xffffffff);
  });
});
