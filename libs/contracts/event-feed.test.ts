import { expect, test } from 'vitest';
import { eventNames, fullName, namesOf, typePatterns } from './event-feed.ts';
import { webhookEndpoints } from './webhooks.ts';

const v2 = 'corebanking.transaction.completed.v2';
const later = namesOf([
  'corebanking.transaction.completed.v1',
  'corebanking.account.status_changed.v1',
  v2,
  'corebanking.transaction.settled.v2',
]);

/** As Postgres matches it. */
const isLike = (type: string, pattern: string): boolean =>
  new RegExp(
    `^${pattern.replaceAll('.', '\\.').replaceAll('\\_', '!').replaceAll('_', '.').replaceAll('!', '_').replaceAll('%', '.*')}$`,
  ).test(type);
const matches = (name: string, type: string) => typePatterns([name]).some((pattern) => isLike(type, pattern));

test('a short name means v1, also when there is a v2, which has its full name only', () => {
  // contract: webhooks-6
  for (const name of ['transaction.completed', 'transaction.*', '*', v2, 'corebanking.transaction.*.v2'])
    expect([name, later.has(name)]).toEqual([name, true]);
  for (const name of [
    'transaction.settled',
    'settled',
    'corebanking.account.*.v2',
    'corebanking.*.v2',
    'transaction.completed.v1',
  ])
    expect([name, later.has(name)]).toEqual([name, false]);
  for (const name of ['transaction.completed', 'transaction.*', '*', 'corebanking.transaction.completed.v1']) {
    expect(matches(name, 'corebanking.transaction.completed.v1')).toBe(true);
    expect(matches(name, v2)).toBe(false);
  }
  for (const name of [v2, 'corebanking.transaction.*.v2']) {
    expect(matches(name, 'corebanking.transaction.completed.v1')).toBe(false);
    expect(matches(name, v2)).toBe(true);
  }
  expect(matches('account.status_changed', 'corebanking.account.status_changed.v1')).toBe(true);
  expect(matches('account.status_changed', 'corebanking.account.statusXchanged.v1')).toBe(false);
});

test('the rule and the pattern name what is accepted', () => {
  expect(later.rule).toContain(
    `must be one of transaction.completed, account.status_changed, ${v2}, corebanking.transaction.settled.v2, or`,
  );
  const pattern = new RegExp(`^(${later.pattern})$`);
  for (const name of [
    'transaction.completed',
    '*',
    v2,
    'corebanking.transaction.*.v2',
    'transaction.settled',
    'transactionXcompleted',
    'x',
  ])
    expect([name, pattern.test(name)]).toEqual([name, later.has(name)]);
});

test('a webhook keeps the version with which it was made', () => {
  // contract: webhooks-6
  const given = {
    url: 'https://receiver.example/',
    event_types: ['transaction.completed', 'account.*', '*', 'corebanking.hold.placed.v1'],
  };
  expect(webhookEndpoints.create_webhook.body.parse(given).event_types).toEqual([
    'corebanking.transaction.completed.v1',
    'corebanking.account.*.v1',
    'corebanking.*.v1',
    'corebanking.hold.placed.v1',
  ]);
  for (const name of ['transaction.completed', 'account.*', '*']) {
    expect(eventNames.has(fullName(name))).toBe(true);
    expect(fullName(fullName(name))).toBe(fullName(name));
  }
});
