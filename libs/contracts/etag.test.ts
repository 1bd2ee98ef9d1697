import { expect, test } from 'vitest';
import { computeEtag, isKnown, parseIfMatch } from './etag.ts';

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

test('If-None-Match names a tag weak or not, and with the suffix of a proxy that compresses, which If-Match does not', () => {
  const hex = 'a'.repeat(32);
  const tag = `"${hex}"`;
  for (const known of ['*', tag, `W/${tag}`, `"x", ${tag}`, `"${hex}-gzip"`, `W/"${hex}-br"`, `"${hex}--gzip", "x"`])
    expect([known, isKnown(tag, known)]).toEqual([known, true]);
  for (const unknown of ['', '"x"', hex, `"${hex}-"`, `"${hex}gzip"`, `"${hex}-gzip`, `"b-${hex}"`, `"${hex}" gzip`])
    expect([unknown, isKnown(tag, unknown)]).toEqual([unknown, false]);
  expect(parseIfMatch(`"${hex}-gzip"`)).toEqual([]);
});
