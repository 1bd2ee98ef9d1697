import { describe, expect, it } from 'vitest';
import type { Account } from '#libs/contracts/accounts.ts';
import type { OwnRules } from '#libs/contracts/approvals.ts';
import { samples } from '../../gateway/test/test-app.ts';
import { checkLines, explainLine, type Mode } from './batch-check.ts';
import { toOmitted } from './batch-views.ts';

const account = (account_number: string, changes: Partial<Account> = {}): [string, Account] => [
  account_number,
  {
    ...(samples.master as Account),
    account_id: `acc_${account_number}`,
    account_number,
    balance: '100.00',
    available_balance: '60.00',
    ...changes,
  },
];
const accounts = new Map([
  account('A'),
  account('B'),
  account('LOAN', { account_type: 'Loan', balance: '50.00' }),
  account('COLD', { status: 'Frozen' }),
  account('YEN', { currency: 'JPY' }),
]);
const all = new Set(['transactions:write', 'transfers:write']);
const blank = { from: '', to: '', amount: '5', currency: '', reference: '', description: '' };

function check(
  lines: Partial<typeof blank & { fault: string }>[],
  mode: Mode = 'independent',
  scopes = all,
  rules?: OwnRules,
) {
  const numbered = lines.map((line, index) => ({ ...blank, ...line, line: index + 2 }));
  const { payments, refused, unapproved } = checkLines(numbered, accounts, scopes, mode, rules);
  return {
    sent: payments.map(({ line }) => line.line),
    refused: refused.map(({ line, reason }) => [line.line, reason]),
    ...(rules && { unapproved }),
  };
}

describe('a line', () => {
  it.each([
    [{}, 'Enter an account number in from, to, or both.'],
    [{ from: 'A', to: 'X' }, 'There is no account X. Check the number.'],
    [{ from: 'A', to: 'A' }, 'The money would go to the account that it comes from.'],
    [{ from: 'LOAN', to: 'A' }, 'This cannot be done with an account of this type.'],
    [{ to: 'LOAN' }, 'This cannot be done with an account of this type.'],
    [{ from: 'A', to: 'COLD' }, 'Account COLD is Frozen'],
    [{ from: 'A', to: 'YEN' }, 'The accounts have different currencies: USD and JPY.'],
    [{ from: 'A', to: 'B', currency: 'EUR' }, 'The account is in USD, not in EUR.'],
    [{ from: 'A', to: 'B', amount: '1.500' }, 'Is this 1500, or 1.50?'],
    [{ from: 'A', to: 'B', amount: '' }, 'Enter an amount.'],
    [{ from: 'A', to: 'B', reference: 'r' }, 'A transfer has no reference'],
    [{ to: 'A', reference: 'r'.repeat(101) }, 'The reference must have 0 to 100 characters.'],
    [{ to: 'A', description: 'd'.repeat(256) }, 'The description must have 0 to 255 characters.'],
    [{ to: 'A', description: 'bell \u0007' }, 'The description must not contain'],
    [{ to: 'A', description: 'turned \u202e' }, 'The description must not contain'],
    [{ from: 'A', to: 'B', fault: 'has 4 values, but the first line has 3 names' }, 'The line has 4 values'],
    [{ from: 'A', amount: '60.01' }, 'There is not enough money in account A: 60.00 USD can be taken from it.'],
    [{ from: 'A', to: 'LOAN', amount: '50.01' }, 'This is more than is still owed: 50.00 USD.'],
  ])('%j is refused: %s', (line, words) => {
    const { sent, refused } = check([line]);
    expect([sent, refused]).toEqual([[], [[2, expect.stringContaining(words)]]]);
  });

  it('is sent as a deposit, withdrawal, transfer, or repayment', () => {
    expect(
      check([
        { to: 'A', reference: 'r' },
        { from: 'A' },
        { from: 'A', to: 'B', currency: 'usd' },
        { from: 'A', to: 'LOAN' },
      ]),
    ).toEqual({ sent: [2, 3, 4, 5], refused: [] });
  });

  it('needs the scope for its kind', () => {
    const { refused } = check([{ to: 'A' }, { from: 'A', to: 'B' }], 'independent', new Set(['transfers:write']));
    expect(refused).toEqual([[2, 'Your permissions do not allow cash.']]);
  });
});

describe('a line that is not sent', () => {
  const own = new Map([
    account('SAV-1', { available_balance: '77.70', currency: 'KES' }),
    account('SAV-2', { available_balance: '99999.90', balance: '99999.90', currency: 'KES' }),
    account('LOA-3', { account_type: 'Loan', balance: '88.80', currency: 'KES' }),
    account('SAV-4', { status: 'Frozen', currency: 'KES' }),
  ]);
  const kept = (lines: Partial<typeof blank & { fault: string }>[]) => {
    const numbered = lines.map((line, index) => ({ ...blank, ...line, line: index + 2 }));
    const { refused } = checkLines(numbered, own, all, 'independent', undefined);
    expect(refused).toHaveLength(lines.length);
    const metadata = toOmitted(refused);
    return { metadata, rows: JSON.parse(metadata['omitted_1'] ?? '') as string[][] };
  };

  it('is kept with a code, and not with a balance, a debt, or a status, which not everybody may see', () => {
    const { metadata, rows } = kept([
      { from: 'SAV-1', amount: '100' },
      { from: 'SAV-2', to: 'LOA-3', amount: '100' },
      { from: 'SAV-2', to: 'SAV-4', amount: '100' },
      { from: 'SAV-2', to: 'SAV-9', amount: '100' },
      { fault: 'has 4 values, but the first line has 3 names', amount: 'x' },
    ]);
    expect(JSON.stringify(metadata)).not.toMatch(/7|8|Frozen/);
    const codes = rows.map((row) => row[5] ?? '');
    expect(codes).toEqual([
      'insufficient_funds',
      'amount_exceeds_outstanding',
      'inactive_account',
      'unknown_to',
      'unreadable_line',
    ]);
    expect(codes.map(explainLine)).toEqual([
      'There is not enough money in the account.',
      'This is more than is still owed.',
      'An account is not active: no money can be moved until it is active again.',
      'There is no account with this number in To.',
      'The line could not be read.',
    ]);
    // Any program can write the metadata of its batches.
    expect(explainLine('toString')).toMatch(/^The bank did not accept this\./);
  });

  it.each([
    ['KES 1,500', '1500.00'],
    ['1\u00a0500', '1500.00'],
    ['1500/-', '1500.00'],
    ['١٥٠٠', '1500.00'],
    ['1,5', '1.50'],
  ])('for another reason than its amount %s keeps it as the counter reads it', (amount, read) => {
    expect(kept([{ from: 'SAV-2', to: 'SAV-9', amount }]).rows).toEqual([
      [2, 'SAV-2', 'SAV-9', read, 'KES', 'unknown_to'],
    ]);
  });

  it.each([
    ['1.500', '1.500', 'invalid_amount'],
    ['Jane', '', 'invalid_amount'],
    ['USD 5', '', 'invalid_amount'],
  ])('because of its amount %s keeps only digits of it', (amount, text, code) => {
    expect(kept([{ to: 'SAV-2', amount }]).rows).toEqual([[2, '', 'SAV-2', text, 'KES', code]]);
  });

  it('keeps its own currency, if it is one, and an amount in an unknown currency as it was typed', () => {
    const { rows } = kept([
      { to: 'SAV-2', amount: '1,500', currency: 'jpy' },
      { to: 'SAV-2', amount: '1,500', currency: 'jane' },
      { to: 'SAV-9', amount: '1,500' },
      { to: 'JANE', amount: 'Doe' },
    ]);
    expect(rows).toEqual([
      [2, '', 'SAV-2', '1500', 'JPY', 'currency_mismatch'],
      [3, '', 'SAV-2', '1500.00', '', 'currency_mismatch'],
      [4, '', 'SAV-9', '1,500', '', 'unknown_to'],
      [5, '', '', '', '', 'unknown_to'],
    ]);
  });
});

describe('lines together', () => {
  it('do not take more from an account than it has; a refused line takes nothing', () => {
    const rows = [
      { from: 'A', amount: '50' },
      { from: 'A', amount: '20' },
      { from: 'A', amount: '10' },
    ];
    expect(check(rows)).toEqual({
      sent: [2, 4],
      refused: [[3, 'The payments above leave too little money in the account.']],
    });
  });

  it('count earlier incoming amounts only if they are posted in order', () => {
    const rows = [
      { from: 'B', to: 'A', amount: '50' },
      { from: 'A', amount: '110' },
    ];
    expect(check(rows, 'atomic').refused).toEqual([]);
    expect(check(rows).sent).toEqual([2]);
  });

  it('that are equal are named', () => {
    const rows = [{ to: 'A' }, { to: 'A', amount: '5.00' }, { to: 'B' }, { to: 'A', reference: 'slip 2' }, { to: 'A' }];
    const numbered = rows.map((line, index) => ({ ...blank, ...line, line: index + 2 }));
    expect(checkLines(numbered, accounts, all, 'atomic', undefined).repeated).toEqual([3, 6]);
  });

  it('do not repay more than the outstanding amount', () => {
    const rows = [
      { from: 'A', to: 'LOAN', amount: '30' },
      { from: 'B', to: 'LOAN', amount: '30' },
    ];
    expect(check(rows).refused).toEqual([[3, 'After the payments above, less than this is owed on the loan.']]);
  });
});

describe('lines that need an approval', () => {
  const usd = { currency: 'USD', limit: '30', posted: '10', left: '20' };
  const rules: OwnRules = { day: '2026-01-02', actions: ['post_above'], limits: [usd] };

  it('cannot be sent by themselves above the limit, or in a currency without one', () => {
    const lines = [
      { from: 'A', to: 'B', amount: '30.01' },
      { from: 'A', to: 'B', amount: '20' },
      { to: 'YEN', amount: '1' },
    ];
    const why = 'A second person must approve this: enter it by itself, at the counter.';
    expect(check(lines, 'independent', all, rules)).toEqual({
      sent: [3],
      refused: [
        [2, why],
        [4, why],
      ],
      unapproved: [],
    });
    expect(check(lines, 'independent', all, { ...rules, actions: ['reverse'] }).sent).toEqual([2, 3, 4]);
  });

  it('are named if they are more together than one operation can have', () => {
    const most = { currency: 'USD', limit: '9999999999999.99', posted: '0', left: '9999999999999.99' };
    const lines = ['A', 'B', 'A'].map((to) => ({ to, amount: '9999999999999.99' }));
    const { sent, unapproved = [] } = check(lines, 'independent', all, { ...rules, limits: [most] });
    expect(sent).toEqual([2, 3, 4]);
    expect(unapproved[0]?.replace(/\s/g, '')).toMatch(/^ThepaymentsinUSDare29999999999999\.97USDtogether/);
  });

  it('are named if they are more together than is left of the day', () => {
    const together = check(
      [
        { to: 'A', amount: '15' },
        { to: 'B', amount: '5.01' },
      ],
      'atomic',
      all,
      rules,
    );
    expect(together.sent).toEqual([2, 3]);
    expect(together.unapproved?.map((text) => text.replaceAll('\u00a0', ' '))).toEqual([
      'The payments in USD are 20.01 USD together, and you can post 20.00 USD more today alone.',
    ]);
  });
});
