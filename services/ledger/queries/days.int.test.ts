import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageName, MessageResult } from '#libs/contracts/messages.ts';
import { messages } from '#libs/contracts/messages.ts';
import { toMinor } from '#libs/contracts/money.ts';
import { plusDays } from '#libs/contracts/times.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { calendarIn } from '#libs/service/days.ts';
import { insertDatedEntries, writeBatch } from '../batch/store.ts';
import { dayAt, dayLimit, setCalendar } from '../domain/calendar.ts';
import type { Books, Command } from '../domain/decision.ts';
import { decide } from '../domain/posting.ts';
import type { AccountState, EntryRecord, TransactionRecord } from '../domain/records.ts';
import { closingLock, uuids } from '../rows.ts';
import { ledgerSchema } from '../schema.ts';
import { freshBits, type LedgerHarness, useLedger } from '../test/harness.ts';
import {
  capture,
  cash,
  idIn,
  placing,
  replyCode,
  reversal,
  testAccount,
  testBooks,
  transfer,
} from '../test/test-kit.ts';
import { getTrialBalance, laterEntries } from './days.ts';

/** Compares reads by value date with sums in SQL over all entries, whatever was posted when and for which day. */
const ledger = useLedger();
/** In this time, the clocks of the zone are set forward, and back in the autumn before. */
const zone = 'Europe/Berlin';
beforeAll(() => setCalendar(calendarIn(zone)));
afterAll(() => setCalendar());

const ask = async <N extends MessageName>(name: N, data: MessageData<N>): Promise<MessageResult<N>> => {
  const reply = await ledger.ask({ name, data } as unknown as Parameters<LedgerHarness['ask']>[0]);
  if (!reply.ok) throw new Error(JSON.stringify(reply.refusal));
  return messages[name].result.parse(reply.data) as MessageResult<N>;
};

const firstDay = '2026-03-20';
const days = 16;
const lastDay = plusDays(firstDay, days - 1);

interface Step {
  at: number;
  from: number;
  to: number;
  back: number;
  kind: 'deposit' | 'transfer' | 'capture' | 'reversal';
}
/** Postings of three accounts at any time of these days, each dated up to ten days back. A reversal is of what was posted before. */
const history = fc.array(
  fc.record<Step>({
    at: fc.integer({ min: 0, max: days * 86_400_000 - 1 }),
    from: fc.integer({ min: 0, max: 2 }),
    to: fc.integer({ min: 0, max: 2 }),
    back: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 10 })),
    kind: fc.constantFrom('deposit', 'transfer', 'capture', 'reversal'),
  }),
  { minLength: 1, maxLength: 60 },
);

let accountsMade = 0;
let holdsMade = 0;

/** Decides and stores a history as the ledger does, but at other times. Returns its accounts. */
async function post(steps: Step[], first = firstDay): Promise<AccountState[]> {
  const accounts = [0, 1, 2].map(() => testAccount(++accountsMade, 'Savings'));
  const books: Books = testBooks(accounts);
  const slots = (['Teller', 'Vault'] as const).map((kind) => books.system(kind, 'USD'));
  for (const [i, slot] of slots.entries()) {
    const mutable = slot as { account_id: string; account_number: string };
    mutable.account_id = formatId('account', freshBits());
    mutable.account_number = `${slot.account_type} ${accountsMade} ${i}`;
  }
  const [transactions, entries]: [TransactionRecord[], EntryRecord[]] = [[], []];
  const reversible: string[] = [];
  for (const { at, from, to, back, kind } of steps.toSorted((a, b) => a.at - b.at)) {
    books.now = new Date(Date.parse(`${first}T00:00:00+01:00`) + at).toISOString();
    const effective_date = back === 0 ? undefined : plusDays(books.now.slice(0, 10), -back);
    const [payer, payee] = [accounts[from], accounts[to]] as [AccountState, AccountState];
    const options = { effective_date, time: books.now };
    const commandOf = (): Command => {
      if (kind === 'deposit') return cash('Deposit', payer, '2.50', options, freshBits());
      if (kind === 'transfer') return transfer(payer, payee, '1.00', options, freshBits());
      if (kind === 'reversal') return reversal(reversible.pop() ?? '', options, freshBits());
      const hold = ++holdsMade;
      const expires_at = new Date(Date.parse(books.now) + 60_000).toISOString();
      decide(placing(payer, '0.75', { n: hold, expires_at, context: { time: books.now } }), books);
      // In cash, or to another account.
      return capture(hold, { ...(from === to ? {} : { to: payee }), effective_date, context: { time: books.now } });
    };
    const decision = decide(commandOf(), books);
    if (replyCode(decision) !== 'done') continue;
    if (kind !== 'reversal') reversible.push(idIn(decision));
    transactions.push(...decision.transactions);
    entries.push(...decision.entries);
  }
  await ledger.owner.query(
    `insert into accounts (account_id, account_number, client_id, account_type, currency, status, created_at)
     select a.*, 'USD', 'Active', now() from unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[]) as a`,
    [
      uuids([...accounts, ...slots].map((a) => a.account_id)),
      [...accounts.map((_, i) => `SAV-${accountsMade}${i}`), ...slots.map((a) => a.account_number)],
      uuids([...accounts, ...slots].map((a) => a.client_id)),
      [...accounts, ...slots].map((a) => a.account_type),
    ],
  );
  if (transactions.length > 0) await writeBatch(ledger.owner, transactions, entries);
  await insertDatedEntries(ledger.owner, entries);
  return accounts;
}

/** The value date of an entry or a transaction in SQL. */
const dayIn = (alias: string) =>
  `coalesce(${alias}.effective_date, (${alias}.created_at at time zone '${zone}')::date)`;

interface Line {
  sequence: bigint;
  day: string;
  change: bigint;
}
async function modelOf(account_id: string): Promise<Line[]> {
  const { rows } = await ledger.owner.query<Line>(
    `select sequence, ${dayIn('e')} as day, case direction when 'credit' then amount_minor else -amount_minor end as change
     from v_entries e where account_id = $1 order by sequence`,
    [account_id],
  );
  return rows;
}
const sum = (lines: Line[]) => lines.reduce((total, { change }) => total + change, 0n);
const minor = (decimal: string) => toMinor(decimal.replace('-', ''), 'USD') as bigint;
const signed = (decimal: string) => (decimal.startsWith('-') ? -minor(decimal) : minor(decimal));

const range = fc.tuple(
  fc.integer({ min: -12, max: days + 2 }),
  fc.integer({ min: 0, max: 12 }),
  fc.integer({ min: 0, max: 2 }),
);
const inPeriod = ({ day }: Line, from: string | undefined, to: string | undefined) =>
  (from === undefined || day >= from) && (to === undefined || day <= to);

describe('any history', () => {
  it('is listed, stated, and summed by value date as the entries say', async () => {
    // contract: days-9, days-11
    await fc.assert(
      fc.asyncProperty(history, fc.array(range, { minLength: 4, maxLength: 4 }), async (steps, ranges) => {
        const accounts = await post(steps);
        for (const { account_id } of accounts) {
          const model = await modelOf(account_id);
          for (const [begin, length, open] of ranges) {
            const effective_from = open === 1 ? undefined : plusDays(firstDay, begin);
            const effective_to = open === 2 ? undefined : plusDays(firstDay, begin + length);
            const filter = { account_id, effective_from, effective_to };
            const within = model.filter((line) => inPeriod(line, effective_from, effective_to));
            const sequences = within.map(({ sequence }) => Number(sequence));
            // Pages of three.
            const listed: number[] = [];
            for (let after: MessageData<'list_entries'>['after']; ; ) {
              const page = await ask('list_entries', { ...filter, limit: 3, order: 'asc', after });
              listed.push(...page.items.map(({ sequence }) => sequence));
              if (!page.next) break;
              after = page.next;
            }
            expect(listed).toEqual(sequences);
            const { item } = await ask('get_statement', { ...filter, limit: 500 });
            expect(item.entries.map(({ sequence }) => sequence)).toEqual(sequences);
            expect(item.entry_count).toBe(sequences.length);
            const before = effective_from === undefined ? [] : model.filter(({ day }) => day < effective_from);
            expect(signed(item.opening_balance)).toBe(sum(before));
            expect(signed(item.closing_balance)).toBe(sum(before) + sum(within));
            const pageOf = { limit: 500, order: 'asc' as const };
            const transactions = await ask('list_transactions', { ...filter, ...pageOf });
            const { rows } = await ledger.owner.query<{ transaction_id: string }>(
              `select transaction_id from v_transactions t where account_id = $1 and ($2::date is null or ${dayIn('t')} >= $2) and ($3::date is null or ${dayIn('t')} <= $3)`,
              [account_id, effective_from ?? null, effective_to ?? null],
            );
            expect(transactions.items.map((one) => one.transaction_id).sort()).toEqual(
              rows.map((row) => row.transaction_id).sort(),
            );
            const transfers = await ask('list_transfers', { ...filter, ...pageOf });
            expect(new Set(transfers.items.map((one) => one.transfer_id))).toEqual(
              new Set(transactions.items.flatMap((one) => one.transfer_id ?? [])),
            );
            for (const one of [...item.entries, ...transactions.items, ...transfers.items])
              expect(inPeriod({ day: one.effective_date ?? '' } as Line, effective_from, effective_to)).toBe(true);
          }
        }
      }),
      { numRuns: 5 },
    );
    expect(lastDay).toBe('2026-04-04');
  });
});

describe('a day of any history', () => {
  it('has the balances, of each account and together, that the entries say', async () => {
    // contract: days-12, days-13, days-14
    await fc.assert(
      fc.asyncProperty(
        history,
        fc.array(fc.integer({ min: -12, max: days }), { minLength: 3, maxLength: 3 }),
        async (steps, offsets) => {
          const accounts = await post(steps);
          for (const offset of [...offsets, 400]) {
            const on = offset === 400 ? new Date().toISOString().slice(0, 10) : plusDays(firstDay, offset);
            if (on > new Date().toISOString().slice(0, 10)) continue;
            const all = new Map<string, bigint>();
            for (let after: string | undefined, as_of: string | undefined; ; ) {
              const page = await ask('list_balances', { on, after, as_of });
              for (const line of page.lines) {
                const { account_id, balance } = JSON.parse(line) as { account_id: string; balance: string };
                all.set(account_id, signed(balance));
              }
              ({ next: after, as_of } = page);
              if (after === undefined) break;
            }
            for (const { account_id } of accounts) {
              const expected = sum((await modelOf(account_id)).filter(({ day }) => day <= on));
              expect(signed((await ask('get_account_balance', { account_id, on })).balance)).toBe(expected);
              expect(all.get(account_id)).toBe(expected);
            }
            // Both ways to find what is later are the same.
            const [searched, read] = await Promise.all(
              [true, false].map((isSearched) =>
                ledger.owner.query(
                  `with recursive ${laterEntries('$1::timestamptz', '$2::date', isSearched)} select account_id, side, sum(change), count(*) from later group by 1, 2 order by 1, 2`,
                  [dayLimit(on, 1), plusDays(on, 1)],
                ),
              ),
            );
            expect(searched?.rows).toEqual(read?.rows);
            const [trial] = await ask('get_trial_balance', { on });
            const {
              rows: [model],
            } = await ledger.owner.query<{ dr: string; cr: string }>(
              `select coalesce(sum(amount_minor) filter (where side = 'DR'), 0) as dr, coalesce(sum(amount_minor) filter (where side = 'CR'), 0) as cr
             from v_entries e where ${dayIn('e')} <= $1 and currency = 'USD'`,
              [on],
            );
            expect(trial && [signed(trial.debit_total), signed(trial.credit_total), trial.difference]).toEqual([
              BigInt(model?.dr ?? 0),
              BigInt(model?.cr ?? 0),
              '0.00',
            ]);
          }
        },
      ),
      { numRuns: 4 },
    );
  });

  it('to come is refused', async () => {
    // contract: days-15
    const account_id = await ledger.open('Savings', '1');
    const on = plusDays(new Date().toISOString().slice(0, 10), 2);
    for (const [name, data] of [
      ['get_account_balance', { account_id, on }],
      ['get_trial_balance', { on }],
      ['list_balances', { on }],
    ] as const)
      expect(await ledger.ask({ name, data } as Parameters<LedgerHarness['ask']>[0])).toMatchObject({
        ok: false,
        refusal: { code: 'validation_failed', errors: [{ field: 'on' }] },
      });
  });
});

it('a trial balance that takes too long says what makes it fast', async () => {
  // contract: days-13
  const on = plusDays(new Date().toISOString().slice(0, 10), -2);
  const impatient = {
    url: ledger.serviceUrl,
    application_name: 'impatient',
    schema: ledgerSchema,
    statement_timeout_ms: 100,
  };
  const pool = createPool(impatient, silent);
  const blocker = await ledger.owner.connect();
  try {
    await blocker.query('begin');
    await blocker.query('lock table accounts in access exclusive mode');
    expect(await getTrialBalance(pool, { on })).toMatchObject({
      ok: false,
      refusal: {
        code: 'service_unavailable',
        message: expect.stringContaining('close the days after it as they end'),
      },
    });
  } finally {
    await blocker.query('rollback');
    blocker.release();
    await pool.end();
  }
});

describe('what moved day by day', () => {
  it('is on each day what the entries of any history say, and what a statement says of all', async () => {
    // contract: days-31
    const today = dayAt(new Date().toISOString());
    const shown = fc.record({ days: fc.integer({ min: 1, max: 366 }), first: fc.integer({ min: -10, max: 380 }) });
    await fc.assert(
      fc.asyncProperty(history, shown, async (steps, { days: asked, first }) => {
        const begin = plusDays(today, -Math.max(days, Math.min(asked, first)));
        for (const { account_id } of await post(steps, begin)) {
          const found = await ask('get_account_days', { account_id, days: asked });
          expect([found.from, found.to]).toEqual([plusDays(today, 1 - asked), today]);
          const model = await modelOf(account_id);
          const until = (day: string) => sum(model.filter((line) => line.day <= day));
          expect(signed(found.opening_balance)).toBe(until(plusDays(found.from, -1)));
          const moved = [...new Set(model.map(({ day }) => day))].filter((day) => day >= found.from).sort();
          expect(found.days.map(({ date, balance }) => [date, signed(balance)])).toEqual(
            moved.map((day) => [day, until(day)]),
          );
          for (const { date, debit_total, credit_total, balance } of found.days.slice(0, 3)) {
            const day = { account_id, effective_from: date, effective_to: date, limit: 1 };
            expect((await ask('get_statement', day)).item).toMatchObject({ debit_total, credit_total });
            expect((await ask('get_account_balance', { account_id, on: date })).balance).toBe(balance);
          }
        }
      }),
      { numRuns: 8 },
    );
  });

  it('is refused for an account that is unknown, or another client’s', async () => {
    // contract: days-31
    const account_id = await ledger.open('Savings', '1');
    const of = (id: string, bound_client_id?: string) =>
      ledger.ask(
        { name: 'get_account_days', data: { account_id: id, days: 7 } } as Parameters<LedgerHarness['ask']>[0],
        {
          bound_client_id,
        },
      );
    expect(await of(account_id)).toMatchObject({
      ok: true,
      data: { days: [{ debit_total: '0.00', balance: '1.00' }] },
    });
    for (const reply of [of(formatId('account', freshBits())), of(account_id, formatId('client', freshBits()))])
      expect(await reply).toMatchObject({ ok: false, refusal: { code: 'account_not_found' } });
  });
});

it('a statement by value date has the same totals on each page, whatever is posted meanwhile', async () => {
  // contract: days-11
  const account_id = await ledger.open('Savings', '10');
  const today = new Date().toISOString().slice(0, 10);
  const day = plusDays(today, -3);
  const dated = () => ledger.cash('Deposit', account_id, '1', { effective_date: day });
  await ledger.book([dated(), dated(), ledger.cash('Withdrawal', account_id, '2')]);
  const ofDay = { account_id, effective_from: day, effective_to: day, limit: 1 };
  const first = await ask('get_statement', ofDay);
  await ledger.book([dated()]);
  const second = await ask('get_statement', { ...ofDay, after: first.next });
  const all = {
    opening_balance: '0.00',
    closing_balance: '2.00',
    credit_total: '2.00',
    debit_total: '0.00',
    entry_count: 2,
  };
  expect(first.item).toMatchObject({ ...all, entries: [{ sequence: 2, effective_date: day, balance_after: '11.00' }] });
  expect(second.item).toMatchObject({ ...all, entries: [{ sequence: 3 }] });
  expect(second.next).toBeUndefined();
  expect((await ask('get_statement', ofDay)).item.entry_count).toBe(3);
});

it('a statement of one day is that of its value dates, once the day has ended', async () => {
  // contract: days-23
  const account_id = await ledger.open('Savings', '10');
  const today = dayAt(new Date().toISOString());
  const day = plusDays(today, -1);
  await ledger.book([ledger.cash('Withdrawal', account_id, '4', { effective_date: day })]);
  const { item } = await ask('get_statement', { account_id, on: day, limit: 9 });
  expect(item).toEqual(
    (await ask('get_statement', { account_id, effective_from: day, effective_to: day, limit: 9 })).item,
  );
  expect(item).toMatchObject({ effective_from: day, effective_to: day, closing_balance: '-4.00', entry_count: 1 });
  for (const on of [today, plusDays(today, 1), '9999-12-31'])
    await expect(ask('get_statement', { account_id, on, limit: 9 })).rejects.toThrow(
      `on must be a day that has ended: the bank's day is ${today}`,
    );
  expect((await ask('get_statement', { account_id, on: '0001-01-01', limit: 9 })).item).toMatchObject({
    entry_count: 0,
  });
});

it('the balances of all accounts wait for the postings that were under way, and hold up no other', async () => {
  // contract: days-14
  const before = await ledger.owner.connect();
  const after = await ledger.owner.connect();
  const share = `begin; select pg_advisory_xact_lock_shared(${closingLock})`;
  try {
    await before.query(share);
    let isAnswered = false;
    const balances = ask('list_balances', {}).then(() => {
      isAnswered = true;
    });
    await sleep(300);
    await after.query(`set statement_timeout = 2000; ${share}`);
    expect(isAnswered).toBe(false);
    await before.query('commit');
    // Not for what began later.
    await balances;
  } finally {
    for (const client of [before, after]) {
      await client.query('rollback; reset statement_timeout');
      client.release();
    }
  }
});

it('a total by value date finds what was dated for other days by their day', async () => {
  const client = await ledger.owner.connect();
  try {
    await client.query(`begin; insert into dated_entries select gen_random_uuid(), n, '2020-01-01' from generate_series(1, 20000) n;
      analyze dated_entries`);
    const later = laterEntries(`'2026-01-01'::timestamptz`, `'2026-01-01'::date`, true);
    const { rows } = await client.query(`explain with recursive ${later} select * from later`);
    expect(JSON.stringify(rows)).toContain('dated_entries_by_day');
  } finally {
    await client.query('rollback');
    client.release();
  }
});
