import { expect, test } from 'vitest';
import { canonicalJson, derivedBits, fingerprint, freshAt, freshBits } from './ids.ts';

test('ids are 32 hex digits; new ones are ordered by time, and contain it', () => {
  // contract: envelope-8
  const now = Date.now();
  const [first, second] = [freshBits(now), freshBits(now + 1)];
  expect([first, second].every((bits) => /^[0-9a-f]{32}$/.test(bits))).toBe(true);
  expect(first < second).toBe(true);
  expect([freshAt(`txn_${first}`), freshAt(second)]).toEqual([now, now + 1]);
  expect(freshAt(`txn_${'a'.repeat(32)}`)).toBe(-Infinity);
  // The last byte of a transaction's id becomes the bucket of its command.
  expect(freshAt(`txn_${first.slice(0, 30)}00`)).toBe(now);
  for (let at = 0; at < 32; at++) {
    const mistyped = first.slice(0, at) + (first.charAt(at) === '0' ? '1' : '0') + first.slice(at + 1);
    expect([at, freshAt(`acc_${mistyped}`)]).toEqual([at, -Infinity]);
  }
});

test('new ids of the same time do not repeat', () => {
  expect(new Set(Array.from({ length: 2_000 }, () => freshBits(1)))).toHaveProperty('size', 2_000);
});

test('derived ids depend on caller, route, and key, and on nothing else', () => {
  // contract: envelope-8, envelope-9
  const bits = derivedBits('key:1', 'POST /clients', 'k');
  // SHA-256 of this text, by another program. Another value means that repeats of earlier requests are executed again.
  // printf '["core-banking idempotency 1","key:1","POST /clients","k"]' | sha256sum
  expect(bits).toBe('0528a4817189b11b2fd20f16824c87b6');
  const others = [
    derivedBits('key:2', 'POST /clients', 'k'),
    derivedBits('key:1', 'POST /accounts', 'k'),
    derivedBits('key:1', 'POST /clients', 'K'),
    // What ends one part does not begin the next one.
    derivedBits('key:1', 'POST /clientsk', ''),
    derivedBits('key:1","POST /clients', 'k', ''),
    derivedBits('jwt:\ud800', 'POST /clients', 'k'),
    derivedBits('jwt:\ufffd', 'POST /clients', 'k'),
  ];
  expect(new Set([bits, ...others]).size).toBe(8);
});

test('the fingerprint ignores only the order of keys and absent fields', () => {
  const same = [
    { a: '1', b: { c: [1, 2], d: null } },
    { b: { c: [1, 2] }, a: '1', e: undefined },
  ];
  expect(fingerprint({ id: 'x' }, same[0])).toBe(fingerprint({ id: 'x' }, same[1]));
  expect(fingerprint({ id: 'y' }, same[0])).not.toBe(fingerprint({ id: 'x' }, same[0]));
  expect(fingerprint({}, { a: '1' })).not.toBe(fingerprint({}, { a: 1 }));
  expect(fingerprint({}, { a: [1, 2] })).not.toBe(fingerprint({}, { a: [2, 1] }));
  expect(canonicalJson({ b: [{ d: 1, c: '"' }], a: null })).toBe('{"b":[{"c":"\\"","d":1}]}');
});
