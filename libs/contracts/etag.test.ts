import { expect, test } from 'vitest';
import { etagOf, tagsOf } from './etag.ts';

test('an entity tag depends on the shown values, not on the order of names', () => {
  const tag = etagOf({ a: 1, b: { c: [1, 2], d: null } });
  expect(tag).toMatch(/^"[0-9a-f]{32}"$/);
  expect(etagOf({ b: { d: null, c: [1, 2] }, a: 1 })).toBe(tag);
  for (const other of [{ a: 1, b: { c: [2, 1], d: null } }, { a: 1, b: { c: [1, 2] } }, {}])
    expect(etagOf(other)).not.toBe(tag);
});

test('without If-Match, and with *, any version matches; otherwise only strong tags of our form match', () => {
  const tag = etagOf({});
  expect([tagsOf(undefined), tagsOf(' * ')]).toEqual([undefined, undefined]);
  expect(tagsOf(`"x", ${tag} ,W/${tag}`)).toEqual([tag]);
  expect([tagsOf(''), tagsOf(`W/${tag}`), tagsOf('nonsense')]).toEqual([[], [], []]);
});
