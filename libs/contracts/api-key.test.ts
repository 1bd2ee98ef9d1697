import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apiKeyChecksum, hashApiKey, makeApiKey, parseApiKey, sameHash } from './api-key.ts';

const hex = fc.stringMatching(/^[0-9a-f]{32}$/);
const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
const environment = fc.constantFrom<'live' | 'test'>('live', 'test');

describe('API keys', () => {
  it('have the documented form and parse back', () => {
    fc.assert(
      fc.property(environment, hex, secret, (env, bits, bytes) => {
        const key = makeApiKey(env, `key_${bits}`, bytes);
        expect(key).toMatch(/^cbk_(live|test)_[0-9a-f]{32}_[0-9A-Za-z]{49}$/);
        expect(parseApiKey(key)).toEqual({ key_id: `key_${bits}`, environment: env });
      }),
    );
  });

  it('are rejected if any single character is changed', () => {
    fc.assert(
      fc.property(hex, secret, fc.nat(), fc.constantFrom('0', 'a', 'Z', '_', ' '), (bits, bytes, at, character) => {
        const key = makeApiKey('live', `key_${bits}`, bytes);
        const index = at % key.length;
        fc.pre(key[index] !== character);
        expect(parseApiKey(key.slice(0, index) + character + key.slice(index + 1))).toBeUndefined();
      }),
    );
  });

  it('differ by secret, also at the ends of the range', () => {
    const least = makeApiKey('test', `key_${'0'.repeat(32)}`, new Uint8Array(32));
    const most = makeApiKey('test', `key_${'f'.repeat(32)}`, new Uint8Array(32).fill(255));
    expect(least).toHaveLength(most.length);
    expect(parseApiKey(most)).toBeDefined();
    expect(makeApiKey('live', `key_${'0'.repeat(32)}`)).not.toBe(makeApiKey('live', `key_${'0'.repeat(32)}`));
  });

  it('contain the CRC-32 as zlib computes it', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[ -~]{0,60}$/), (text) => {
        let number = 0;
        for (const c of apiKeyChecksum(text))
          number = number * 62 + '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'.indexOf(c);
        expect(number).toBe(crc32(text));
      }),
    );
  });

  it('are stored as an HMAC with the pepper', () => {
    // contract: permission-13
    const key = makeApiKey('live', `key_${'1'.repeat(32)}`);
    expect(hashApiKey('pepper', key)).toMatch(/^[0-9a-f]{64}$/);
    expect(hashApiKey('pepper', key)).not.toBe(hashApiKey('other', key));
    expect(sameHash(hashApiKey('pepper', key), hashApiKey('pepper', key))).toBe(true);
    expect(sameHash('00', '01')).toBe(false);
    expect(sameHash('00', '0')).toBe(false);
    expect(sameHash('', '00')).toBe(false);
  });
});
