import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createClock, requireSameTime, whileClocksAgree } from './clock.ts';

const logger = pino({ level: 'silent' });
const began = Date.parse('2026-01-02T03:04:05.678Z');

/**
 * A host whose clock is `skew` ahead of the database's, and whose response takes `there` and `back`
 * ms.
 */
function host(skew: number) {
  const world = { monotonic: 1_000, skew, there: 2, back: 2, isAway: false };
  const trueTime = () => began + world.monotonic;
  const clock = createClock({
    logger,
    own: () => trueTime() + world.skew,
    monotonic: () => world.monotonic,
    async read() {
      world.monotonic += world.there;
      const time = trueTime();
      world.monotonic += world.back;
      if (world.isAway) throw new Error('away');
      return time;
    },
  });
  return { world, clock, trueTime };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.each([0, 4_900, -4_900, 7_200_000, -7_200_000, -1e12])(
  'a host whose clock is wrong by %i ms uses the database’s time',
  async (skew) => {
    const { clock, trueTime } = host(skew);
    await clock.start();
    expect(clock.now()).toBe(trueTime());
    expect(clock.check().ok).toBe(Math.abs(skew) <= 5_000);
    clock.stop();
  },
);

test('check reports the difference and its direction, and that there was no comparison yet', async () => {
  const { clock } = host(7_200_000);
  expect(clock.check()).toEqual({
    ok: false,
    reason: "this host's clock has not been compared with the database's yet",
  });
  await clock.start();
  expect(clock.check().reason).toBe("this host's clock is 7200.0 s ahead of the database's");
  clock.stop();
});

test('a jump is detected immediately, and so is its correction', async () => {
  const { clock, world, trueTime } = host(0);
  await clock.start();
  world.skew = -6_000;
  expect(clock.check().reason).toContain('6.0 s behind');
  expect(clock.now()).toBe(trueTime());
  world.skew = 100;
  expect(clock.check()).toEqual({ ok: true });
  clock.stop();
});

test('half of the round trip is subtracted, and a slow response is ignored', async () => {
  const { clock, world, trueTime } = host(0);
  Object.assign(world, { there: 0, back: 400 });
  await clock.start();
  expect(Math.abs(clock.now() - trueTime())).toBe(200);
  Object.assign(world, { there: 5_000, back: 100, skew: 9_000 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(Math.abs(clock.now() - trueTime())).toBe(200);
  clock.stop();
});

test('the database is queried every second until it responds, and the clock runs on while it does not', async () => {
  const { clock, world, trueTime } = host(6_000);
  world.isAway = true;
  await clock.start();
  expect(clock.now()).toBe(trueTime() + 6_000);
  world.isAway = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(clock.check().reason).toContain('6.0 s ahead');
  world.isAway = true;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(clock.now()).toBe(trueTime());
  clock.stop();
});

test('a correction never turns the time back: the time does not change until the clock has caught up', async () => {
  const { clock, world, trueTime } = host(0);
  Object.assign(world, { there: 0, back: 400 });
  await clock.start();
  const early = clock.now();
  expect(early).toBe(trueTime() - 200);
  Object.assign(world, { there: 400, back: 0 });
  await vi.advanceTimersByTimeAsync(5_000);
  const late = clock.now();
  expect(late).toBe(trueTime() + 200);
  Object.assign(world, { there: 2, back: 2 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect([clock.now(), trueTime() < late]).toEqual([late, true]);
  world.monotonic += 300;
  expect(clock.now()).toBe(trueTime());
  clock.stop();
});

test('a slower response is used only if it contradicts the last one; a faster one always is', async () => {
  const { clock, world, trueTime } = host(0);
  Object.assign(world, { there: 2, back: 2 });
  await clock.start();
  Object.assign(world, { there: 10, back: 90 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(clock.now()).toBe(trueTime());
  clock.stop();
  const late = host(0);
  Object.assign(late.world, { there: 0, back: 400 });
  await late.clock.start();
  expect(late.clock.now()).toBe(late.trueTime() - 200);
  Object.assign(late.world, { there: 2, back: 2 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(late.clock.now()).toBe(late.trueTime());
  late.clock.stop();
});

test('a fast response loses its precedence over time, because clocks drift', async () => {
  const { clock, world, trueTime } = host(0);
  await clock.start();
  Object.assign(world, { there: 30, back: 40 });
  for (let looks = 0; looks < 40; looks++) await vi.advanceTimersByTimeAsync(5_000);
  expect(Math.abs(clock.now() - trueTime())).toBe(5);
  clock.stop();
});

test('while the clocks disagree, a handler rejects and is not called', async () => {
  const { clock, world } = host(0);
  let calls = 0;
  const handle = whileClocksAgree(clock, async () => void calls++);
  await expect(handle([])).rejects.toThrow('not been compared');
  await clock.start();
  await handle([]);
  world.skew = -6_000;
  await expect(handle([])).rejects.toThrow('6.0 s behind');
  expect(calls).toBe(1);
  clock.stop();
});

test('a time of the database must not differ by more than 5 s', () => {
  const at = (ms: number) => () => requireSameTime(new Date(Date.now() + ms).toISOString());
  for (const ms of [0, 4_900, -4_900]) expect(at(ms)).not.toThrow();
  expect(at(5_100)).toThrow('5.1 s behind');
  expect(at(-7_200_000)).toThrow('7200.0 s ahead of');
});
