import { expect, it } from 'vitest';
import { banks } from '../faults/self-test.ts';
import { bugs } from './bugs.ts';
import { root, withBug } from './plant.ts';

/** If code that a bug replaces changes, this test fails, and not only test:planted after an hour. */
it.each([...bugs, ...banks.flatMap((bank) => bank.bugs)].map((bug) => [bug.name, bug] as const))(
  'can be planted: %s',
  (_, bug) => {
    expect(() => withBug(root, bug)).not.toThrow();
  },
);
