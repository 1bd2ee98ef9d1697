import { expect, it } from 'vitest';
import { pauseMs } from './commands.ts';

const pace = { full: 500, ms: 6 };

it.each([
  { size: 2, sinceMs: 2, waits: 4, why: 'what comes meanwhile is decided with it' },
  { size: 499, sinceMs: 5, waits: 1, why: 'it was not full' },
  { size: 2, sinceMs: 9, waits: 0, why: 'the time is over' },
  { size: 1, sinceMs: 2, waits: 0, why: 'a caller who sends one command after another does not wait' },
  { size: 500, sinceMs: 2, waits: 0, why: 'a full batch has more behind it' },
  { size: 0, sinceMs: 0, waits: 0, why: 'nothing was decided' },
])('behind a batch of $size that began $sinceMs ms ago the ledger waits $waits ms: $why', ({ size, sinceMs, waits }) => {
  expect(pauseMs(size, sinceMs, pace)).toBe(waits);
});

it('without a pace it never waits', () => {
  expect(pauseMs(2, 0)).toBe(0);
});
