import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bucketForKey,
  bucketOfId,
  commandKey,
  creditLegId,
  debitLegId,
  formatId,
  idKey,
  inBucket,
  isId,
  openingTransactionId,
  siblingBits,
  withBucket,
} from './ids.ts';

const bits = fc
  .array(fc.constantFrom(...'0123456789abcdef'), { minLength: 32, maxLength: 32 })
  .map((digits) => digits.join(''));

describe('ids', () => {
  it('are a prefix and 32 lower-case hex digits; anything else is unknown', () => {
    expect(isId('account', `acc_${'a'.repeat(32)}`)).toBe(true);
    for (const other of [
      '',
      'acc_',
      `acc_${'A'.repeat(32)}`,
      `acc_${'a'.repeat(31)}`,
      `txn_${'a'.repeat(32)}`,
      `acc_${'a'.repeat(32)}\n`,
      'x'.repeat(10_000),
      `acc_${'g'.repeat(32)}`,
      `acc_${'a'.repeat(33)}`,
      `acc_${'a'.repeat(31)}\n`,
      `acc_g${'a'.repeat(31)}`,
      `acc_${'a'.repeat(31)}g`,
      `acc-${'a'.repeat(32)}`,
    ])
      expect(isId('account', other)).toBe(false);
  });

  it('contain the bucket of their key in the last byte, which uniqueness ignores', () => {
    fc.assert(
      fc.property(bits, fc.string(), fc.string(), (b, key, other) => {
        const id = formatId('transaction', withBucket(b, key));
        expect(bucketOfId(id)).toBe(bucketForKey(key));
        expect(idKey(id)).toBe(idKey(formatId('transaction', withBucket(b, other))));
      }),
    );
  });

  it("a transfer's two transactions have ids that are derived from its id, lead back to it, and are in its bucket", () => {
    fc.assert(
      fc.property(bits, (b) => {
        const transfer = formatId('transfer', b);
        expect(debitLegId(transfer).slice(4)).toBe(b);
        expect(creditLegId(transfer)).not.toBe(debitLegId(transfer));
        expect(siblingBits(siblingBits(b))).toBe(b);
        expect(bucketOfId(creditLegId(transfer))).toBe(bucketOfId(transfer));
      }),
    );
  });

  it('the outcome of a command is stored under all bits but the hint, whatever the prefix', () => {
    fc.assert(
      fc.property(bits, fc.integer({ min: 0, max: 255 }), (b, bucket) => {
        const key = `${b.slice(0, 30)}00`;
        expect([
          commandKey(formatId('transaction', inBucket(b, bucket))),
          commandKey(inBucket(b, bucket)),
          commandKey(`a-longer-prefix_${b}`),
        ]).toEqual([key, key, key]);
        expect(bucketOfId(inBucket(b, bucket))).toBe(bucket);
        expect(inBucket(b, bucket)).toHaveLength(32);
      }),
    );
  });

  it("the id of the opening deposit is derived from the account's id and is in its bucket", () => {
    fc.assert(
      fc.property(bits, (b) => {
        const account = formatId('account', b);
        expect(isId('transaction', openingTransactionId(account))).toBe(true);
        expect(idKey(openingTransactionId(account)).slice(4)).toBe(b.slice(0, 30));
        expect(bucketOfId(openingTransactionId(account))).toBe(bucketForKey(account));
      }),
    );
  });

  it('buckets are the folded FNV-1a hash of the key, the same in every version', () => {
    expect(['', 'a', `acc_${'0'.repeat(31)}1`].map(bucketForKey)).toEqual([0xc5, 0xed, 0xf2]);
  });

  it('keys are distributed evenly over the buckets', () => {
    const counts = new Array<number>(256).fill(0);
    for (let i = 0; i < 25_600; i++)
      counts[bucketForKey(openingTransactionId(formatId('account', i.toString(16).padStart(32, '0'))))]!++;
    expect(Math.min(...counts)).toBeGreaterThan(50);
    expect(Math.max(...counts)).toBeLessThan(160);
  });
});
