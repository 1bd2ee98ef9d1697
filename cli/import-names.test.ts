import { expect, it } from 'vitest';
import { Lines, Names } from './import-names.ts';

it('contained names are found, and repeated ones with their first line', () => {
  const names = new Names();
  for (let n = 0; n < 3000; n++) names.add(`name ${n}`);
  names.add('name 7');
  names.add(undefined);
  names.seal();
  expect([names.has('name 0'), names.has('name 2999'), names.has('name 3000'), names.has('')]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect([names.mayBeRepeated('name 7'), names.mayBeRepeated('name 8')]).toEqual([true, false]);
  const lines = new Lines(names);
  expect([
    lines.before('name 8', 9),
    lines.before('name 7', 8),
    lines.before('name 7', 3002),
    lines.before(undefined, 4),
  ]).toEqual([undefined, undefined, 8, undefined]);
});

it('a file without names contains none', () => {
  const names = new Names();
  names.seal();
  expect([names.has('a'), names.mayBeRepeated('a')]).toEqual([false, false]);
});
