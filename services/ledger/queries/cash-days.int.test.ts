import { expect, it } from 'vitest';
import type { MessageResult } from '#libs/contracts/messages.ts';
import { useLedger } from '../test/harness.ts';
import { getCashDays } from './cash-days.ts';

const ledger = useLedger();
type CashDays = MessageResult<'get_cash_days'>;
const at = (day: string, rest: object = {}) => ({ time: `${day}T12:00:00.000Z`, ...rest });

it('counts the cash of each day, reversals in the opposite direction, and a day that has ended once', async () => {
  // contract: tills-12
  const [a, b, yen] = [
    await ledger.open('Savings', '1000'),
    await ledger.open('Savings', '0'),
    await ledger.open('Savings', '0', 'JPY'),
  ];
  const bits = `${'7'.repeat(30)}00`;
  await ledger.book([
    ledger.cash('Deposit', a, '10', at('2030-05-01'), bits),
    ledger.cash('Withdrawal', a, '4', at('2030-05-01')),
    ledger.cash('Withdrawal', a, '99999', at('2030-05-01')),
    ledger.transfer(a, b, '3', at('2030-05-02')),
    ledger.cash('Deposit', yen, '7', at('2030-05-03')),
    ledger.cash('Deposit', a, '1', at('2030-05-04')),
  ]);
  await ledger.book([ledger.reversal(`txn_${bits}`, at('2030-05-03'))]);
  const ask = (now: string, most?: number): Promise<CashDays> => getCashDays(ledger.reads, { days: '7' }, now, most);
  const first = { date: '2030-05-01', currency: 'USD', money_in: '10.00', money_out: '4.00' };
  const [yens, reversed] = [
    { date: '2030-05-03', currency: 'JPY', money_in: '7', money_out: '0' },
    { date: '2030-05-03', currency: 'USD', money_in: '0.00', money_out: '10.00' },
  ];
  const last = { date: '2030-05-04', currency: 'USD', money_in: '1.00', money_out: '0.00' };
  const now = '2030-05-04T13:00:00.000Z';
  const all = { from: '2030-04-28', to: '2030-05-04', counted_from: '2030-04-28', complete: true };
  // Few at once: each answer goes back further, until all are counted.
  const parts = [await ask(now, 3)];
  for (; !parts.at(-1)?.complete && parts.length < 9; ) parts.push(await ask(now, 3));
  expect(parts[0]).toMatchObject({ complete: false, counted_from: '2030-05-02' });
  expect(parts.at(-1)).toEqual({ ...all, days: [first, yens, reversed, last] });
  // Nothing of a day that has as many transactions is summed up again.
  const asked: unknown[] = [];
  const { query } = ledger.reads;
  ledger.reads.query = ((...given: [string, string[]]) => {
    if (given[0].includes('sum(')) asked.push(given[1][0]);
    return Reflect.apply(query, ledger.reads, given);
  }) as typeof query;
  expect((await ask(now)).days).toEqual([first, yens, reversed, last]);
  expect(asked).toEqual(['2030-05-04T00:00:00.000Z']);
  // A command that is decided late counts at once on a day that may not be over for it, and within an hour on one that is.
  await ledger.book([
    ledger.cash('Deposit', a, '100', at('2030-05-03')),
    ledger.cash('Deposit', a, '1000', at('2030-05-01')),
  ]);
  expect((await ask(now)).days).toEqual([first, yens, { ...reversed, money_in: '100.00' }, last]);
  const anHourLater = '2030-05-04T14:00:00.000Z';
  const more = { ...first, money_in: '1010.00' };
  expect((await ask(anHourLater)).days).toEqual([more, yens, { ...reversed, money_in: '100.00' }, last]);
  // What was decided last of all counts, although the day is asked for only once it is over.
  await ledger.book([ledger.cash('Deposit', a, '50', at('2030-05-03'))]);
  const over = await ask('2030-05-06T13:00:00.000Z');
  expect(over.days).toContainEqual({ ...reversed, money_in: '150.00' });
});

it('has no more than the newest transactions of a day that has too many', async () => {
  const a = await ledger.open('Savings', '0');
  await ledger.book(
    ['1', '2', '4'].map((amount, i) => ledger.cash('Deposit', a, amount, { time: `2030-06-01T12:00:0${i}.000Z` })),
  );
  expect(await getCashDays(ledger.reads, { days: '7' }, '2030-06-01T13:00:00.000Z', 2)).toMatchObject({
    complete: false,
    counted_from: '2030-06-02',
  });
});
