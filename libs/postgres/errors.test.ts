import { expect, test } from 'vitest';
import { isDataError, isRetryable, leavesConnectionSound, tookTooLong, uniqueViolation } from './errors.ts';

const coded = (code: string, message = 'm') => Object.assign(new Error(message), { code });

const known = (error: unknown) => [
  isRetryable(error),
  isDataError(error),
  leavesConnectionSound(error),
  uniqueViolation(error),
];

test.each(['40001', '40P01'])('%s is retryable on the same connection', (code) => {
  expect(known(coded(code))).toEqual([true, false, true, undefined]);
});

test('a unique violation names its index, if the server does', () => {
  const violation = coded('23505');
  expect(known(violation)).toEqual([false, true, true, '']);
  expect(known(Object.assign(violation, { constraint: 't_pkey' }))).toEqual([false, true, true, 't_pkey']);
});

test.each(['23514', '23503', '22021', '22003', '22P02'])('%s is an error in the data', (code) => {
  expect(known(coded(code))).toEqual([false, true, true, undefined]);
});

test('errors that end a session are never errors in the data', () => {
  expect(known(Object.assign(coded('22023'), { severity: 'FATAL' }))).toEqual([false, false, false, undefined]);
});

test.each([
  '08006',
  '57P01',
  '53300',
  '57014',
  '55P03',
  '25P03',
  '25006',
  '28P01',
  '58030',
  '0A000',
  '26000',
  '42P05',
  '42703',
  '42501',
  '42P01',
  'P0001',
  'XX000',
  '2200',
  '220211',
  'ECONNREFUSED',
  'EMFILE',
  'CERT_HAS_EXPIRED',
  '',
])('%s is neither, and the connection is not reused', (code) => {
  expect(known(coded(code))).toEqual([false, false, false, undefined]);
});

test('other errors belong to none of these kinds', () => {
  for (const other of [
    undefined,
    null,
    '22021',
    7,
    {},
    new Error('other'),
    new TypeError('x is not a function'),
    new AggregateError([coded('22021')]),
  ]) {
    expect(known(other)).toEqual([false, false, false, undefined]);
  }
});

test('a unique violation names its constraint', () => {
  expect(uniqueViolation(Object.assign(coded('23505'), { constraint: 'accounts_number' }))).toBe('accounts_number');
  expect(uniqueViolation(coded('23514'))).toBeUndefined();
});

test('a statement timeout is recognized, of the server or of the driver', () => {
  expect(
    [coded('57014'), new Error('Query read timeout'), coded('55P03'), coded('08006'), new Error('other')].map(
      tookTooLong,
    ),
  ).toEqual([true, true, false, false, false]);
});
