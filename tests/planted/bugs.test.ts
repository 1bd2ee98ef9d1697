import { expect, it } from 'vitest';
import { banks } from '../faults/self-test.ts';
import { bugs } from './bugs.ts';
import { root, withBug } from './plant.ts';

/** The code moves on; whoever plants bugs in it is to hear of that here, and not after the hour that planting takes. */
it.each([...bugs, ...banks.flatMap((bank) => bank.bugs)].map((bug) => [bug.name, bug] as const))(
  'can be planted: %s',
  (_, bug) => {
    expect(() => withBug(root, bug)).not.toThrow();
  },
);
