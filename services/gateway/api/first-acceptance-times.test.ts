import { expect, test } from 'vitest';
import { FirstAcceptanceTimes } from './first-acceptance-times.ts';

test('returns the first time of acceptance of an id, unless too many ids were added after it', () => {
  const acceptanceTimes = new FirstAcceptanceTimes(2);
  const at = (ms: number) => new Date(ms);
  expect([
    acceptanceTimes.first('a', at(1)),
    acceptanceTimes.first('b', at(2)),
    acceptanceTimes.first('a', at(3)),
  ]).toEqual([at(1), at(2), at(1)]);
  acceptanceTimes.first('c', at(4));
  expect([
    acceptanceTimes.first('c', at(5)),
    acceptanceTimes.first('b', at(6)),
    acceptanceTimes.first('a', at(7)),
  ]).toEqual([at(4), at(2), at(7)]);
});
