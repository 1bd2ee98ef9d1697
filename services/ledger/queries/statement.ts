import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { invalidField } from '#libs/contracts/errors.ts';
import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { cutPage, invalidCursor } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { dayBounds, dayTimes } from '../domain/calendar.ts';
import { entryColumns, placed, prefixed } from '../rows.ts';
import { readToday } from './balance.ts';
import { datedDifference, type LineRow, selectDays, selectLines, toLine } from './lines.ts';
import { accountNotFound, bits } from './lists.ts';
import { awaitPostings } from './posting-time.ts';

/** The maximum number of entries of a period, because its totals are sums over them. */
export const maxEntries = 100_000;

interface Account {
  account_id: string;
  account_number: string;
  currency: string;
}

/**
 * What the first page calculates and the later ones take over. The sequences of the period are from `first` (inclusive) to
 * `beyond` (exclusive); `ending` ends it, by value date the account's entries. Too many entries are not summed.
 */
const figures = ['first', 'beyond', 'ending', 'entry_count', 'opening_minor', 'debit_minor', 'credit_minor'] as const;
type Period = Record<(typeof figures)[number], bigint>;
/** Sums are of the SQL type numeric, and so texts. */
type FoundPeriod = Record<keyof Period, bigint | string>;

const accountStatement =
  'select account_id, account_number, currency from accounts where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2)';

/** Returns the account and the totals of a period, without its entries. */
export const periodStatement = `with recursive account as (
    select account_id, account_number, currency, last_sequence from accounts where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2)
  ), wanted as (
    select account_id, time from account, (values ($3::timestamptz), ($4::timestamptz)) as bounds (time)
  ), ${placed}, period as (
    select account_id, first, greatest(first, least(beyond, last_sequence + 1)) as beyond from (
      select account_id, last_sequence, (select sequence from placed where time = $3 limit 1) as first, (select sequence from placed where time = $4 limit 1) as beyond from account
    ) found
  )
  select account_id, account_number, currency, first, beyond, beyond as ending, beyond - first as entry_count, debit_minor, credit_minor,
    coalesce((select balance_after_minor from entries e where e.account_id = $1 and sequence = first - 1), 0) as opening_minor
  from account join period using (account_id) cross join lateral (
    select coalesce(sum(amount_minor) filter (where direction = 'debit'), 0) as debit_minor, coalesce(sum(amount_minor) filter (where direction = 'credit'), 0) as credit_minor
    from entries e where e.account_id = $1 and sequence >= first and sequence < beyond and beyond - first <= ${maxEntries}
  ) totals`;

/**
 * Common table expressions of a period of value dates, from $5 to before $6, which begin at $3 and $4: `period` and the
 * entries `posted` in it, none if they are too many. What was posted for these days later, or on them for others, is in
 * dated_entries.
 */
export const dayPeriod = `with recursive account as (
    select account_id, account_number, currency, last_sequence + 1 as ending from accounts where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2)
  ), wanted as (
    select account_id, time from account, (values ($3::timestamptz), ($4::timestamptz)) as bounds (time)
  ), ${placed}, dated as (
    select sequence, direction, amount_minor, effective_date from account join dated_entries using (account_id) join entries using (account_id, sequence) where sequence < ending
  ), period as (
    select found.*, beyond - first - (select count(*) from dated where sequence >= first and sequence < beyond)
      + (select count(*) from dated where effective_date >= $5::date and effective_date < $6::date) as entry_count
    from (
      select a.*, least(ending, (select sequence from placed where time = $3 limit 1)) as first, least(ending, (select sequence from placed where time = $4 limit 1)) as beyond from account a
    ) found
  ), posted as (
    select direction, amount_minor, created_at, null as effective_date from entries e, period
    where e.account_id = $1 and e.sequence >= first and e.sequence < beyond and entry_count <= ${maxEntries} and not exists (select from dated d where d.sequence = e.sequence)
    union all select direction, amount_minor, null, effective_date from dated where effective_date >= $5::date and effective_date < $6::date
  ), opened as (
    select coalesce((select balance_after_minor from entries e where e.account_id = $1 and sequence = first - 1), 0) + ${datedDifference('first', '$5::date')} as opening_minor from period
  )`;

/** The totals of a period of value dates. */
const dayPeriodStatement = `${dayPeriod}
  select account_id, account_number, currency, ending, first, beyond, entry_count, debit_minor, credit_minor, opening_minor
  from period cross join lateral (
    select coalesce(sum(amount_minor) filter (where direction = 'debit'), 0) as debit_minor, coalesce(sum(amount_minor) filter (where direction = 'credit'), 0) as credit_minor from posted
  ) totals cross join opened`;

const entriesStatement = selectLines(
  `select ${entryColumns} from entries where account_id = $1 and sequence >= $2 and sequence < $3 order by sequence limit $4`,
  'sequence',
);

const dayEntriesStatement = selectLines(
  selectDays(
    'account_id = $1 and sequence >= $2 and sequence < $3',
    { first: '$5', beyond: '$6', from: '$7', to: '$8' },
    'sequence',
    '$4',
  ),
  'sequence',
);

/**
 * The last sequence shown, and the figures of the first page, so that postings between two pages change neither totals nor
 * entries, and a late page costs what its entries cost.
 */
const place = /^\d{1,19}(\.-?\d{1,30}){7}$/;

const toPeriod = (row: FoundPeriod): Period =>
  Object.fromEntries(figures.map((name) => [name, BigInt(row[name])])) as Period;

function readPlace(id: string): { shown: bigint; period: Period } | undefined {
  if (!place.test(id)) return undefined;
  const [shown = 0n, ...values] = id.split('.').map(BigInt);
  return { shown, period: Object.fromEntries(figures.map((name, i) => [name, values[i]])) as Period };
}

/**
 * Returns a statement of an account for a period of posting times or of value dates. Opening balance + credits - debits =
 * closing balance, even if clocks were wrong, because all of them are derived from the same sequences. Entries never
 * change, so both statements see the same ones.
 */
export async function getStatement(
  pool: Pool,
  request: MessageData<'get_statement'>,
  bound: string | undefined,
): Promise<ReplyBody> {
  const { account_id, from, to, limit, after, on, effective_from = on, effective_to = on } = request;
  const reached = after && readPlace(after.id);
  if (after !== undefined && reached === undefined) return invalidCursor;
  const unfinished = on === undefined || reached ? undefined : await unfinishedDay(pool, on);
  if (unfinished) return unfinished;
  const isByDay = (effective_from ?? effective_to) !== undefined;
  const days = dayBounds(effective_from, effective_to);
  const [account, client] = [bits('account', account_id), bits('client', bound)];
  const find = (statement: string, values: readonly string[]) =>
    pool.query<Account & FoundPeriod>(statement, [account, client, ...values]);
  const findPeriod = async () => {
    const times = isByDay ? dayTimes(effective_from, effective_to) : ([from, to] as const);
    await awaitPostings(pool, account, client, times);
    const bounds = [times[0] ?? '-infinity', times[1] ?? 'infinity'];
    return isByDay ? find(dayPeriodStatement, [...bounds, ...days]) : find(periodStatement, bounds);
  };
  const {
    rows: [found],
  } = reached ? await find(accountStatement, []) : await findPeriod();
  if (!found) return accountNotFound(account_id);
  const { currency } = found;
  const period = reached?.period ?? toPeriod(found);
  const { first, beyond, ending, entry_count: count, opening_minor, debit_minor, credit_minor } = period;
  if (count > maxEntries) return tooMany(count, on === undefined ? (isByDay ? 'effective_from' : 'from') : 'on');
  const begin = reached === undefined ? (isByDay ? 1n : first) : reached.shown + 1n;
  const page = [account, begin, ending, limit + 1];
  const { rows } = isByDay
    ? await pool.query<LineRow>(dayEntriesStatement, [...page, first, beyond, ...days])
    : await pool.query<LineRow>(entriesStatement, page);
  const { items, next } = cutPage(rows, limit, {
    item: (row) => toLine(row, bound),
    position: (row) => ({ at: row.created_at, id: [row.sequence, ...figures.map((name) => period[name])].join('.') }),
  });
  const item = {
    account_id: prefixed('acc', found.account_id),
    account_number: found.account_number,
    currency,
    from: from ?? null,
    to: to ?? null,
    ...(effective_from === undefined ? {} : { effective_from }),
    ...(effective_to === undefined ? {} : { effective_to }),
    opening_balance: fromMinor(opening_minor, currency),
    closing_balance: fromMinor(opening_minor + credit_minor - debit_minor, currency),
    debit_total: fromMinor(debit_minor, currency),
    credit_total: fromMinor(credit_minor, currency),
    entry_count: Number(count),
    entries: items,
  };
  const data: MessageResult<'get_statement'> = next === undefined ? { item } : { item, next };
  return { ok: true, data };
}

/** Returns the refusal of a day that has not ended by the database's clock. */
async function unfinishedDay(pool: Pool, on: string): Promise<ReplyBody | undefined> {
  const today = await readToday(pool);
  if (on < today) return undefined;
  const message = `on must be a day that has ended: the bank's day is ${today}; effective_from can be that day`;
  return refused(invalidField('on', message));
}

export function tooMany(count: bigint, field: 'on' | 'from' | 'effective_from' | 'days'): ReplyBody {
  const message =
    field === 'on'
      ? `the day has ${count} entries, a statement at most ${maxEntries}: list them with GET /accounts/:account_id/entries`
      : `the period has ${count} entries: choose one of at most ${maxEntries}`;
  return refused(invalidField(field, message));
}
