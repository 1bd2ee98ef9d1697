import { expect, it } from 'vitest';
import { parseAmount, parseDecimal } from './accounts.ts';

it.each([
  ['1500', 1500],
  ['250.75', 250.75],
  ['250.50', 250.5],
  ['0.005', 0.005],
  ['1.505', 1.505],
  ['999999999999.999', 999_999_999_999.999],
])('an argument %s is an amount', (text, amount) => {
  expect(parseAmount(text)).toBe(amount);
});

it.each([
  ['1.500', 1.5, 'must be 1500 or 1.5, also in a currency with three decimals'],
  ['10.000', 10, 'must be 10000 or 10, also'],
  ['1.0000', 1, 'must be 10000 or 1, also'],
  ['1500.000', 1500, 'must be 1500000 or 1500, also'],
  ['0.500', 0.5, 'must be 500 or 0.5, also'],
])('%s is refused as an argument, but not in a file of JSON', (text, amount, message) => {
  expect(() => parseAmount(text)).toThrow(message);
  expect(parseDecimal(text)).toBe(amount);
});

it.each(['1,500', '1 500', '1.500,00', '$100', '-5', '+5', '1e3', '.5', '5.', '٣', '', '1'.repeat(16)])(
  'an argument %s is refused: a point never groups digits',
  (text) => {
    expect(() => parseAmount(text)).toThrow('must be an amount');
  },
);
