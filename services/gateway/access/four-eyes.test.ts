import { expect, test } from 'vitest';
import { approvalActions } from '#libs/contracts/approvals.ts';
import type { Caller } from './caller.ts';
import { type FourEyes, isAbove, isAboveSome, isWatched, mayDecide } from './four-eyes.ts';

const limits = new Map([
  ['KES', '1000000'],
  ['USD', '10000.50'],
  ['JPY', '0'],
]);
const all: FourEyes = { actions: new Set(approvalActions), keys: false, limits };
const person: Caller = { actor: 'jwt:i|alice', scopes: new Set(), boundClientId: undefined, isStaff: true };
const key: Caller = { actor: 'key:key_1', scopes: new Set(), boundClientId: undefined, keyId: 'key_1' };
const machine: Caller = { ...person, actor: 'jwt:i|front-end', isStaff: false };

test.each([
  ['1000000', 'KES', false],
  ['1000000.01', 'KES', true],
  ['10000.5', 'USD', false],
  ['10000.51', 'USD', true],
  ['9999999999999999', 'USD', true],
  ['10000.501', 'USD', false],
  ['1', 'JPY', true],
  ['999999999', 'EUR', false],
])('%s %s is above the limit: %s', (amount, currency, is) => {
  expect(isAbove({ amount, currency }, limits)).toBe(is);
});

test('actions of people and machines with a token may need approval; of keys only if keys count as people', () => {
  // contract: four-eyes-2
  expect([person, machine, key].map((caller) => isWatched(caller, all))).toEqual([true, true, false]);
  expect([person, machine, key].map((caller) => isWatched(caller, { ...all, keys: true }))).toEqual([true, true, true]);
});

test('an amount without a currency is checked if it exceeds any limit', () => {
  expect([
    isAboveSome('0.5', limits),
    isAboveSome('2', limits),
    isAboveSome('2', new Map([['USD', '2']])),
    isAboveSome('2.01', new Map([['USD', '2']])),
  ]).toEqual([false, true, false, true]);
});

test('people can decide; keys and machines can only if keys count as people', () => {
  // contract: four-eyes-2
  expect([person, machine, key].map((caller) => mayDecide(caller, all))).toEqual([true, false, false]);
  expect([person, machine, key].map((caller) => mayDecide(caller, { ...all, keys: true }))).toEqual([true, true, true]);
});
