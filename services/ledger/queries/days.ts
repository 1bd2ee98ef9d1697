import { setTimeout as sleep } from 'node:timers/promises';
import type { DayClosing } from '#libs/contracts/days.ts';
import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { idBits, isId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';

import { tookTooLong } from '#libs/postgres/errors.ts';
import { listTable } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { readTime } from '#libs/postgres/time.ts';
import { dayAt, dayBounds, dayLimit } from '../domain/calendar.ts';
import { closingLock, firstId, minorSql, placed, prefixed } from '../rows.ts';
import { futureDay } from './balance.ts';

/** Reads about all accounts on a day, and closed days. */

/**
 * Common table expressions (for `with recursive`): the entries with value dates from a day on, which begins at `time`: what was
 * posted since, but for other days, and what was posted before for these. Either the accounts that were posted to since are
 * searched, or, if these are so many that it takes longer, all entries are read.
 */
export function laterEntries(time: string, day: string, isSearched: boolean): string {
  const columns =
    "e.account_id, e.currency, case when (e.side = 'CR') = (e.direction = 'credit') then 'liability' else 'asset' end as class, e.side, e.amount_minor, case e.direction when 'credit' then e.amount_minor else -e.amount_minor end as change";
  const dated = 'dated_entries d on d.account_id = e.account_id and d.sequence = e.sequence';
  if (!isSearched)
    return `later as (
    select ${columns} from entries e left join ${dated} where coalesce(d.effective_date >= ${day}, e.created_at >= ${time})
  )`;
  return `wanted as (
    select account_id, ${time} as time from accounts where last_posted_at >= ${time}
  ), ${placed}, later as (
    select ${columns} from placed p
      cross join lateral (select * from entries e where e.account_id = p.account_id and e.sequence >= p.sequence offset 0) e left join ${dated}
    where d.effective_date is null or d.effective_date >= ${day}
    union all
    select ${columns} from dated_entries d join entries e using (account_id, sequence) left join placed p using (account_id)
    where d.effective_date >= ${day} and (p.sequence is null or d.sequence < p.sequence)
  )`;
}

/** The look-ups of a search in an account's entries, compared with reading one entry after the other. */
const searchCost = 20;

/** Reports whether the accounts that were posted to since are few, compared with all entries. */
async function areFew(pool: Pool, time: string): Promise<boolean> {
  const { rows } = await pool.query<{ accounts: bigint; entries: number }>(
    `select (select count(*) from accounts where last_posted_at >= $1) as accounts,
       (select reltuples::float8 from pg_class where oid = 'entries'::regclass) as entries`,
    [time],
  );
  const [{ accounts, entries } = { accounts: 0n, entries: 0 }] = rows;
  return Number(accounts) * searchCost < entries;
}

/** The totals now, from those stored in each account, of which no entries are read. */
const totalsNow = `now as (
    select currency, class, sum(balance_minor) as balance, sum(debits_minor) as debits from accounts group by currency, class
  )`;

/** The totals before the day $2, which begins at $1, less those of the closed days from after $3 to before $2. */
const totalsThen = (
  isSearched: boolean,
): string => `${laterEntries('$1::timestamptz', '$2::date', isSearched)}, ${totalsNow}, moved as (
    select currency, class, change, case side when 'DR' then amount_minor else 0 end as debits from later
    union all
    select currency, class, ${minorSql('closing')} - ${minorSql('opening')}, ${minorSql('debits')}
    from day_closings cross join json_to_recordset(totals) as t (currency text, class text, opening text, closing text, debits text)
    where day_closings.date > $3::date and day_closings.date < $2::date
  ), since as (
    select currency, class, sum(change) as change, sum(debits) as debits from moved group by currency, class
  )`;

/**
 * Returns the day until which entries need not be read for the totals at the end of `on`: the last calculated one, if all
 * since then are, because their totals are known.
 */
async function readFrom(pool: Pool, on: string): Promise<string> {
  const { rows } = await pool.query<{ last: string }>(
    'select max(date) as last from day_closings having min(date) <= $1::date + 1 and max(date) > $1::date',
    [on],
  );
  return rows[0]?.last ?? on;
}

/** Returns the totals of all entries and of all balances by class, at the end of a day. */
export async function getTrialBalance(pool: Pool, data: MessageData<'get_trial_balance'>): Promise<ReplyBody> {
  try {
    return await readTrialBalance(pool, data);
  } catch (error) {
    if (data.on === undefined || !tookTooLong(error)) throw error;
    return refused(refusal('service_unavailable', tooManySince(data.on)));
  }
}

const tooManySince = (on: string): string =>
  `adding up what was posted since ${on} takes too long; close the days after it as they end, because those need not be added up`;

async function readTrialBalance(pool: Pool, { on }: MessageData<'get_trial_balance'>): Promise<ReplyBody> {
  const future = on === undefined ? undefined : await futureDay(pool, on);
  if (future) return future;
  const from = on === undefined ? undefined : await readFrom(pool, on);
  const figures =
    from === undefined
      ? `${totalsNow}, figures as (select * from now)`
      : `recursive ${totalsThen(await areFew(pool, dayLimit(from, 1)))}, figures as (
       select currency, class, balance - coalesce(s.change, 0) as balance, n.debits - coalesce(s.debits, 0) as debits
       from now n left join since s using (currency, class)
     )`;
  const { rows } = await pool.query<Record<'debit' | 'credit' | 'assets' | 'liabilities' | 'currency', string>>(
    `with ${figures}
     select currency, sum(debits) as debit, sum(debits + case class when 'liability' then balance else -balance end) as credit,
       coalesce(sum(balance) filter (where class = 'asset'), 0) as assets, coalesce(sum(balance) filter (where class = 'liability'), 0) as liabilities
     from figures group by currency order by currency`,
    from === undefined ? [] : [dayLimit(from, 1), dayBounds(undefined, from)[1], on],
  );
  const data: MessageResult<'get_trial_balance'> = rows.map(({ currency, debit, credit, assets, liabilities }) => ({
    currency,
    debit_total: fromMinor(BigInt(debit), currency),
    credit_total: fromMinor(BigInt(credit), currency),
    assets: fromMinor(BigInt(assets), currency),
    liabilities: fromMinor(BigInt(liabilities), currency),
    difference: fromMinor(BigInt(assets) - BigInt(liabilities), currency),
  }));
  return { ok: true, data };
}

/** The accounts of one page of a file. */
const pageSize = 2000;

/** Returns where the page after that account begins. */
const positionOf = (after: string | undefined): string =>
  after !== undefined && isId('account', after) ? idBits(after) : firstId;

const settledWithinMs = 10_000;

/** The holders of the shared lock of postings. */
const postingsStatement = `select virtualtransaction as id from pg_locks where locktype = 'advisory' and granted and mode = 'ShareLock'
  and database = (select oid from pg_database where datname = current_database()) and (classid::int8 << 32) + objid::int8 = ${closingLock}`;

/**
 * Returns the database's time, before which every posting that was decided is committed or rolled back. A posting reads the
 * time after it has taken the lock, so only those that hold it now matter. It takes no lock itself: no posting waits.
 */
async function settledTime(pool: Pool): Promise<string> {
  const now = new Date(await readTime(pool)).toISOString();
  const postings = async () => (await pool.query<{ id: string }>(postingsStatement)).rows.map(({ id }) => id);
  const until = performance.now() + settledWithinMs;
  for (let waiting = await postings(); waiting.length > 0; ) {
    if (performance.now() > until) throw new Error(`postings begun before ${now} are still not committed`);
    await sleep(10);
    const held = new Set(await postings());
    waiting = waiting.filter((id) => held.has(id));
  }
  return now;
}

/** $1: after this account, $2: currency, $3 and $4: the end of the day and the day after it, $5: posted before, $6: page size. */
const balancesStatement = `with recursive page as (
    select account_id, account_number, currency, balance_minor, last_sequence, last_posted_at from accounts
    where client_id is not null and account_id > $1 and ($2::text is null or currency = $2) order by account_id limit $6
  ), wanted as (
    select account_id, least($3::timestamptz, $5::timestamptz) as time from page where last_posted_at >= least($3::timestamptz, $5::timestamptz)
  ), ${placed}, dated as (
    select account_id, sum(case when (e.direction = 'credit') = (d.effective_date < $4::date) then e.amount_minor else -e.amount_minor end) as change
    from page join dated_entries d using (account_id) join entries e using (account_id, sequence) left join placed p using (account_id)
    where (p.sequence is not null and d.sequence >= p.sequence) = (d.effective_date < $4::date) and e.created_at < $5 group by account_id
  )
  select account_id, account_number, currency,
    (case when p.sequence is null then balance_minor
      else coalesce((select balance_after_minor from entries e where e.account_id = page.account_id and e.sequence = p.sequence - 1), 0) end + coalesce(d.change, 0))::int8 as balance_minor
  from page left join placed p using (account_id) left join dated d using (account_id) order by account_id`;

interface BalanceLine {
  account_id: string;
  account_number: string;
  currency: string;
  balance_minor: bigint;
}

/** Returns a page of the balances of all accounts of clients by value date at the end of a day, as JSON texts. */
export async function listBalances(
  pool: Pool,
  { on, currency, after, as_of }: MessageData<'list_balances'>,
): Promise<ReplyBody> {
  const asOf = as_of ?? (await settledTime(pool));
  const day = on ?? dayAt(asOf);
  const future = as_of === undefined && on !== undefined ? await futureDay(pool, on) : undefined;
  if (future) return future;
  const { rows } = await pool.query<BalanceLine>(balancesStatement, [
    positionOf(after),
    currency ?? null,
    dayLimit(day, 1),
    dayBounds(undefined, day)[1],
    asOf,
    pageSize,
  ]);
  const items = rows.map((row) => ({
    account_id: prefixed('acc', row.account_id),
    account_number: row.account_number,
    currency: row.currency,
    balance: fromMinor(row.balance_minor, row.currency),
  }));
  const next = items.length < pageSize ? undefined : items.at(-1)?.account_id;
  const data: MessageResult<'list_balances'> = { lines: items.map((item) => JSON.stringify(item)), next, as_of: asOf };
  return { ok: true, data };
}

const closingColumns = `date, closed_at, closed_by, totals, accounts_sha256, previous_hash, hash`;
const closings = 'closed_days join day_closings using (date)';
const isDay = (text: string) => /^\d{4}-\d\d-\d\d$/.test(text);

export function listDayClosings(pool: Pool, request: MessageData<'list_day_closings'>): Promise<ReplyBody> {
  return listTable<{ date: string }, unknown>(
    pool,
    {
      from: closings,
      columns: closingColumns,
      filters: {},
      order: ['date'],
      values: ({ at }) => (isDay(at) ? [at] : undefined),
      position: ({ date }) => ({ at: date, id: '' }),
      item: (row) => row,
    },
    request,
  );
}

export async function getDayClosing(pool: Pool, { date }: MessageData<'get_day_closing'>): Promise<ReplyBody> {
  const { rows } = await pool.query<DayClosing | { hash: null }>(
    `select ${closingColumns} from closed_days left join day_closings using (date) where date::text = $1`,
    [date],
  );
  const [closing] = rows;
  if (closing?.hash) return { ok: true, data: closing };
  // The list has only days whose totals are calculated, so this is how a caller learns of a later one.
  const last = await pool.query<{ day: string | null }>('select max(date)::text as day from closed_days');
  const rest = { details: { closed_up_to: last.rows[0]?.day ?? null } };
  return refused(
    closing === undefined
      ? refusal('day_not_found', `day ${date.slice(0, 40)} is not closed`, rest)
      : refusal('service_unavailable', `day ${date} is closed; its totals are being calculated`, rest),
  );
}

/** Returns lines of a day after that of an account, by account. */
export async function readLines(
  pool: Pool,
  date: string,
  after: string,
  limit: number,
): Promise<{ account_id: string; line: string }[]> {
  const { rows } = await pool.query<{ account_id: string; line: string }>(
    'select account_id, line from day_closing_lines where date = $1 and account_id > $2 order by account_id limit $3',
    [date, after, limit],
  );
  return rows;
}

/** Returns a page of the lines of a closed day, as they were hashed. */
export async function listDayLines(pool: Pool, { date, after }: MessageData<'list_day_lines'>): Promise<ReplyBody> {
  const closed = await getDayClosing(pool, { date });
  if (!closed.ok) return closed;
  const rows = await readLines(pool, date, positionOf(after), pageSize);
  const last = rows.at(-1)?.account_id;
  const next = rows.length < pageSize || last === undefined ? undefined : prefixed('acc', last);
  const data: MessageResult<'list_day_lines'> = { lines: rows.map(({ line }) => line), next };
  return { ok: true, data };
}
