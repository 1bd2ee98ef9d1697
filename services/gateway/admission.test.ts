import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import { createAdmission, Line } from './admission.ts';
import type { End } from './admission.ts';

/**
 * A line before a service that answers `perSecond` requests, in batches of `batchMs`; time is simulated in steps of 10 ms.
 * `offer` gives how many requests come in a step, or are let in where the line's length decides (a closed loop).
 */
function simulate(service: (atMs: number) => number, batchMs = 20) {
  const line = new Line();
  const waiting: { at: number; isGivenUp?: boolean; leave: (end: End, at: number) => void }[] = [];
  let now = 1_000;
  let due = 0;
  const seen = { offered: 0, refused: 0, answered: 0, longestMs: 0 };
  return {
    line,
    /** Runs for so long, and tells what happened in that time. */
    run(forMs: number, offer: (waiting: number) => number) {
      Object.assign(seen, { offered: 0, refused: 0, answered: 0, longestMs: 0 });
      for (const end = now + forMs; now < end; now += 10) {
        for (let coming = offer(waiting.length); coming > 0; coming--) {
          seen.offered += 1;
          if (line.isFull) seen.refused += 1;
          else waiting.push({ at: now, leave: line.enter(now) });
        }
        due += service(now) / 100;
        for (const one of waiting) {
          if (one.isGivenUp || now - one.at < 5_000) continue;
          one.isGivenUp = true;
          one.leave('given up', now);
        }
        if (now % batchMs === 0) {
          for (const { at, isGivenUp, leave } of waiting.splice(0, Math.floor(due))) {
            if (isGivenUp) line.late(now);
            else leave('answered', now);
            seen.answered += 1;
            seen.longestMs = Math.max(seen.longestMs, now - at);
          }
          due = 0;
        }
        if (now % 250 === 0) line.tick(now);
      }
      return { ...seen };
    },
    waiting: () => waiting.length,
  };
}

const perStep = (perSecond: number) => {
  let rest = 0;
  return () => {
    rest += perSecond / 100;
    const whole = Math.floor(rest);
    rest -= whole;
    return whole;
  };
};

test.each([100, 300, 1_500, 6_000])('five times the capacity of %i/s: all of the capacity is used, and nobody waits for long', (capacity) => {
  const { run } = simulate(() => capacity);
  run(5_000, perStep(5 * capacity));
  const { offered, refused, answered, longestMs } = run(10_000, perStep(5 * capacity));
  expect(answered).toBeGreaterThan(0.95 * 10 * capacity);
  expect(refused / offered).toBeCloseTo(0.8, 1);
  expect(longestMs).toBeLessThan(3_000);
});

test.each([20, 100, 400])('with batches of %i ms, too', (batchMs) => {
  const { run } = simulate(() => 1_000, batchMs);
  run(5_000, perStep(5_000));
  const { answered, longestMs } = run(10_000, perStep(5_000));
  expect(answered).toBeGreaterThan(9_500);
  expect(longestMs).toBeLessThan(4_500);
});

test('when the flood is over, the line is gone in seconds and nobody is refused', () => {
  const { run, waiting } = simulate(() => 1_000);
  run(10_000, perStep(5_000));
  run(4_000, perStep(500));
  expect(run(5_000, perStep(500)).refused).toBe(0);
  expect(waiting()).toBeLessThan(20);
});

test('1,000 callers who each wait for their answer are not refused while they are answered within two seconds', () => {
  const { run } = simulate(() => 1_000);
  expect(run(20_000, (waiting) => 1_000 - waiting).refused).toBe(0);
});

test('a burst after quiet hours is not judged by the quiet', () => {
  const { run } = simulate(() => 1_500);
  run(5_000, perStep(10));
  let burst = 1_500;
  expect(run(3_000, () => {
    const coming = burst;
    burst = 0;
    return coming;
  })).toMatchObject({ refused: 0, answered: 1_500 });
});

test('a pause of the service refuses nobody, neither while it lasts nor after it', () => {
  const { run } = simulate((at) => (at % 10_000 < 3_000 ? 0 : 1_500));
  expect(run(30_000, perStep(400)).refused).toBe(0);
});

test('a service that became slower is noticed', () => {
  let capacity = 2_000;
  const { run } = simulate(() => capacity);
  run(5_000, perStep(1_500));
  capacity = 300;
  run(10_000, perStep(1_500));
  expect(run(5_000, perStep(1_500)).longestMs).toBeLessThan(3_500);
});

test('what was given up is still worked on: a line that has grown too long by it is not made longer', () => {
  let capacity = 0;
  const { run, waiting } = simulate(() => capacity);
  run(8_000, perStep(2_500));
  expect(waiting()).toBe(20_000);
  capacity = 500;
  run(20_000, perStep(2_500));
  expect(waiting()).toBeLessThan(12_000);
  run(30_000, perStep(2_500));
  expect(run(5_000, perStep(2_500))).toMatchObject({ answered: expect.closeTo(2_500, -2), longestMs: expect.closeTo(2_000, -3) });
});

test('a few slow requests are no line', () => {
  const { run } = simulate(() => 5);
  expect(run(10_000, (waiting) => 50 - waiting).refused).toBe(0);
});

afterEach(() => void vi.useRealTimers());

test('an event loop that lags twice running takes nothing, and again when it is on time', () => {
  vi.useFakeTimers();
  let now = 0;
  const admission = createAdmission(() => now);
  const tick = (lateMs: number) => {
    now += 250 + lateMs;
    vi.advanceTimersByTime(250);
    return admission.refuses('health');
  };
  expect([tick(0), tick(45_000), tick(0), tick(600), tick(600), tick(0)]).toEqual([undefined, undefined, undefined, undefined, 'loop', undefined]);
  admission.stop();
});

test('bodies are held until their responses are closed, and bounded together', () => {
  const admission = createAdmission();
  const responses = Array.from({ length: 512 }, () => new EventEmitter() as unknown as ServerResponse);
  for (const response of responses) {
    expect(admission.refuses('create_transaction')).toBeUndefined();
    admission.hold(65_536, response);
  }
  expect(admission.refuses('create_transaction')).toBe('bytes');
  responses[0]?.emit('close');
  expect(admission.refuses('create_transaction')).toBeUndefined();
  admission.stop();
});
