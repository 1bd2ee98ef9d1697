import { describe, expect, it } from 'vitest';
import { formatId } from '#libs/contracts/ids.ts';
import {
  capture,
  cash,
  idIn,
  later,
  now,
  placing,
  release,
  replyCode,
  replyMessage,
  reversal,
  statusChange,
  testAccount,
  testBits,
  testBooks,
  testHoldId,
  transfer,
} from '../test/test-kit.ts';
import type { Books, Command, Decision } from './decision.ts';
import { expireHolds } from './holds.ts';
import { decide } from './posting.ts';
import type { AccountState, HoldState } from './records.ts';

const rich = (n = 1) => testAccount(n, 'Savings', 'USD', 'Active', 10_000n);

/** The amounts of the account and of its hold. */
function state(account: AccountState, books: Books, n: number): unknown[] {
  const hold = books.holds.get(testHoldId(n));
  return [account.balance_minor, account.held_minor, hold?.status, hold?.captured_minor];
}

const code = (command: Command, books: Books) => replyCode(decide(command, books));

describe('placing a hold', () => {
  it('reserves money: nothing else can take it, and the balance does not change', () => {
    const [a, b] = [rich(), rich(2)];
    const books = testBooks([a, b]);
    const placed = decide(placing(a, '60', { n: 7 }), books);
    expect(placed.reply).toEqual({
      ok: true,
      data: {
        hold_id: testHoldId(7),
        account_id: a.account_id,
        amount: '60.00',
        captured_amount: '0.00',
        currency: 'USD',
        status: 'Active',
        description: null,
        reference: null,
        expires_at: later,
        created_at: now,
        updated_at: now,
      },
    });
    expect([placed.keep, placed.transactions, placed.entries]).toEqual([placed.reply, [], []]);
    expect(state(a, books, 7)).toEqual([10_000n, 6_000n, 'Active', 0n]);
    expect([
      code(cash('Withdrawal', a, '40.01'), books),
      code(transfer(a, b, '40.01'), books),
      code(placing(a, '40.01', { n: 8 }), books),
    ]).toEqual(Array(3).fill('insufficient_funds'));
    expect([
      code(placing(a, '30', { n: 9 }), books),
      code(cash('Withdrawal', a, '10'), books),
      code(cash('Withdrawal', a, '0.01'), books),
    ]).toEqual(['done', 'done', 'insufficient_funds']);
  });

  it('limits reversals of deposits and of transfers', () => {
    const [a, b] = [rich(), rich(2)];
    const books = testBooks([a, b]);
    const deposit = idIn(decide(cash('Deposit', a, '50'), books));
    const received = idIn(decide(transfer(b, a, '50'), books));
    decide(placing(a, '151', { n: 7 }), books);
    expect([code(reversal(deposit), books), code(reversal(received), books)]).toEqual([
      'insufficient_funds',
      'insufficient_funds',
    ]);
    decide(release(7), books);
    expect([code(reversal(deposit, {}, 801), books), code(reversal(received, {}, 802), books)]).toEqual([
      'done',
      'done',
    ]);
  });

  it('expires after seven days, or as requested within 31 days; a repeat after its end returns the same', () => {
    // contract: holds-2
    const a = rich();
    const books = testBooks([a]);
    const asked = decide(
      placing(a, '1', { n: 7, expires_at: null, context: { time: '2026-01-01T00:00:00.000Z' } }),
      books,
    );
    expect(asked.reply).toMatchObject({
      data: {
        expires_at: '2026-01-08T00:00:00.000Z',
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
      },
    });
    expect(code(placing(a, '1', { n: 8, expires_at: '2026-02-02T03:04:05.678Z' }), books)).toBe('done');
    const short = placing(a, '1', { n: 9, expires_at: '2026-01-02T03:04:06.000Z' });
    const first = decide(short, books);
    books.now = '2026-03-01T00:00:00.000Z';
    expect(decide(short, books).reply).toEqual({ ...first.reply, replayed: true });
  });

  it('is refused if the account has 1,000 Active holds, before its funds are checked; each hold that ends makes room', () => {
    // contract: holds-6
    const a = rich();
    const books = testBooks([a]);
    decide(placing(a, '1', { n: 7 }), books);
    decide(placing(a, '2', { n: 8 }), books);
    a.active_holds = 999n;
    expect([code(placing(a, '1', { n: 9 }), books), a.active_holds]).toEqual(['done', 1000n]);
    const refused = decide(placing(a, '99999', { n: 10 }), books);
    expect([replyCode(refused), replyMessage(refused), refused.keep]).toEqual([
      'too_many_holds',
      `Too Many Holds: account ${a.account_id} has 1000 Active holds, and cannot have more`,
      refused.reply,
    ]);
    expect(code(placing(a, '1', { n: 11, currency: 'EUR' }), books)).toBe('currency_mismatch');
    const ends = [capture(8, { amount: '1', final: false }), capture(8), release(7)].map((command) => {
      decide(command, books);
      return a.active_holds;
    });
    expect(ends).toEqual([1000n, 999n, 998n]);
    expect(code(placing(a, '99999', { n: 12 }), books)).toBe('insufficient_funds');
  });

  it('refuses in the order of a withdrawal, stores the refusal, and changes nothing', () => {
    const refused = (
      account: AccountState,
      amount: string,
      rest: Parameters<typeof placing>[2],
      others: AccountState[] = [account],
      isKept = true,
    ): string => {
      const books = testBooks(others);
      const decision = decide(placing(account, amount, rest), books);
      const keep = isKept ? decision.reply : undefined;
      expect([decision.keep, books.changedHolds.size, account.held_minor]).toEqual([keep, 0, 0n]);
      return replyCode(decision);
    };
    expect(refused(testAccount(9, 'Loan'), '1', {}, [])).toBe('account_not_found');
    expect(refused(testAccount(9, 'Loan', 'USD', 'Frozen'), '1', { currency: 'EUR' })).toBe('invalid_account_type');
    expect(refused(testAccount(9, 'Savings', 'USD', 'Frozen'), '1', { currency: 'EUR' })).toBe('inactive_account');
    expect(refused(testAccount(9, 'Savings'), '1', { currency: 'EUR' })).toBe('currency_mismatch');
    expect(refused(testAccount(9, 'Savings'), '1', {})).toBe('insufficient_funds');
    expect(refused(rich(), '1.005', {})).toBe('invalid_amount_precision');
    for (const expires_at of [now, '2026-02-02T03:04:05.679Z', '2025-01-01T00:00:00.000Z'])
      expect(refused(rich(), '1', { expires_at }, undefined, false)).toBe('validation_failed');
    expect(refused(rich(), '1', { context: { deadline: '2026-01-01T00:00:00.000Z' } })).toBe('deadline_exceeded');
    expect(refused(rich(), '1', { context: { bound_client_id: formatId('client', testBits(77)) } })).toBe(
      'account_not_found',
    );
  });

  it('can be repeated under the same key with another expires_at after a validation error', () => {
    const [a, fingerprint] = [rich(), 'f'.repeat(32)];
    const books = testBooks([a]);
    expect(code(placing(a, '1', { n: 7, expires_at: now }), books)).toBe('validation_failed');
    expect(code(placing(a, '1', { n: 7, context: { fingerprint } }), books)).toBe('done');
    expect(code(placing(a, '1', { n: 7, expires_at: now }), books)).not.toBe('validation_failed');
  });

  it('counts the changes of the account and publishes each', () => {
    const a = rich();
    const books = testBooks([a]);
    const told = [
      placing(a, '10', { n: 7 }),
      placing(a, '20', { n: 8 }),
      capture(7, { amount: '4', final: false }),
      release(7),
      capture(8),
    ].map((command) => decide(command, books).hold);
    expect(
      told.map((change) => [
        change?.kind,
        change?.hold_version,
        change?.hold.status,
        change?.hold.captured_minor,
        change?.request_id,
      ]),
    ).toEqual([
      ['placed', 1n, 'Active', 0n, 'r'],
      ['placed', 2n, 'Active', 0n, 'r'],
      ['captured', 3n, 'Active', 400n, 'r'],
      ['released', 4n, 'Released', 400n, 'r'],
      ['captured', 5n, 'Captured', 2000n, 'r'],
    ]);
    expect([a.held_minor, a.hold_expires_at]).toEqual([0n, null]);
  });
});

describe('capturing a hold', () => {
  function held(amount = '60', other = testAccount(2, 'Checking')) {
    const a = rich();
    const books = testBooks([a, other]);
    const placed = placing(a, amount, { n: 7 });
    if (placed.name === 'place_hold') Object.assign(placed.data, { description: 'Hotel', reference: 'AUTH-7' });
    decide(placed, books);
    return { a, b: other, books };
  }
  const made = (decision: Decision) =>
    decision.transactions.map(
      ({ transaction_type, direction, amount_minor, description, reference, hold_id, status }) => [
        transaction_type,
        direction,
        amount_minor,
        description,
        reference,
        hold_id,
        status,
      ],
    );

  it('pays out the rest with its description', () => {
    const { a, books } = held();
    const decision = decide(capture(7), books);
    expect(made(decision)).toEqual([['Withdrawal', 'debit', 6000n, 'Hotel', 'AUTH-7', testHoldId(7), 'Completed']]);
    expect(decision.entries).toHaveLength(4);
    expect(decision.reply).toMatchObject({
      ok: true,
      data: {
        hold: { status: 'Captured', captured_amount: '60.00' },
        transaction: { amount: '60.00', hold_id: testHoldId(7), reference: 'AUTH-7' },
      },
    });
    expect(decision.reply).not.toMatchObject({ data: { transfer: {} } });
    expect(decision.keep).toEqual(decision.reply);
    expect(state(a, books, 7)).toEqual([4_000n, 0n, 'Captured', 6000n]);
  });

  it('moves a part to another account and releases the rest', () => {
    const { a, b, books } = held();
    const decision = decide(capture(7, { amount: '45.5', to: b, description: 'Room 3' }), books);
    expect(made(decision)).toEqual([
      ['Transfer', 'debit', 4550n, 'Room 3', 'AUTH-7', testHoldId(7), 'Completed'],
      ['Transfer', 'credit', 4550n, 'Room 3', 'AUTH-7', testHoldId(7), 'Completed'],
    ]);
    expect(decision.reply).toMatchObject({
      data: {
        hold: { status: 'Captured', captured_amount: '45.50' },
        transfer: { from_account_id: a.account_id, to_account_id: b.account_id, hold_id: testHoldId(7) },
      },
    });
    expect([...state(a, books, 7), b.balance_minor]).toEqual([5_450n, 0n, 'Captured', 4550n, 4550n]);
  });

  it('keeps the rest reserved if it is not final, until nothing is left', () => {
    const { a, books } = held();
    expect([code(capture(7, { amount: '20', final: false }), books), state(a, books, 7)]).toEqual([
      'done',
      [8_000n, 4_000n, 'Active', 2_000n],
    ]);
    expect(code(capture(7, { amount: '40.01', final: false }), books)).toBe('amount_exceeds_hold');
    expect([code(capture(7, { amount: '40', final: false }), books), state(a, books, 7)]).toEqual([
      'done',
      [4_000n, 0n, 'Captured', 6_000n],
    ]);
    const again = decide(capture(7, { amount: '1' }), books);
    expect([replyCode(again), again.transactions.map(({ status, failure_code }) => [status, failure_code])]).toEqual([
      'hold_not_active',
      [['Failed', 'hold_not_active']],
    ]);
    expect(decide(capture(7), books).transactions[0]).toMatchObject({ status: 'Failed', amount_minor: 6000n });
  });

  it('pays a loan, but not more than the outstanding amount', () => {
    const { b, books } = held('60', testAccount(2, 'Loan', 'USD', 'Active', 5_000n));
    expect(code(capture(7, { to: b }), books)).toBe('amount_exceeds_outstanding');
    expect(
      made(decide(capture(7, { to: b, amount: '50' }), books)).map(([type, direction]) => [type, direction]),
    ).toEqual([
      ['Loan Payment', 'debit'],
      ['Loan Payment', 'debit'],
    ]);
  });

  it("is refused while the account is Frozen, and the hold stays Active; the refusal is stored as Failed with the hold's id", () => {
    // contract: holds-11
    const { a, b, books } = held();
    decide(statusChange(a, 'Frozen'), books);
    for (const command of [capture(7), capture(7, { to: b })]) {
      const decision = decide(command, books);
      expect([replyCode(decision), decision.entries, decision.hold]).toEqual(['inactive_account', [], undefined]);
      expect(decision.transactions).toMatchObject([
        { status: 'Failed', amount_minor: 6000n, hold_id: testHoldId(7), failure_code: 'inactive_account' },
      ]);
      expect(decision.reply).toMatchObject({
        refusal: { details: { transaction_id: decision.transactions[0]?.transaction_id } },
      });
    }
    expect(state(a, books, 7)).toEqual([10_000n, 6_000n, 'Active', 0n]);
    expect([code(release(7), books), state(a, books, 7)]).toEqual(['done', [10_000n, 0n, 'Released', 0n]]);
  });

  it('checks the hold first, then the rules of a posting', () => {
    const { a, b, books } = held();
    const frozen = testAccount(3, 'Savings', 'EUR', 'Frozen');
    books.accounts.set(frozen.account_id, frozen);
    expect([code(capture(99), books), code(release(99), books)]).toEqual(['hold_not_found', 'hold_not_found']);
    expect(code(capture(7, { amount: '60.01', to: testAccount(55, 'Savings') }), books)).toBe('amount_exceeds_hold');
    expect(code(capture(7, { amount: '1.001', to: testAccount(55, 'Savings') }), books)).toBe(
      'invalid_amount_precision',
    );
    const unknown = testAccount(55, 'Savings');
    expect(decide(capture(7, { to: unknown }), books).transactions).toMatchObject([
      { failure_code: 'account_not_found', failure_account_id: unknown.account_id },
    ]);
    expect(code(capture(7, { to: a }), books)).toBe('same_account');
    expect(decide(capture(7, { to: frozen }), books).transactions).toMatchObject([
      { failure_code: 'inactive_account', failure_account_id: frozen.account_id },
    ]);
    expect(code(capture(7, { to: b, context: { deadline: '2026-01-01T00:00:00.000Z' } }), books)).toBe(
      'deadline_exceeded',
    );
    decide(release(7), books);
    expect([code(capture(7, { amount: '999' }), books), code(release(7), books)]).toEqual([
      'hold_not_active',
      'hold_not_active',
    ]);
    expect(replyMessage(decide(release(7), books))).toBe(`Hold Not Active: hold ${testHoldId(7)} is Released`);
  });

  it('stays Captured after a reversal, which does not name the hold', () => {
    const { a, books } = held();
    const captured = idIn(decide(capture(7), books));
    expect(made(decide(reversal(captured), books))[0]?.slice(-2)).toEqual([null, 'Completed']);
    expect(state(a, books, 7)).toEqual([10_000n, 0n, 'Captured', 6_000n]);
  });
});

describe('a repeat', () => {
  it('of each hold command gets the same reply and changes nothing', () => {
    const a = rich();
    const books = testBooks([a]);
    const commands = [
      placing(a, '60', { n: 7 }),
      placing(a, '999', { n: 8 }),
      capture(7, { amount: '10', final: false }),
      capture(7, { amount: '999' }),
      capture(99),
      release(7),
      release(7),
      release(99),
    ];
    for (const command of commands) {
      const first = decide(command, books);
      const [before, version] = [state(a, books, 7), a.hold_version];
      const again = decide(command, books);
      expect(again).toEqual({ reply: { ...first.reply, replayed: true }, transactions: [], entries: [] });
      expect([state(a, books, 7), a.hold_version]).toEqual([before, version]);
    }
    const [placed] = commands as [Command];
    const other = { ...placed, context: { ...placed.context, fingerprint: 'e'.repeat(32) } } as Command;
    books.outcomes.forEach((kept) => {
      kept.fingerprint = 'f'.repeat(32);
    });
    expect(code(other, books)).toBe('idempotency_key_reused');
  });
});

describe('an expired hold', () => {
  it('ends at its expiry time, before the first decision; the account has the next expiry time', () => {
    const a = rich();
    const books = testBooks([a]);
    const ends = ['2026-01-05T00:00:00.000Z', '2026-01-04T00:00:00.000Z', '2026-01-06T00:00:00.000Z'];
    ends.forEach((expires_at, i) => decide(placing(a, '30', { n: 7 + i, expires_at }), books));
    expect([a.held_minor, a.hold_expires_at, a.hold_version]).toEqual([9_000n, ends[1], 3n]);
    const [second, first, third] = [...books.holds.values()] as [HoldState, HoldState, HoldState];
    const changes = expireHolds([a], [first, second], new Map([[a.account_id, third.expires_at]]), books);
    expect(
      changes.map(({ kind, hold, hold_version, request_id }) => [
        kind,
        hold.hold_id,
        hold.updated_at,
        hold_version,
        request_id,
      ]),
    ).toEqual([
      ['expired', testHoldId(8), ends[1], 4n, undefined],
      ['expired', testHoldId(7), ends[0], 5n, undefined],
    ]);
    expect([a.held_minor, a.active_holds, a.hold_expires_at]).toEqual([3_000n, 1n, ends[2]]);
    expect([code(capture(7), books), code(release(8), books), code(cash('Withdrawal', a, '70'), books)]).toEqual([
      'hold_not_active',
      'hold_not_active',
      'done',
    ]);
    expect(expireHolds([a], [third], new Map(), books)).toHaveLength(1);
    expect([a.held_minor, a.active_holds, a.hold_expires_at]).toEqual([0n, 0n, null]);
  });

  it('leaves its account due while the next expiry is not known, because others that are due have not been read', () => {
    const a = rich();
    const books = testBooks([a]);
    const ends = ['2026-01-04T00:00:00.000Z', '2026-01-05T00:00:00.000Z'];
    ends.forEach((expires_at, i) => decide(placing(a, '30', { n: 7 + i, expires_at }), books));
    expireHolds([a], [...books.holds.values()].slice(0, 1), new Map(), books);
    expect([a.held_minor, a.active_holds, a.hold_expires_at]).toEqual([3_000n, 1n, ends[0]]);
  });
});
