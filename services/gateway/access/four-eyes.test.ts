import { expect, test } from 'vitest';
import type { ApprovalAction } from '#libs/contracts/approvals.ts';
import { approvalActions } from '#libs/contracts/approvals.ts';
import type { Caller } from './caller.ts';
import type { Deed, FourEyes } from './four-eyes.ts';
import { approvalNeeded, isAboveSome, mayDecide } from './four-eyes.ts';

const limits = new Map([
  ['KES', '1000000'],
  ['USD', '10000.50'],
  ['JPY', '0'],
]);
const all: FourEyes = { actions: new Set(approvalActions), keys: false, limits };
const person: Caller = { actor: 'jwt:i|alice', scopes: new Set(), boundClientId: undefined, isStaff: true };
const key: Caller = { actor: 'key:key_1', scopes: new Set(), boundClientId: undefined, keyId: 'key_1' };
const machine: Caller = { ...person, actor: 'jwt:i|front-end', isStaff: false };
const posting = (amount: string, currency: string): Deed => ({ kind: 'posting', posting: { amount, currency } });
const redrive = (renewsDeadline: boolean, of?: [string, string] | 'unreadable'): Deed => ({
  kind: 'redrive',
  renewsDeadline,
  ...(of === undefined ? {} : { posting: of === 'unreadable' ? of : { amount: of[0], currency: of[1] } }),
});

test.each<[Deed, ApprovalAction | undefined]>([
  [{ kind: 'reversal' }, 'reverse'],
  [{ kind: 'status_change', from: 'Frozen', to: 'Active' }, 'unfreeze'],
  [{ kind: 'status_change', from: 'Frozen', to: 'Inactive' }, 'unfreeze'],
  [{ kind: 'status_change', from: 'Frozen', to: 'Frozen' }, undefined],
  [{ kind: 'status_change', from: 'Active', to: 'Frozen' }, undefined],
  [{ kind: 'status_change', from: 'Inactive', to: 'Active' }, undefined],
  [{ kind: 'key', scopes: ['accounts:read', 'audit:read'] }, undefined],
  [{ kind: 'key', scopes: ['accounts:read', 'transfers:write'] }, 'create_key'],
  [{ kind: 'key', scopes: ['keys:manage'] }, 'create_key'],
  [{ kind: 'key', scopes: ['accounts:status'] }, 'create_key'],
  [posting('1000000', 'KES'), undefined],
  [posting('1000000.01', 'KES'), 'post_above'],
  [posting('10000.5', 'USD'), undefined],
  [posting('10000.51', 'USD'), 'post_above'],
  [posting('9999999999999999', 'USD'), 'post_above'],
  [posting('10000.501', 'USD'), undefined],
  [posting('1', 'JPY'), 'post_above'],
  [posting('999999999', 'EUR'), undefined],
  [{ kind: 'erasure' }, 'erase'],
  [redrive(true), 'redrive'],
  [redrive(false), undefined],
  [redrive(true, ['5', 'KES']), 'redrive'],
  [redrive(false, ['5', 'KES']), undefined],
  [redrive(false, ['1000001', 'KES']), 'post_above'],
  [redrive(false, 'unreadable'), 'post_above'],
])('%j by a person: %s', (deed, action) => {
  expect(approvalNeeded(deed, person, all)).toBe(action);
  expect(approvalNeeded(deed, machine, all)).toBe(action);
  expect(approvalNeeded(deed, key, all)).toBeUndefined();
  expect(approvalNeeded(deed, key, { ...all, keys: true })).toBe(action);
  expect(approvalNeeded(deed, person, { ...all, actions: new Set() })).toBeUndefined();
});

test('an action whose rule is off needs no approval, but another reason still applies', () => {
  expect(approvalNeeded(redrive(true, ['1000001', 'KES']), person, { ...all, actions: new Set(['post_above']) })).toBe(
    'post_above',
  );
  expect(
    approvalNeeded(redrive(true, ['5', 'KES']), person, { ...all, actions: new Set(['post_above']) }),
  ).toBeUndefined();
  expect(approvalNeeded(redrive(false, 'unreadable'), person, { ...all, limits: new Map() })).toBeUndefined();
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
  expect([person, machine, key].map((caller) => mayDecide(caller, all))).toEqual([true, false, false]);
  expect([person, machine, key].map((caller) => mayDecide(caller, { ...all, keys: true }))).toEqual([true, true, true]);
});
