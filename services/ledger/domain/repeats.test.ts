import { describe, expect, it } from 'vitest';
import { formatId } from '#libs/contracts/ids.ts';
import {
  capture,
  cash,
  idIn,
  opening,
  placing,
  replyCode,
  replyMessage,
  reversal,
  statusChange,
  testAccount,
  testBits,
  testBooks,
  transfer,
} from '../test/test-kit.ts';
import type { Command } from './decision.ts';
import { decide, recordId } from './posting.ts';

/**
 * Exactly once: a command that was decided before gets its first reply, or is refused if the key
 * was used for another request.
 */
const withFingerprint = (command: Command, fingerprint: string | undefined): Command => ({
  ...command,
  context: { ...command.context, fingerprint },
});

function everyKind() {
  const [a, b] = [
    testAccount(1, 'Savings', 'USD', 'Active', 10_000n),
    testAccount(2, 'Savings', 'USD', 'Active', 10_000n),
  ];
  const books = testBooks([a, b]);
  const deposit = idIn(decide(cash('Deposit', a, '3'), books));
  return {
    books,
    a,
    b,
    commands: [
      cash('Deposit', a, '1'),
      transfer(a, b, '1'),
      reversal(deposit),
      opening(70, 'Savings', '1'),
      statusChange(b, 'Inactive'),
    ],
  };
}

describe('a command that had been refused before a restore', () => {
  it('stays refused for the same reason even if it could be executed now', () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 1_000n), testAccount(2, 'Savings')];
    const books = testBooks([a, b]);
    const deposit = idIn(decide(cash('Deposit', a, '3'), books));
    decide(placing(a, '2', { n: 80 }), books);
    const context = { decided: 'balance_limit_exceeded' };
    const refused = [
      cash('Deposit', a, '1', context),
      transfer(a, b, '1', context, 90),
      reversal(deposit, context),
      capture(80, { context }),
      capture(80, { context, to: b }),
    ].map((command) => decide(command, books));
    expect(refused.map(replyCode)).toEqual(refused.map(() => 'balance_limit_exceeded'));
    expect(
      refused.flatMap(({ transactions }) => transactions.map(({ status, amount_minor }) => [status, amount_minor])),
    ).toEqual([100n, 100n, 300n, 200n, 200n].map((minor) => ['Failed', minor]));
    expect([a.balance_minor, a.held_minor, b.balance_minor]).toEqual([1_300n, 200n, 0n]);
  });
});

describe('a repeat', () => {
  it.each(everyKind().commands.map(({ name }, i) => [name, i] as const))(
    '%s: the same reply, marked as a replay, and nothing to write',
    (_, i) => {
      const { books, a, b, commands } = everyKind();
      const command = withFingerprint(commands[i] as Command, 'f');
      const first = decide(command, books);
      const balances = [a.balance_minor, b.balance_minor];
      expect([first.reply.ok, first.reply.replayed]).toEqual([true, undefined]);
      for (const fingerprint of ['f', undefined]) {
        const again = decide(withFingerprint(command, fingerprint), books);
        expect(again).toEqual({ reply: { ...first.reply, replayed: true }, transactions: [], entries: [] });
      }
      expect([a.balance_minor, b.balance_minor]).toEqual(balances);
    },
  );

  it.each(everyKind().commands.map(({ name }, i) => [name, i] as const))(
    '%s: another request with the key is refused and not decided',
    (_, i) => {
      const { books, a, b, commands } = everyKind();
      const command = commands[i] as Command;
      decide(withFingerprint(command, 'f'), books);
      const balances = [a.balance_minor, b.balance_minor];
      const other = decide(withFingerprint(command, 'other'), books);
      expect(replyCode(other)).toBe('idempotency_key_reused');
      expect(replyMessage(other)).toContain('Idempotency-Key');
      expect([other.transactions, other.entries, other.keep]).toEqual([[], [], undefined]);
      expect([a.balance_minor, b.balance_minor]).toEqual(balances);
    },
  );

  it.each(everyKind().commands.map(({ name }, i) => [name, i] as const))(
    '%s: a record without a fingerprint is returned to every request with its id',
    (_, i) => {
      const { books, commands } = everyKind();
      const command = commands[i] as Command;
      const first = decide(withFingerprint(command, undefined), books);
      expect(decide(withFingerprint(command, 'f'), books).reply).toEqual({ ...first.reply, replayed: true });
    },
  );

  it('returns a Transfer for a transfer, and a Transaction for a transaction', () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 500n), testAccount(2, 'Checking')];
    const books = testBooks([a, b]);
    const [moved, deposited] = [transfer(a, b, '3'), cash('Deposit', a, '2')];
    for (const command of [moved, deposited]) decide(command, books);
    expect(decide(moved, books).reply).toMatchObject({
      ok: true,
      data: {
        transfer_id: expect.stringMatching(/^trf_/),
        from_account_id: a.account_id,
        to_account_id: b.account_id,
        amount: '3.00',
        status: 'Completed',
      },
    });
    expect(decide(deposited, books).reply).toMatchObject({
      ok: true,
      data: {
        transaction_id: recordId(deposited as Parameters<typeof recordId>[0]),
        account_id: a.account_id,
        amount: '2.00',
      },
    });
  });

  it('of a refusal is refused again identically, although the account could pay now', () => {
    const account = testAccount(1, 'Savings');
    const books = testBooks([account]);
    const command = cash('Withdrawal', account, '1');
    const first = decide(command, books);
    decide(cash('Deposit', account, '10'), books);
    expect(decide(command, books)).toEqual({
      reply: { ...first.reply, replayed: true },
      transactions: [],
      entries: [],
    });
    expect(account.balance_minor).toBe(1000n);
  });

  it('of a refused status change or reversal of a missing resource is refused again although it exists now', () => {
    const books = testBooks([]);
    const account = testAccount(9, 'Savings');
    const deposit = cash('Deposit', account, '1', {}, 70);
    const commands = [statusChange(account, 'Frozen'), reversal(formatId('transaction', testBits(70)))];
    const first = commands.map((command) => decide(command, books).reply);
    expect(first).toMatchObject([
      { refusal: { code: 'account_not_found' } },
      { refusal: { code: 'transaction_not_found' } },
    ]);
    books.accounts.set(account.account_id, account);
    expect(replyCode(decide(deposit, books))).toBe('done');
    expect(commands.map((command) => decide(command, books))).toEqual(
      first.map((reply) => ({ reply: { ...reply, replayed: true }, transactions: [], entries: [] })),
    );
    expect([account.status, account.balance_minor]).toEqual(['Active', 100n]);
  });

  it('returns one record for a key, whatever account (and so bucket) the key was used for', () => {
    const [a, b] = [testAccount(1, 'Savings'), testAccount(2, 'Savings')];
    const books = testBooks([a, b]);
    decide(withFingerprint(cash('Deposit', a, '1', {}, 5), 'f'), books);
    const elsewhere = withFingerprint(cash('Deposit', b, '1', {}, 5), 'g');
    if (elsewhere.name === 'create_transaction')
      elsewhere.data.transaction_id = formatId('transaction', `${testBits(5).slice(0, 30)}7f`);
    expect(replyCode(decide(elsewhere, books))).toBe('idempotency_key_reused');
    expect(b.balance_minor).toBe(0n);
  });
});
