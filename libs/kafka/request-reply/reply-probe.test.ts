import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ReplyProbe } from './reply-probe.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A probe whose messages return after `delayMs`, or never while that is undefined. */
function probing(delayMs: number | undefined) {
  const world = { delayMs, lost: 0, sent: 0, isAway: false };
  const probe: ReplyProbe = new ReplyProbe({
    prefix: 'origin.probe.',
    onLost: () => {
      world.lost += 1;
    },
    send: async (id) => {
      world.sent += 1;
      if (world.isAway) throw new Error('the broker is away');
      if (world.delayMs !== undefined) setTimeout(() => probe.arrived(id), world.delayMs);
    },
  });
  probe.joined();
  return { world, probe };
}

test.each([10, 400, 3_000])('probes that return after %i ms make it ready', async (delayMs) => {
  const { world, probe } = probing(delayMs);
  const started = probe.start();
  await vi.advanceTimersByTimeAsync(3_500);
  await started;
  expect(probe.ready).toBe(true);
  expect(world.lost).toBe(0);
  await probe.stop();
});

test('if no probe returns, onLost is called 4 s after the join, and not again before the next join', async () => {
  const { world, probe } = probing(undefined);
  const started = probe.start();
  await vi.advanceTimersByTimeAsync(3_900);
  expect(world.lost).toBe(0);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(world.lost).toBe(1);
  probe.joined();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(world.lost).toBe(2);
  world.delayMs = 10;
  probe.joined();
  await vi.advanceTimersByTimeAsync(500);
  await started;
  expect(probe.ready).toBe(true);
  await probe.stop();
});

test('if no more probes return after the start, onLost is called', async () => {
  const { world, probe } = probing(10);
  const started = probe.start();
  await vi.advanceTimersByTimeAsync(300);
  await started;
  world.delayMs = undefined;
  await vi.advanceTimersByTimeAsync(6_000);
  expect(probe.ready).toBe(false);
  expect(world.lost).toBe(1);
  await probe.stop();
});

test('another id is not a probe', () => {
  const { probe } = probing(10);
  expect([probe.arrived('origin.17'), probe.arrived('origin.probe.17')]).toEqual([false, true]);
});

test('while the broker accepts no probes it stays ready; the next one to return is in time', async () => {
  const { world, probe } = probing(10);
  const started = probe.start();
  await vi.advanceTimersByTimeAsync(300);
  await started;
  world.isAway = true;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(probe.ready).toBe(true);
  [world.isAway, world.delayMs] = [false, 3_000];
  await vi.advanceTimersByTimeAsync(3_500);
  world.delayMs = 10;
  await vi.advanceTimersByTimeAsync(30_000);
  expect([probe.ready, world.lost]).toEqual([true, 0]);
  await probe.stop();
});
