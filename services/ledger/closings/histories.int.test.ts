import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DayClosing } from '#libs/contracts/days.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { plusDays } from '#libs/contracts/times.ts';
import { calendarIn } from '#libs/service/days.ts';
import { dayAt, setCalendar } from '../domain/calendar.ts';
import type { Command } from '../domain/decision.ts';
import { freshBits, type LedgerHarness, useLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { calculateClosing } from './closer.ts';

/** Compares closed days with sums in SQL over all entries, whatever was posted for which day before and after they were closed. */
const ledger = useLedger();
const zone = 'America/Caracas';
beforeAll(() => setCalendar(calendarIn(zone)));
afterAll(() => setCalendar());

const currency = 'USD';
/** Each run continues with the day after the last closed. */
const firstDaysAgo = 85;
const today = () => dayAt(new Date().toISOString());
const codeOf = (reply: ReplyBody | undefined) => (reply?.ok ? 'done' : reply?.refusal.code);
let closed: string | undefined;
const nextDay = () => (closed === undefined ? plusDays(today(), -firstDaysAgo) : plusDays(closed, 1));

/** A posting dated so many days after the next day to close (or before), or undefined: without a value date. */
const posting = fc.record({
  kind: fc.constantFrom('deposit', 'withdrawal', 'transfer', 'capture', 'reversal' as const),
  from: fc.integer({ min: 0, max: 2 }),
  to: fc.integer({ min: 0, max: 2 }),
  days: fc.option(fc.integer({ min: -2, max: 3 }), { nil: undefined, freq: 6 }),
});
const step = fc.oneof({ weight: 6, arbitrary: posting }, { weight: 1, arbitrary: fc.constant('close' as const) });
type Posting = typeof posting extends fc.Arbitrary<infer T> ? T : never;

const payer = { from: 0, to: 0, days: 0 };
/** Loan payments, one reversed by the payer's leg and one by the Loan's. */
const paidBack: (Posting | 'close')[] = [
  { kind: 'transfer', ...payer },
  { kind: 'reversal', from: 0, to: 1, days: 0 },
  { kind: 'transfer', ...payer },
  { kind: 'reversal', ...payer },
  'close',
];

const model = `select line.*, class from (
    select account_id, coalesce(sum(change) filter (where day < $1), 0) as opening, sum(change) filter (where day = $1) as sum,
      count(*) filter (where day = $1) as count, min(sequence) filter (where day = $1) as first_sequence, max(sequence) filter (where day = $1) as last_sequence
    from (
      select account_id, sequence, case direction when 'credit' then amount_minor else -amount_minor end as change,
        coalesce(effective_date, (created_at at time zone '${zone}')::date) as day
      from v_entries
    ) e group by account_id having count(*) filter (where day = $1) > 0
  ) line join v_accounts using (account_id) order by account_id`;

const totalsModel = `select class, coalesce(sum(change) filter (where day < $1), 0) as opening, coalesce(sum(change) filter (where day <= $1), 0) as closing,
    coalesce(sum(amount_minor) filter (where day = $1 and side = 'DR'), 0) as debits, coalesce(sum(amount_minor) filter (where day = $1 and side = 'CR'), 0) as credits,
    count(*) filter (where day = $1) as entry_count, count(distinct operation_id) filter (where day = $1) as operation_count
  from (
    select e.*, class, case direction when 'credit' then amount_minor else -amount_minor end as change,
      coalesce(effective_date, (e.created_at at time zone '${zone}')::date) as day
    from v_entries e join v_accounts using (account_id)
  ) e group by class order by class desc`;

const trialModel = `select coalesce(sum(amount_minor) filter (where side = 'DR'), 0) as debits, coalesce(sum(amount_minor) filter (where side = 'CR'), 0) as credits,
    coalesce(sum(case direction when 'credit' then amount_minor else -amount_minor end) filter (where class = 'asset'), 0) as assets,
    coalesce(sum(case direction when 'credit' then amount_minor else -amount_minor end) filter (where class = 'liability'), 0) as liabilities
  from v_entries e join v_accounts using (account_id) where coalesce(effective_date, (e.created_at at time zone '${zone}')::date) <= $1`;

const decimal = (minor: unknown) => fromMinor(BigInt(String(minor)), currency);

const ask = async <T>(name: string, data: object): Promise<T> => {
  const reply = await ledger.ask({ name, data } as unknown as Parameters<LedgerHarness['ask']>[0]);
  if (!reply.ok) throw new Error(JSON.stringify(reply.refusal));
  return reply.data as T;
};

/** The trial balance at the end of a day that is closed, and of the next one, which is not or is. */
async function expectTrialBalance(on: string): Promise<void> {
  const { rows } = await ledger.owner.query<Record<string, unknown>>(trialModel, [on]);
  const [trial] = await ask<Record<string, string>[]>('get_trial_balance', { on });
  const [due] = rows;
  expect(trial).toMatchObject({
    debit_total: decimal(due?.['debits']),
    credit_total: decimal(due?.['credits']),
    assets: decimal(due?.['assets']),
    liabilities: decimal(due?.['liabilities']),
  });
}

async function expectAsModelled(date: string): Promise<void> {
  const { lines } = await ask<{ lines: string[] }>('list_day_lines', { date });
  const { rows } = await ledger.owner.query<Record<string, unknown>>(model, [date]);
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual(
    rows.map(({ opening, sum, count, first_sequence, last_sequence, account_id, class: ofClass }) => ({
      account_id,
      account_number: expect.any(String),
      currency,
      class: ofClass,
      opening: decimal(opening),
      closing: decimal(BigInt(String(opening)) + BigInt(String(sum))),
      sum: decimal(sum),
      count: Number(count),
      first_sequence: Number(first_sequence),
      last_sequence: Number(last_sequence),
    })),
  );
  const { totals } = await ask<DayClosing>('get_day_closing', { date });
  const { rows: due } = await ledger.owner.query<Record<string, unknown>>(totalsModel, [date]);
  expect(totals).toEqual(
    due.map(({ class: ofClass, entry_count, operation_count, ...minor }) => ({
      currency,
      class: ofClass,
      opening: decimal(minor['opening']),
      debits: decimal(minor['debits']),
      credits: decimal(minor['credits']),
      closing: decimal(minor['closing']),
      entry_count: Number(entry_count),
      operation_count: Number(operation_count),
    })),
  );
}

it('any history of postings and closings is closed as its entries are', async () => {
  // contract: days-3, days-13, days-16, days-18, days-19
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const accounts = await Promise.all(
        ['Savings', 'Checking', 'Current'].map((type) => ledger.open(type as 'Savings', '20')),
      );
      const loan = await ledger.open('Loan', '100');
      // As if it had been paid out before all of these days, so that its payments may be dated for them.
      await ledger.owner.query(
        `begin; alter table transactions disable trigger transactions_append_only;
         update transactions set created_at = now() - interval '100 days' where account_id = '${loan.slice(4)}';
         alter table transactions enable always trigger transactions_append_only; commit`,
      );
      const reversible: string[] = [];
      const dates: string[] = [];
      const post = async ({ kind, from, to, days }: Posting) => {
        const effective_date = days === undefined ? undefined : plusDays(nextDay(), days);
        const [payer, payee] = [accounts[from] as string, from === to ? loan : (accounts[to] as string)];
        // A reversal names one of two legs.
        if (kind === 'reversal' && from === to) reversible.push(await secondLegOf(reversible.pop()));
        const [reply] = await ledger.book([await commandOf(kind, payer, payee, effective_date, reversible)]);
        const code = codeOf(reply);
        if (effective_date !== undefined && closed !== undefined && effective_date <= closed)
          expect(['day_closed', 'transaction_not_found', 'hold_not_found']).toContain(code);
        else expect(code).not.toBe('day_closed');
        if (reply?.ok && kind !== 'reversal') reversible.push(idOf(reply.data as object));
      };
      for (const one of [...steps, 'close' as const]) {
        if (one !== 'close') {
          await post(one);
          continue;
        }
        const date = nextDay();
        const id = `cmd_${freshBits()}`;
        const command = {
          name: 'close_day',
          data: { date },
          context: ledger.testContext(id, { message_id: id }),
        } as Command;
        expect(codeOf((await ledger.book([command]))[0])).toBe('done');
        closed = date;
        dates.push(date);
        // Half of them are calculated later, when more was posted.
        if (dates.length % 2 === 0) for (const due of dates.slice(-2)) await calculateClosing(ledger.writes, due, {});
      }
      if (dates.length % 2 === 1) await calculateClosing(ledger.writes, dates.at(-1) as string, {});
      for (const date of dates) await expectAsModelled(date);
      const [first = '', last = ''] = [dates[0], dates.at(-1)];
      for (const on of [first, last, plusDays(first, -1), plusDays(first, -3), plusDays(last, 1)])
        await expectTrialBalance(on);
    }),
    // A run begins where the last one has ended, so a failure cannot be made smaller.
    { numRuns: 5, endOnFailure: true, examples: [[[...paidBack]]] },
  );
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});

/** The id of the other transaction of an operation; of its only one, if it has one. */
async function secondLegOf(id = formatId('transaction', freshBits())): Promise<string> {
  const { rows } = await ledger.owner.query<{ bits: string }>(
    "select replace(transaction_id::text, '-', '') as bits from transactions where operation_id = $1 and transaction_id <> operation_id",
    [id.slice(4)],
  );
  return rows[0] ? formatId('transaction', rows[0].bits) : id;
}

/** The id of the transaction that a reply shows, or of the transfer's first. */
function idOf(data: { transaction?: object; transfer?: object }): string {
  const captured = data.transaction ?? data.transfer;
  if (captured) return idOf(captured);
  const { transaction_id, transfer_id } = data as Record<string, string>;
  return transaction_id ?? String(transfer_id).replace('trf_', 'txn_');
}

async function commandOf(
  kind: Posting['kind'],
  payer: string,
  payee: string,
  effective_date: string | undefined,
  reversible: string[],
): Promise<Command> {
  const dated = { effective_date };
  if (kind === 'deposit') return ledger.cash('Deposit', payer, '2.50', dated);
  if (kind === 'withdrawal') return ledger.cash('Withdrawal', payer, '1', dated);
  if (kind === 'transfer') return ledger.transfer(payer, payee, '0.75', dated);
  if (kind === 'reversal') return ledger.reversal(reversible.pop() ?? formatId('transaction', freshBits()), dated);
  const hold_id = formatId('hold', freshBits());
  const given = { amount: '0.50', currency: null, description: null, reference: null };
  const expires_at = new Date(Date.now() + 60_000).toISOString();
  const context = ledger.testContext(hold_id, { message_id: hold_id });
  await ledger.book([{ name: 'place_hold', data: { ...given, hold_id, account_id: payer, expires_at }, context }]);
  const transaction_id = formatId('transaction', freshBits());
  return {
    name: 'capture_hold',
    data: { transaction_id, hold_id, amount: null, to_account_id: payee, final: true, description: null, ...dated },
    context: ledger.testContext(transaction_id, { message_id: transaction_id }),
  };
}
