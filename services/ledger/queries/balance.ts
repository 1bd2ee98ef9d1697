import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { invalidField } from '#libs/contracts/errors.ts';
import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { readTime } from '#libs/postgres/time.ts';
import { dayAt, dayBounds, dayLimit } from '../domain/calendar.ts';
import { placed } from '../rows.ts';
import { availableMinor } from './available.ts';
import { datedDifference } from './lines.ts';
import { accountNotFound, bits } from './lists.ts';
import { awaitPostings } from './posting-time.ts';

interface BalanceRow {
  account_number: string;
  currency: string;
  /** The current time of the database. */
  now: string;
  sequence: bigint;
  balance_minor: bigint;
  available_minor: bigint;
}

/** $3: the time; null for now. The last entry before a time precedes the first entry at or after it. */
export const balanceStatement = `with recursive account as (
    select account_id, account_number, currency, balance_minor, ${availableMinor} as available_minor, last_sequence from accounts a where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2)
  ), wanted as (
    select account_id, $3::timestamptz as time from account where $3::timestamptz is not null
  ), ${placed}, found as (
    select a.*, p.sequence - 1 as sequence from account a left join placed p using (account_id)
  )
  select account_number, currency, clock_timestamp() as now, coalesce(sequence, last_sequence) as sequence, available_minor,
    case when sequence is null then balance_minor
      else coalesce((select balance_after_minor from entries e where e.account_id = $1 and e.sequence = found.sequence), 0) end as balance_minor
  from found`;

/** The balance by value date before the day $4, which begins at $3. */
const dayBalanceStatement = `with recursive account as (
    select account_id, account_number, currency from accounts a where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2)
  ), wanted as (
    select account_id, $3::timestamptz as time from account
  ), ${placed}, dated as (
    select sequence, direction, amount_minor, effective_date from account join dated_entries using (account_id) join entries using (account_id, sequence)
  )
  select account_number, currency,
    (coalesce((select balance_after_minor from entries e where e.account_id = $1 and e.sequence = p.sequence - 1), 0) + ${datedDifference('p.sequence', '$4::date')})::int8 as balance_minor
  from account join placed p using (account_id)`;

/** Returns the bank's day by the database's clock. */
export const readToday = async (pool: Pool): Promise<string> => dayAt(new Date(await readTime(pool)).toISOString());

/** Returns the refusal of a day that has not begun by the database's clock. */
export async function futureDay(pool: Pool, on: string): Promise<ReplyBody | undefined> {
  const today = await readToday(pool);
  return on > today
    ? refused(invalidField('on', `on must not be in the future: the bank's day is ${today}`))
    : undefined;
}

/** Returns the balance of an account by value date at the end of a day. */
async function getDayBalance(
  pool: Pool,
  account_id: string,
  on: string,
  bound: string | undefined,
): Promise<ReplyBody> {
  const future = await futureDay(pool, on);
  if (future) return future;
  const [account, client, end] = [bits('account', account_id), bits('client', bound), dayLimit(on, 1)];
  await awaitPostings(pool, account, client, [end < new Date().toISOString() ? end : undefined]);
  const {
    rows: [row],
  } = await pool.query<Pick<BalanceRow, 'account_number' | 'currency' | 'balance_minor'>>(dayBalanceStatement, [
    account,
    client,
    end,
    dayBounds(undefined, on)[1],
  ]);
  if (!row) return accountNotFound(account_id);
  const { account_number, currency, balance_minor } = row;
  const balance = fromMinor(balance_minor, currency);
  const data: MessageResult<'get_account_balance'> = { account_id, account_number, currency, balance, on };
  return { ok: true, data };
}

/**
 * Returns an account's current balance, or the balance after the last entry before a given time. Entries never
 * change, and postings before that time that are under way are waited for, so a past balance never changes either.
 */
export async function getAccountBalance(
  pool: Pool,
  { account_id, at, on }: MessageData<'get_account_balance'>,
  bound: string | undefined,
): Promise<ReplyBody> {
  if (on !== undefined) return getDayBalance(pool, account_id, on, bound);
  const [account, client] = [bits('account', account_id), bits('client', bound)];
  await awaitPostings(pool, account, client, [at]);
  const values = [account, client, at ?? null];
  const {
    rows: [row],
  } = await pool.query<BalanceRow>(balanceStatement, values);
  if (!row) return accountNotFound(account_id);
  const { account_number, currency, now, sequence, balance_minor, available_minor } = row;
  if (at !== undefined && at > now)
    return refused(invalidField('at', `at must not be in the future: the current time is ${now}`));
  const data: MessageResult<'get_account_balance'> = {
    account_id,
    account_number,
    currency,
    balance: fromMinor(balance_minor, currency),
    ...(at === undefined ? { available_balance: fromMinor(available_minor, currency) } : {}),
    at: at ?? now,
    sequence: Number(sequence),
  };
  return { ok: true, data };
}
