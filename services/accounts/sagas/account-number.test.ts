import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accountNumber, drawFor, luhnDigit, numbersPerPrefix } from './account-number.ts';

const type = fc.constantFrom<'Savings' | 'Checking' | 'Current' | 'Loan'>('Savings', 'Checking', 'Current', 'Loan');
const draw = fc.integer({ min: 0, max: numbersPerPrefix - 1 });

/** Reports whether the text is a known prefix and ten digits with the correct check digit. */
function isAccountNumber(text: string): boolean {
  return /^(SAV|CHK|CUR|LOA)-\d{10}$/.test(text) && luhnDigit(text.slice(4, -1)) === text.slice(-1);
}

describe('account numbers', () => {
  it('consist of a prefix, a hyphen, and ten digits', () => {
    expect(accountNumber('Savings', 0)).toBe('SAV-0000000000');
    expect(accountNumber('Loan', 799_273_987 % numbersPerPrefix)).toMatch(/^LOA-799273987\d$/);
    fc.assert(fc.property(type, draw, (t, d) => isAccountNumber(accountNumber(t, d))));
  });

  it('have the Luhn digit of a published example', () => {
    expect(luhnDigit('7992739871')).toBe('3');
  });

  it('are different for different random numbers', () => {
    fc.assert(fc.property(type, draw, draw, (t, a, b) => (a === b) === (accountNumber(t, a) === accountNumber(t, b))));
  });

  it('detect any single wrong digit', () => {
    fc.assert(
      fc.property(type, draw, fc.integer({ min: 4, max: 13 }), fc.integer({ min: 1, max: 9 }), (t, d, at, shift) => {
        const number = accountNumber(t, d);
        const wrong = (Number(number[at]) + shift) % 10;
        return !isAccountNumber(number.slice(0, at) + wrong + number.slice(at + 1));
      }),
    );
  });

  it('detect two exchanged adjacent digits, except 09 and 90', () => {
    fc.assert(
      fc.property(type, draw, fc.integer({ min: 4, max: 12 }), (t, d, at) => {
        const number = accountNumber(t, d);
        const pair = number.slice(at, at + 2);
        fc.pre(pair[0] !== pair[1] && pair !== '09' && pair !== '90');
        return !isAccountNumber(number.slice(0, at) + pair[1] + pair[0] + number.slice(at + 2));
      }),
    );
  });

  it('are derived from the id of the account, and differ if one is taken', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(50), (id, taken) => {
        const draw = drawFor(id, taken);
        return isAccountNumber(accountNumber('Savings', draw)) && draw !== drawFor(id, taken + 1);
      }),
    );
    expect(drawFor('acc_01a20c4b2ea771ca853ba9f862e68ed0', 0)).toBe(drawFor('acc_01a20c4b2ea771ca853ba9f862e68ed0', 0));
  });

  it('refuse a random number out of range', () => {
    for (const bad of [-1, 0.5, numbersPerPrefix, Number.NaN])
      expect(() => accountNumber('Loan', bad)).toThrow(RangeError);
  });
});
