import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createMembership } from './membership.ts';

const logger = pino({ level: 'silent' });
beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A group in which this process is a member, alone or not. */
function member() {
  const group = { isIn: false, changes: 0, alone: false };
  const change = async (isIn: boolean): Promise<void> => {
    if (group.isIn !== isIn) group.changes++;
    group.isIn = isIn;
  };
  return { group, start: () => change(true), leave: () => change(false), isAlone: () => group.alone };
}

async function process() {
  const database = { isAway: false };
  const clock = { ok: true };
  const [commands, queries] = [member(), member()];
  const membership = createMembership({
    probe: async () => {
      if (database.isAway) throw new Error('away');
    },
    clock: { check: () => ({ ok: clock.ok }) },
    members: [commands, queries],
    logger,
  });
  await membership.start();
  const isIn = () => [commands.group.isIn, queries.group.isIn];
  return { database, clock, commands: commands.group, queries: queries.group, membership, isIn };
}

test('a process leaves when the database has not answered for 4 s, at the latest after 5 s, and joins when it does', async () => {
  const { database, isIn, membership } = await process();
  expect(isIn()).toEqual([true, true]);
  database.isAway = true;
  await vi.advanceTimersByTimeAsync(2_500);
  expect(isIn()).toEqual([true, true]);
  await vi.advanceTimersByTimeAsync(2_500);
  expect(isIn()).toEqual([false, false]);
  database.isAway = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(isIn()).toEqual([true, true]);
  void membership.stop();
});

test('failures with successes in between, or a short absence, change nothing', async () => {
  const { database, commands, queries, membership } = await process();
  for (let n = 0; n < 20; n++) {
    database.isAway = n % 4 !== 0;
    await vi.advanceTimersByTimeAsync(500);
  }
  database.isAway = false;
  await vi.advanceTimersByTimeAsync(500);
  database.isAway = true;
  await vi.advanceTimersByTimeAsync(2_000);
  database.isAway = false;
  await vi.advanceTimersByTimeAsync(10_000);
  expect([commands.changes, queries.changes]).toEqual([1, 1]);
  void membership.stop();
});

test('a database that answers slowly is not away, nor is one whose answer a frozen process has not read', async () => {
  let answer = (): void => undefined;
  let ask = async (): Promise<void> => undefined;
  const [commands, queries] = [member(), member()];
  const clock = { check: () => ({ ok: true }) };
  const membership = createMembership({ probe: () => ask(), clock, members: [commands, queries], logger });
  await membership.start();
  ask = () => new Promise((resolve) => (answer = resolve));
  for (let n = 0; n < 10; n++) {
    await vi.advanceTimersByTimeAsync(3_500);
    answer();
  }
  await vi.advanceTimersByTimeAsync(500);
  const frozenUntil = performance.now() + 60_000;
  vi.spyOn(performance, 'now').mockImplementation(() => frozenUntil);
  await vi.advanceTimersByTimeAsync(500);
  answer();
  await vi.advanceTimersByTimeAsync(2_000);
  expect([commands.group.changes, queries.group.changes]).toEqual([1, 1]);
  await membership.stop();
});

test('while the clocks disagree, a process is in no group', async () => {
  const { clock, isIn, membership } = await process();
  clock.ok = false;
  await vi.advanceTimersByTimeAsync(500);
  expect(isIn()).toEqual([false, false]);
  clock.ok = true;
  await vi.advanceTimersByTimeAsync(500);
  expect(isIn()).toEqual([true, true]);
  void membership.stop();
});

test('a member that has all partitions stays, until there is another', async () => {
  const { database, commands, isIn, membership } = await process();
  commands.alone = true;
  database.isAway = true;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(isIn()).toEqual([true, false]);
  commands.alone = false;
  await vi.advanceTimersByTimeAsync(500);
  expect(isIn()).toEqual([false, false]);
  void membership.stop();
});
