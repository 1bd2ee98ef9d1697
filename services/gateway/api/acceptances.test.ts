import { expect, test } from 'vitest';
import { Acceptances } from './acceptances.ts';

test('returns the first time of acceptance of an id, unless too many ids were added after it', () => {
  const acceptances = new Acceptances(2);
  const at = (ms: number) => new Date(ms);
  expect([acceptances.first('a', at(1)), acceptances.first('b', at(2)), acceptances.first('a', at(3))]).toEqual([
    at(1),
    at(2),
    at(1),
  ]);
  acceptances.first('c', at(4));
  expect([acceptances.first('c', at(5)), acceptances.first('b', at(6)), acceptances.first('a', at(7))]).toEqual([
    at(4),
    at(2),
    at(7),
  ]);
});
