import { expect, test } from 'vitest';
import { computeEtag, parseIfMatch } from './etag.ts';

test('an entity tag depends on the shown values, not on the order of names', () => {
  const tag = computeEtag({ a: 1, b: { c: [1, 2], d: null } });
  expect(tag).toMatch(/^"[0-9a-f]{32}"$/);
  expect(computeEtag({ b: { d: null, c: [1, 2] }, a: 1 })).toBe(tag);
  for (const other of [{ a: 1, b: { c: [2, 1], d: null } }, { a: 1, b: { c: [1, 2] } }, {}])
    expect(computeEtag(other)).not.toBe(tag);
});

test('without If-Match, and with *, any version matches; otherwise only strong tags of our form match', () => {
  const tag = computeEtag({});
  expect([parseIfMatch(undefined), parseIfMatch(' * ')]).toEqual([undefined, undefined]);
  expect(parseIfMatch(`"x", ${tag} ,W/${tag}`)).toEqual([tag]);
  expect([parseIfMatch(''), parseIfMatch(`W/${tag}`), parseIfMatch('nonsense')]).toEqual([[], [], []]);
});
