import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DayClosing } from '#libs/contracts/days.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { plusDays } from '#libs/contracts/times.ts';
import { unpackEvents } from '#libs/postgres/outbox/outbox-messages.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { calendarIn } from '#libs/service/days.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { readScrape } from '../../../tests/support/metrics.ts';
import { republishBalances } from '../batch/republish.ts';
import { dayAt, setCalendar } from '../domain/calendar.ts';
import type { Command } from '../domain/decision.ts';
import { measureBooks } from '../measure.ts';
import { closerLock, closingLock } from '../rows.ts';
import { ledgerSchema } from '../schema.ts';
import { freshBits, type LedgerHarness, useLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { calculateClosing, createCloser } from './closer.ts';
import { checkZone } from './zone.ts';

/** Tests the contract of closed days on a real Postgres. Nothing is posted on days before today but by value date. */
const ledger = useLedger();
beforeAll(() => setCalendar(calendarIn('Pacific/Kiritimati')));
afterAll(() => setCalendar());

const today = () => dayAt(new Date().toISOString());
const ago = (days: number) => plusDays(today(), -days);
const closing = (date: string, context = {}): Command => ({
  name: 'close_day',
  data: { date },
  context: ledger.testContext(freshBits(), { message_id: `cmd_${freshBits()}`, ...context }),
});
const codes = (replies: ReplyBody[]) => replies.map((reply) => (reply.ok ? 'done' : reply.refusal.code));
const ask = async <T>(name: string, data: object): Promise<T> => {
  const reply = await ledger.ask({ name, data } as unknown as Parameters<LedgerHarness['ask']>[0]);
  if (!reply.ok) throw new Error(JSON.stringify(reply.refusal));
  return reply.data as T;
};
const close = async (date: string) => {
  expect(codes(await ledger.book([closing(date)]))).toEqual(['done']);
  await calculateClosing(ledger.writes, date, { '0': 7 });
  return ask<DayClosing>('get_day_closing', { date });
};
const deposit = (account: string, amount: string, effective_date?: string) =>
  ledger.cash('Deposit', account, amount, { effective_date });

it('closes days in order, once, each with what its entries were, in a chain', async () => {
  // contract: days-16, days-18, days-19, days-20, days-21, days-22
  const [a, b] = [await ledger.open('Savings', '100'), await ledger.open('Checking', '0')];
  await ledger.book([
    deposit(a, '1', ago(11)),
    deposit(a, '10', ago(7)),
    ledger.transfer(a, b, '4', { effective_date: ago(7) }),
    deposit(b, '2', ago(6)),
    ledger.transfer(a, b, '1'),
  ]);
  expect(codes(await ledger.book([closing(today())]))).toEqual(['day_not_closable']);
  expect(codes(await ledger.book([closing(plusDays(today(), 1))]))).toEqual(['day_not_closable']);
  const first = await close(ago(7));
  const usd = { currency: 'USD' };
  expect(first).toMatchObject({
    date: ago(7),
    closed_by: 'test',
    previous_hash: '0'.repeat(64),
    totals: [
      // Both deposits and the transfer are of customers; cash has moved through Teller to Vault.
      {
        ...usd,
        class: 'liability',
        opening: '1.00',
        debits: '4.00',
        credits: '14.00',
        closing: '11.00',
        entry_count: 3,
        operation_count: 2,
      },
      {
        ...usd,
        class: 'asset',
        opening: '1.00',
        debits: '20.00',
        credits: '10.00',
        closing: '11.00',
        entry_count: 3,
        operation_count: 1,
      },
    ],
  });
  const { lines } = await ask<{ lines: string[] }>('list_day_lines', { date: ago(7) });
  const shown = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(shown.find(({ account_id }) => account_id === a)).toEqual({
    account_id: a,
    account_number: `N-${a}`,
    currency: 'USD',
    class: 'liability',
    opening: '1.00',
    closing: '7.00',
    sum: '6.00',
    count: 2,
    first_sequence: 3,
    last_sequence: 4,
  });
  expect(shown.find(({ account_id }) => account_id === b)).toMatchObject({
    opening: '0.00',
    closing: '4.00',
    sum: '4.00',
    count: 1,
  });
  const sha = (text: string) => hash('sha256', text);
  expect(first.accounts_sha256).toBe(sha(lines.map((line) => `${line}\n`).join('')));
  expect(first.hash).toBe(sha('0'.repeat(64) + first.accounts_sha256));

  // Nothing is posted for that day or an earlier one any more.
  const refused = [
    deposit(a, '1', ago(7)),
    deposit(a, '1', ago(8)),
    ledger.transfer(a, b, '1', { effective_date: ago(7) }),
  ];
  expect(codes(await ledger.book(refused))).toEqual(['day_closed', 'day_closed', 'day_closed']);
  await expect(
    ledger.owner.query('insert into dated_entries values ($1, 1, $2)', [a.slice(4), ago(7)]),
  ).rejects.toMatchObject({ code: '23001' });
  expect(codes(await ledger.book([closing(ago(7))]))).toEqual(['day_closed']);
  expect(codes(await ledger.book([closing(ago(5))]))).toEqual(['day_not_closable']);
  // In one batch, what comes before the closing is before it.
  const [before, within, after] = [deposit(b, '5', ago(6)), closing(ago(6)), deposit(b, '6', ago(6))];
  expect(codes(await ledger.book([before, within, after]))).toEqual(['done', 'done', 'day_closed']);
  expect(codes(await ledger.book([within]))).toEqual(['done']);
  await calculateClosing(ledger.writes, ago(6), { '0': 9 });
  const second = await ask<DayClosing>('get_day_closing', { date: ago(6) });
  expect(second).toMatchObject({
    previous_hash: first.hash,
    totals: [{ opening: '11.00', credits: '7.00', closing: '18.00' }, { opening: '11.00' }],
  });
  expect(await ask('list_day_closings', { limit: 10, order: 'desc' })).toEqual({ items: [second, first] });

  // The closing of a day is one event, with its totals.
  const { rows } = await ledger.owner.query<{ records: Buffer }>('select records from outbox order by batch_id');
  const events = rows.flatMap(({ records }) => unpackEvents(records, 'corebanking.day.closed.v1'));
  const days = events.filter(({ topic }) => topic === 'days');
  const system_accounts = shown.filter(({ account_number }) => /^(TLR|VLT)-/.test(String(account_number)));
  expect(system_accounts).toMatchObject([{ class: 'asset' }, { class: 'asset' }]);
  expect(days.map(({ key, payload }) => [key, JSON.parse(payload ?? '')])).toEqual([
    [ago(7), { ...first, last_sequences: { '0': 7 }, system_accounts }],
    [ago(6), { ...second, last_sequences: { '0': 9 }, system_accounts: [expect.anything(), expect.anything()] }],
  ]);
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});

it('a closing never changes: the database refuses it, also to its owner', async () => {
  // contract: days-21
  for (const table of ['closed_days', 'day_closings', 'day_closing_lines'])
    for (const statement of [`update ${table} set date = date`, `delete from ${table}`, `truncate ${table} cascade`])
      await expect(ledger.owner.query(statement), statement).rejects.toMatchObject({ code: '23001' });
  await expect(
    ledger.owner.query('insert into closed_days values ($1, now(), $2, $2)', [ago(3), 'x']),
  ).rejects.toMatchObject({ code: '23001' });
});

it.each([
  ['an amount of a line', `update day_closing_lines set line = replace(line, '"sum":"6.00"', '"sum":"6.01"')`, 2],
  ['a line that is missing', `delete from day_closing_lines where line like '%"sum":"6.00"%'`, 2],
  ['a total', `update day_closings set totals = replace(totals::text, '"debits":"4.00"', '"debits":"4.01"')::json`, 1],
  ['a hash', `update day_closings set hash = repeat('1', 64) where previous_hash = repeat('0', 64)`, 1],
  [
    'an entry of a closed day',
    'update entries set amount_minor = amount_minor + 1 where (account_id, sequence) in (select account_id, sequence from dated_entries where sequence = 3)',
    1,
  ],
])('verify-books finds a closed day with another %s', async (_, statement, rules) => {
  // contract: days-21
  const client = await ledger.owner.connect();
  try {
    await client.query('begin');
    for (const table of ['day_closings', 'day_closing_lines', 'entries', 'dated_entries'])
      await client.query(`alter table ${table} disable trigger all`);
    await client.query(statement);
    const { checkBooks } = await import('../verify/verify-books.ts');
    const found = (await checkBooks(client)).map(({ rule }) => rule).filter((rule) => rule.includes('closed day'));
    expect(found).toHaveLength(rules);
  } finally {
    await client.query('rollback');
    client.release();
  }
});

it('a closed day is being calculated until its totals are known, and has no later postings', async () => {
  // contract: days-18
  const date = ago(5);
  const a = await ledger.open('Savings', '1');
  await ledger.book([deposit(a, '3', date), closing(date)]);
  for (const name of ['get_day_closing', 'list_day_lines'])
    await expect(ask(name, { date })).rejects.toThrow(`day ${date} is closed; its totals are being calculated`);
  await expect(ask('get_day_closing', { date: ago(4) })).rejects.toThrow('day_not_found');
  for (const day of [date, ago(4)])
    expect(
      await ledger.ask({ name: 'get_day_closing', data: { date: day } } as Parameters<LedgerHarness['ask']>[0]),
    ).toMatchObject({ ok: false, refusal: { details: { closed_up_to: date } } });
  const withoutTotals = async () => {
    const metrics = createMetrics('ledger');
    measureBooks(metrics, ledger.reads);
    return readScrape(await metrics.text()).value('corebanking_books_day_without_totals_seconds');
  };
  expect(await withoutTotals()).toBeGreaterThan(0);
  await ledger.book([deposit(a, '100', ago(4))]);
  await calculateClosing(ledger.writes, date, {});
  expect(await withoutTotals()).toBe(0);
  expect(await ask('get_day_closing', { date })).toMatchObject({ totals: [{ credits: '3.00' }, {}] });
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});

it('a posting beside a closing is wholly before or after it', async () => {
  // contract: days-19
  const date = ago(4);
  const accounts = await Promise.all([1, 2, 3, 4].map(() => ledger.open('Savings', '10')));
  const posting = async (slot: number) => {
    const done: string[] = [];
    for (let i = 0; i < 25; i++) {
      const account = accounts[(i + slot) % 4] as string;
      const reply = await ledger.book([deposit(account, '1', date), deposit(account, '1')], slot);
      done.push(...codes(reply).slice(0, 1));
      expect(codes(reply)[1]).toBe('done');
    }
    return done;
  };
  const closed = sleep(60).then(() => ledger.book([closing(date)], 2));
  const outcomes = await Promise.all([posting(0), posting(1)]);
  expect(codes(await closed)).toEqual(['done']);
  for (const done of outcomes) expect(done).toEqual(done.toSorted((x, y) => (x === y ? 0 : x === 'done' ? -1 : 1)));
  const booked = outcomes.flat().filter((code) => code === 'done').length;
  await calculateClosing(ledger.writes, date, {});
  const { lines } = await ask<{ lines: string[] }>('list_day_lines', { date });
  const counts = lines.map((line) => JSON.parse(line) as { account_id: string; count: number });
  expect(
    counts.filter(({ account_id }) => accounts.includes(account_id)).reduce((sum, { count }) => sum + count, 0),
  ).toBe(
    // The deposit of another test is of that day, too.
    booked,
  );
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});

it('a calculation that is stopped writes no closing, and is continued with the same lines', async () => {
  // contract: days-18
  const date = ago(3);
  const a = await ledger.open('Savings', '1');
  await ledger.book([deposit(a, '4', date), closing(date)]);
  let pages = 0;
  const stored = async () =>
    (await ledger.owner.query<{ line: string }>('select line from day_closing_lines where date = $1', [date])).rows;
  expect(await calculateClosing(ledger.writes, date, {}, () => pages++ === 0)).toBe(false);
  const lines = await stored();
  expect(lines.map(({ line }) => line).join()).toContain(a);
  await expect(ask('list_day_lines', { date })).rejects.toThrow('its totals are being calculated');
  expect(await verifyBooks(ledger.owner)).toEqual([]);
  await ledger.book([deposit(a, '100')]);
  expect(await calculateClosing(ledger.writes, date, {})).toBe(true);
  expect(await stored()).toEqual(lines);
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});

it('one ledger calculates a closed day, and the next one if it is gone', async () => {
  // contract: days-18
  const date = ago(2);
  const a = await ledger.open('Savings', '1');
  await ledger.book([deposit(a, '5', date), closing(date)]);
  await ledger.owner.query('update outbox_batches set published_at = now()');
  const pools = [0, 1].map(() =>
    createPool({ url: ledger.serviceUrl, application_name: 'closes', schema: ledgerSchema, max: 2 }, silent),
  );
  const begun: number[] = [];
  let isDone = false;
  const until = Promise.withResolvers<void>();
  const closers = pools.map((pool, i) =>
    createCloser({
      pool,
      // The first ledger stops responding in the middle of its calculation.
      async lastOffsets() {
        if (begun.push(i) === 1) await until.promise;
        return {};
      },
      fail: () => expect.unreachable(),
      wake: () => {
        isDone = true;
      },
      logger: silent,
    }),
  );
  for (const closer of closers) closer.start();
  const gone = await eventually(async () => begun[0]);
  const rest = closers[1 - gone] as (typeof closers)[0];
  await sleep(200);
  rest.wake();
  await sleep(200);
  expect([begun, isDone]).toEqual([[gone], false]);
  // The host of the first one is gone.
  await ledger.owner.query(
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = ${closerLock % 2 ** 32} and granted`,
  );
  rest.wake();
  await eventually(async () => isDone);
  expect(begun).toEqual([gone, 1 - gone]);
  expect(await ask('get_day_closing', { date })).toMatchObject({ date });
  until.reject(new Error('ended'));
  await Promise.all(closers.map((closer) => closer.stop()));
  await Promise.all(pools.map((pool) => pool.end()));
});

it('a closing waits for the postings that are being decided, and postings wait for a closing', async () => {
  // contract: days-19
  const account = await ledger.open('Savings', '10');
  const date = ago(1);
  const session = await ledger.owner.connect();
  const waiting = async () => {
    const { rows } = await ledger.owner.query(
      "select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())",
    );
    return rows.length;
  };
  const untilOneWaits = async () => {
    for (let i = 0; (await waiting()) === 0; i++) {
      if (i > 200) throw new Error('nothing waits for the lock');
      await sleep(20);
    }
  };
  try {
    await session.query(`begin; select pg_advisory_xact_lock_shared(${closingLock})`);
    let closed = false;
    const close = ledger.book([closing(date)]).then((replies) => {
      closed = true;
      return replies;
    });
    await untilOneWaits();
    expect(closed).toBe(false);
    await session.query('commit');
    expect(codes(await close)).toEqual(['done']);
    await session.query(`begin; select pg_advisory_xact_lock(${closingLock})`);
    const posted = ledger.book([deposit(account, '1')], 1);
    await untilOneWaits();
    await session.query('commit');
    expect(codes(await posted)).toEqual(['done']);
  } finally {
    session.release(true);
  }
  await calculateClosing(ledger.writes, date, {});
});

it('books with closed days are not used in another time zone', async () => {
  // contract: days-29
  const a = await ledger.open('Savings', '1');
  setCalendar(calendarIn('Europe/Paris'));
  const message =
    /^BANK_TIME_ZONE is Europe\/Paris, but .* closed in Pacific\/Kiritimati.*set BANK_TIME_ZONE=Pacific\/Kiritimati/;
  try {
    await expect(ledger.book([deposit(a, '1')])).rejects.toThrow(message);
    await expect(checkZone(ledger.reads)).rejects.toThrow(message);
    // A ledger that ran before the first closing ends, and `bank republish`, which has no zone, needs none.
    const failed = Promise.withResolvers<Error>();
    const lastOffsets = async () => ({});
    const closer = createCloser({
      pool: ledger.writes,
      lastOffsets,
      fail: failed.resolve,
      wake: () => expect.unreachable(),
      logger: silent,
    });
    closer.start();
    expect((await failed.promise).message).toMatch(message);
    await closer.stop();
    await republishBalances(ledger.writes, [a]);
    expect((await readOutbox(ledger.owner)).some(({ key, isAgain }) => key === a && isAgain)).toBe(true);
  } finally {
    setCalendar(calendarIn('Pacific/Kiritimati'));
  }
  await checkZone(ledger.reads);
  expect(codes(await ledger.book([deposit(a, '1')]))).toEqual(['done']);
});
