import { expect, test } from 'vitest';
import { alerts } from '../../tests/support/rules.ts';
import { troubles, waits } from './alert-times.ts';

test('the condition and the duration of every alert are known', () => {
  const names = alerts.map(({ name }) => name).toSorted();
  expect(Object.keys(troubles).toSorted()).toEqual(names);
  expect([...waits().keys()].toSorted()).toEqual(names);
  expect([...waits().values()].every(Number.isFinite)).toBe(true);
});
