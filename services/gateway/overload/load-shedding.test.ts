import { expect, test } from 'vitest';
import { Queue } from './load-shedding.ts';

/**
 * Simulates a queue in front of a service that replies to `perSecond` requests, in batches of `batchMs`, in steps of 10
 * ms. `offer` returns the number of requests in a step, which may depend on the number of waiting requests (a closed
 * loop).
 */
function simulate(service: (atMs: number) => number, batchMs = 20) {
  const queue = new Queue();
  const waiting: { at: number; isGivenUp?: boolean; leave: (isAnswered: boolean, at: number) => void }[] = [];
  let now = 1_000;
  let due = 0;
  const seen = { offered: 0, refused: 0, answered: 0, longestMs: 0 };
  return {
    /** Runs for this time and returns its results. */
    run(forMs: number, offer: (waiting: number) => number) {
      Object.assign(seen, { offered: 0, refused: 0, answered: 0, longestMs: 0 });
      for (const end = now + forMs; now < end; now += 10) {
        for (let coming = offer(waiting.length); coming > 0; coming--) {
          seen.offered += 1;
          if (queue.isTooLong(now)) seen.refused += 1;
          else waiting.push({ at: now, leave: queue.enter(now) });
        }
        due += service(now) / 100;
        for (const one of waiting) {
          if (one.isGivenUp || now - one.at < 5_000) continue;
          one.isGivenUp = true;
          one.leave(false, now);
        }
        if (now % batchMs === 0) {
          for (const { at, isGivenUp, leave } of waiting.splice(0, Math.floor(due))) {
            if (isGivenUp) queue.replied(now);
            else leave(true, now);
            seen.answered += 1;
            seen.longestMs = Math.max(seen.longestMs, now - at);
          }
          due = 0;
        }
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

test.each([100, 300, 1_500, 3_000])(
  'at five times the capacity of %i/s, the capacity is used, and waits are short',
  (capacity) => {
    const { run } = simulate(() => capacity);
    run(5_000, perStep(5 * capacity));
    const { offered, refused, answered, longestMs } = run(10_000, perStep(5 * capacity));
    expect(answered).toBeGreaterThan(0.95 * 10 * capacity);
    expect(refused / offered).toBeCloseTo(0.8, 1);
    expect(longestMs).toBeLessThan(4_000);
  },
);

test.each([20, 100, 400])('with batches of %i ms, too', (batchMs) => {
  const { run } = simulate(() => 1_000, batchMs);
  run(5_000, perStep(5_000));
  const { answered, longestMs } = run(10_000, perStep(5_000));
  expect(answered).toBeGreaterThan(9_000);
  expect(longestMs).toBeLessThan(4_500);
});

test('after the overload, the queue empties within seconds and no request is refused', () => {
  const { run, waiting } = simulate(() => 1_000);
  run(10_000, perStep(5_000));
  run(4_000, perStep(500));
  expect(run(5_000, perStep(500)).refused).toBe(0);
  expect(waiting()).toBeLessThan(20);
});

test('500 callers that each wait for their response are not refused while they get it within half a second', () => {
  const { run } = simulate(() => 1_000);
  expect(run(20_000, (waiting) => 500 - waiting).refused).toBe(0);
});

test('idle hours do not affect the decision about a burst', () => {
  const { run } = simulate(() => 1_500);
  run(5_000, perStep(10));
  let burst = 1_500;
  expect(
    run(3_000, () => {
      const coming = burst;
      burst = 0;
      return coming;
    }),
  ).toMatchObject({ refused: 0, answered: 1_500 });
});

test('during a short pause of the service no request is refused', () => {
  const { run } = simulate((at) => (at % 10_000 < 600 ? 0 : 1_500));
  expect(run(30_000, perStep(400)).refused).toBe(0);
});

test('during a long pause no request is refused; afterwards waiting requests are processed before more are accepted', () => {
  let capacity = 1_500;
  const { run, waiting } = simulate(() => capacity);
  run(1_000, perStep(400));
  capacity = 0;
  // In the first second, there still was a recent reply.
  const first = run(1_020, perStep(400)).refused;
  expect(run(2_000, perStep(400)).refused).toBe(0);
  expect(first).toBeLessThan(200);
  capacity = 1_500;
  run(1_500, perStep(400));
  expect(run(2_000, perStep(400)).refused).toBe(0);
  expect(waiting()).toBeLessThan(20);
});

test('a service that became slower is detected', () => {
  let capacity = 2_000;
  const { run } = simulate(() => capacity);
  run(5_000, perStep(1_500));
  capacity = 300;
  run(10_000, perStep(1_500));
  expect(run(5_000, perStep(1_500)).longestMs).toBeLessThan(3_500);
});

test('timed-out requests still use capacity: late replies arrive, and more requests are accepted only after them', () => {
  let capacity = 0;
  const { run, waiting } = simulate(() => capacity);
  run(8_000, perStep(1_250));
  expect(waiting()).toBe(10_000);
  capacity = 250;
  run(120_000, perStep(1_250));
  expect(waiting()).toBeLessThan(1_500);
  expect(run(5_000, perStep(1_250))).toMatchObject({ answered: expect.closeTo(1_250, -2) });
});

test('a few slow requests are not an overload', () => {
  const { run } = simulate(() => 5);
  expect(run(10_000, (waiting) => 50 - waiting).refused).toBe(0);
});
