import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import { idBits, idKey, idOf } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { AccountStatus, AccountType } from '#libs/contracts/resources.ts';
import { classOf, isSystem, type SystemKind, systemAccountNumber } from './chart.ts';
import type { Books, Command, Decision } from './decision.ts';
import { decide } from './posting.ts';
import type { AccountState } from './records.ts';

const now = '2026-01-02T03:04:05.678Z';

function bitsOf(n: number): string {
  return n.toString(16).padStart(30, '0') + '00';
}

function accountOf(n: number, type: AccountType, currency = 'USD', status: AccountStatus = 'Active', balance = 0n): AccountState {
  return {
    account_id: idOf('account', bitsOf(n)),
    account_number: `X-${n}`,
    client_id: idOf('client', bitsOf(n)),
    account_type: type,
    currency,
    status,
    status_version: 1,
    balance_minor: balance,
    last_sequence: 0n,
  };
}

function booksOf(accounts: AccountState[]): Books {
  const slots = new Map<string, AccountState>();
  return {
    accounts: new Map(accounts.map((a) => [a.account_id, a])),
    moved: new Set(),
    takenNumbers: new Set(),
    system: (kind: SystemKind, currency: string) => {
      const number = systemAccountNumber(kind, currency, 0);
      const slot = slots.get(number) ?? { ...accountOf(900_000 + slots.size, 'Savings', currency), account_number: number, account_type: kind, client_id: null };
      slots.set(number, slot);
      return slot;
    },
    transactions: new Map(),
    reversals: new Map(),
    outcomes: new Map(),
    now,
  };
}

function contextOf(n: number, rest: Partial<MessageContext> = {}): MessageContext {
  return { message_id: idOf('transaction', bitsOf(n)), type: '', source: '', time: now, subject: '', request_id: 'r', actor: 'a', ...rest };
}

let next = 1_000;
function cash(type: 'Deposit' | 'Withdrawal', account: AccountState, amount: string, rest: Partial<MessageContext> = {}, id = next++): Command {
  return {
    name: 'create_transaction',
    data: { transaction_id: idOf('transaction', bitsOf(id)), account_id: account.account_id, transaction_type: type, amount, currency: null, description: null, reference: null },
    context: contextOf(id, rest),
  };
}
function transfer(from: AccountState, to: AccountState, amount: string, currency: string | null = null, id = next++): Command {
  return {
    name: 'create_transfer',
    data: { transfer_id: idOf('transfer', bitsOf(id)), from_account_id: from.account_id, to_account_id: to.account_id, amount, currency, description: null },
    context: contextOf(id),
  };
}
function reversal(original: string, rest: Partial<MessageContext> = {}, id = next++): Command {
  return { name: 'reverse_transaction', data: { transaction_id: idOf('transaction', bitsOf(id)), reverses_transaction_id: original, reason: 'error' }, context: contextOf(id, rest) };
}
function opening(n: number, type: AccountType, amount: string, currency = 'USD', status: AccountStatus = 'Active'): Command {
  const account_id = idOf('account', bitsOf(n));
  const data = { account_id, client_id: idOf('client', bitsOf(n)), account_number: `N-${n}`, account_type: type, currency, status, initial_deposit: amount };
  return { name: 'open_ledger_account', data, context: contextOf(n, { message_id: account_id }) };
}
function restate(account: AccountState, status: AccountStatus, id = next++): Command {
  return { name: 'change_ledger_account_status', data: { transition_id: idOf('transition', bitsOf(id)), account_id: account.account_id, status }, context: contextOf(id) };
}

function codeOf(decision: Decision): string {
  return decision.reply.ok ? 'done' : decision.reply.refusal.code;
}

/** Signed sum of an operation's entries: DR positive. */
function imbalance(decision: Decision): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const e of decision.entries) sums.set(e.currency, (sums.get(e.currency) ?? 0n) + (e.side === 'DR' ? e.amount_minor : -e.amount_minor));
  return sums;
}

const commandArbitrary = (accounts: AccountState[]) => {
  const account = fc.constantFrom(...accounts);
  const amount = fc.bigInt({ min: 1n, max: 50_000n }).map((minor) => fromMinor(minor, 'USD'));
  const id = fc.integer({ min: 2_000, max: 2_040 }); // few ids: commands repeat
  return fc.oneof(
    fc.record({ a: account, m: amount, id }).map(({ a, m, id: n }) => cash('Deposit', a, m, {}, n)),
    fc.record({ a: account, m: amount, id }).map(({ a, m, id: n }) => cash('Withdrawal', a, m, {}, n)),
    fc.record({ a: account, b: account, m: amount, id }).map(({ a, b, m, id: n }) => transfer(a, b, m, null, n)),
    fc.record({ original: id, id }).map(({ original, id: n }) => reversal(idOf('transaction', bitsOf(original)), {}, n)),
    fc.record({ a: account, s: fc.constantFrom<AccountStatus>('Active', 'Active', 'Inactive', 'Frozen') }).map(({ a, s }) => restate(a, s)),
    fc.record({ n: fc.integer({ min: 1, max: 4 }), t: fc.constantFrom<AccountType>('Savings', 'Loan'), m: amount }).map(({ n, t, m }) => opening(500 + n, t, m)),
  );
};

function population(): AccountState[] {
  return [accountOf(1, 'Savings'), accountOf(2, 'Checking'), accountOf(3, 'Current', 'EUR'), accountOf(4, 'Loan', 'USD', 'Active', 30_000n), accountOf(5, 'Savings', 'USD', 'Frozen')];
}

describe('any sequence of commands', () => {
  const anySequence = fc.array(commandArbitrary(population()), { minLength: 1, maxLength: 60 });

  it('balances every operation, never takes a customer below zero, keeps the sequence, repeats nothing', () => {
    fc.assert(
      fc.property(anySequence, (commands) => {
        const accounts = population();
        const books = booksOf(accounts);
        const start = new Map(accounts.map((a) => [a.account_id, { balance: a.balance_minor, sequence: 0n }]));
        const done = new Set<string>();
        for (const command of commands) {
          const decision = decide(command, books);
          for (const sum of imbalance(decision).values()) expect(sum).toBe(0n);
          for (const record of decision.transactions) {
            expect(done.has(idKey(record.transaction_id))).toBe(false);
            done.add(idKey(record.transaction_id));
            if (record.status === 'Failed') expect(decision.entries).toEqual([]);
          }
          for (const entry of decision.entries) {
            const last = start.get(entry.account_id) ?? { balance: 0n, sequence: 0n };
            expect(entry.sequence).toBe(last.sequence + 1n);
            expect(entry.balance_after_minor).toBe(last.balance + (entry.direction === 'credit' ? entry.amount_minor : -entry.amount_minor));
            start.set(entry.account_id, { balance: entry.balance_after_minor, sequence: entry.sequence });
            if (books.accounts.has(entry.account_id)) expect(entry.balance_after_minor).toBeGreaterThanOrEqual(0n);
          }
          expect(books.system('Teller', 'USD').balance_minor).toBe(0n);
        }
        for (const account of books.accounts.values()) {
          const last = start.get(account.account_id);
          if (last) expect(account.balance_minor).toBe(last.balance);
        }
        // Vault = liabilities - loans, beyond what the accounts held before the Vault began.
        for (const currency of ['USD', 'EUR']) {
          const customers = [...books.accounts.values()].filter((a) => a.currency === currency && !isSystem(a.account_type));
          const claims = customers.reduce((sum, a) => sum + (classOf(a.account_type) === 'liability' ? a.balance_minor : -a.balance_minor), 0n);
          expect(books.system('Vault', currency).balance_minor).toBe(claims + (currency === 'USD' ? 30_000n : 0n));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('gives a repeat the same answer and books nothing', () => {
    fc.assert(
      fc.property(anySequence, (commands) => {
        const books = booksOf(population());
        for (const command of commands) {
          const first = decide(command, books);
          const again = decide(command, books);
          if (first.transactions.length > 0 || first.keep) {
            expect(again.entries).toEqual([]);
            expect(again.transactions).toEqual([]);
            const { replayed: _, ...reply } = again.reply;
            const { replayed: __, ...original } = first.reply;
            expect(reply).toEqual(original);
          }
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('deposit and withdrawal', () => {
  it('books a deposit through Teller and Vault', () => {
    const account = accountOf(1, 'Savings');
    const decision = decide(cash('Deposit', account, '10.50'), booksOf([account]));
    expect(decision.entries.map((e) => [e.direction, e.side, e.amount_minor, e.balance_after_minor])).toEqual([
      ['credit', 'CR', 1050n, 1050n],
      ['credit', 'DR', 1050n, 1050n],
      ['debit', 'CR', 1050n, 0n],
      ['credit', 'DR', 1050n, 1050n],
    ]);
  });

  it('books a withdrawal from the Vault through the Teller', () => {
    const account = accountOf(1, 'Checking', 'USD', 'Active', 5000n);
    const decision = decide(cash('Withdrawal', account, '50'), booksOf([account]));
    expect(decision.entries.map((e) => [e.direction, e.side, e.balance_after_minor])).toEqual([
      ['debit', 'CR', -5000n],
      ['credit', 'DR', 5000n],
      ['debit', 'CR', 0n],
      ['debit', 'DR', 0n],
    ]);
  });

  it('refuses in the order type, status, currency, limits, funds, and keeps a Failed transaction', () => {
    const loan = accountOf(1, 'Loan', 'USD', 'Frozen');
    const frozen = accountOf(2, 'Savings', 'USD', 'Frozen');
    const full = accountOf(3, 'Savings', 'USD', 'Active', 10n ** 15n - 1n);
    const empty = accountOf(4, 'Savings');
    const books = booksOf([loan, frozen, full, empty]);
    expect(codeOf(decide(cash('Deposit', loan, '1'), books))).toBe('invalid_account_type');
    expect(codeOf(decide(cash('Withdrawal', frozen, '1'), books))).toBe('inactive_account');
    expect(codeOf(decide(cash('Deposit', full, '0.01'), books))).toBe('balance_limit_exceeded');
    const refused = decide(cash('Withdrawal', empty, '1'), books);
    expect(codeOf(refused)).toBe('insufficient_funds');
    expect(refused.transactions).toMatchObject([{ status: 'Failed', failure_code: 'insufficient_funds', amount_minor: 100n }]);
    expect(refused.reply).toMatchObject({ refusal: { message: expect.stringMatching(/^Insufficient Funds: /), details: { transaction_id: refused.transactions[0]?.transaction_id } } });
  });

  it('keeps nothing of an unknown account or too fine an amount, unless the caller was told 202 before', () => {
    const yen = accountOf(1, 'Savings', 'JPY');
    const books = booksOf([yen]);
    const unknown = accountOf(99, 'Savings');
    expect(decide(cash('Deposit', unknown, '1'), books)).toMatchObject({ reply: { refusal: { code: 'account_not_found' } }, transactions: [] });
    expect(decide(cash('Deposit', yen, '1.5'), books)).toMatchObject({ reply: { refusal: { code: 'invalid_amount_precision' } }, transactions: [] });
    const late = { reply_by: '2026-01-02T03:04:00.000Z' };
    expect(decide(cash('Deposit', unknown, '1', late), books).transactions).toMatchObject([{ status: 'Failed', failure_code: 'account_not_found', amount_text: '1', currency: null }]);
    expect(decide(cash('Deposit', yen, '1.5', late), books).transactions).toMatchObject([{ status: 'Failed', failure_code: 'invalid_amount_precision', amount_text: '1.5' }]);
  });

  it('never executes past the deadline, but answers what was decided before', () => {
    const account = accountOf(1, 'Savings');
    const books = booksOf([account]);
    const past = { deadline: '2026-01-02T03:04:00.000Z' };
    const known = cash('Deposit', account, '1', past, 77_001);
    books.now = '2026-01-02T03:03:00.000Z';
    expect(codeOf(decide(known, books))).toBe('done');
    books.now = now;
    expect(codeOf(decide(known, books))).toBe('done');
    expect(codeOf(decide(cash('Deposit', account, '1', past), books))).toBe('deadline_exceeded');
    expect(account.balance_minor).toBe(100n);
  });

  it('refuses the same key with another body, whatever account it names', () => {
    const [a, b] = [accountOf(1, 'Savings'), accountOf(2, 'Savings')];
    const books = booksOf([a, b]);
    decide(cash('Deposit', a, '1', { fingerprint: 'f1' }, 88_001), books);
    const other = cash('Deposit', b, '1', { fingerprint: 'f2' }, 88_001);
    if (other.name === 'create_transaction') other.data.transaction_id = `${other.data.transaction_id.slice(0, -2)}ff`; // another account, another bucket
    expect(codeOf(decide(other, books))).toBe('idempotency_key_reused');
    expect(b.balance_minor).toBe(0n);
  });

  it("treats another client's account as unknown to a bound caller", () => {
    const account = accountOf(1, 'Savings', 'USD', 'Active', 100n);
    expect(codeOf(decide(cash('Withdrawal', account, '1', { bound_client_id: idOf('client', bitsOf(2)) }), booksOf([account])))).toBe('account_not_found');
    expect(codeOf(decide(cash('Withdrawal', account, '1', { bound_client_id: account.client_id ?? '' }), booksOf([account])))).toBe('done');
  });
});

describe('transfers and loans', () => {
  it('moves between customers as two transactions of one operation', () => {
    const [a, b] = [accountOf(1, 'Savings', 'USD', 'Active', 500n), accountOf(2, 'Checking')];
    const decision = decide(transfer(a, b, '3'), booksOf([a, b]));
    expect(decision.transactions.map((t) => [t.account_id, t.direction, t.transaction_type, t.counterparty_account_id])).toEqual([
      [a.account_id, 'debit', 'Transfer', b.account_id],
      [b.account_id, 'credit', 'Transfer', a.account_id],
    ]);
    expect([a.balance_minor, b.balance_minor]).toEqual([200n, 300n]);
  });

  it('names the account that is missing, mismatched or short of funds', () => {
    const [a, b] = [accountOf(1, 'Savings'), accountOf(2, 'Checking', 'EUR')];
    const books = booksOf([a, b]);
    expect(decide(transfer(a, accountOf(9, 'Savings'), '1'), books).reply).toMatchObject({ refusal: { code: 'account_not_found', details: { field: 'to_account_id' } } });
    expect(decide(transfer(accountOf(9, 'Savings'), b, '1'), books).reply).toMatchObject({ refusal: { code: 'account_not_found', details: { field: 'from_account_id' } } });
    expect(codeOf(decide(transfer(a, b, '1'), books))).toBe('currency_mismatch');
    const c = accountOf(3, 'Savings');
    books.accounts.set(c.account_id, c);
    expect(decide(transfer(a, c, '1'), books).reply).toMatchObject({ refusal: { code: 'insufficient_funds', message: expect.stringContaining(`source account ${a.account_id}`) } });
  });

  it('pays a loan back as a Loan Payment, never more than is outstanding', () => {
    const [a, loan] = [accountOf(1, 'Savings', 'USD', 'Active', 50_000n), accountOf(2, 'Loan', 'USD', 'Active', 10_000n)];
    const books = booksOf([a, loan]);
    expect(codeOf(decide(transfer(a, loan, '100.01'), books))).toBe('amount_exceeds_outstanding');
    const paid = decide(transfer(a, loan, '40'), books);
    expect(paid.transactions.map((t) => [t.transaction_type, t.direction])).toEqual([['Loan Payment', 'debit'], ['Loan Payment', 'debit']]);
    expect(paid.entries.map((e) => e.side)).toEqual(['DR', 'CR']);
    expect([a.balance_minor, loan.balance_minor]).toEqual([46_000n, 6_000n]);
    expect(codeOf(decide(transfer(loan, a, '1'), books))).toBe('invalid_account_type');
  });

  it('opens a loan by paying it out in cash, whatever the opening status', () => {
    const books = booksOf([]);
    const decision = decide(opening(7, 'Loan', '100', 'USD', 'Inactive'), books);
    expect(decision.opened).toMatchObject({ balance_minor: 10_000n, status: 'Inactive' });
    expect(decision.transactions).toMatchObject([{ transaction_type: 'Withdrawal', direction: 'credit', description: 'Loan disbursement' }]);
    expect(decision.entries.map((e) => e.side)).toEqual(['CR', 'DR', 'CR', 'DR']);
    expect(books.system('Vault', 'USD').balance_minor).toBe(-10_000n);
  });
});

describe('reversal', () => {
  it('turns both legs of a transfer, whichever is named, at most once', () => {
    for (const leg of [0, 1]) {
      const [a, b] = [accountOf(1, 'Savings', 'USD', 'Active', 500n), accountOf(2, 'Checking')];
      const books = booksOf([a, b]);
      const { transactions } = decide(transfer(a, b, '3'), books);
      const undone = decide(reversal(transactions[leg]?.transaction_id ?? ''), books);
      expect([a.balance_minor, b.balance_minor]).toEqual([500n, 0n]);
      expect(new Set(undone.transactions.map((t) => t.reverses_transaction_id))).toEqual(new Set(transactions.map((t) => t.transaction_id)));
      for (const t of undone.transactions) expect(t.direction).toBe(transactions.find((o) => o.transaction_id === t.reverses_transaction_id)?.direction === 'debit' ? 'credit' : 'debit');
      for (const original of transactions) expect(codeOf(decide(reversal(original.transaction_id), books))).toBe('already_reversed');
      expect(codeOf(decide(reversal(undone.transactions[0]?.transaction_id ?? ''), books))).toBe('not_reversible');
    }
  });

  it('checks status and funds, not the account type', () => {
    const account = accountOf(1, 'Savings');
    const books = booksOf([account]);
    const deposit = decide(cash('Deposit', account, '5'), books).transactions[0]?.transaction_id ?? '';
    decide(cash('Withdrawal', account, '1'), books);
    expect(codeOf(decide(reversal(deposit), books))).toBe('insufficient_funds');
    decide(cash('Deposit', account, '1'), books);
    decide(restate(account, 'Frozen'), books);
    expect(codeOf(decide(reversal(deposit), books))).toBe('inactive_account');
    decide(restate(account, 'Active'), books);
    expect(codeOf(decide(reversal(deposit), books))).toBe('done');
    expect(account.balance_minor).toBe(0n);
    const loan = decide(opening(8, 'Loan', '10'), books);
    expect(codeOf(decide(reversal(loan.transactions[0]?.transaction_id ?? ''), books))).toBe('done');
    expect(loan.opened?.balance_minor).toBe(0n);
    expect(idBits(deposit)).toHaveLength(32);
  });
});

describe('status', () => {
  it('decides from, to, no-op and version', () => {
    const account = accountOf(1, 'Savings');
    const books = booksOf([account]);
    expect(decide(restate(account, 'Active'), books).reply).toMatchObject({ data: { changed: false, status_version: 1 } });
    const frozen = restate(account, 'Frozen');
    expect(decide(frozen, books).reply).toMatchObject({ data: { changed: true, from_status: 'Active', to_status: 'Frozen', status_version: 2 } });
    expect(decide(restate(account, 'Active'), books).reply).toMatchObject({ data: { changed: true, status_version: 3 } });
    // A repeat of the freeze does not freeze again.
    expect(decide(frozen, books).reply).toMatchObject({ replayed: true, data: { status_version: 2 } });
    expect(account.status).toBe('Active');
  });
});
