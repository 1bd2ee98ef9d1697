import { afterEach, expect, it } from 'vitest';
import { formatId } from '#libs/contracts/ids.ts';
import type { MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { calendarIn } from '#libs/service/days.ts';
import { batchCommand } from '../domain/batches.ts';
import { setCalendar } from '../domain/calendar.ts';
import type { Command } from '../domain/decision.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { capture, opening, placing, testAccount } from '../test/test-kit.ts';

const ledger = useLedger();
afterEach(() => setCalendar());

type Day = MessageResult<'get_staff_day'>;
const person = () => `jwt:https://issuer.example|${freshBits()}`;

async function dayOf(actor: string, data: { on?: string } = {}, time?: string): Promise<Day> {
  const query = { name: 'get_staff_day' as const, data: { actor, ...data } };
  const reply = await ledger.ask(query, time === undefined ? {} : { time });
  if (!reply.ok) throw new Error(JSON.stringify(reply));
  return reply.data as Day;
}
const none = { cash_in: '0.00', cash_in_count: 0, cash_out: '0.00', cash_out_count: 0, net_cash: '0.00' };
const nothing = { ...none, transferred: '0.00', transferred_count: 0 };

it('counts on the day of the bank when a posting was accepted, for who posted it', async () => {
  // contract: tills-2
  setCalendar(calendarIn('Africa/Nairobi'));
  const [ada, bob] = [person(), person()];
  const [a, b] = [await ledger.open('Savings', '1000'), await ledger.open('Savings', '0')];
  const by = (actor: string, time: string) => ({ actor, time });
  await ledger.book([
    ledger.cash('Deposit', a, '1', by(ada, '2030-05-01T20:59:59.999Z')),
    ledger.cash('Deposit', a, '10', by(ada, '2030-05-01T21:00:00.000Z')),
    ledger.cash('Withdrawal', a, '4', by(ada, '2030-05-02T20:59:59.999Z')),
    ledger.cash('Deposit', a, '100', by(ada, '2030-05-02T21:00:00.000Z')),
    ledger.cash('Deposit', a, '1000', by(bob, '2030-05-02T12:00:00.000Z')),
    ledger.transfer(a, b, '2.50', by(ada, '2030-05-02T12:00:00.000Z')),
  ]);
  const expected = {
    currency: 'USD',
    cash_in: '10.00',
    cash_in_count: 1,
    cash_out: '4.00',
    cash_out_count: 1,
    net_cash: '6.00',
    transferred: '2.50',
    transferred_count: 1,
  };
  expect(await dayOf(ada, { on: '2030-05-02' })).toMatchObject({ actor: ada, on: '2030-05-02', totals: [expected] });
  expect(await dayOf(ada, {}, '2030-05-02T20:59:00.000Z')).toMatchObject({ on: '2030-05-02', totals: [expected] });
  expect(await dayOf(ada, { on: '2030-05-04' })).toMatchObject({ totals: [], refused: 0, batch_items: 0 });
});

type Item = { account_id: string; transaction_type: 'Deposit' | 'Withdrawal'; amount: string };
function batchOf(actor: string, items: Item[]): Command {
  const bits = freshBits();
  const batch_id = formatId('batch', bits);
  const context = ledger.testContext(bits, { message_id: batch_id, fingerprint: bits, actor });
  const nothing = { currency: null, description: null, reference: null };
  const all = items.map((item) => ({ transaction: { ...item, ...nothing } }));
  return batchCommand({ batch_id, mode: 'independent', items: all }, context);
}

it('counts openings, captures, and reversals as cash, and items of batches and value dates as the contract says', async () => {
  // contract: tills-2, tills-3
  const ada = person();
  const a = await ledger.open('Savings', '1000');
  const by = { actor: ada };
  const [deposit, withdrawal] = [freshBits(), freshBits()];
  const holdBits = freshBits();
  const account = { ...testAccount(1, 'Savings'), account_id: a };
  const opened = (type: 'Savings' | 'Loan', amount: string): Command => {
    const bits = freshBits();
    const command = opening(1, type, amount);
    const account_id = formatId('account', bits);
    const data = { ...command.data, account_id, account_number: `N-${bits}` };
    return { ...command, data, context: ledger.testContext(bits, { message_id: account_id, ...by }) } as Command;
  };
  const hold = placing(account, '30', { context: by });
  const holdId = formatId('hold', holdBits);
  const place = {
    ...hold,
    data: { ...hold.data, hold_id: holdId, expires_at: new Date(Date.now() + 60_000).toISOString() },
    context: ledger.testContext(holdBits, { message_id: holdId, ...by }),
  } as Command;
  const take = capture(1, {});
  const takeBits = freshBits();
  const taken = {
    ...take,
    data: { ...take.data, hold_id: holdId, transaction_id: formatId('transaction', takeBits) },
    context: ledger.testContext(takeBits, by),
  } as Command;
  const replies = await ledger.book([
    ledger.cash('Deposit', a, '50', by, deposit),
    ledger.cash('Withdrawal', a, '20', by, withdrawal),
    ledger.cash('Deposit', a, '7', {
      ...by,
      effective_date: new Date(Date.now() - 86_400_000).toISOString().slice(0, 10),
    }),
    ledger.cash('Withdrawal', a, '99999', by),
    batchOf(ada, [
      { account_id: a, transaction_type: 'Deposit', amount: '3' },
      { account_id: a, transaction_type: 'Withdrawal', amount: '99999' },
    ]),
    opened('Savings', '11'),
    opened('Loan', '500'),
    place,
    taken,
    ledger.cash('Deposit', `acc_${freshBits()}`, '1', by),
  ]);
  expect(replies.map((reply) => reply.ok)).toEqual([true, true, true, false, true, true, true, true, true, false]);
  const before = { cash_in: '68.00', cash_in_count: 3, cash_out: '550.00', cash_out_count: 3, net_cash: '-482.00' };
  const others = { currency: 'USD', transferred: '0.00', transferred_count: 0 };
  expect(await dayOf(ada)).toMatchObject({ totals: [{ ...others, ...before }], refused: 2, batch_items: 2 });
  // Who reverses gives the money back, or takes it back.
  const bob = person();
  await ledger.book([ledger.reversal(`txn_${deposit}`, by), ledger.reversal(`txn_${withdrawal}`, { actor: bob })]);
  expect((await dayOf(ada)).totals).toEqual([
    { ...others, ...before, cash_out: '600.00', cash_out_count: 4, net_cash: '-532.00' },
  ]);
  expect((await dayOf(bob)).totals).toEqual([
    { ...nothing, ...others, cash_in: '20.00', cash_in_count: 1, net_cash: '20.00' },
  ]);
});

it('shows the last five customers, each once, the newest first', async () => {
  // contract: tills-4
  const ada = person();
  const accounts = await Promise.all(Array.from({ length: 7 }, () => ledger.open('Savings', '10')));
  const at = (minute: number) => ({ actor: ada, time: `2030-06-01T10:${String(minute).padStart(2, '0')}:00.000Z` });
  await ledger.book([
    ...accounts.map((account, minute) => ledger.cash('Deposit', account, '1', at(minute))),
    ledger.cash('Deposit', accounts[1] as string, '1', at(30)),
    ledger.cash('Withdrawal', accounts[0] as string, '99999', at(40)),
    ledger.transfer(accounts[3] as string, accounts[0] as string, '1', at(20)),
  ]);
  const { customers } = await dayOf(ada, { on: '2030-06-02' });
  expect(customers.map(({ account_id, served_at }) => [accounts.indexOf(account_id), served_at.slice(14, 16)])).toEqual(
    [
      [1, '30'],
      [3, '20'],
      [6, '06'],
      [5, '05'],
      [4, '04'],
    ],
  );
});

it('is what a simple calculation over every transaction gives', async () => {
  // contract: tills-2, tills-3
  const people = [person(), person(), 'key:key_1'];
  const currencies = ['USD', 'JPY', 'KWD'];
  const accounts = await Promise.all(
    [...currencies, ...currencies].map(async (currency) => ({
      id: await ledger.open('Savings', '100', currency),
      currency,
    })),
  );
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const posted: string[] = [];
  for (let round = 0; round < 40; round++) {
    const commands = Array.from({ length: 10 }, () => {
      const [from, to] = [random(accounts.length), random(accounts.length)].map(
        (i) => accounts[i] as (typeof accounts)[0],
      );
      const amount = fromMinor(BigInt(1 + random(9000)), from?.currency ?? '');
      const rest = {
        actor: people[random(3)] as string,
        time: `2030-07-0${1 + random(3)}T${10 + random(10)}:00:00.000Z`,
        ...(random(5) === 0 && { batch_id: `bat_${freshBits()}` }),
      };
      const kind = random(4);
      if (kind === 0 && posted.length > 0) return ledger.reversal(`txn_${posted[random(posted.length)]}`, rest);
      const bits = freshBits();
      posted.push(bits);
      if (kind === 1) return ledger.transfer(from?.id ?? '', to?.id ?? '', amount, rest, bits);
      return ledger.cash(kind === 2 ? 'Deposit' : 'Withdrawal', from?.id ?? '', amount, rest, bits);
    });
    await ledger.book(commands);
  }
  const { rows } = await ledger.owner.query<{
    currency: string;
    amount_minor: bigint;
    transaction_type: string;
    status: string;
    actor: string;
    created_at: string;
    is_item: boolean;
    is_reversal: boolean;
    of_cash: boolean;
  }>(
    `select currency, amount_minor, transaction_type, status, actor, created_at, batch_id is not null as is_item, reverses_transaction_id is not null as is_reversal,
       (select o.batch_id is null and o.actor <> 'key:key_1' from transactions o where o.transaction_id = t.reverses_transaction_id) is not false as of_cash
     from transactions t where transaction_id = operation_id`,
  );
  expect(rows.length).toBeGreaterThan(350);
  for (const actor of people.slice(0, 2))
    for (const on of ['2030-07-01', '2030-07-02', '2030-07-03']) {
      const own = rows.filter((row) => row.actor === actor && row.created_at.startsWith(on));
      const shown = own.filter(({ is_item }) => !is_item);
      const totals = currencies
        .toSorted()
        .map((currency) => {
          const of = (kind: 'in' | 'out' | 'between') => {
            const some = shown.filter(({ status, transaction_type: type, is_reversal, of_cash, currency: code }) => {
              const cash = (type === 'Deposit' || type === 'Withdrawal') && of_cash;
              const isIn = (type === 'Deposit') !== is_reversal;
              return status === 'Completed' && code === currency && kind === (cash ? (isIn ? 'in' : 'out') : 'between');
            });
            return { minor: some.reduce((sum, row) => sum + row.amount_minor, 0n), count: some.length };
          };
          const [into, out, between] = [of('in'), of('out'), of('between')];
          const text = (minor: bigint) => fromMinor(minor, currency);
          return {
            currency,
            cash_in: text(into.minor),
            cash_in_count: into.count,
            cash_out: text(out.minor),
            cash_out_count: out.count,
            net_cash: text(into.minor - out.minor),
            transferred: text(between.minor),
            transferred_count: between.count,
          };
        })
        .filter((total) => total.cash_in_count + total.cash_out_count + total.transferred_count > 0);
      expect(await dayOf(actor, { on })).toMatchObject({
        totals,
        refused: shown.filter(({ status }) => status === 'Failed').length,
        batch_items: 0, // These items have no batch.
      });
    }
});

it('reads the index of the person, and not the transactions of others', async () => {
  const { rows } = await ledger.owner.query<{ 'QUERY PLAN': string }>(
    "explain select 1 from transactions where actor = 'jwt:x|y' and actor like 'jwt:%' and batch_id is null and transaction_id = operation_id and created_at >= '2030-01-01' and created_at < '2030-01-02'",
  );
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('transactions_by_person');
});
