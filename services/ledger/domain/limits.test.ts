import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import type { LimitName } from '#libs/contracts/limits.ts';
import { messages } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import {
  capture,
  cash,
  idIn,
  limiting,
  opening,
  placing,
  replyCode,
  reversal,
  testAccount,
  testBits,
  testBooks,
  testContext,
  transfer,
} from '../test/test-kit.ts';
import { batchCommand } from './batches.ts';
import type { Books, Command, Decision } from './decision.ts';
import { decide } from './posting.ts';
import type { AccountState } from './records.ts';

const rich = (n = 1) => testAccount(n, 'Savings', 'USD', 'Active', 100_000n);
const code = (command: Command, books: Books) => replyCode(decide(command, books));
const limitNamed = ({ reply }: Decision) =>
  reply.ok ? 'done' : (reply.refusal.details?.['limit'] ?? reply.refusal.code);

/** Books in which the account has these limits, and has counted nothing yet. */
function limited(
  account: AccountState,
  limits: Partial<Record<LimitName, string>>,
  others: AccountState[] = [],
): Books {
  const books = testBooks([account, ...others]);
  account.out_day = '2026-01-02';
  expect(code(limiting(account, limits), books)).toBe('done');
  return books;
}

const paying = (account: AccountState, amount: string): [string, (other: AccountState) => Command][] => [
  ['withdrawal', () => cash('Withdrawal', account, amount)],
  ['transfer', (other) => transfer(account, other, amount)],
  ['hold', () => placing(account, amount)],
];

describe.each([
  [{ per_transaction: '50' }, '50', '50.01', 'per_transaction'],
  [{ minimum_balance: '950' }, '50', '50.01', 'minimum_balance'],
  [{ per_day_out: '50' }, '50', '50.01', 'per_day_out'],
  [{ per_transaction: '0' }, undefined, '0.01', 'per_transaction'],
  [{ per_transaction: '10', per_day_out: '10', minimum_balance: '995' }, '5', '10.01', 'per_transaction'],
  [{ per_day_out: '10', minimum_balance: '995' }, '5', '10.01', 'per_day_out'],
])('%o', (limits, allowed, beyond, limit) => {
  it.each(['withdrawal', 'transfer', 'hold'])(
    'allows a %s up to the limit, and names the first that is exceeded',
    (kind) => {
      // contract: limits-5, limits-6
      const isOfHold = kind === 'hold';
      const expected =
        isOfHold && limit === 'per_day_out' ? ('minimum_balance' in limits ? 'minimum_balance' : 'done') : limit;
      for (const [amount, result] of [
        [beyond, expected],
        [allowed, 'done'],
      ] as const) {
        if (amount === undefined) continue;
        const [a, b] = [rich(), testAccount(2, 'Checking')];
        const books = limited(a, limits, [b]);
        const [, command] = paying(a, amount).find(([name]) => name === kind) ?? [];
        expect(limitNamed(decide(command?.(b) as Command, books)), `${kind} of ${amount}`).toBe(result);
      }
    },
  );
});

it('a refusal because of a limit is decided before funds and destination, and a repeat has the same details', () => {
  // contract: limits-6
  const [a, loan, stranger] = [rich(), testAccount(2, 'Loan'), testAccount(9, 'Checking')];
  const books = limited(a, { per_transaction: '1' }, [loan]);
  const first = decide(transfer(a, loan, '2000', {}, 77), books);
  expect(first.reply).toMatchObject({
    ok: false,
    refusal: { code: 'limit_exceeded', details: { limit: 'per_transaction' } },
  });
  expect(decide(transfer(a, loan, '2000', {}, 77), books).reply).toEqual({ ...first.reply, replayed: true });
  expect(code(transfer(a, stranger, '2'), books)).toBe('account_not_found');
  expect(code(cash('Withdrawal', a, '1'), books)).toBe('done');
});

it('counts what leaves the account on the day, and neither refusals, deposits, nor reversals', () => {
  // contract: limits-8, limits-10
  const [a, b] = [rich(), testAccount(2, 'Checking')];
  const books = limited(a, { per_day_out: '100' }, [b]);
  const paid = idIn(decide(cash('Withdrawal', a, '60'), books));
  expect(code(transfer(a, b, '40.01'), books)).toBe('limit_exceeded');
  expect(code(cash('Deposit', a, '500'), books)).toBe('done');
  expect(code(reversal(paid), books)).toBe('done');
  expect(code(transfer(a, b, '40'), books)).toBe('done');
  expect(code(cash('Withdrawal', a, '0.01'), books)).toBe('limit_exceeded');
  // What came in by the transfer is not limited by it, and going back is exempt.
  expect(code(transfer(b, a, '40'), books)).toBe('done');
  books.now = '2026-01-03T00:00:00.000Z';
  expect(code(cash('Withdrawal', a, '100'), books)).toBe('done');
  expect([a.out_day, a.out_minor]).toEqual(['2026-01-03', 10_000n]);
});

it('an account gets a limit per day in the batch that opens it, and what had left it counts', () => {
  const books = testBooks([]);
  decide(opening(9, 'Savings', '10'), books);
  const account = books.accounts.get(`acc_${testBits(9)}`) as AccountState;
  expect(code(cash('Withdrawal', account, '4'), books)).toBe('done');
  expect(code(limiting(account, { per_day_out: '5' }), books)).toBe('done');
  expect([account.out_day, account.out_minor]).toEqual(['2026-01-02', 400n]);
  expect(code(cash('Withdrawal', account, '2'), books)).toBe('limit_exceeded');
});

it('a hold is checked when it is placed and when it is captured, and counts when it is captured', () => {
  // contract: limits-7, limits-9
  const a = rich();
  const books = limited(a, { per_day_out: '50', minimum_balance: '900' });
  expect(code(placing(a, '100', { n: 7 }), books)).toBe('done');
  expect(limitNamed(decide(cash('Withdrawal', a, '0.01'), books))).toBe('minimum_balance');
  expect(limitNamed(decide(capture(7), books))).toBe('per_day_out');
  expect(code(capture(7, { amount: '50', final: false }), books)).toBe('done');
  expect(limitNamed(decide(capture(7, { amount: '0.01' }), books))).toBe('per_day_out');
  books.now = '2026-01-03T12:00:00.000Z';
  expect(code(limiting(a, { minimum_balance: '950' }), books)).toBe('done');
  expect(limitNamed(decide(capture(7), books))).toBe('minimum_balance');
});

it('an atomic batch counts if it is posted, and nothing if it is refused', () => {
  // contract: limits-8
  const [a, b] = [rich(), testAccount(2, 'Checking')];
  const books = limited(a, { per_day_out: '50' }, [b]);
  const batch = (n: number, ...given: string[]) => {
    const items = given.map((amount) => ({
      transfer: {
        from_account_id: a.account_id,
        to_account_id: b.account_id,
        amount,
        currency: null,
        description: null,
      },
    }));
    const batch_id = formatId('batch', testBits(n));
    const data = messages.create_batch.data.parse({ batch_id, mode: 'atomic', items });
    return code(batchCommand(data, testContext(n, { message_id: batch_id })), books);
  };
  expect(batch(100, '30', '30')).toBe('batch_refused');
  expect([a.out_minor, batch(101, '30', '20'), a.out_minor, batch(102, '0.01')]).toEqual([
    0n,
    'done',
    5_000n,
    'batch_refused',
  ]);
  expect(books.limitsChanged).toEqual(new Set([a]));
});

it('a batch of a bound caller shows by no limit whether a destination accepts its payment', () => {
  const refusalsFor = (status: 'Active' | 'Frozen') => {
    const [own, other] = [rich(), { ...testAccount(2, 'Checking'), client_id: testAccount(1, 'Checking').client_id }];
    const stranger = testAccount(3, 'Savings', 'USD', status);
    const books = limited(own, { per_day_out: '100' }, [other, stranger]);
    const items = [
      [stranger, '100'],
      [other, '1'],
    ] as const;
    const batch_id = formatId('batch', testBits(9));
    const data = messages.create_batch.data.parse({
      batch_id,
      mode: 'atomic',
      items: items.map(([to, amount]) => ({
        transfer: {
          from_account_id: own.account_id,
          to_account_id: to.account_id,
          amount,
          currency: null,
          description: null,
        },
      })),
    });
    const context = testContext(9, { message_id: batch_id, bound_client_id: own.client_id as string });
    const { reply } = decide(batchCommand(data, context), books);
    return reply.ok ? 'done' : reply.refusal.errors;
  };
  expect(refusalsFor('Frozen')).toEqual(refusalsFor('Active'));
  expect(refusalsFor('Active')).toMatchObject([{ field: 'items[1].transfer', code: 'limit_exceeded' }]);
});

it('what was posted before a restore is posted again, and counts only if it was on this day', () => {
  const [a, b] = [rich(), testAccount(2, 'Checking')];
  const books = limited(a, { per_day_out: '100', per_transaction: '100', minimum_balance: '990' }, [b]);
  const sentAgain = (time: string) => ({ decided: '', time });
  for (const day of [1, 2, 3])
    expect(code(cash('Withdrawal', a, '100', sentAgain(`2025-12-0${day}T08:00:00.000Z`)), books)).toBe('done');
  expect(a.out_minor).toBe(0n);
  expect(code(transfer(a, b, '150', sentAgain('2026-01-02T01:00:00.000Z')), books)).toBe('done');
  expect(a.out_minor).toBe(15_000n);
  expect(limitNamed(decide(cash('Withdrawal', a, '1'), books))).toBe('per_day_out');
});

it.each<[Partial<Record<LimitName, string>>, AccountState, string]>([
  [{ per_transaction: '1.001' }, rich(), 'invalid_amount_precision'],
  [{ minimum_balance: '10000000000000' }, rich(), 'amount_too_large'],
  [{}, testAccount(1, 'Loan'), 'invalid_account_type'],
  [{}, testAccount(1, 'Savings', 'USD', 'Frozen'), 'done'],
])('limits %o are decided', (limits, account, expected) => {
  // contract: limits-2
  expect(code(limiting(account, limits), testBooks([account]))).toBe(expected);
});

describe('four eyes', () => {
  const fourEyes = JSON.stringify({ actions: ['raise_limit'], limits: {}, day: '2026-01-02' });
  it.each<[Partial<Record<LimitName, string>>, Partial<Record<LimitName, string>>, boolean]>([
    [{}, { per_transaction: '1', per_day_out: '1', minimum_balance: '1' }, false],
    [{ per_transaction: '5' }, { per_transaction: '5' }, false],
    [{ per_transaction: '5' }, { per_transaction: '4' }, false],
    [{ per_transaction: '5' }, { per_transaction: '5.01' }, true],
    [{ per_transaction: '5' }, {}, true],
    [{ per_day_out: '5' }, { per_day_out: '6', per_transaction: '1' }, true],
    [{ minimum_balance: '5' }, { minimum_balance: '6' }, false],
    [{ minimum_balance: '5' }, { minimum_balance: '4.99' }, true],
    [{ minimum_balance: '5' }, {}, true],
  ])('from %o to %o waits for an approval: %s', (before, after, waits) => {
    // contract: limits-4
    const account = rich();
    const books = limited(account, before);
    const context: Partial<MessageContext> = { four_eyes: fourEyes };
    const decision = decide(limiting(account, after, context, 50), books);
    expect([decision.waits ?? false, replyCode(decision)]).toEqual([waits, waits ? 'approval_required' : 'done']);
    expect(code(limiting(account, after, {}, 50), books)).toBe('done');
  });
});

test('whatever is posted, what leaves an account in a day stays within its limits', () => {
  // contract: limits-5, limits-8
  const amount = fc.bigInt({ min: 1n, max: 3_000n });
  const limit = fc.option(fc.bigInt({ min: 0n, max: 6_000n }));
  const step = fc.record({
    kind: fc.constantFrom('withdraw', 'pay', 'deposit', 'refused', 'reverse', 'next day'),
    amount,
  });
  fc.assert(
    fc.property(limit, limit, limit, fc.array(step, { maxLength: 40 }), (least, once, daily, steps) => {
      const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 10_000n), testAccount(2, 'Checking')];
      const text = (minor: bigint | null) => (minor === null ? undefined : fromMinor(minor, 'USD'));
      const given = { minimum_balance: text(least), per_transaction: text(once), per_day_out: text(daily) };
      const books = limited(a, Object.fromEntries(Object.entries(given).filter(([, v]) => v !== undefined)), [b]);
      let [left, day] = [0n, 2];
      let latest: string | undefined;
      for (const { kind, amount: minor } of steps) {
        const decimal = fromMinor(minor, 'USD');
        if (kind === 'next day') {
          day += 1;
          left = 0n;
          books.now = `2026-01-${String(day).padStart(2, '0')}T08:00:00.000Z`;
        } else if (kind === 'deposit') decide(cash('Deposit', a, decimal), books);
        else if (kind === 'reverse' && latest !== undefined) decide(reversal(latest), books);
        else if (kind === 'refused') decide(cash('Withdrawal', a, '9999999'), books);
        else {
          const before = a.balance_minor;
          const decision = decide(kind === 'pay' ? transfer(a, b, decimal) : cash('Withdrawal', a, decimal), books);
          const allowed =
            minor <= before &&
            (once === null || minor <= once) &&
            (daily === null || left + minor <= daily) &&
            (least === null || before - minor >= least);
          expect(replyCode(decision) === 'done').toBe(allowed);
          if (!allowed) continue;
          left += minor;
          latest = idIn(decision);
        }
      }
    }),
  );
});
