import { expect, test } from 'vitest';
import { type ApprovalAction, approvalActions, isAboveLimit, rulesIn } from '#libs/contracts/approvals.ts';
import type { Caller } from './caller.ts';
import { type FourEyes, mayDecide, rulesFor, switchedOff } from './four-eyes.ts';

const limits = new Map([
  ['KES', '1000000'],
  ['USD', '10000.50'],
  ['JPY', '0'],
]);
const all: FourEyes = { actions: new Set(approvalActions), keys: false, limits, timeZone: 'UTC' };
const person: Caller = { actor: 'jwt:i|alice', scopes: new Set(), boundClientId: undefined, isStaff: true };
const key: Caller = { actor: 'key:key_1', scopes: new Set(), boundClientId: undefined, keyId: 'key_1' };
const machine: Caller = { ...person, actor: 'jwt:i|front-end', isStaff: false };

const at = new Date('2026-01-31T22:30:00Z');

test('actions of people and machines with a token may need approval; of keys only if keys count as people', () => {
  // contract: four-eyes-2
  const isRuled = (fourEyes: FourEyes) =>
    [person, machine, key].map((caller) => rulesFor(caller, ['reverse'], fourEyes, at) !== undefined);
  expect(isRuled(all)).toEqual([true, true, false]);
  expect(isRuled({ ...all, keys: true })).toEqual([true, true, true]);
  expect(isRuled({ ...all, keys: true, actions: new Set(['erase']) })).toEqual([false, false, false]);
});

test('the rules contain only the actions of the command, the limits, and the day of the bank', () => {
  const rules = (timeZone: string) =>
    rulesIn({ four_eyes: rulesFor(person, ['post_above'], { ...all, timeZone }, at) });
  expect(rules('UTC')).toEqual({
    actions: ['post_above'],
    limits: Object.fromEntries(limits),
    day: '2026-01-31',
  });
  expect(rules('Africa/Nairobi')?.day).toBe('2026-02-01');
});

test.each([
  ['1000000', 'KES', false],
  ['1000000.01', 'KES', true],
  ['10000.5', 'USD', false],
  ['10000.51', 'USD', true],
  ['9999999999999999', 'USD', true],
  ['1', 'JPY', true],
  ['0', 'EUR', false],
  ['0.01', 'EUR', true],
])('%s %s alone is above the limit: %s', (amount, currency, is) => {
  expect(isAboveLimit({ limits: Object.fromEntries(limits) }, amount, currency)).toBe(is);
});

test('people can decide; keys and machines can only if keys count as people', () => {
  // contract: four-eyes-2
  expect([person, machine, key].map((caller) => mayDecide(caller, all))).toEqual([true, false, false]);
  expect([person, machine, key].map((caller) => mayDecide(caller, { ...all, keys: true }))).toEqual([true, true, true]);
});

test('an action is switched off if it is not named, or its limit is above every posting', () => {
  // contract: four-eyes-6
  const off = (actions: readonly ApprovalAction[], limits: [string, string][] = []) =>
    switchedOff({ actions: new Set(actions), limits: new Map(limits), offReason: 'one employee' });
  expect(off(approvalActions, [['USD', '1000000']])).toEqual({ off: [], reason: 'one employee' });
  expect(off(approvalActions, [['USD', '9999999999999']]).off).toEqual(['post_above']);
  expect(off(approvalActions.filter((action) => action !== 'webhook')).off).toEqual(['webhook']);
});
