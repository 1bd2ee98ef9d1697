import { expect, it } from 'vitest';
import type { TrialBalance } from '#libs/contracts/books.ts';
import { formatId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { PostingStatistics, PostingTotals } from '#libs/contracts/statistics.ts';
import { freshBits, type LedgerHarness, useLedger } from '../test/harness.ts';
import { lookedAt, oldestStatement } from './statistics.ts';

const ledger = useLedger();

const ask = (data: Partial<MessageData<'get_posting_statistics'>>, time?: string) =>
  ledger.ask(
    { name: 'get_posting_statistics', data: { currency: 'USD', unit: 'minute', ...data } } as Parameters<
      LedgerHarness['ask']
    >[0],
    time === undefined ? {} : { time },
  );

async function statistics(data: Parameters<typeof ask>[0], time?: string): Promise<PostingStatistics> {
  const reply = await ask(data, time);
  if (!reply.ok) throw new Error(JSON.stringify(reply));
  return reply.data as PostingStatistics;
}

it('counts each applied operation once per unit of time, in its currency', async () => {
  const [from, to, other] = [
    await ledger.open('Savings', '0'),
    await ledger.open('Checking', '0'),
    await ledger.open('Savings', '0', 'EUR'),
  ];
  const at = (time: string) => ({ time: `2030-05-01T${time}Z` });
  const deposit = freshBits();
  await ledger.book([
    ledger.cash('Deposit', from, '100', at('10:00:59.999'), deposit),
    ledger.transfer(from, to, '2.50', at('10:01:00.000')),
    ledger.cash('Deposit', other, '7', at('10:01:30.000')),
    ledger.cash('Withdrawal', from, '9999', at('10:01:40.000')),
    ledger.cash('Withdrawal', from, '0.50', at('10:59:00.000')),
  ]);
  const period = { from: '2030-05-01T10:00:00.000Z', to: '2030-05-01T11:00:00.000Z' };
  expect(await statistics(period)).toEqual({
    currency: 'USD',
    unit: 'minute',
    ...period,
    complete: true,
    counted_from: period.from,
    buckets: [
      { start: '2030-05-01T10:00:00.000Z', operations: 1, amount: '100.00' },
      { start: '2030-05-01T10:01:00.000Z', operations: 1, amount: '2.50' },
      { start: '2030-05-01T10:59:00.000Z', operations: 1, amount: '0.50' },
    ],
  });
  expect((await statistics({ ...period, unit: 'hour' })).buckets).toEqual([
    { start: '2030-05-01T10:00:00.000Z', operations: 3, amount: '103.00' },
  ]);
  expect((await statistics({ ...period, currency: 'EUR', unit: 'day' })).buckets).toEqual([
    { start: '2030-05-01T00:00:00.000Z', operations: 1, amount: '7.00' },
  ]);
  expect(await statistics({}, '2030-05-01T10:30:00.000Z')).toMatchObject({
    from: '2030-05-01T09:30:00.000Z',
    to: '2030-05-01T10:30:00.000Z',
    buckets: [{ operations: 1 }, { operations: 1 }],
  });
  expect(await ask({ from: '2030-01-01T00:00:00.000Z', to: '2030-05-01T00:00:00.000Z' })).toMatchObject({
    ok: false,
    refusal: { errors: [{ field: 'from', code: 'validation_failed' }] },
  });
});

it('scans only the newest transactions, with an index, and reports that', async () => {
  const account_id = await ledger.open('Savings', '0');
  for (let from = 1; from <= lookedAt + 50_000; from += 50_000)
    await ledger.owner.query(
      `insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status, actor, request_id, created_at)
     select md5('t' || n)::uuid, md5('t' || n)::uuid, $1::uuid, 'Deposit', 'credit', 1, 'USD', 'Completed', 'test', 'r', timestamptz '2020-01-01Z' + n * interval '10 milliseconds' from generate_series($2::int, $2::int + 49999) n`,
      [account_id.slice(4), from],
    );
  await ledger.owner.query('analyze transactions');
  const period = { from: '2020-01-01T00:00:00.000Z', to: '2020-01-02T00:00:00.000Z' };
  const { complete, counted_from, buckets } = await statistics(period);
  expect([complete, counted_from]).toEqual([false, '2020-01-01T00:08:20.000Z']);
  expect(buckets.reduce((sum, { operations }) => sum + operations, 0)).toBe(lookedAt + 1);
  const plan = await ledger.owner.query(`explain (format json) ${oldestStatement}`, [period.from, period.to, lookedAt]);
  expect(JSON.stringify(plan.rows)).toContain('transactions_by_time');
}, 120_000);

it('returns totals in and out by currency, reversals with the opposite sign, and the number of refusals', async () => {
  const [from, to, other] = [
    await ledger.open('Savings', '0', 'KES'),
    await ledger.open('Checking', '0', 'KES'),
    await ledger.open('Savings', '0', 'JPY'),
  ];
  const at = (time: string) => ({ time: `2031-05-01T${time}Z` });
  const deposit = freshBits();
  await ledger.book([
    ledger.cash('Deposit', from, '100', at('10:00:00.000'), deposit),
    ledger.transfer(from, to, '2.50', at('10:01:00.000')),
    ledger.cash('Deposit', other, '7', at('10:01:30.000')),
    ledger.cash('Withdrawal', from, '9999', at('10:01:40.000')),
    ledger.cash('Withdrawal', from, '0.50', at('10:02:00.000')),
    ledger.cash('Deposit', from, '3', at('10:59:00.000')),
  ]);
  const period = { from: '2031-05-01T10:00:00.000Z', to: '2031-05-01T10:59:00.000Z' };
  const totals = async (data: object) => {
    const reply = await ledger.ask({ name: 'get_posting_totals', data } as Parameters<LedgerHarness['ask']>[0]);
    if (!reply.ok) throw new Error(JSON.stringify(reply));
    return reply.data as PostingTotals;
  };
  expect(await totals(period)).toEqual({
    ...period,
    complete: true,
    counted_from: period.from,
    totals: [
      { currency: 'KES', operations: 3, refused: 1, money_in: '100.00', money_out: '0.50', transferred: '2.50' },
      { currency: 'JPY', operations: 1, refused: 0, money_in: '7', money_out: '0', transferred: '0' },
    ],
  });
  const reversal = ledger.reversal(formatId('transaction', deposit));
  await ledger.book([{ ...reversal, context: { ...reversal.context, ...at('10:30:00.000') } } as typeof reversal]);
  expect((await totals(period)).totals).toEqual([
    { currency: 'KES', operations: 4, refused: 1, money_in: '100.00', money_out: '100.50', transferred: '2.50' },
    { currency: 'JPY', operations: 1, refused: 0, money_in: '7', money_out: '0', transferred: '0' },
  ]);
});

it('totals all debits and credits without reading entries', async () => {
  const client = await ledger.owner.connect();
  try {
    const { rows } = await client.query<{ debit: string }>(
      "select sum(amount_minor)::text as debit from entries where currency = 'EUR' and side = 'DR'",
    );
    await client.query('begin; lock table entries in access exclusive mode');
    const reply = await ledger.ask({ name: 'get_trial_balance', data: {} });
    const euros = reply.ok && (reply.data as TrialBalance[]).find(({ currency }) => currency === 'EUR');
    const total = fromMinor(BigInt(rows[0]?.debit ?? -1), 'EUR');
    expect(euros).toEqual({
      currency: 'EUR',
      debit_total: total,
      credit_total: total,
      assets: '7.00',
      liabilities: '7.00',
      difference: '0.00',
    });
  } finally {
    await client.query('rollback');
    client.release();
  }
});
