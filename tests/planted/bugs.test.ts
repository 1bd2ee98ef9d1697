import { expect, it } from 'vitest';
import { banks } from '../faults/self-test.ts';
import { bugs } from './bugs.ts';
import { root, withBug } from './plant.ts';

/** A change of the code that a bug replaces fails here, and not only after the hour that test:planted takes. */
it.each([...bugs, ...banks.flatMap((bank) => bank.bugs)].map((bug) => [bug.name, bug] as const))(
  'can be planted: %s',
  (_, bug) => {
    expect(() => withBug(root, bug)).not.toThrow();
  },
);
