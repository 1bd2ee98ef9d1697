import { describe, expect, it } from 'vitest';
import { creditLegId, debitLegId, formatId } from '#libs/contracts/ids.ts';
import { maxMinor } from '#libs/contracts/money.ts';
import { opening, replyCode, replyMessage, testAccount, testBits, testBooks, transfer } from '../test/test-kit.ts';
import { decide } from './posting.ts';
import type { AccountState } from './records.ts';

describe('transfers and loans', () => {
  it('moves money between customers as two transactions of one operation', () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 500n), testAccount(2, 'Checking')];
    const decision = decide(transfer(a, b, '3'), testBooks([a, b]));
    expect(
      decision.transactions.map((t) => [t.account_id, t.direction, t.transaction_type, t.counterparty_account_id]),
    ).toEqual([
      [a.account_id, 'debit', 'Transfer', b.account_id],
      [b.account_id, 'credit', 'Transfer', a.account_id],
    ]);
    expect([a.balance_minor, b.balance_minor]).toEqual([200n, 300n]);
  });

  it('names the account that is missing, mismatched, or short of funds', () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 100n), testAccount(2, 'Checking', 'EUR')];
    const books = testBooks([a, b]);
    expect(decide(transfer(a, testAccount(9, 'Savings'), '1'), books).reply).toMatchObject({
      refusal: { code: 'account_not_found', details: { field: 'to_account_id' } },
    });
    expect(decide(transfer(testAccount(9, 'Savings'), b, '1'), books).reply).toMatchObject({
      refusal: { code: 'account_not_found', details: { field: 'from_account_id' } },
    });
    expect(replyCode(decide(transfer(a, b, '1'), books))).toBe('currency_mismatch');
    const c = testAccount(3, 'Savings');
    books.accounts.set(c.account_id, c);
    expect(decide(transfer(a, c, '1.01'), books).reply).toMatchObject({
      refusal: { code: 'insufficient_funds', message: expect.stringContaining(`source account ${a.account_id}`) },
    });
  });

  it('repays a loan as a Loan Payment, never more than the outstanding amount', () => {
    const [a, loan] = [
      testAccount(1, 'Savings', 'USD', 'Active', 50_000n),
      testAccount(2, 'Loan', 'USD', 'Active', 10_000n),
    ];
    const books = testBooks([a, loan]);
    expect(replyCode(decide(transfer(a, loan, '100.01'), books))).toBe('amount_exceeds_outstanding');
    const paid = decide(transfer(a, loan, '40'), books);
    expect(paid.transactions.map((t) => [t.transaction_type, t.direction])).toEqual([
      ['Loan Payment', 'debit'],
      ['Loan Payment', 'debit'],
    ]);
    expect(paid.entries.map((e) => e.side)).toEqual(['DR', 'CR']);
    expect([a.balance_minor, loan.balance_minor]).toEqual([46_000n, 6_000n]);
    expect(replyCode(decide(transfer(loan, a, '1'), books))).toBe('invalid_account_type');
  });

  it('opens a loan by paying it out in cash, for any opening status', () => {
    // contract: transactions-20
    const books = testBooks([]);
    const decision = decide(opening(7, 'Loan', '100', 'USD', 'Inactive'), books);
    expect(decision.opened).toMatchObject({ balance_minor: 10_000n, status: 'Inactive' });
    expect(decision.transactions).toMatchObject([
      { transaction_type: 'Withdrawal', direction: 'credit', description: 'Loan disbursement' },
    ]);
    expect(decision.entries.map((e) => e.side)).toEqual(['CR', 'DR', 'CR', 'DR']);
    expect(books.system('Vault', 'USD').balance_minor).toBe(-10_000n);
  });

  it("each account's entry has the account's own transaction, under one operation", () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 500n), testAccount(2, 'Checking')];
    const { transactions, entries } = decide(transfer(a, b, '3', { currency: 'USD' }, 5), testBooks([a, b]));
    expect(transactions.map((t) => t.transaction_id)).toEqual([
      debitLegId(formatId('transfer', testBits(5))),
      creditLegId(formatId('transfer', testBits(5))),
    ]);
    expect(entries.map((e) => [e.account_id, e.transaction_id, e.direction, e.side])).toEqual([
      [a.account_id, transactions[0]?.transaction_id, 'debit', 'DR'],
      [b.account_id, transactions[1]?.transaction_id, 'credit', 'CR'],
    ]);
    expect(new Set([...transactions, ...entries].map((t) => t.operation_id))).toEqual(
      new Set([formatId('operation', testBits(5))]),
    );
  });

  it('checks the source first (type, status, currency, funds), then the destination; stores one Failed transaction on the source', () => {
    // contract: transactions-11
    const [loan, frozen, off, euro, full, empty, other] = [
      testAccount(1, 'Loan', 'USD', 'Frozen', 100n),
      testAccount(2, 'Savings', 'USD', 'Frozen'),
      testAccount(3, 'Savings', 'EUR', 'Inactive'),
      testAccount(4, 'Savings', 'EUR'),
      testAccount(5, 'Savings', 'USD', 'Active', maxMinor),
      testAccount(6, 'Savings'),
      testAccount(7, 'Savings', 'USD', 'Active', 200n),
    ] as const;
    const books = testBooks([loan, frozen, off, euro, full, empty, other]);
    const refusals: [AccountState, AccountState, string, string, string | null][] = [
      [loan, loan, 'same_account', 'from_account_id', null],
      [loan, frozen, 'invalid_account_type', 'Loan', null],
      [frozen, off, 'inactive_account', frozen.account_id, null],
      [empty, off, 'insufficient_funds', `source account ${empty.account_id}`, null],
      [other, off, 'inactive_account', off.account_id, null],
      [empty, euro, 'insufficient_funds', `source account ${empty.account_id}`, null],
      [other, euro, 'currency_mismatch', euro.account_id, null],
      [empty, other, 'currency_mismatch', empty.account_id, 'EUR'],
      [empty, full, 'insufficient_funds', `source account ${empty.account_id}`, null],
      [other, full, 'balance_limit_exceeded', full.account_id, null],
      [other, testAccount(7, 'Savings'), 'same_account', 'differ', null],
    ];
    for (const [from, to, code, words, currency] of refusals) {
      const refused = decide(transfer(from, to, '2', { currency }), books);
      expect([replyCode(refused), replyMessage(refused)]).toEqual([code, expect.stringContaining(words)]);
      expect(refused.transactions).toMatchObject([
        {
          account_id: from.account_id,
          counterparty_account_id: to.account_id,
          status: 'Failed',
          failure_code: code,
          failure_account_id: words === to.account_id ? to.account_id : null,
          direction: 'debit',
          amount_minor: 200n,
          currency: currency ?? from.currency,
        },
      ]);
      expect(refused.entries).toEqual([]);
    }
    expect(books.moved.size).toBe(0);
  });

  it('accepts a payment of exactly the outstanding amount, and names the loan if it is too much', () => {
    const [a, loan] = [
      testAccount(1, 'Savings', 'USD', 'Active', 50_000n),
      testAccount(2, 'Loan', 'USD', 'Active', 10_000n),
    ];
    const books = testBooks([a, loan]);
    expect(replyMessage(decide(transfer(a, loan, '100.01'), books))).toMatch(
      new RegExp(`^Amount Exceeds Outstanding: .*${loan.account_id}`),
    );
    expect(replyCode(decide(transfer(a, loan, '100'), books))).toBe('done');
    expect(loan.balance_minor).toBe(0n);
  });

  it('stores the destination as the reason if it is not found, but not if the source is not found either', () => {
    const [a, unknown] = [testAccount(1, 'Savings', 'USD', 'Active', 500n), testAccount(2, 'Savings')];
    for (const [from, to, failure_account_id] of [
      [a, unknown, unknown.account_id],
      [unknown, a, null],
      [unknown, unknown, null],
    ] as const) {
      const refused = decide(transfer(from, to, '1'), testBooks([a]));
      expect(refused.transactions).toMatchObject([{ failure_code: 'account_not_found', failure_account_id }]);
    }
  });

  it('lets a bound caller pay any account, but only from its own', () => {
    const [a, b] = [
      testAccount(1, 'Savings', 'USD', 'Active', 500n),
      testAccount(2, 'Checking', 'USD', 'Active', 500n),
    ];
    const bound = (from: AccountState, to: AccountState) =>
      replyCode(decide(transfer(from, to, '1', { bound_client_id: a.client_id ?? '' }), testBooks([a, b])));
    expect([bound(a, b), bound(b, a)]).toEqual(['done', 'account_not_found']);
  });

  it("gives a bound caller one reason for refusals by another client's destination, and the exact reason for its own", () => {
    const others = [
      testAccount(2, 'Savings', 'USD', 'Frozen'),
      testAccount(3, 'Current', 'EUR'),
      testAccount(4, 'Loan', 'USD', 'Active', 1n),
      testAccount(5, 'Checking', 'USD', 'Active', maxMinor),
    ];
    const codes = ['inactive_account', 'currency_mismatch', 'amount_exceeds_outstanding', 'balance_limit_exceeded'];
    for (const [i, other] of others.entries()) {
      const a = testAccount(1, 'Savings', 'USD', 'Active', 500n);
      const ask = (to: AccountState) =>
        decide(transfer(a, to, '1', { bound_client_id: a.client_id ?? '' }, 50), testBooks([a, to]));
      const refused = ask(other);
      expect(refused.reply).toEqual({
        ok: false,
        refusal: {
          code: 'destination_refused',
          message: 'the destination account cannot take this payment',
          details: { transaction_id: formatId('transaction', testBits(50)) },
        },
      });
      expect(refused.transactions).toMatchObject([
        {
          transaction_type: 'Transfer',
          failure_code: 'destination_refused',
          failure_account_id: null,
          amount_minor: 100n,
          currency: 'USD',
        },
      ]);
      expect(replyCode(ask({ ...other, client_id: a.client_id }))).toBe(codes[i]);
    }
  });
});
