import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AccountStatus, AccountType } from '#libs/contracts/accounts.ts';
import { formatId, idKey } from '#libs/contracts/ids.ts';
import { fromMinor, maxMinor } from '#libs/contracts/money.ts';
import {
  capture,
  cash,
  opening,
  placing,
  release,
  replyCode,
  reversal,
  statusChange,
  testAccount,
  testBits,
  testBooks,
  transfer,
} from '../test/test-kit.ts';
import { accountClass, isSystem } from './chart.ts';
import type { Command, Decision } from './decision.ts';
import { expireHolds } from './holds.ts';
import { decide } from './posting.ts';
import { type AccountState, availableMinor } from './records.ts';

/** Returns the sum of an operation's entries, with DR as positive. */
function imbalance(decision: Decision): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const e of decision.entries)
    sums.set(e.currency, (sums.get(e.currency) ?? 0n) + (e.side === 'DR' ? e.amount_minor : -e.amount_minor));
  return sums;
}

const commandArbitrary = (accounts: AccountState[]) => {
  const account = fc.constantFrom(...accounts);
  const amount = fc.bigInt({ min: 1n, max: 50_000n }).map((minor) => fromMinor(minor, 'USD'));
  const id = fc.integer({ min: 2_000, max: 2_015 }); // few ids, so that commands are repeated and reversed
  const hold = fc.integer({ min: 3_000, max: 3_007 });
  const end = fc.integer({ min: 3, max: 9 }).map((day) => `2026-01-0${day}T00:00:00.000Z`);
  return fc.oneof(
    fc.record({ a: account, m: amount, id }).map(({ a, m, id: n }) => cash('Deposit', a, m, {}, n)),
    fc.record({ a: account, m: amount, id }).map(({ a, m, id: n }) => cash('Withdrawal', a, m, {}, n)),
    fc.record({ a: account, b: account, m: amount, id }).map(({ a, b, m, id: n }) => transfer(a, b, m, {}, n)),
    fc
      .record({ original: id, id })
      .map(({ original, id: n }) => reversal(formatId('transaction', testBits(original)), {}, n)),
    fc
      .record({
        a: account,
        s: fc.constantFrom<AccountStatus>(...Array<AccountStatus>(9).fill('Active'), 'Inactive', 'Frozen'),
      })
      .map(({ a, s }) => statusChange(a, s)),
    fc
      .record({ n: fc.integer({ min: 1, max: 4 }), t: fc.constantFrom<AccountType>('Savings', 'Loan'), m: amount })
      .map(({ n, t, m }) => opening(500 + n, t, m)),
    fc
      .record({ a: account, m: amount, n: hold, end })
      .map(({ a, m, n, end: expires_at }) => placing(a, m, { n, expires_at })),
    fc
      .record({ n: hold, m: fc.option(amount), b: fc.option(account), final: fc.boolean(), id })
      .map(({ n, m, b, final, id: t }) => capture(n, { amount: m, ...(b ? { to: b } : {}), final, id: 100_000 + t })), // with ids that no other command has
    hold.map((n) => release(n)),
  );
};

function population(): AccountState[] {
  return [
    testAccount(1, 'Savings', 'USD', 'Active', 50_000n),
    testAccount(2, 'Checking', 'USD', 'Active', 50_000n),
    testAccount(3, 'Current', 'EUR'),
    testAccount(4, 'Loan', 'USD', 'Active', 30_000n),
    testAccount(5, 'Savings', 'USD', 'Frozen'),
  ];
}

const types = fc.constantFrom<AccountType>('Savings', 'Checking', 'Current', 'Loan');
const statuses = fc.constantFrom<AccountStatus>('Active', 'Inactive', 'Frozen');
/** An account of a client other than that of the source. */
const anyDestination = fc
  .record({
    type: types,
    currency: fc.constantFrom('USD', 'EUR', 'JPY'),
    status: statuses,
    balance: fc.oneof(fc.bigInt({ min: 0n, max: 20_000n }), fc.constant(maxMinor)),
  })
  .map((to) => testAccount(2, to.type, to.currency, to.status, to.balance));

describe('any sequence of commands', () => {
  const anySequence = fc.array(commandArbitrary(population()), { minLength: 1, maxLength: 60, size: 'max' });

  it('balances every operation, keeps customers at or above zero, has no gap in sequences, and repeats and reverses nothing twice', () => {
    fc.assert(
      fc.property(anySequence, (commands) => {
        const accounts = population();
        const books = testBooks(accounts);
        const start = new Map(accounts.map((a) => [a.account_id, { balance: a.balance_minor, sequence: 0n }]));
        const done = new Set<string>();
        const reversed = new Set<string>();
        for (const command of commands) {
          const decision = decide(command, books);
          for (const sum of imbalance(decision).values()) expect(sum).toBe(0n);
          for (const record of decision.transactions) {
            expect(done.has(idKey(record.transaction_id))).toBe(false);
            done.add(idKey(record.transaction_id));
            if (record.status === 'Failed') expect(decision.entries).toEqual([]);
            else if (record.reverses_transaction_id !== null) {
              expect(reversed.has(idKey(record.reverses_transaction_id))).toBe(false);
              reversed.add(idKey(record.reverses_transaction_id));
            }
          }
          for (const entry of decision.entries) {
            const last = start.get(entry.account_id) ?? { balance: 0n, sequence: 0n };
            expect(entry.sequence).toBe(last.sequence + 1n);
            expect(entry.balance_after_minor).toBe(
              last.balance + (entry.direction === 'credit' ? entry.amount_minor : -entry.amount_minor),
            );
            start.set(entry.account_id, { balance: entry.balance_after_minor, sequence: entry.sequence });
            if (books.accounts.has(entry.account_id)) expect(entry.balance_after_minor).toBeGreaterThanOrEqual(0n);
          }
          expect(books.system('Teller', 'USD').balance_minor).toBe(0n);
        }
        for (const account of books.accounts.values()) {
          const last = start.get(account.account_id);
          if (last) expect(account.balance_minor).toBe(last.balance);
        }
        // Vault = liabilities - loans, apart from the initial balances, which have no counterpart
        // in the Vault.
        for (const currency of ['USD', 'EUR']) {
          const customers = [...books.accounts.values()].filter(
            (a) => a.currency === currency && !isSystem(a.account_type),
          );
          const claims = customers.reduce(
            (sum, a) => sum + (accountClass(a.account_type) === 'liability' ? a.balance_minor : -a.balance_minor),
            0n,
          );
          expect(books.system('Vault', currency).balance_minor).toBe(
            claims + (currency === 'USD' ? 30_000n - 100_000n : 0n),
          );
        }
      }),
      { numRuns: 300 },
    );
  });

  it("never takes held money: an account's held amount is that of its Active holds, what events show as available is without it, and each change is counted", () => {
    fc.assert(
      fc.property(anySequence, fc.array(fc.nat({ max: 59 }), { maxLength: 3 }), (commands, pauses) => {
        const books = testBooks(population());
        const versions = new Map<string, bigint>();
        const captured = new Map<string, bigint>();
        for (const [i, command] of commands.entries()) {
          // Sometimes a day passes.
          if (pauses.includes(i)) books.now = new Date(Date.parse(books.now) + 86_400_000).toISOString();
          const due = [...books.accounts.values()].filter(
            ({ hold_expires_at }) => hold_expires_at !== null && hold_expires_at <= books.now,
          );
          const before = [...books.holds.values()]
            .filter(({ status }) => status === 'Active')
            .sort((a, b) => (a.expires_at < b.expires_at ? -1 : 1));
          const over = before.filter(({ expires_at }) => expires_at <= books.now);
          const next = before
            .toReversed()
            .flatMap(({ account_id, expires_at }): [string, string][] =>
              expires_at <= books.now ? [] : [[account_id, expires_at]],
            );
          const expired = expireHolds(due, over, new Map(next), books);
          const decision = decide(command, books);
          for (const {
            hold: { account_id },
            hold_version,
          } of [...expired, ...(decision.hold ? [decision.hold] : [])]) {
            expect(hold_version).toBe((versions.get(account_id) ?? 0n) + 1n);
            versions.set(account_id, hold_version);
          }
          const shown = decision.transactions.map(({ account_id }) => {
            const account = books.accounts.get(account_id);
            return account && availableMinor(account);
          });
          expect(decision.available ?? []).toEqual(shown);
          const [first] = decision.transactions;
          if (first?.status === 'Completed' && first.hold_id !== null)
            captured.set(first.hold_id, (captured.get(first.hold_id) ?? 0n) + (first.amount_minor ?? 0n));
          for (const account of books.accounts.values()) {
            const active = [...books.holds.values()].filter(
              (hold) => hold.account_id === account.account_id && hold.status === 'Active',
            );
            expect(account.held_minor).toBe(
              active.reduce((sum, hold) => sum + hold.amount_minor - hold.captured_minor, 0n),
            );
            expect(account.active_holds).toBe(BigInt(active.length));
            expect(account.balance_minor).toBeGreaterThanOrEqual(account.held_minor);
            expect(account.hold_expires_at === null).toBe(active.length === 0);
            for (const hold of active)
              expect([hold.expires_at > books.now, (account.hold_expires_at ?? '') <= hold.expires_at]).toEqual([
                true,
                true,
              ]);
          }
          for (const hold of books.holds.values()) {
            expect(hold.captured_minor).toBe(captured.get(hold.hold_id) ?? 0n);
            expect(hold.captured_minor).toBeLessThanOrEqual(hold.amount_minor);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('decides a posting on accounts without holds as if there were no holds at all', () => {
    const ofHolds = (command: Command) => ['place_hold', 'capture_hold', 'release_hold'].includes(command.name);
    fc.assert(
      fc.property(anySequence, (commands) => {
        const bystander = testAccount(77, 'Savings', 'USD', 'Active', 50_000n);
        const run = (chosen: Command[]) => {
          const books = testBooks([...population(), { ...bystander }]);
          return chosen
            .map((command) => [command, decide(command, books)] as const)
            .filter(([command]) => !ofHolds(command))
            .map(([, { reply, transactions, entries }]) => ({ reply, transactions, entries }));
        };
        const postings = commands.filter((command) => !ofHolds(command));
        const apart = [
          placing(bystander, '10', { n: 9_001 }),
          capture(9_001, { amount: '1', final: false, id: 9_002 }),
          release(9_001, 9_003),
        ];
        // The Vault's slot is the only account that captures and other postings have in common.
        const plain = (made: ReturnType<typeof run>) =>
          made.map(({ reply, transactions, entries }) => ({
            reply,
            transactions,
            entries: entries.filter(({ account_id }) => population().some((own) => own.account_id === account_id)),
          }));
        expect(plain(run([...apart, ...postings]))).toEqual(plain(run(postings)));
      }),
      { numRuns: 200 },
    );
  });

  it('replies to a repeat identically and posts nothing', () => {
    fc.assert(
      fc.property(anySequence, (commands) => {
        const books = testBooks(population());
        for (const command of commands) {
          const first = decide(command, books);
          const again = decide(command, books);
          // Every decision must have a record.
          if (!first.reply.replayed) expect(first.transactions.length > 0 || first.keep !== undefined).toBe(true);
          expect([again.entries, again.transactions, again.keep]).toEqual([[], [], undefined]);
          expect(again.reply).toEqual({ ...first.reply, replayed: true });
        }
      }),
      { numRuns: 200 },
    );
  });

  it('reveals only the existence of the destination if the source cannot pay, in reply and record', () => {
    // contract: transactions-12
    const amount = fc.bigInt({ min: 1n, max: 20_000n });
    const currency = fc.constantFrom(null, 'USD', 'EUR');
    const source = fc
      .record({ type: types, currency: fc.constantFrom('USD', 'EUR', 'JPY'), status: statuses, balance: amount })
      .map((s) => testAccount(1, s.type, s.currency, s.status, s.balance));
    fc.assert(
      fc.property(
        source,
        anyDestination,
        anyDestination,
        amount,
        currency,
        fc.boolean(),
        (from, one, other, minor, asked, isBound) => {
          const rest = isBound ? { bound_client_id: from.client_id ?? '' } : {};
          const command = transfer(from, one, fromMinor(minor, 'USD'), { ...rest, currency: asked }, 5);
          const [first, second] = [one, other].map((to) => decide(command, testBooks([{ ...from }, { ...to }])));
          const codes = [first, second].map((decision) => replyCode(decision as Decision));
          const isForeign = asked !== null && asked !== from.currency;
          const canPay =
            from.status === 'Active' &&
            from.account_type !== 'Loan' &&
            !isForeign &&
            codes[0] !== 'insufficient_funds' &&
            codes[0] !== 'invalid_amount_precision';
          if (!canPay) expect(second).toEqual(first);
          else if (isBound) for (const code of codes) expect(['done', 'destination_refused']).toContain(code);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('reveals nothing about the payee of a reversal if the payer cannot pay', () => {
    const received = fc.record({ status: statuses, balance: fc.bigInt({ min: 0n, max: maxMinor }) });
    fc.assert(
      fc.property(received, received, fc.bigInt({ min: 0n, max: 299n }), (one, other, left) => {
        const [first, second] = [one, other].map(({ status, balance }) => {
          const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 300n), testAccount(2, 'Checking')];
          const books = testBooks([a, b]);
          decide(transfer(a, b, '3', {}, 5), books);
          Object.assign(a, { status, balance_minor: balance });
          b.balance_minor = left;
          // What is available on its own account is only in the payee's event.
          const { available, ...decision } = decide(reversal(formatId('transaction', testBits(5)), {}, 6), books);
          expect(available).toEqual([balance]);
          return decision;
        });
        expect([replyCode(first as Decision), second]).toEqual(['insufficient_funds', first]);
      }),
      { numRuns: 300 },
    );
  });

  it('results in the same balances in any order if the commands are independent', () => {
    const owned = Array.from({ length: 8 }, (_, i) =>
      testAccount(i + 1, i % 3 === 0 ? 'Checking' : 'Savings', i % 2 === 0 ? 'USD' : 'JPY', 'Active', 1_000_000n),
    );
    const independent = owned.map((account, i) => {
      const amount = fc.bigInt({ min: 1n, max: 1_500_000n }).map((minor) => fromMinor(minor, account.currency));
      return fc
        .record({ amount, type: fc.constantFrom<'Deposit' | 'Withdrawal'>('Deposit', 'Withdrawal') })
        .map((m) => cash(m.type, account, m.amount, {}, 3_000 + i));
    });
    const outcome = (commands: Command[]) => {
      const books = testBooks(owned.map((account) => ({ ...account })));
      const codes = new Map(commands.map((command) => [command.context.message_id, replyCode(decide(command, books))]));
      const vaults = ['USD', 'JPY'].map((currency) => books.system('Vault', currency).balance_minor);
      return {
        balances: [...books.accounts.values()].map((account) => account.balance_minor),
        vaults,
        codes: owned.map((_, i) => codes.get(formatId('transaction', testBits(3_000 + i)))),
      };
    };
    const shuffled = fc
      .tuple(...independent)
      .chain((commands) =>
        fc.tuple(fc.constant(commands), fc.shuffledSubarray(commands, { minLength: commands.length })),
      );
    fc.assert(
      fc.property(shuffled, ([commands, other]) => void expect(outcome(other)).toEqual(outcome(commands))),
      { numRuns: 100 },
    );
  });
});
