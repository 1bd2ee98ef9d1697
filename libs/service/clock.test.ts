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
  return { world, clock };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.each([0, 4_900, -4_900, 5_100, -5_100, 7_200_000, -1e12])(
  'a difference of %i ms is reported with its direction; more than 5 s is not ok',
  async (skew) => {
    const { clock } = host(skew);
    expect([clock.check().ok, clock.skewMs()]).toEqual([false, undefined]);
    expect(clock.check().reason).toBe("this host's clock has not been compared with the database's yet");
    await clock.start();
    expect(clock.skewMs()).toBe(skew);
    expect(clock.check().ok).toBe(Math.abs(skew) <= 5_000);
    if (Math.abs(skew) > 5_000)
      expect(clock.check().reason).toContain(skew > 0 ? '5 s ahead of the' : '5 s behind the');
    clock.stop();
  },
);

test('a jump is detected immediately, and so is its correction', async () => {
  const { clock, world } = host(0);
  await clock.start();
  for (const skew of [-6_000, -6_100]) {
    world.skew = skew;
    // A number that changes would make each reading of the probe another event.
    expect(clock.check().reason).toBe("this host's clock is more than 5 s behind the database's");
  }
  world.skew = 100;
  expect(clock.check()).toEqual({ ok: true });
  clock.stop();
});

test('half of the round trip is subtracted, and a response that takes more than a second is ignored', async () => {
  const { clock, world } = host(0);
  Object.assign(world, { there: 0, back: 400 });
  await clock.start();
  expect(clock.skewMs()).toBe(200);
  Object.assign(world, { there: 5_000, back: 100 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(clock.skewMs()).toBe(200);
  clock.stop();
});

test('the database is queried every second until it responds, and the last comparison counts while it does not', async () => {
  const { clock, world } = host(6_000);
  world.isAway = true;
  await clock.start();
  expect(clock.check().reason).toContain('not been compared');
  world.isAway = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(clock.check().reason).toContain('5 s ahead');
  world.isAway = true;
  world.skew = 0;
  await vi.advanceTimersByTimeAsync(20_000);
  expect([clock.check().ok, clock.skewMs()]).toEqual([true, 0]);
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
  await expect(handle([])).rejects.toThrow('5 s behind');
  expect(calls).toBe(1);
  clock.stop();
});

test('a time of the database must not differ by more than 5 s', () => {
  const at = (ms: number) => () => requireSameTime(new Date(Date.now() + ms).toISOString());
  for (const ms of [0, 4_900, -4_900]) expect(at(ms)).not.toThrow();
  expect(at(5_100)).toThrow('5 s behind');
  expect(at(-7_200_000)).toThrow('5 s ahead of');
});
