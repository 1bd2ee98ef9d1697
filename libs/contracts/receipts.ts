import { idBits } from './ids.ts';

/**
 * Receipt numbers (contract: transactions-30): the first 50 bits of the id of a transaction or transfer in Crockford's
 * base32, in two groups of five, which people can read out. Ids that are derived from an Idempotency-Key begin with random
 * bits, so that hardly two of a bank have the same number; others begin with their time in milliseconds.
 */

const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const length = 10;
const otherBits = 78n;

/** Returns the receipt number of a transaction or transfer, such as 7K3M9-QXA2D. */
export function receiptNumber(id: string): string {
  const first = BigInt(`0x${idBits(id)}`) >> otherBits;
  const text = first
    .toString(32)
    .padStart(length, '0')
    .replaceAll(/./g, (digit) => digits.charAt(Number.parseInt(digit, 32)));
  return `${text.slice(0, length / 2)}-${text.slice(length / 2)}`;
}

/**
 * Returns the first and the last bits, as in ids, of those that have this receipt number; undefined if it is none. Case,
 * blanks, and hyphens do not matter; O is 0, and I and L are 1.
 */
export function bitsOfReceipt(text: string): { first: string; last: string } | undefined {
  const plain = text.toUpperCase().replaceAll(/[\s-]/g, '').replaceAll('O', '0').replaceAll(/[IL]/g, '1');
  const values = [...plain].map((digit) => digits.indexOf(digit));
  if (values.length !== length || values.includes(-1)) return undefined;
  const first = values.reduce((sum, value) => sum * 32n + BigInt(value), 0n) << otherBits;
  const toBits = (bits: bigint) => bits.toString(16).padStart(32, '0');
  return { first: toBits(first), last: toBits(first + (1n << otherBits) - 1n) };
}
