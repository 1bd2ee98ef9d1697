import { describe, expect, it } from 'vitest';
import {
  capture,
  cash,
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
import { type BatchCommand, batchCommand } from './batches.ts';
import type { Books, Command, Decision } from './decision.ts';
import { decide } from './posting.ts';

/** The limit of a person is 100 USD; other currencies have none. */
const rules = (rest: object = {}) =>
  JSON.stringify({ actions: ['post_above', 'reverse'], limits: { USD: '100' }, day: '2026-01-02', ...rest });
const person = { actor: 'jwt:i|alice', four_eyes: rules() };
const rich = () => testAccount(1, 'Savings', 'USD', 'Active', 1_000_000n);
const with_ = (command: Command, context: object): Command =>
  ({ ...command, context: { ...command.context, ...context } }) as Command;
const codes = (books: Books, ...commands: Command[]) => commands.map((command) => replyCode(decide(command, books)));

describe('postings of a person', () => {
  it('need an approval above the limit, in any currency without one, and without the rules never', () => {
    // contract: four-eyes-4
    const [account, euros] = [rich(), testAccount(2, 'Savings', 'EUR')];
    const books = testBooks([account, euros]);
    expect(
      codes(
        books,
        cash('Deposit', account, '100.01', person),
        cash('Deposit', account, '100', person),
        cash('Deposit', euros, '0.01', person),
        cash('Deposit', euros, '5000'),
        cash('Deposit', euros, '1', { ...person, four_eyes: rules({ actions: ['reverse'] }) }),
      ),
    ).toEqual(['approval_required', 'done', 'approval_required', 'done', 'done']);
  });

  it('of one day count together, of every kind, but not what was posted without the rules or refused', () => {
    // contract: four-eyes-4
    const [account, other] = [rich(), testAccount(2, 'Savings')];
    const books = testBooks([account, other]);
    expect(
      codes(
        books,
        cash('Deposit', account, '40', person),
        cash('Withdrawal', other, '50', person),
        cash('Withdrawal', other, '150', person),
        cash('Deposit', account, '90'),
        cash('Deposit', account, '90', { ...person, actor: 'jwt:i|bob' }),
        transfer(account, other, '50', person),
        with_(opening(7, 'Savings', '10.01'), person),
        with_(opening(8, 'Savings', '10'), person),
        cash('Deposit', account, '0.01', person),
        cash('Deposit', account, '0.01', { ...person, four_eyes: rules({ day: '2026-01-03' }) }),
        // A message from yesterday counts to today.
        cash('Deposit', account, '99.99', person),
        cash('Deposit', account, '0.01', person),
      ),
    ).toEqual([
      'done',
      'insufficient_funds',
      'approval_required',
      'done',
      'done',
      'done',
      'approval_required',
      'done',
      'approval_required',
      'done',
      'done',
      'approval_required',
    ]);
  });

  it('that wait leave no transaction, and a repeat waits as well, although the rules would allow it', () => {
    // contract: four-eyes-11
    const account = rich();
    const books = testBooks([account]);
    const command = cash('Deposit', account, '101', { ...person, fingerprint: 'f' }, 5);
    const decision = decide(command, books);
    expect([decision.waits, decision.keep, decision.transactions, account.balance_minor]).toEqual([
      true,
      undefined,
      [],
      1_000_000n,
    ]);
    const wide = rules({ limits: { USD: '1000' } });
    const again = (rest: object) => decide(with_(command, { four_eyes: wide, ...rest }), books).reply;
    expect(again({})).toEqual({ ...decision.reply, replayed: true });
    expect(again({ fingerprint: 'g' })).toMatchObject({ refusal: { code: 'idempotency_key_reused' } });
    // The approved command has the same id and no rules. Afterwards, a repeat gets its outcome.
    expect(replyCode(decide(with_(command, { four_eyes: undefined, approved_by: 'jwt:i|bob' }), books))).toBe('done');
    expect(again({})).toMatchObject({ ok: true, replayed: true });
    expect(account.balance_minor).toBe(1_010_100n);
  });

  it('keep their decisions when they are sent again after a restore', () => {
    const account = rich();
    expect(codes(testBooks([account]), cash('Deposit', account, '5000', { ...person, decided: '' }))).toEqual(['done']);
  });
});

it('a command that is an action of a newer gateway cannot be decided, so that it is not executed without an approval', () => {
  const account = rich();
  const newer = { ...person, four_eyes: rules({ actions: ['an action of the future'] }) };
  expect(() => decide(cash('Deposit', account, '1', newer), testBooks([account]))).toThrow('actions');
  expect(account.balance_minor).toBe(1_000_000n);
});

it('captures of a hold count together, with those of others', () => {
  // contract: four-eyes-4
  const account = rich();
  const books = testBooks([account]);
  const take = (amount: string, context: object) => capture(9, { amount, final: false, context });
  expect(
    codes(
      books,
      placing(account, '500', { n: 9 }),
      take('60', {}),
      take('40.01', person),
      take('40', person),
      take('1', { ...person, actor: 'jwt:i|bob' }),
    ),
  ).toEqual(['done', 'done', 'approval_required', 'done', 'approval_required']);
  expect(books.holds.values().next().value).toMatchObject({ captured_minor: 10_000n, status: 'Active' });
  expect(account.held_minor).toBe(40_000n);
});

it('every reversal of a known transaction needs an approval', () => {
  // contract: four-eyes-3
  const account = rich();
  const books = testBooks([account]);
  const { transactions } = decide(cash('Deposit', account, '5'), books);
  const id = transactions[0]?.transaction_id ?? '';
  const ask = reversal(id, person);
  // Its approval names them.
  const posting = { amount: '5.00', currency: 'USD', account_ids: [account.account_id] };
  expect(decide(reversal(id, person), books).reply).toMatchObject({
    refusal: { details: { action: 'reverse', ...posting } },
  });
  const unknown = reversal(`txn_${testBits(99)}`, person);
  expect(codes(books, unknown, ask, ask)).toEqual(['transaction_not_found', 'approval_required', 'approval_required']);
  const approved = { four_eyes: undefined };
  const second = reversal(id, person);
  expect(codes(books, with_(ask, approved), ask, second, with_(second, approved))).toEqual([
    'done',
    'done',
    'approval_required',
    'already_reversed',
  ]);
});

it('a reversal that is late, or was dropped, is refused for good and waits for nobody', () => {
  const account = rich();
  const books = testBooks([account]);
  const id = decide(cash('Deposit', account, '5'), books).transactions[0]?.transaction_id ?? '';
  const late = decide(reversal(id, { ...person, deadline: '2026-01-02T03:04:00.000Z' }), books);
  expect([replyCode(late), late.waits, late.transactions[0]?.status]).toEqual([
    'deadline_exceeded',
    undefined,
    'Failed',
  ]);
});

describe('a batch of a person', () => {
  const testBatch = (
    amounts: [string, string | null, string?][],
    mode: 'atomic' | 'independent' = 'independent',
    n = 50,
    rest = {},
  ) =>
    batchCommand(
      {
        batch_id: `bat_${testBits(n)}`,
        mode,
        items: amounts.map(([amount, currency, effective_date]) => ({
          transaction: {
            account_id: testAccount(1, 'Savings').account_id,
            transaction_type: 'Deposit' as const,
            amount,
            currency,
            description: null,
            reference: null,
            effective_date,
          },
        })),
      },
      testContext(n, { message_id: `bat_${testBits(n)}`, fingerprint: 'f', ...person, ...rest }),
    );
  const run = (batch: BatchCommand, books: Books): Decision => decide(batch, books);

  it.each(['independent', 'atomic'] as const)(
    'in mode %s is refused as a whole if its sum is above the limit',
    (mode) => {
      // contract: batches-5, four-eyes-4
      const account = rich();
      const books = testBooks([account]);
      const decision = run(
        testBatch(
          [
            ['60', null],
            ['1', 'KES'],
            ['40.01', 'USD'],
          ],
          mode,
        ),
        books,
      );
      expect(decision.reply).toMatchObject({
        ok: false,
        refusal: {
          code: 'approval_required',
          errors: [
            { field: 'items[0].transaction', code: 'approval_required' },
            { field: 'items[1].transaction', code: 'approval_required' },
            { field: 'items[2].transaction', code: 'approval_required' },
          ],
        },
      });
      expect([decision.parts, account.balance_minor]).toEqual([undefined, 1_000_000n]);
      expect(run(testBatch([['60', null]], mode), books).reply).toEqual({ ...decision.reply, replayed: true });
    },
  );

  it.each(['independent', 'atomic'] as const)('in mode %s is refused as a whole if an item is backdated', (mode) => {
    // contract: four-eyes-4
    const account = rich();
    const books = testBooks([account]);
    const batch = testBatch(
      [
        ['1', null],
        ['1', null, '2026-01-01'],
        ['1', null, '2026-01-02'],
      ],
      mode,
      53,
      {
        four_eyes: rules({ actions: ['post_above', 'backdate'] }),
      },
    );
    const decision = run(batch, books);
    expect(decision.reply).toMatchObject({
      refusal: {
        code: 'approval_required',
        errors: [{ field: 'items[1].transaction', message: expect.stringContaining('value date') }],
      },
    });
    expect([decision.parts, account.balance_minor]).toEqual([undefined, 1_000_000n]);
  });

  it.each(['independent', 'atomic'] as const)('in mode %s counts to the day of its sender', (mode) => {
    // contract: four-eyes-4
    const account = rich();
    const books = testBooks([account]);
    expect(
      replyCode(
        run(
          testBatch(
            [
              ['60', null],
              ['40', null],
            ],
            mode,
          ),
          books,
        ),
      ),
    ).toBe('done');
    expect(codes(books, cash('Deposit', account, '0.01', person))).toEqual(['approval_required']);
    expect(replyCode(run(testBatch([['0.01', null]], mode, 51), books))).toBe('approval_required');
  });

  it.each(['independent', 'atomic'] as const)('in mode %s that is late is refused as such', (mode) => {
    const late = testBatch([['500', null]], mode, 52, { deadline: '2026-01-02T03:04:00.000Z' });
    const { reply } = run(late, testBooks([rich()]));
    const [code, other] = ['deadline_exceeded', 'approval_required'].map((one) => JSON.stringify(reply).includes(one));
    expect([code, other]).toEqual([true, false]);
  });

  it.each(['independent', 'atomic'] as const)('in mode %s keeps its decision when it is sent again', (mode) => {
    const decided = JSON.stringify({ 0: '', 1: '' });
    const both = testBatch(
      [
        ['500', null],
        ['1', null],
      ],
      mode,
      53,
      { decided },
    );
    const account = rich();
    expect(replyCode(run(both, testBooks([account])))).toBe('done');
    expect(account.balance_minor).toBe(1_050_100n);
  });

  it('that is refused for another reason counts nothing', () => {
    const account = rich();
    const books = testBooks([account]);
    expect(
      replyCode(
        run(
          testBatch(
            [
              ['60', null],
              ['1', 'EUR'],
            ].slice(0, 1) as never,
            'atomic',
          ),
          books,
        ),
      ),
    ).toBe('done');
    const frozen = testBooks([testAccount(1, 'Savings', 'USD', 'Frozen')]);
    expect(replyCode(run(testBatch([['60', null]], 'atomic'), frozen))).toBe('batch_refused');
    expect([...frozen.posted.values()]).toEqual([]);
  });
});
