import { describe, expect, it } from 'vitest';
import { formatId } from '#libs/contracts/ids.ts';
import { fromMinor, maxMinor } from '#libs/contracts/money.ts';
import {
  cash,
  idIn,
  now,
  opening,
  replyCode,
  replyMessage,
  reversal,
  testAccount,
  testBits,
  testBooks,
  testContext,
  transfer,
} from '../test/test-kit.ts';
import { type Books, type Command, complete, completed, draftTransaction } from './decision.ts';
import { decide } from './posting.ts';
import type { AccountState } from './records.ts';

const rich = testAccount(98, 'Savings', 'USD', 'Active', 10_000n);

/** An account that did not exist before. */
function opened(books: Books): AccountState {
  const account = testAccount(99, 'Savings', 'USD', 'Active', 10_000n);
  books.accounts.set(account.account_id, account);
  return account;
}

describe('deposit and withdrawal', () => {
  it('posts a deposit through Teller and Vault', () => {
    const account = testAccount(1, 'Savings');
    const decision = decide(cash('Deposit', account, '10.50'), testBooks([account]));
    expect(decision.entries.map((e) => [e.direction, e.side, e.amount_minor, e.balance_after_minor])).toEqual([
      ['credit', 'CR', 1050n, 1050n],
      ['credit', 'DR', 1050n, 1050n],
      ['debit', 'CR', 1050n, 0n],
      ['credit', 'DR', 1050n, 1050n],
    ]);
  });

  it('posts nothing before the last posting of any of its accounts, although the clock was set back', () => {
    // contract: envelope-14
    const ahead = (seconds: number) => new Date(Date.parse(now) + seconds * 1000).toISOString();
    const [from, to] = [testAccount(1, 'Checking', 'USD', 'Active', 5000n), testAccount(2, 'Savings')];
    from.last_posted_at = ahead(-1);
    to.last_posted_at = ahead(2);
    const books = testBooks([from, to]);
    const times = (command: Command) => decide(command, books).entries.map((entry) => entry.created_at);
    expect(times(cash('Withdrawal', from, '1'))).toEqual(Array(4).fill(now));
    // All entries of an operation have the same time.
    expect(times(transfer(from, to, '1'))).toEqual(Array(2).fill(ahead(2)));
    expect(times(cash('Deposit', from, '1'))).toEqual(Array(4).fill(ahead(2)));
    expect(books.system('Vault', 'USD').last_posted_at).toBe(ahead(2));
  });

  it('posts a withdrawal from the Vault through the Teller', () => {
    const account = testAccount(1, 'Checking', 'USD', 'Active', 5000n);
    const decision = decide(cash('Withdrawal', account, '50'), testBooks([account]));
    expect(decision.entries.map((e) => [e.direction, e.side, e.balance_after_minor])).toEqual([
      ['debit', 'CR', -5000n],
      ['credit', 'DR', 5000n],
      ['debit', 'CR', 0n],
      ['debit', 'DR', 0n],
    ]);
  });

  it('refuses to exceed 64 bits in a slot of the Vault, upwards and downwards, and moves nothing', () => {
    const account = testAccount(1, 'Savings', 'USD', 'Active', 1000n);
    const books = testBooks([account]);
    const vault = books.system('Vault', 'USD');
    const limit = 2n ** 63n;
    const attempts: [bigint, Command, string][] = [
      [limit - 1n, cash('Deposit', account, '0.01'), 'balance_limit_exceeded'],
      [limit - 2n, cash('Deposit', account, '0.01'), 'done'],
      [-limit, cash('Withdrawal', account, '0.01'), 'balance_limit_exceeded'],
      [-limit + 1n, cash('Withdrawal', account, '0.01'), 'done'],
      [limit - 1n, opening(3, 'Savings', '0.01'), 'balance_limit_exceeded'],
      [-limit, opening(2, 'Loan', '0.01'), 'balance_limit_exceeded'],
    ];
    for (const [balance, command, code] of attempts) {
      vault.balance_minor = balance;
      const decision = decide(command, books);
      expect(replyCode(decision)).toBe(code);
      if (code !== 'done')
        expect([vault.balance_minor, decision.entries, decision.opened]).toEqual([balance, [], undefined]);
    }
    expect([account.balance_minor, books.accounts.size > 1]).toEqual([1000n, false]);
  });

  it('a reversal that would exceed 64 bits in a slot of the Vault is refused too', () => {
    const account = testAccount(1, 'Savings', 'USD', 'Active', 1000n);
    const books = testBooks([account]);
    const withdrawal = idIn(decide(cash('Withdrawal', account, '1'), books));
    books.system('Vault', 'USD').balance_minor = 2n ** 63n - 1n;
    expect(replyCode(decide(reversal(withdrawal), books))).toBe('balance_limit_exceeded');
  });

  it('refuses in the order type, status, currency, limits, funds, and stores a Failed transaction', () => {
    // contract: transactions-11
    const loan = testAccount(1, 'Loan', 'USD', 'Frozen');
    const frozen = testAccount(2, 'Savings', 'USD', 'Frozen');
    const full = testAccount(3, 'Savings', 'USD', 'Active', 10n ** 15n - 1n);
    const empty = testAccount(4, 'Savings');
    const books = testBooks([loan, frozen, full, empty]);
    expect(replyCode(decide(cash('Deposit', loan, '1'), books))).toBe('invalid_account_type');
    expect(replyCode(decide(cash('Withdrawal', frozen, '1'), books))).toBe('inactive_account');
    expect(replyCode(decide(cash('Deposit', full, '0.01'), books))).toBe('balance_limit_exceeded');
    const refused = decide(cash('Withdrawal', empty, '1'), books);
    expect(replyCode(refused)).toBe('insufficient_funds');
    expect(refused.transactions).toMatchObject([
      { status: 'Failed', failure_code: 'insufficient_funds', amount_minor: 100n },
    ]);
    expect(refused.reply).toMatchObject({
      refusal: {
        message: expect.stringMatching(/^Insufficient Funds: /),
        details: { transaction_id: refused.transactions[0]?.transaction_id },
      },
    });
  });

  it('stores refusals for an unknown account and for too many digits, as requested', () => {
    const yen = testAccount(1, 'Savings', 'JPY');
    const books = testBooks([yen]);
    const unknown = testAccount(99, 'Savings');
    expect(decide(cash('Deposit', unknown, '1'), books).transactions).toMatchObject([
      {
        account_id: unknown.account_id,
        status: 'Failed',
        failure_code: 'account_not_found',
        amount_text: '1',
        currency: null,
      },
    ]);
    expect(decide(cash('Deposit', yen, '1.5'), books).transactions).toMatchObject([
      { status: 'Failed', failure_code: 'invalid_amount_precision', amount_text: '1.5' },
    ]);
  });

  it.each([
    ['an unknown account', (books: Books) => cash('Deposit', opened(books), '60')],
    ['a transfer from an unknown account', (books: Books) => transfer(opened(books), rich, '60')],
    ['a transfer to an unknown account', (books: Books) => transfer(rich, opened(books), '60')],
  ] as const)('%s remains unknown for the refused command although it has been opened since', (_, ask) => {
    const books = testBooks([rich]);
    const command = ask(books);
    books.accounts.delete(testAccount(99, 'Savings').account_id);
    const before = rich.balance_minor;
    const first = decide(command, books);
    expect(replyCode(first)).toBe('account_not_found');
    const account = opened(books);
    expect(decide(command, books)).toEqual({
      reply: { ...first.reply, replayed: true },
      transactions: [],
      entries: [],
    });
    expect([account.balance_minor, rich.balance_minor]).toEqual([10_000n, before]);
  });

  it('never executes after the deadline, but returns earlier decisions', () => {
    const account = testAccount(1, 'Savings');
    const books = testBooks([account]);
    const past = { deadline: '2026-01-02T03:04:00.000Z' };
    const known = cash('Deposit', account, '1', past, 77_001);
    books.now = '2026-01-02T03:03:00.000Z';
    expect(replyCode(decide(known, books))).toBe('done');
    books.now = now;
    expect(replyCode(decide(known, books))).toBe('done');
    expect(replyCode(decide(cash('Deposit', account, '1', past), books))).toBe('deadline_exceeded');
    expect(account.balance_minor).toBe(100n);
  });

  it('refuses the same key with another body, whatever account it names', () => {
    const [a, b] = [testAccount(1, 'Savings'), testAccount(2, 'Savings')];
    const books = testBooks([a, b]);
    decide(cash('Deposit', a, '1', { fingerprint: 'f1' }, 88_001), books);
    const other = cash('Deposit', b, '1', { fingerprint: 'f2' }, 88_001);
    if (other.name === 'create_transaction') other.data.transaction_id = `${other.data.transaction_id.slice(0, -2)}ff`; // another account, another bucket
    expect(replyCode(decide(other, books))).toBe('idempotency_key_reused');
    expect(b.balance_minor).toBe(0n);
  });

  it("treats another client's account as unknown to a bound caller", () => {
    const account = testAccount(1, 'Savings', 'USD', 'Active', 100n);
    expect(
      replyCode(
        decide(
          cash('Withdrawal', account, '1', { bound_client_id: formatId('client', testBits(2)) }),
          testBooks([account]),
        ),
      ),
    ).toBe('account_not_found');
    expect(
      replyCode(
        decide(cash('Withdrawal', account, '1', { bound_client_id: account.client_id ?? '' }), testBooks([account])),
      ),
    ).toBe('done');
  });

  it('stores the request, its texts, its caller, and its time of acceptance', () => {
    const account = testAccount(1, 'Savings');
    const command = cash(
      'Deposit',
      account,
      '10.5',
      {
        idempotency_key: 'key 1',
        fingerprint: 'f',
        actor: 'jwt:me',
        request_id: 'r-7',
        time: '2026-01-01T00:00:00.000Z',
      },
      5,
    );
    if (command.name === 'create_transaction') Object.assign(command.data, { description: 'rent', reference: 'R-1' });
    const decision = decide(command, testBooks([account]));
    expect(decision.transactions).toEqual([
      {
        transaction_id: formatId('transaction', testBits(5)),
        operation_id: formatId('operation', testBits(5)),
        account_id: account.account_id,
        counterparty_account_id: null,
        transaction_type: 'Deposit',
        direction: 'credit',
        amount_minor: 1050n,
        amount_text: null,
        currency: 'USD',
        description: 'rent',
        reference: 'R-1',
        status: 'Completed',
        failure_code: null,
        failure_message: null,
        failure_account_id: null,
        reverses_transaction_id: null,
        hold_id: null,
        idempotency_key: 'key 1',
        fingerprint: 'f',
        actor: 'jwt:me',
        request_id: 'r-7',
        created_at: '2026-01-01T00:00:00.000Z',
        external_id: null,
        metadata: null,
        batch_id: null,
        metadata_client_id: null,
        // It was accepted on the day before it was decided.
        effective_date: '2026-01-02',
      },
    ]);
    for (const entry of decision.entries)
      expect(entry).toMatchObject({
        transaction_id: formatId('transaction', testBits(5)),
        operation_id: formatId('operation', testBits(5)),
        currency: 'USD',
        created_at: now,
      });
  });

  it('returns every account whose balance it changed, including slots', () => {
    const account = testAccount(1, 'Savings', 'USD', 'Active', 100n);
    const books = testBooks([account, testAccount(2, 'Savings')]);
    decide(cash('Withdrawal', account, '1'), books);
    expect(books.moved).toEqual(new Set([account, books.system('Teller', 'USD'), books.system('Vault', 'USD')]));
  });

  it('lets a balance reach the limit but not exceed it, and the last cent be withdrawn', () => {
    // contract: money-9
    const account = testAccount(1, 'Savings', 'USD', 'Active', maxMinor - 1n);
    const books = testBooks([account]);
    const refused = decide(cash('Deposit', account, '0.02'), books);
    expect([replyCode(refused), refused.entries]).toEqual(['balance_limit_exceeded', []]);
    expect(replyMessage(refused)).toMatch(new RegExp(`^Balance Limit Exceeded: .*${account.account_id}`));
    expect(replyCode(decide(cash('Deposit', account, '0.01'), books))).toBe('done');
    expect(replyCode(decide(cash('Withdrawal', account, fromMinor(maxMinor, 'USD')), books))).toBe('done');
    expect(replyCode(decide(cash('Withdrawal', account, '0.01'), books))).toBe('insufficient_funds');
    expect(replyCode(decide(cash('Deposit', account, '10000000000000'), books))).toBe('amount_too_large');
    expect(account.balance_minor).toBe(0n);
  });

  it('reports an invalid amount by field', () => {
    const account = testAccount(1, 'Savings', 'JPY');
    const books = testBooks([account]);
    for (const [amount, code, words] of [
      ['1.5', 'invalid_amount_precision', 'JPY'],
      ['1000000000000000', 'amount_too_large', '10^15'],
    ] as const) {
      const { reply } = decide(cash('Deposit', account, amount), books);
      expect(reply).toMatchObject({
        ok: false,
        refusal: {
          code,
          message: expect.stringContaining(words),
          errors: [{ field: 'amount', code, message: expect.stringContaining(words) }],
        },
      });
    }
  });

  it("refuses another currency than the account's, and stores the amount as requested", () => {
    const account = testAccount(1, 'Savings');
    const command = cash('Deposit', account, '1.5');
    if (command.name === 'create_transaction') command.data.currency = 'EUR';
    const refused = decide(command, testBooks([account]));
    expect(replyCode(refused)).toBe('currency_mismatch');
    expect(replyMessage(refused)).toMatch(new RegExp(`^Currency Mismatch: .*${account.account_id}.*USD.*EUR`));
    expect(refused.transactions).toMatchObject([
      {
        status: 'Failed',
        currency: 'EUR',
        amount_minor: 150n,
        amount_text: null,
        failure_message: replyMessage(refused),
      },
    ]);
  });

  it('treats Teller and Vault as unknown accounts', () => {
    const books = testBooks([]);
    const vault = books.system('Vault', 'USD');
    books.accounts.set(vault.account_id, vault);
    for (const type of ['Deposit', 'Withdrawal'] as const)
      expect(replyCode(decide(cash(type, vault, '1'), books))).toBe('account_not_found');
    expect([vault.balance_minor, vault.last_sequence]).toEqual([0n, 0n]);
  });

  it('names the unknown account', () => {
    const { account_id } = testAccount(1, 'Savings');
    const { reply, transactions } = decide(cash('Deposit', testAccount(1, 'Savings'), '1'), testBooks([]));
    const details = { field: 'account_id', account_id, transaction_id: transactions[0]?.transaction_id };
    expect(reply).toEqual({
      ok: false,
      refusal: { code: 'account_not_found', message: `account_id ${account_id}: account not found`, details },
    });
  });
});

describe('time', () => {
  const at = (ms: number) => new Date(Date.parse(now) + ms).toISOString();
  const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 1000n), testAccount(2, 'Savings', 'USD', 'Active', 1000n)];

  it.each([
    ['a deposit', (rest: object) => cash('Deposit', a, '1', rest)],
    ['a transfer', (rest: object) => transfer(a, b, '1', rest)],
  ] as const)('%s is executed at its deadline and never after it', (_, command) => {
    const books = testBooks([{ ...a }, { ...b }]);
    expect(replyCode(decide(command({ deadline: now }), books))).toBe('done');
    expect(replyCode(decide(command({}), books))).toBe('done');
    const late = decide(command({ deadline: at(-1) }), books);
    expect(replyCode(late)).toBe('deadline_exceeded');
    expect(late.transactions).toMatchObject([
      { status: 'Failed', failure_code: 'deadline_exceeded', amount_text: '1', currency: null },
    ]);
    expect(replyMessage(late)).toMatch(/never will be.*new Idempotency-Key/);
    expect(late.entries).toEqual([]);
  });

  it.each([
    ['an unknown account', cash('Deposit', testAccount(9, 'Savings'), '1'), '1', null],
    ['an amount with too many digits', cash('Deposit', a, '1.234'), '1.234', 'USD'],
    ['a transfer from an unknown account', transfer(testAccount(9, 'Savings'), b, '1'), '1', null],
    [
      'a transfer to an unknown account',
      transfer(a, testAccount(9, 'Savings'), '1.5', { currency: 'USD' }),
      150n,
      'USD',
    ],
    ['a transfer with too many digits', transfer(a, b, '1.234'), '1.234', 'USD'],
  ] as const)('%s is stored at any time, with the amount if it is valid', (_, command, amount, currency) => {
    const record =
      typeof amount === 'bigint'
        ? { amount_minor: amount, amount_text: null }
        : { amount_minor: null, amount_text: amount };
    expect(decide(command, testBooks([a, b])).transactions).toMatchObject([{ status: 'Failed', currency, ...record }]);
  });
});

describe('final checks', () => {
  const draft = (account: AccountState) =>
    completed(
      draftTransaction(
        testContext(1),
        formatId('transaction', testBits(1)),
        account.account_id,
        null,
        'Deposit',
        'credit',
        null,
        null,
      ),
      1n,
      'USD',
    );
  const apply = (account: AccountState, direction: 'credit' | 'debit', minor: bigint) =>
    complete('create_transaction', [draft(account)], [{ account, direction }], minor, testBooks([account]));

  it('throws instead of posting a customer balance below zero or above the limit; system accounts may exceed both', () => {
    expect(() => apply(testAccount(1, 'Savings', 'USD', 'Active', 4n), 'debit', 5n)).toThrow('a check is missing');
    expect(() => apply(testAccount(1, 'Loan', 'USD', 'Active', maxMinor), 'credit', 1n)).toThrow('a check is missing');
    expect(apply(testAccount(1, 'Savings', 'USD', 'Active', maxMinor - 1n), 'credit', 1n).entries).toHaveLength(1);
    expect(apply(testBooks([]).system('Vault', 'USD'), 'debit', 5n).entries).toMatchObject([
      { balance_after_minor: -5n },
    ]);
    expect(
      apply({ ...testBooks([]).system('Vault', 'USD'), balance_minor: maxMinor }, 'credit', 5n).entries,
    ).toHaveLength(1);
  });

  it('throws instead of posting entries without a transaction', () => {
    expect(() =>
      complete(
        'create_transaction',
        [],
        [{ account: testAccount(1, 'Savings'), direction: 'credit' }],
        1n,
        testBooks([]),
      ),
    ).toThrow('without a transaction');
  });
});
