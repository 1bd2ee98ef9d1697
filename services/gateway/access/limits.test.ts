import { expect, test } from 'vitest';
import { createLimiter } from './limits.ts';

test('requests are counted per key in windows of a minute', () => {
  let now = 1_000_000;
  const limiter = createLimiter(2, () => now);
  expect(limiter?.take('a')).toEqual({ left: 1, reset_s: 60 });
  now += 10_500;
  expect(limiter?.take('a')).toEqual({ left: 0, reset_s: 50 });
  expect(limiter?.take('a').left).toBe(-1);
  expect(limiter?.take('b').left).toBe(1);
  now += 50_000;
  expect(limiter?.take('a')).toEqual({ left: 1, reset_s: 60 });
});

test('0 means no limit', () => {
  // contract: permission-29
  expect(createLimiter(0)).toBeUndefined();
});
