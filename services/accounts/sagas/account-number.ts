import { hash } from 'node:crypto';
import { type AccountType, numberPrefixes } from '#libs/contracts/accounts.ts';

/** The number of account numbers per prefix: nine digits are free, and the tenth is derived from them. */
export const numbersPerPrefix = 1_000_000_000;

/** Returns the digit that makes `digits` followed by it pass Luhn's test (ISO/IEC 7812-1). */
export function luhnDigit(digits: string): string {
  let sum = 0;
  for (let i = digits.length - 1, double = true; i >= 0; i--, double = !double) {
    const digit = digits.charCodeAt(i) - 48;
    sum += double ? (digit > 4 ? digit * 2 - 9 : digit * 2) : digit;
  }
  return String((10 - (sum % 10)) % 10);
}

/**
 * Returns the pseudorandom value for an account's number, or the next one after `taken` numbers that were in use. It
 * depends only on the account's id, so that commands that are sent again after a restore (docs/operations.md) give each
 * account its previous number.
 */
export function drawFor(accountId: string, taken: number): number {
  return Number.parseInt(hash('sha256', `${accountId} ${taken}`).slice(0, 12), 16) % numbersPerPrefix;
}

/** Returns the account number for a value from 0 to numbersPerPrefix - 1. */
export function accountNumber(type: AccountType, draw: number): string {
  if (!Number.isSafeInteger(draw) || draw < 0 || draw >= numbersPerPrefix)
    throw new RangeError(`not a value for an account number: ${draw}`);
  const digits = String(draw).padStart(9, '0');
  return `${numberPrefixes[type]}-${digits}${luhnDigit(digits)}`;
}
