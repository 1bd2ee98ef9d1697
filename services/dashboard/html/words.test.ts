import { expect, it } from 'vitest';
import { amountInWords } from './words.ts';

it.each([
  ['1500.50', 'KES', 'One thousand five hundred and 50/100 KES'],
  ['0.01', 'USD', 'Zero and 01/100 USD'],
  ['1000', 'JPY', 'One thousand JPY'],
  ['12.345', 'KWD', 'Twelve and 345/1000 KWD'],
  ['1000001', 'USD', 'One million one and 00/100 USD'],
  [
    '999999999999999',
    'JPY',
    'Nine hundred ninety-nine trillion nine hundred ninety-nine billion nine hundred ninety-nine million nine hundred ninety-nine thousand nine hundred ninety-nine JPY',
  ],
  [
    '9007199254740.93',
    'USD',
    'Nine trillion seven billion one hundred ninety-nine million two hundred fifty-four thousand seven hundred forty and 93/100 USD',
  ],
])('%s %s is: %s', (amount, currency, words) => {
  expect(amountInWords(amount, currency)).toBe(words);
});
