import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { bitsOfReceipt, receiptNumber } from './receipts.ts';

it.each([
  [`txn_${'0'.repeat(32)}`, '00000-00000'],
  [`trf_${'f'.repeat(32)}`, 'ZZZZZ-ZZZZZ'],
  [`txn_8000000000003${'f'.repeat(19)}`, 'G0000-00000'],
  [`txn_8000000000004${'0'.repeat(19)}`, 'G0000-00001'],
])('the receipt number of %s is %s', (id, number) => {
  // contract: transactions-30
  expect(receiptNumber(id)).toBe(number);
});

it('is read in any case, with or without its separator, and with letters that look like digits', () => {
  const range = bitsOfReceipt('10ZAB-00001');
  for (const text of ['10zab 00001', 'IOzab-oo00l', '10ZAB00001', ' 10ZAB-00001 '])
    expect(bitsOfReceipt(text)).toEqual(range);
  for (const text of ['10ZAB-0000', '10ZAB-000011', '10ZAU-00001', '10ZAB_00001', '', 'é0ZAB-00001'])
    expect(bitsOfReceipt(text)).toBeUndefined();
});

it('names a range that has exactly the ids with this number', () => {
  const successor = (bits: string, by: bigint) => (BigInt(`0x${bits}`) + by).toString(16).padStart(32, '0');
  for (let count = 0; count < 200; count++) {
    const bits = `7${randomBytes(16).toString('hex').slice(1)}`;
    const number = receiptNumber(`txn_${bits}`);
    const { first = '', last = '' } = bitsOfReceipt(number) ?? {};
    expect(first <= bits && bits <= last).toBe(true);
    expect([first, last].map((one) => receiptNumber(`txn_${one}`))).toEqual([number, number]);
    expect([successor(first, -1n), successor(last, 1n)].map((one) => receiptNumber(`txn_${one}`))).not.toContain(
      number,
    );
  }
});
