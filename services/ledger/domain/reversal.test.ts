import { describe, expect, it } from 'vitest';
import { formatId, isId } from '#libs/contracts/ids.ts';
import { maxMinor } from '#libs/contracts/money.ts';
import {
  cash,
  idIn,
  opening,
  replyCode,
  replyMessage,
  reversal,
  statusChange,
  testAccount,
  testBits,
  testBooks,
  transfer,
} from '../test/test-kit.ts';
import { decide } from './posting.ts';
import type { EntryRecord } from './records.ts';

describe('reversal', () => {
  it('reverses both legs of a transfer, whichever of them is named, at most once', () => {
    for (const leg of [0, 1]) {
      const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 500n), testAccount(2, 'Checking')];
      const books = testBooks([a, b]);
      const { transactions } = decide(transfer(a, b, '3'), books);
      const undone = decide(reversal(transactions[leg]?.transaction_id ?? ''), books);
      expect([a.balance_minor, b.balance_minor]).toEqual([500n, 0n]);
      expect(new Set(undone.transactions.map((t) => t.reverses_transaction_id))).toEqual(
        new Set(transactions.map((t) => t.transaction_id)),
      );
      for (const t of undone.transactions)
        expect(t.direction).toBe(
          transactions.find((o) => o.transaction_id === t.reverses_transaction_id)?.direction === 'debit'
            ? 'credit'
            : 'debit',
        );
      for (const original of transactions)
        expect(replyCode(decide(reversal(original.transaction_id), books))).toBe('already_reversed');
      expect(replyCode(decide(reversal(undone.transactions[0]?.transaction_id ?? ''), books))).toBe('not_reversible');
    }
  });

  it('checks status and funds, not the account type', () => {
    const account = testAccount(1, 'Savings');
    const books = testBooks([account]);
    const deposit = decide(cash('Deposit', account, '5'), books).transactions[0]?.transaction_id ?? '';
    decide(cash('Withdrawal', account, '1'), books);
    expect(replyCode(decide(reversal(deposit), books))).toBe('insufficient_funds');
    decide(cash('Deposit', account, '1'), books);
    decide(statusChange(account, 'Frozen'), books);
    expect(replyCode(decide(reversal(deposit), books))).toBe('inactive_account');
    decide(statusChange(account, 'Active'), books);
    expect(replyCode(decide(reversal(deposit), books))).toBe('done');
    expect(account.balance_minor).toBe(0n);
    const loan = decide(opening(8, 'Loan', '10'), books);
    expect(replyCode(decide(reversal(loan.transactions[0]?.transaction_id ?? ''), books))).toBe('done');
    expect(loan.opened?.balance_minor).toBe(0n);
  });

  it('stores reason, reference, and link; posts the reversed entries, last first, for each type', () => {
    const [a, loan] = [
      testAccount(1, 'Savings', 'USD', 'Active', 10_000n),
      testAccount(2, 'Loan', 'USD', 'Active', 10_000n),
    ];
    const books = testBooks([a, loan]);
    const deposit = cash('Deposit', a, '3');
    if (deposit.name === 'create_transaction') deposit.data.reference = 'R-1';
    for (const command of [
      deposit,
      cash('Withdrawal', a, '4'),
      opening(70, 'Loan', '5'),
      opening(71, 'Savings', '6'),
      transfer(a, loan, '7'),
    ]) {
      const done = decide(command, books);
      const undone = decide(reversal(idIn(done)), books);
      const turned = (e: EntryRecord) => [
        e.account_id,
        e.direction === 'credit' ? 'debit' : 'credit',
        e.amount_minor,
        e.currency,
      ];
      expect(undone.entries.map((e) => [e.account_id, e.direction, e.amount_minor, e.currency])).toEqual(
        done.entries.map(turned).reverse(),
      );
      expect(undone.transactions.map((t) => [t.transaction_type, t.direction, t.reverses_transaction_id])).toEqual(
        done.transactions.map((t) => [
          t.transaction_type,
          t.direction === 'credit' ? 'debit' : 'credit',
          t.transaction_id,
        ]),
      );
      expect(undone.transactions[0]).toMatchObject({
        description: 'mistake',
        reference: command === deposit ? 'R-1' : null,
        counterparty_account_id: done.transactions[0]?.counterparty_account_id,
        status: 'Completed',
      });
      expect(undone.reply).toMatchObject({
        ok: true,
        data: { transaction_id: undone.transactions[0]?.transaction_id, reverses_transaction_id: idIn(done) },
      });
      expect(new Set(undone.transactions.map((t) => t.operation_id)).size).toBe(1);
    }
    expect([
      a.balance_minor,
      loan.balance_minor,
      books.system('Vault', 'USD').balance_minor,
      books.system('Teller', 'USD').balance_minor,
    ]).toEqual([10_000n, 10_000n, 0n, 0n]);
  });

  it('of a loan payment increases the loan again, whichever leg is named', () => {
    for (const leg of [0, 1]) {
      const [a, loan] = [
        testAccount(1, 'Savings', 'USD', 'Active', 500n),
        testAccount(2, 'Loan', 'USD', 'Active', 500n),
      ];
      const books = testBooks([a, loan]);
      const paid = decide(transfer(a, loan, '3'), books);
      const undone = decide(reversal(idIn(paid, leg)), books);
      expect([a.balance_minor, loan.balance_minor]).toEqual([500n, 500n]);
      expect(undone.transactions.map((t) => [t.account_id, t.direction])).toEqual(
        (leg === 0 ? [a, loan] : [loan, a]).map((account) => [account.account_id, 'credit']),
      );
      expect(undone.transactions.map((t) => t.reverses_transaction_id)).toEqual([idIn(paid, leg), idIn(paid, 1 - leg)]);
      expect(new Set(undone.transactions.map((t) => t.transaction_id)).size).toBe(2);
      for (const { transaction_id } of undone.transactions) expect(isId('transaction', transaction_id)).toBe(true);
    }
  });

  it("refuses first for the payer's status and funds, then for the payee's status and limit; stores a Failed transaction", () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 500n), testAccount(2, 'Checking')];
    const books = testBooks([a, b]);
    const moved = idIn(decide(transfer(a, b, '3'), books));
    Object.assign(a, { balance_minor: maxMinor - 299n, status: 'Inactive' });
    Object.assign(b, { balance_minor: 299n, status: 'Frozen' });
    const expectRefusal = (code: string, words: string) => {
      const refused = decide(reversal(moved), books);
      expect([replyCode(refused), replyMessage(refused)]).toEqual([code, expect.stringContaining(words)]);
      expect(refused.transactions).toMatchObject([
        {
          status: 'Failed',
          failure_code: code,
          failure_account_id: words.startsWith(b.account_id) ? b.account_id : null,
          reverses_transaction_id: moved,
          amount_minor: 300n,
          currency: 'USD',
          account_id: a.account_id,
          direction: 'credit',
        },
      ]);
      expect(refused.entries).toEqual([]);
    };
    expectRefusal('inactive_account', b.account_id);
    b.status = 'Active';
    expectRefusal('insufficient_funds', `${b.account_id} is too low for this reversal`);
    b.balance_minor += 1n;
    expectRefusal('inactive_account', a.account_id);
    a.status = 'Active';
    expectRefusal('balance_limit_exceeded', a.account_id);
    a.balance_minor -= 1n;
    expect(replyCode(decide(reversal(moved), books))).toBe('done');
    expect([a.balance_minor, b.balance_minor]).toEqual([maxMinor, 0n]);
  });

  it('of a partly repaid loan is refused: it would be negative', () => {
    const a = testAccount(1, 'Savings', 'USD', 'Active', 500n);
    const books = testBooks([a]);
    const opened = decide(opening(70, 'Loan', '5'), books);
    if (!opened.opened) throw new Error('not opened');
    decide(transfer(a, opened.opened, '0.01'), books);
    expect(replyCode(decide(reversal(idIn(opened)), books))).toBe('amount_exceeds_outstanding');
    expect(opened.opened.balance_minor).toBe(499n);
  });

  it("an unknown transaction, one that differs in the last byte, and another client's are not found, which is stored", () => {
    const a = testAccount(1, 'Savings');
    const books = testBooks([a]);
    const deposit = idIn(decide(cash('Deposit', a, '1'), books));
    const stranger = { bound_client_id: formatId('client', testBits(2)) };
    const nowhere =
      decide(cash('Deposit', testAccount(9, 'Savings'), '1'), books).transactions[0]?.transaction_id ?? '';
    const unknown = [
      reversal(formatId('transaction', testBits(3))),
      reversal(`${deposit.slice(0, -2)}01`),
      reversal(deposit, stranger),
      reversal(nowhere, stranger),
    ];
    for (const command of unknown) {
      const decision = decide(command, books);
      expect([replyCode(decision), decision.transactions, decision.keep]).toEqual([
        'transaction_not_found',
        [],
        decision.reply,
      ]);
      expect(replyMessage(decision)).toContain(
        command.name === 'reverse_transaction' ? command.data.reverses_transaction_id : '',
      );
    }
    expect(replyCode(decide(reversal(deposit, { bound_client_id: a.client_id ?? '' }), books))).toBe('done');
  });

  it('the refusal is stored and names the reason: it is a reversal, is Failed, or was reversed by which transaction', () => {
    const a = testAccount(1, 'Savings');
    const books = testBooks([a]);
    const [failed, unreadable, nowhere] = [
      cash('Withdrawal', a, '1'),
      cash('Deposit', a, '1.234'),
      cash('Deposit', testAccount(9, 'Savings'), '1'),
    ].map((command) => decide(command, books).transactions[0]?.transaction_id ?? '') as [string, string, string];
    const deposit = idIn(decide(cash('Deposit', a, '1'), books));
    const undone = idIn(decide(reversal(deposit), books));
    for (const [id, code, words] of [
      [failed, 'not_reversible', 'is Failed'],
      [unreadable, 'not_reversible', 'is Failed'],
      [nowhere, 'not_reversible', 'is Failed'],
      [undone, 'not_reversible', 'is itself a reversal'],
      [deposit, 'already_reversed', `was reversed by ${undone}`],
    ] as const) {
      const refused = decide(reversal(id), books);
      expect([replyCode(refused), replyMessage(refused)]).toEqual([
        code,
        expect.stringContaining(`transaction ${id} ${words}`),
      ]);
      expect([refused.keep, refused.transactions]).toEqual([refused.reply, []]);
    }
    expect(decide(reversal(deposit), books).reply).toMatchObject({
      refusal: { details: { reversal_transaction_id: undone } },
    });
  });

  it('after its deadline is stored as Failed and never executed', () => {
    const a = testAccount(1, 'Savings');
    const books = testBooks([a]);
    const deposit = idIn(decide(cash('Deposit', a, '1'), books));
    const late = decide(reversal(deposit, { deadline: '2026-01-02T03:04:00.000Z' }), books);
    expect([replyCode(late), late.transactions[0]?.status, a.balance_minor]).toEqual([
      'deadline_exceeded',
      'Failed',
      100n,
    ]);
    expect(replyCode(decide(reversal(deposit), books))).toBe('done');
  });

  it('throws if the other account of a transfer is not locked', () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 500n), testAccount(2, 'Checking')];
    const books = testBooks([a, b]);
    const moved = idIn(decide(transfer(a, b, '3'), books));
    books.accounts.delete(b.account_id);
    expect(() => decide(reversal(moved), books)).toThrow(`counterparty of ${moved}`);
  });
});
