import { expect, test } from 'vitest';
import { canonicalJson, derivedBits, fingerprint } from './ids.ts';

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
