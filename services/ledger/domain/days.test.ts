import { afterEach, describe, expect, it } from 'vitest';
import { calendarIn } from '#libs/service/days.ts';
import {
  capture,
  cash,
  idIn,
  opening,
  placing,
  replyCode,
  reversal,
  testAccount,
  testBits,
  testBooks,
  transfer,
} from '../test/test-kit.ts';
import { dayAt, setCalendar } from './calendar.ts';
import type { Books, Command, Decision } from './decision.ts';
import { decide } from './posting.ts';
import { toEventEntry, toTransaction, toTransfer } from './records.ts';

/** Tests the contract of value dates: what the ledger decides, and what it stores and shows. The bank's day is 2026-01-02. */

const today = '2026-01-02';
const [payer, payee] = [1, 2];

function createBooks(more: Partial<Books> = {}): Books {
  return {
    ...testBooks([testAccount(payer, 'Savings', 'USD', 'Active', 100_000n), testAccount(payee, 'Checking')]),
    ...more,
  };
}
const accountIn = (books: Books, n: number) => books.accounts.get(`acc_${testBits(n)}`) ?? testAccount(n, 'Savings');

/** Every posting that may have a value date, on the same books. */
const postings: [name: string, (books: Books, day?: string) => Command][] = [
  ['a deposit', (books, effective_date) => cash('Deposit', accountIn(books, payer), '1', { effective_date })],
  ['a withdrawal', (books, effective_date) => cash('Withdrawal', accountIn(books, payer), '1', { effective_date })],
  [
    'a transfer',
    (books, effective_date) => transfer(accountIn(books, payer), accountIn(books, payee), '1', { effective_date }),
  ],
  [
    'a capture in cash',
    (books, effective_date) => {
      decide(placing(accountIn(books, payer), '1', { n: 7000 }), books);
      return capture(7000, { effective_date });
    },
  ],
  [
    'a capture to an account',
    (books, effective_date) => {
      decide(placing(accountIn(books, payer), '1', { n: 7000 }), books);
      return capture(7000, { to: accountIn(books, payee), effective_date });
    },
  ],
  [
    'a reversal',
    (books, effective_date) => {
      const deposit = decide(cash('Deposit', accountIn(books, payer), '1', { effective_date: '2025-10-05' }), {
        ...books,
        closed: null,
      });
      return reversal(idIn(deposit), { effective_date });
    },
  ],
];

const dayOfAll = ({ transactions, entries }: Decision) => [
  ...new Set([
    ...transactions.map((record) => toTransaction(record).effective_date),
    ...entries.map((entry) => toEventEntry(entry).effective_date),
  ]),
];

afterEach(() => setCalendar());

describe.each(postings)('the value date of %s of a person', (_, post) => {
  const asPerson = (day: string | undefined, actions: string[], limit = '1000') => {
    const books = createBooks();
    const command = post(books, day);
    const four_eyes = JSON.stringify({ actions, limits: { USD: limit }, day: today });
    const context = { ...command.context, actor: 'jwt:i|alice', four_eyes };
    return decide({ ...command, context } as Command, books);
  };
  const others = ['post_above', 'reverse'];
  it.each<[string | undefined, string[], string | undefined]>([
    ['2026-01-01', ['backdate'], 'backdate'],
    ['2025-10-05', ['backdate'], 'backdate'],
    ['2026-01-01', [...others, 'backdate'], 'backdate'],
    [today, ['backdate'], undefined],
    [undefined, ['backdate'], undefined],
    ['2026-01-01', ['unfreeze'], undefined],
  ])('%s, if %j need an approval, is %s', (day, actions, action) => {
    // contract: four-eyes-3, four-eyes-4
    const { waits, transactions, entries, reply } = asPerson(day, actions);
    if (action === undefined) return expect([waits, reply.ok]).toEqual([undefined, true]);
    expect([waits, transactions, entries]).toEqual([true, [], []]);
    expect(reply).toMatchObject({ ok: false, refusal: { code: 'approval_required', details: { action } } });
  });
  it('is not asked for where another action is: of today, it is that action', () => {
    const { reply } = asPerson(today, [...others, 'backdate'], '0');
    expect(reply).toMatchObject({ refusal: { details: { action: expect.stringMatching(/^(post_above|reverse)$/) } } });
  });
});

describe.each(postings)('%s', (_, make) => {
  it.each([
    ['the bank’s day, if none is given', undefined, undefined, 'done'],
    ['today', today, undefined, 'done'],
    ['yesterday', '2026-01-01', undefined, 'done'],
    ['90 days ago', '2025-10-04', undefined, 'done'],
    ['91 days ago', '2025-10-03', undefined, 'invalid_effective_date'],
    ['tomorrow', '2026-01-03', undefined, 'invalid_effective_date'],
    ['the first day that is not closed', '2025-12-31', '2025-12-30', 'done'],
    ['the last closed day', '2025-12-30', '2025-12-30', 'day_closed'],
    ['a day before a closed one', '2025-10-06', '2025-12-30', 'day_closed'],
  ] as [string, string | undefined, string | undefined, string][])('%s', (_name, day, closed, code) => {
    // contract: days-1, days-2, days-3, days-5
    const books = createBooks({ closed: closed ?? null });
    const isReversal = make === postings.at(-1)?.[1];
    const before = books.accounts.get(`acc_${testBits(payer)}`)?.last_sequence;
    const command = make(books, day);
    const decision = decide(command, books);
    if (isReversal && day === '2025-10-04') {
      // The original is of the day after.
      expect(replyCode(decision)).toBe('invalid_effective_date');
      return;
    }
    expect(replyCode(decision)).toBe(code);
    const [record] = decision.transactions;
    if (code === 'done') {
      expect(dayOfAll(decision)).toEqual([day ?? today]);
      expect(decision.entries.length).toBeGreaterThan(1);
      // A posting of the bank's day stores nothing for it.
      if ((day ?? today) === today)
        for (const row of [...decision.transactions, ...decision.entries]) expect(row.effective_date).toBeNull();
    } else {
      expect(record).toMatchObject({ status: 'Failed', failure_code: code });
      expect(record && toTransaction(record).effective_date).toBe(day);
      expect(decision.entries).toEqual([]);
      if (!isReversal) expect(books.accounts.get(`acc_${testBits(payer)}`)?.last_sequence).toBe(before);
    }
    // A repeat gets the same answer, also once the day is closed.
    const again = decide(command, { ...books, closed: '2026-01-01' });
    expect(again.reply).toEqual({ ...decision.reply, replayed: true });
  });
});

describe('a value date', () => {
  it('of a reversal is not before that of its original', () => {
    // contract: days-4
    const books = createBooks();
    const original = decide(cash('Deposit', accountIn(books, payer), '1', { effective_date: '2025-12-20' }), books);
    const dated = (effective_date?: string) => decide(reversal(idIn(original), { effective_date }), books);
    expect(dated('2025-12-19').transactions[0]).toMatchObject({ failure_code: 'invalid_effective_date' });
    expect(dayOfAll(dated('2025-12-20'))).toEqual(['2025-12-20']);
  });

  it.each([
    ['2025-12-31', 'invalid_effective_date'],
    [today, 'done'],
  ])('of a Loan Payment is not before the payout: %s %s', (effective_date, code) => {
    // contract: days-4
    const books = createBooks();
    decide(opening(50, 'Loan', '100'), books);
    const pay = transfer(accountIn(books, payer), accountIn(books, 50), '1', { effective_date });
    expect(replyCode(decide(pay, books))).toBe(code);
    decide(placing(accountIn(books, payer), '1', { n: 7001 }), books);
    expect(replyCode(decide(capture(7001, { to: accountIn(books, 50), effective_date }), books))).toBe(code);
  });

  it('that none gave is not before the original or the payout, if the clock was set back across midnight', () => {
    // contract: days-4
    const books = createBooks();
    const later = { ...books, now: '2026-01-03T00:00:01.000Z' };
    const [a] = [accountIn(books, payer)];
    const original = decide(cash('Deposit', a, '1'), later);
    decide(opening(50, 'Loan', '100'), later);
    decide(placing(a, '1', { n: 7001 }), books);
    const loan = accountIn(books, 50);
    for (const command of [reversal(idIn(original)), transfer(a, loan, '1'), capture(7001, { to: loan })])
      expect(dayOfAll(decide(command, books))).toEqual(['2026-01-03']);
  });

  it('does not change what decides: the balance of now', () => {
    // contract: days-10
    const books = createBooks();
    const [a, b] = [accountIn(books, payer), accountIn(books, payee)];
    decide(transfer(a, b, '1000'), books);
    expect(replyCode(decide(cash('Withdrawal', a, '1', { effective_date: '2025-12-01' }), books))).toBe(
      'insufficient_funds',
    );
    // The account of the payee had nothing on that day.
    const paid = decide(cash('Withdrawal', b, '1000', { effective_date: '2025-12-01' }), books);
    expect(replyCode(paid)).toBe('done');
    const own = paid.entries.find(({ account_id }) => account_id === b.account_id);
    expect(own).toMatchObject({
      sequence: 2n,
      balance_after_minor: 0n,
      created_at: books.now,
      effective_date: '2025-12-01',
    });
  });

  it('is the same in both transactions of a transfer, and in the transfer', () => {
    // contract: days-8
    const books = createBooks();
    const moved = decide(
      transfer(accountIn(books, payer), accountIn(books, payee), '1', { effective_date: '2025-12-01' }),
      books,
    );
    expect(dayOfAll(moved)).toEqual(['2025-12-01']);
    expect(moved.transactions[0] && toTransfer(moved.transactions[0]).effective_date).toBe('2025-12-01');
  });

  it.each([
    ['UTC', '2026-01-02T03:04:05.678Z', '2026-01-02'],
    ['America/New_York', '2026-01-02T03:04:05.678Z', '2026-01-01'],
    ['Pacific/Kiritimati', '2026-01-02T10:00:00.000Z', '2026-01-03'],
    ['Asia/Kathmandu', '2026-01-02T18:15:00.000Z', '2026-01-03'],
    ['Asia/Kathmandu', '2026-01-02T18:14:59.999Z', '2026-01-02'],
    ['Africa/Nairobi', '2026-01-02T20:59:59.999Z', '2026-01-02'],
  ])('is by default the day in the zone of the bank: in %s, %s is %s', (timeZone, now, day) => {
    // contract: days-1
    setCalendar(calendarIn(timeZone));
    const books = createBooks({ now });
    const made = decide(cash('Deposit', accountIn(books, payer), '1', { time: now }), books);
    expect(dayOfAll(made)).toEqual([day]);
    expect(dayAt(now)).toBe(day);
  });

  it('is that of the decision, not that of the request, if midnight was between them', () => {
    // contract: days-1
    const books = createBooks({ now: '2026-01-03T00:00:00.001Z' });
    const late = decide(cash('Deposit', accountIn(books, payer), '1', { time: '2026-01-02T23:59:59.999Z' }), books);
    expect(dayOfAll(late)).toEqual(['2026-01-03']);
    expect(late.entries.map(({ effective_date }) => effective_date)).toEqual(late.entries.map(() => null));
  });

  it('that none gave is never a closed day, whatever the clock shows', () => {
    const books = createBooks({ closed: today });
    const made = decide(cash('Deposit', accountIn(books, payer), '1'), books);
    expect(dayOfAll(made)).toEqual(['2026-01-03']);
  });

  it('of what is sent again after a restore is kept', () => {
    const books = createBooks({ now: '2026-06-01T00:00:00.000Z' });
    const sent = { decided: '', time: '2026-01-02T03:04:05.678Z' };
    const [a] = [accountIn(books, payer)];
    expect(dayOfAll(decide(cash('Deposit', a, '1', sent), books))).toEqual([today]);
    expect(dayOfAll(decide(cash('Deposit', a, '1', { ...sent, effective_date: '2025-12-01' }), books))).toEqual([
      '2025-12-01',
    ]);
  });
});
