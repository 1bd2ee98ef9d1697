import { describe, expect, it } from 'vitest';
import {
  accountClass,
  balanceSide,
  cashIn,
  cashOut,
  isSystem,
  move,
  reverseLegs,
  systemAccountNumber,
} from './chart.ts';

describe('the chart of accounts', () => {
  it('has a class and two sides for each type', () => {
    // contract: double-entry-3
    for (const type of ['Savings', 'Checking', 'Current'] as const)
      expect([accountClass(type), isSystem(type), balanceSide(type, 'credit'), balanceSide(type, 'debit')]).toEqual([
        'liability',
        false,
        'CR',
        'DR',
      ]);
    for (const type of ['Teller', 'Vault', 'Loan'] as const)
      expect([accountClass(type), isSystem(type), balanceSide(type, 'credit'), balanceSide(type, 'debit')]).toEqual([
        'asset',
        type !== 'Loan',
        'DR',
        'CR',
      ]);
  });

  it('numbers Teller and Vault by currency and slot', () => {
    expect([
      systemAccountNumber('Teller', 'USD'),
      systemAccountNumber('Vault', 'KES'),
      systemAccountNumber('Vault', 'USD', 0),
      systemAccountNumber('Teller', 'JPY', 11),
    ]).toEqual(['TLR-USD', 'VLT-KES', 'VLT-USD/0', 'TLR-JPY/11']);
  });

  it("lists the legs of every operation in the contract's order, and reverses them last first", () => {
    // contract: double-entry-4
    const legs = (list: { account: string; direction: string }[]) =>
      list.map(({ account, direction }) => `${account} ${direction}`);
    expect(legs(cashIn('customer', 'teller', 'vault'))).toEqual([
      'customer credit',
      'teller credit',
      'teller debit',
      'vault credit',
    ]);
    expect(legs(cashOut('customer', 'teller', 'vault', 'debit'))).toEqual([
      'vault debit',
      'teller credit',
      'teller debit',
      'customer debit',
    ]);
    expect(legs(cashOut('loan', 'teller', 'vault', 'credit'))).toEqual([
      'vault debit',
      'teller credit',
      'teller debit',
      'loan credit',
    ]);
    expect(legs(move('source', 'destination', false))).toEqual(['source debit', 'destination credit']);
    expect(legs(move('source', 'loan', true))).toEqual(['source debit', 'loan debit']);
    expect(legs(reverseLegs(move('source', 'loan', true)))).toEqual(['loan credit', 'source credit']);
  });
});
