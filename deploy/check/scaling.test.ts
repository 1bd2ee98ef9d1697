import { expect, test } from 'vitest';
import { wanted } from './scaling.ts';

test.each([
  [0, 1],
  [500, 1],
  [501, 2],
  [1_500, 3],
  [9_000, 4],
])('%i messages behind, 500 for each: %i processes of 4 at most, and one at least', (lag, processes) => {
  expect(wanted(lag, 500, 4)).toBe(processes);
});
