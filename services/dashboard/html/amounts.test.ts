import { describe, expect, it } from 'vitest';
import { jsonNumber, typedAmount } from './amounts.ts';

describe('an entered amount', () => {
  it.each([
    ['1500', 'USD', '1500.00'],
    ['1,500', 'USD', '1500.00'],
    ['1 500,50', 'USD', '1500.50'],
    ['1\u00a0500,50', 'USD', '1500.50'],
    ['1\u202f500.5', 'USD', '1500.50'],
    ['1500,5', 'USD', '1500.50'],
    ['1.500,50', 'EUR', '1500.50'],
    ['1,500.50', 'USD', '1500.50'],
    ['1’500.50', 'CHF', '1500.50'],
    ['12,34,567.80', 'INR', '1234567.80'],
    ['1,234,567', 'USD', '1234567.00'],
    ['1.234.567,8', 'EUR', '1234567.80'],
    ['1.234.567', 'EUR', '1234567.00'],
    ['1,500', 'JPY', '1500'],
    ['1500.00', 'JPY', '1500'],
    ['1500,250', 'KWD', '1500.250'],
    ['0.05', 'USD', '0.05'],
    ['0,05', 'USD', '0.05'],
    ['007', 'USD', '7.00'],
    ['1.50', 'KWD', '1.500'],
    [' KES 1,500 ', 'KES', '1500.00'],
    ['1500 kes', 'KES', '1500.00'],
    ['1500KES', 'KES', '1500.00'],
    ['9999999999999.99', 'USD', '9999999999999.99'],
  ])('%s in %s is %s', (typed, currency, amount) => {
    expect(typedAmount(typed, currency)).toEqual({ amount });
  });

  it.each([
    ['', 'USD', 'Enter an amount.'],
    ['0', 'USD', 'above 0'],
    ['0,00', 'USD', 'above 0'],
    ['-5', 'USD', 'above 0'],
    ['−5', 'USD', 'above 0'],
    ['1.005', 'JPY', 'Is this 1005? Write it without a point.'],
    ['10.5', 'JPY', 'no decimals'],
    ['10.555', 'USD', 'Is this 10555, or 10.55?'],
    ['1500.555', 'USD', '2 decimals at most'],
    ['1.500', 'USD', 'Is this 1500, or 1.50?'],
    ['1,500', 'KWD', 'Is this 1500, or 1.500?'],
    ['0,500', 'USD', 'Is this 500, or 0.50?'],
    ['1500 EUR', 'KES', 'in KES, not in EUR'],
    ['1e3', 'USD', 'not an amount'],
    ['12 34', 'USD', 'not an amount'],
    ['1,50,0', 'USD', 'not an amount'],
    ['1,500,50', 'USD', 'not an amount'],
    ['1..5', 'USD', 'not an amount'],
    ['abc', 'USD', 'not an amount'],
    ['.5', 'USD', 'not an amount'],
    ['5.', 'USD', 'not an amount'],
    ['99999999999999.99', 'USD', 'more than the bank accepts'],
    ['9'.repeat(41), 'USD', 'not an amount'],
    ['٣٤', 'USD', 'not an amount'],
  ])('%s in %s is refused with an explanation', (typed, currency, words) => {
    expect(typedAmount(typed, currency)).toEqual({ wrong: expect.stringContaining(words) });
  });

  it('is sent to the API as a JSON number with exactly these digits', () => {
    expect(JSON.stringify({ amount: jsonNumber('9999999999999.99') })).toBe('{"amount":9999999999999.99}');
    expect(JSON.stringify({ amount: jsonNumber('1,5') })).toBe('{"amount":"1,5"}');
  });
});
