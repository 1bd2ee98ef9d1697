import { expect, test } from 'vitest';
import { wanted } from './scaling.ts';

test.each([
  [0, 1],
  [0.4, 1],
  [0.41, 2],
  [1.2, 3],
  [9, 4],
])('%f cores used, 0.4 for each: %i processes of 4 at most, and one at least', (used, processes) => {
  expect(wanted(used, 0.4, 4)).toBe(processes);
});
