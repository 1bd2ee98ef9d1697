import { expect, test } from 'vitest';
import { alerts } from '../../tests/support/rules.ts';
import { troubles, waits } from './alert-times.ts';

test('of every alert it is known what makes it true, and how long it waits', () => {
  const names = alerts.map(({ name }) => name).toSorted();
  expect(Object.keys(troubles).toSorted()).toEqual(names);
  expect([...waits().keys()].toSorted()).toEqual(names);
  expect([...waits().values()].every(Number.isFinite)).toBe(true);
});
