import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AccountStatus, AccountType } from '#libs/contracts/accounts.ts';
import type { ItemResult } from '#libs/contracts/batches.ts';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import type { Refusal } from '#libs/contracts/errors.ts';
import { bucketOfId, formatId, idKey } from '#libs/contracts/ids.ts';
import { messages } from '#libs/contracts/messages.ts';
import { fromMinor, maxMinor } from '#libs/contracts/money.ts';
import { now, testAccount, testBits, testBooks, testContext } from '../test/test-kit.ts';
import { batchCommand } from './batches.ts';
import type { Books, Decision } from './decision.ts';
import { decide } from './posting.ts';
import type { AccountState } from './records.ts';

const batchId = (n: number) => `${formatId('batch', testBits(n)).slice(0, -2)}07`;
const cash = (type: 'Deposit' | 'Withdrawal', account: AccountState, amount: string) => ({
  transaction: {
    account_id: account.account_id,
    transaction_type: type,
    amount,
    currency: null,
    description: null,
    reference: null,
  },
});
const move = (from: AccountState, to: AccountState, amount: string) => ({
  transfer: {
    from_account_id: from.account_id,
    to_account_id: to.account_id,
    amount,
    currency: null,
    description: null,
  },
});
type Item = ReturnType<typeof cash> | ReturnType<typeof move>;

const anyAccount = (n: number) =>
  fc
    .record({
      type: fc.constantFrom<AccountType>('Savings', 'Loan'),
      currency: fc.constantFrom('USD', 'EUR'),
      status: fc.constantFrom<AccountStatus>('Active', 'Active', 'Active', 'Frozen'),
      balance: fc.oneof(fc.bigInt({ min: 0n, max: 20_000n }), fc.constant(maxMinor)),
    })
    .map(({ type, currency, status, balance }) => testAccount(n, type, currency, status, balance));
const isHidden = ({ errors = [] }: Refusal) => errors.every(({ code }) => code === 'destination_refused');

function batch(mode: 'independent' | 'atomic', items: Item[], rest: Partial<MessageContext> = {}, id = batchId(1)) {
  const data = messages.create_batch.data.parse({
    batch_id: id,
    mode,
    items,
  });
  return batchCommand(
    data,
    testContext(1, { message_id: id, fingerprint: 'f'.repeat(32), idempotency_key: 'k', ...rest }),
  );
}

const itemResults = ({ reply }: Decision) => (reply.ok ? (reply.data as { results: ItemResult[] }).results : []);
const outcomes = (decision: Decision) => itemResults(decision).map(({ status, error }) => error?.code ?? status);
const replyCode = ({ reply }: Decision) => (reply.ok ? 'done' : reply.refusal.code);
const balances = (...accounts: AccountState[]) => accounts.map((account) => account.balance_minor);
/** The records that a repeat finds. */
const withKept = (books: Books, decision: Decision): Books => ({
  ...books,
  outcomes: new Map([
    [
      `${testBits(1).slice(0, -2)}00`,
      { fingerprint: 'f'.repeat(32), outcome: decision.keep ?? { ok: true, data: null } },
    ],
  ]),
});

describe.each(['independent', 'atomic'] as const)('%s', (mode) => {
  test('items are decided in order, and each sees the effects of the previous ones', () => {
    const [a, b] = [testAccount(1, 'Savings'), testAccount(2, 'Checking')];
    const books = testBooks([a, b]);
    const decision = decide(
      batch(mode, [cash('Deposit', a, '10'), move(a, b, '10'), cash('Withdrawal', b, '4')]),
      books,
    );
    expect(outcomes(decision)).toEqual(['Completed', 'Completed', 'Completed']);
    expect(balances(a, b)).toEqual([0n, 600n]);
    expect(decision.parts?.map(({ entries }) => entries.length)).toEqual([4, 2, 4]);
    expect([...books.moved]).toEqual(expect.arrayContaining([a, b]));
    expect(books.system('Vault', 'USD').balance_minor).toBe(600n);
    expect(books.system('Teller', 'USD').balance_minor).toBe(0n);
  });

  test("created ids derive from batch and index, are in the batch's bucket, and have the key and fingerprint", () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 100n), testAccount(2, 'Checking')];
    const decision = decide(batch(mode, [move(a, b, '1'), cash('Deposit', b, '1')]), testBooks([a, b]));
    const records = decision.parts?.flatMap(({ transactions }) => transactions) ?? [];
    for (const record of records)
      expect(record).toMatchObject({ batch_id: batchId(1), idempotency_key: 'k', fingerprint: 'f'.repeat(32) });
    const [first, second] =
      decide(
        batch(mode, [move(a, b, '1'), cash('Deposit', b, '1')]),
        testBooks([testAccount(1, 'Savings', 'USD', 'Active', 100n), testAccount(2, 'Checking')]),
      ).parts ?? [];
    expect([first?.transactions[0]?.transaction_id, second?.transactions[0]?.transaction_id]).toEqual([
      records[0]?.transaction_id,
      records[2]?.transaction_id,
    ]);
    expect(new Set(records.map(({ transaction_id }) => idKey(transaction_id))).size).toBe(3);
    expect([bucketOfId(records[0]?.transaction_id ?? ''), bucketOfId(records[2]?.transaction_id ?? '')]).toEqual([
      7, 7,
    ]);
    expect(itemResults(decision)[0]?.transfer).toMatchObject({ batch_id: batchId(1) });
  });

  test('a repeat has the same results and moves nothing', () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 100n), testAccount(2, 'Checking')];
    const books = testBooks([a, b]);
    const command = batch(mode, [move(a, b, '1'), cash('Deposit', b, '1')]);
    const first = decide(command, books);
    const second = decide(command, books);
    expect(second.reply).toEqual({ ...first.reply, replayed: true });
    expect([second.keep, second.parts?.flatMap(({ entries }) => entries)]).toEqual([undefined, []]);
    expect(balances(a, b)).toEqual([0n, 200n]);
  });

  test('a different body with its key moves nothing', () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 100n), testAccount(2, 'Checking')];
    const books = testBooks([a, b]);
    decide(batch(mode, [move(a, b, '0.5')]), books);
    const other = decide(batch(mode, [move(a, b, '0.1'), move(a, b, '0.2')], { fingerprint: 'e'.repeat(32) }), books);
    expect([replyCode(other), other.parts, other.keep]).toEqual(['idempotency_key_reused', undefined, undefined]);
    expect(balances(a, b)).toEqual([50n, 50n]);
  });
});

describe('independent', () => {
  test('sent again after a restore, only the named items are decided, and refused ones stay refused', () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 1_000n), testAccount(2, 'Checking')];
    const books = testBooks([a, b]);
    const items = [move(a, b, '1'), move(a, b, '2'), cash('Withdrawal', a, '3'), cash('Deposit', b, '4')];
    const first = decide(
      batch('independent', items, { decided: JSON.stringify({ 1: '', 2: 'insufficient_funds' }) }),
      books,
    );
    expect(outcomes(first)).toEqual(['Completed', 'insufficient_funds']);
    expect(first.batch).toMatchObject({ item_count: 4 });
    expect(balances(a, b)).toEqual([800n, 200n]);
    decide(batch('independent', items, { decided: JSON.stringify({ 0: '' }) }), books);
    expect(balances(a, b)).toEqual([700n, 300n]);
    const rest = decide(batch('independent', items, { deadline: '2000-01-01T00:00:00.000Z' }), books);
    expect(outcomes(rest)).toEqual(['Completed', 'Completed', 'insufficient_funds', 'deadline_exceeded']);
    expect(balances(a, b)).toEqual([700n, 300n]);
  });

  test('a refusal does not affect other items and is the same as for a single request', () => {
    const [a, b, frozen] = [
      testAccount(1, 'Savings', 'USD', 'Active', 100n),
      testAccount(2, 'Checking'),
      testAccount(3, 'Savings', 'USD', 'Frozen'),
    ];
    const decision = decide(
      batch('independent', [
        move(a, b, '2'),
        move(a, a, '1'),
        cash('Deposit', frozen, '1'),
        cash('Deposit', testAccount(9, 'Savings'), '1'),
        move(a, b, '1'),
      ]),
      testBooks([a, b, frozen]),
    );
    expect(outcomes(decision)).toEqual([
      'insufficient_funds',
      'same_account',
      'inactive_account',
      'account_not_found',
      'Completed',
    ]);
    expect(decision.parts?.map(({ transactions }) => transactions.map(({ status }) => status))).toEqual([
      ['Failed'],
      ['Failed'],
      ['Failed'],
      ['Failed'],
      ['Completed', 'Completed'],
    ]);
    expect(itemResults(decision)[3]?.error).toMatchObject({
      details: { account_id: testAccount(9, 'Savings').account_id },
    });
  });

  test('items processed after the deadline are stored and never executed', () => {
    const a = testAccount(1, 'Savings');
    const decision = decide(
      batch('independent', [cash('Deposit', a, '1'), cash('Deposit', a, '1')], {
        deadline: '2026-01-02T03:04:05.677Z',
      }),
      testBooks([a]),
    );
    expect([outcomes(decision), balances(a)]).toEqual([['deadline_exceeded', 'deadline_exceeded'], [0n]]);
  });

  test('the parts of a batch are decided separately: the first one stores the batch', () => {
    const b = testAccount(2, 'Checking');
    const books = testBooks([b]);
    const bound = { bound_client_id: b.client_id as string };
    const whole = batch('independent', [cash('Deposit', b, '1'), cash('Deposit', b, '2')], bound);
    const [first, second] = whole.items.map((item) => ({ ...whole, items: [item] })) as [typeof whole, typeof whole];
    expect(decide(first, books)).toMatchObject({
      keep: { ok: true },
      batch: { batch_id: batchId(1), mode: 'independent', item_count: 2, bound_client_id: b.client_id },
    });
    const decision = decide(second, books);
    expect([decision.batch, itemResults(decision)[0]?.index, balances(b)]).toEqual([undefined, 1, [300n]]);
  });
});

describe('atomic', () => {
  test('one refusal means that nothing is posted; every refused item is named, and later items are decided as if it was absent', () => {
    const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 1000n), testAccount(2, 'Checking')];
    const books = testBooks([a, b]);
    const decision = decide(
      batch('atomic', [
        move(a, b, '4'),
        move(a, b, '7'),
        cash('Deposit', testAccount(9, 'Savings'), '1'),
        move(a, b, '6'),
      ]),
      books,
    );
    expect(decision.reply).toMatchObject({
      ok: false,
      refusal: {
        code: 'batch_refused',
        message: expect.stringContaining('2 of 4 items were refused, and nothing was posted'),
        errors: [
          { field: 'items[1].transfer', code: 'insufficient_funds' },
          { field: 'items[2].transaction', code: 'account_not_found' },
        ],
        details: { batch_id: batchId(1) },
      },
    });
    expect([balances(a, b), a.last_sequence, books.moved.size, books.transactions.size, decision.parts]).toEqual([
      [1000n, 0n],
      0n,
      0,
      0,
      undefined,
    ]);
    expect(books.system('Vault', 'USD').balance_minor).toBe(0n);
  });

  test('a bound caller learns of a destination that refuses only if nothing else prevents the batch, and not which one', () => {
    const own = testAccount(1, 'Savings', 'USD', 'Active', 1000n);
    const [loan, frozen] = [testAccount(2, 'Loan', 'USD', 'Active', 300n), testAccount(3, 'Savings', 'USD', 'Frozen')];
    const batchErrors = (...items: Item[]) => {
      const books = testBooks([own, loan, frozen].map((account) => ({ ...account })));
      const { reply } = decide(batch('atomic', items, { bound_client_id: own.client_id as string }), books);
      return reply.ok ? [] : reply.refusal.errors?.map(({ field, code }) => [field, code]);
    };
    expect(batchErrors(move(own, loan, '3.01'), move(own, own, '1'))).toEqual([['items[1].transfer', 'same_account']]);
    const both = ['items[0].transfer', 'items[1].transfer'].map((field) => [field, 'destination_refused']);
    for (const amount of ['3', '3.01'])
      expect(batchErrors(move(own, loan, amount), move(own, frozen, '1'))).toEqual(both);
    expect(batchErrors(move(own, loan, '3'))).toEqual([]);
  });

  test('a batch that a bound caller cannot pay for reveals nothing about the accounts of others', () => {
    const amount = fc.bigInt({ min: 1n, max: 20_000n }).map((minor) => fromMinor(minor, 'USD'));
    const strangers = fc.tuple(...[3, 4, 5].map((n) => anyAccount(n)));
    const [first, second] = [testAccount(1, 'Savings', 'USD', 'Active', 15_000n), testAccount(2, 'Checking')];
    const [payer, payee] = [fc.constantFrom(first, second), fc.integer({ min: 1, max: 6 })];
    const items = fc.array(fc.record({ payer, payee, amount }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(items, strangers, strangers, (moves, ...states) => {
        const [one, other] = states.map((others) => {
          const owned = [first, { ...second, client_id: first.client_id }].map((account) => ({ ...account }));
          const command = batch(
            'atomic',
            moves.map((given) => move(given.payer, testAccount(given.payee, 'Savings'), given.amount)),
            { bound_client_id: first.client_id as string },
          );
          return decide(command, testBooks([...owned, ...others.map((account) => ({ ...account }))])).reply;
        });
        if (!one?.ok && !other?.ok) expect(other).toEqual(one);
        else for (const reply of [one, other]) if (reply && !reply.ok) expect(isHidden(reply.refusal)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('the refusal is stored and final', () => {
    const [a, b] = [testAccount(1, 'Savings'), testAccount(2, 'Checking')];
    const first = decide(batch('atomic', [move(a, b, '1')]), testBooks([a, b]));
    a.balance_minor = 100n;
    const second = decide(batch('atomic', [move(a, b, '1')]), withKept(testBooks([a, b]), first));
    expect(second.reply).toEqual({ ...first.reply, replayed: true });
    expect(balances(a, b)).toEqual([100n, 0n]);
  });

  test('a batch processed after the deadline is refused as a whole and stored', () => {
    const a = testAccount(1, 'Savings');
    const decision = decide(
      batch('atomic', [cash('Deposit', a, '1')], { deadline: '2026-01-02T03:04:05.677Z' }),
      testBooks([a]),
    );
    expect([replyCode(decision), decision.keep?.ok, decision.parts, balances(a)]).toEqual([
      'deadline_exceeded',
      false,
      undefined,
      [0n],
    ]);
  });

  test("single commands before and after it in the same transaction and the batch see each other's effects", () => {
    const [a, b] = [testAccount(1, 'Savings'), testAccount(2, 'Checking')];
    const books = testBooks([a, b]);
    decide(batch('independent', [cash('Deposit', a, '5')], {}, batchId(2)), books);
    expect(replyCode(decide(batch('atomic', [move(a, b, '5')]), books))).toBe('done');
    expect(
      outcomes(
        decide(batch('independent', [cash('Withdrawal', b, '5'), cash('Withdrawal', a, '1')], {}, batchId(3)), books),
      ),
    ).toEqual(['Completed', 'insufficient_funds']);
    expect([balances(a, b), a.last_sequence, b.last_sequence]).toEqual([[0n, 0n], 2n, 2n]);
    expect(books.now).toBe(now);
  });
});
