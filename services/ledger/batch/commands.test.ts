import { expect, it } from 'vitest';
import { chooseSlot, pauseMs } from './commands.ts';

const pace = { full: 500, ms: 6 };

it.each([
  { size: 2, sinceMs: 2, waits: 4, why: 'commands that arrive meanwhile are decided with it' },
  { size: 499, sinceMs: 5, waits: 1, why: 'it was not full' },
  { size: 2, sinceMs: 9, waits: 0, why: 'the time has passed' },
  { size: 1, sinceMs: 2, waits: 0, why: 'a caller who sends one command after another does not wait' },
  { size: 500, sinceMs: 2, waits: 0, why: 'more commands are waiting behind a full batch' },
  { size: 2, sinceMs: 1, busy: 0.25, waits: 2, why: 'the process has time for smaller batches' },
  { size: 2, sinceMs: 3, busy: 0.25, waits: 0, why: 'the process has time for smaller batches' },
  { size: 0, sinceMs: 0, waits: 0, why: 'nothing was decided' },
])(
  'after a batch of $size that began $sinceMs ms ago the ledger waits $waits ms: $why',
  ({ size, sinceMs, busy = 0.5, waits }) => {
    expect(pauseMs(size, sinceMs, busy, pace)).toBe(waits);
  },
);

it('without a pace it never waits', () => {
  expect(pauseMs(2, 0, 1)).toBe(0);
});

const from = (...partitions: number[]) =>
  partitions.map((partition) => ({ message: { partition } })) as Parameters<typeof chooseSlot>[0];

it('each writer has its own slot of Teller and Vault: its lowest assigned partition', () => {
  // contract: double-entry-9
  expect(chooseSlot(from(9, 7), { partitions: () => [8, 5, 6] })).toBe(5);
  expect(chooseSlot(from(1), { partitions: () => [11, 10] })).toBe(10);
  expect(chooseSlot(from(9, 7), { partitions: () => [] })).toBe(7);
});
