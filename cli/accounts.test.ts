import { expect, it } from 'vitest';
import { parseAmount } from './accounts.ts';

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
  '1.500',
  '1.0000',
  '1500.000',
  '1,500',
  '1 500',
  '1.500,00',
  '$100',
  '-5',
  '+5',
  '1e3',
  '.5',
  '5.',
  '٣',
  '',
  '1'.repeat(16),
])('an argument %s is refused: a point never groups digits', (text) => {
  expect(() => parseAmount(text)).toThrow(/must (be an amount|have no zeros)/);
});
