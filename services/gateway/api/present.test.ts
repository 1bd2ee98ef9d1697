import { expect, test } from 'vitest';
import { statusTransitionSchema } from '#libs/contracts/account-status.ts';
import { accountSchema } from '#libs/contracts/accounts.ts';
import { systemAccountSchema } from '#libs/contracts/books.ts';
import { clientSchema } from '#libs/contracts/clients.ts';
import { transactionSchema } from '#libs/contracts/transactions.ts';
import { createPresenter, jsonNumber } from './present.ts';

test('money becomes a JSON number with exactly the same digits', () => {
  // contract: money-1
  expect(
    JSON.stringify(
      ['10.50', '-0.01', '999999999999999', '9999999999999.99', '12345678901234567.89', '0.0001'].map(jsonNumber),
    ),
  ).toBe('[10.5,-0.01,999999999999999,9999999999999.99,12345678901234567.89,0.0001]');
});

test('fields that the schema marks as money are converted, also inside lists; others are not', () => {
  expect(createPresenter(accountSchema)?.({ account_id: 'a', balance: '1.10' })).toEqual({
    account_id: 'a',
    balance: 1.1,
  });
  expect(
    createPresenter(systemAccountSchema)?.({ balance: '2', slots: [{ balance: '1.5' }, { balance: '-3' }] }),
  ).toEqual({
    balance: 2,
    slots: [{ balance: 1.5 }, { balance: -3 }],
  });
  expect(createPresenter(transactionSchema)?.({ amount: '5.00', description: '5.00' })).toEqual({
    amount: 5,
    description: '5.00',
  });
  expect(createPresenter(clientSchema)?.({ client_id: 'c', address: '5.00' })).toEqual({
    client_id: 'c',
    address: '5.00',
  });
  expect(createPresenter(statusTransitionSchema)).toBeUndefined();
});
