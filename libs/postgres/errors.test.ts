import { expect, test } from 'vitest';
import { isRetryable, isUnavailable, tookTooLong, uniqueViolation } from './errors.ts';

const coded = (code: string, message = 'm') => Object.assign(new Error(message), { code });

test.each(['40001', '40P01'])('%s may be repeated, and says nothing about the database being away', (code) => {
  expect([isRetryable(coded(code)), isUnavailable(coded(code))]).toEqual([true, false]);
});

test.each([
  '08000', '08006', '57P01', '57P03', '53300', '53200', '57014', '55P03', '25P03', '25P04', '25006', '28P01', '58030',
  'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETDOWN',
])('%s: the database cannot do it now', (code) => {
  expect([isUnavailable(coded(code)), isRetryable(coded(code))]).toEqual([true, false]);
});

test.each([
  'Connection terminated', 'Connection terminated unexpectedly', 'Connection terminated due to connection timeout', 'timeout expired',
  'timeout exceeded when trying to connect', 'Query read timeout', 'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable', 'Cannot use a pool after calling end on the pool',
])("pg's %j has no code", (message) => {
  expect(isUnavailable(new Error(message))).toBe(true);
});

test.each(['23505', '23514', '22021', '42601', '42501', '42P01', 'P0001'])('%s is the fault of the statement', (code) => {
  expect([isUnavailable(coded(code, 'Connection terminated')), isRetryable(coded(code))]).toEqual([false, false]);
});

test('several addresses tried, none answered', () => {
  expect(isUnavailable(new AggregateError([coded('ECONNREFUSED'), coded('EHOSTUNREACH')]))).toBe(true);
  expect(isUnavailable(new AggregateError([new Error('other')]))).toBe(false);
});

test('what is no error of the database', () => {
  for (const other of [undefined, null, 'ECONNREFUSED', 7, {}, new Error('other'), new TypeError('x is not a function')]) {
    expect([isUnavailable(other), isRetryable(other), uniqueViolation(other)]).toEqual([false, false, undefined]);
  }
});

test('a unique violation names its constraint', () => {
  expect(uniqueViolation(Object.assign(coded('23505'), { constraint: 'accounts_number' }))).toBe('accounts_number');
  expect(uniqueViolation(coded('23514'))).toBeUndefined();
});

test('a statement that took too long, for the server or for the driver', () => {
  expect([coded('57014'), new Error('Query read timeout'), coded('55P03'), coded('08006'), new Error('other')].map(tookTooLong)).toEqual([true, true, false, false, false]);
});
