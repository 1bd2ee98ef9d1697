import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { plusDays } from '#libs/contracts/times.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { dayBounds, dayLimit } from '../domain/calendar.ts';
import { readToday } from './balance.ts';
import { accountNotFound, bits } from './lists.ts';
import { awaitPostings } from './posting-time.ts';
import { dayPeriod, maxEntries, tooMany } from './statement.ts';

/** $7: when each day begins. An entry without a value date of its own has the day in which it was posted. */
const dailyStatement = `${dayPeriod}, moved as (
    select coalesce(effective_date, $5::date + width_bucket(created_at, $7::timestamptz[]) - 1) as date, direction, amount_minor from posted
  )
  select account_number, currency, entry_count, opening_minor, (
    select coalesce(json_agg(json_build_array(date, debit::text, credit::text) order by date), '[]') from (
      select date, coalesce(sum(amount_minor) filter (where direction = 'debit'), 0) as debit, coalesce(sum(amount_minor) filter (where direction = 'credit'), 0) as credit
      from moved group by date
    ) summed
  ) as moved
  from period cross join opened`;

interface Found {
  account_number: string;
  currency: string;
  entry_count: bigint;
  /** numeric */
  opening_minor: string;
  moved: [date: string, debit: string, credit: string][];
}

/** Returns what moved on an account on each of its last days by value date, the current one included, in one statement. */
export async function getAccountDays(
  pool: Pool,
  { account_id, days }: MessageData<'get_account_days'>,
  bound: string | undefined,
): Promise<ReplyBody> {
  const to = await readToday(pool);
  const from = plusDays(to, 1 - days);
  const starts = Array.from({ length: days }, (_, i) => dayLimit(from, i));
  const [account, client, end] = [bits('account', account_id), bits('client', bound), dayLimit(to, 1)];
  await awaitPostings(pool, account, client, [starts[0]]);
  const {
    rows: [found],
  } = await pool.query<Found>(dailyStatement, [account, client, starts[0], end, ...dayBounds(from, to), starts]);
  if (!found) return accountNotFound(account_id);
  const { account_number, currency, entry_count, opening_minor, moved } = found;
  if (entry_count > maxEntries) return tooMany(entry_count, 'days');
  const toText = (minor: bigint) => fromMinor(minor, currency);
  const opening = BigInt(opening_minor);
  let balance = opening;
  const data: MessageResult<'get_account_days'> = {
    account_id,
    account_number,
    currency,
    from,
    to,
    opening_balance: toText(opening),
    days: moved.map(([date, debit, credit]) => {
      balance += BigInt(credit) - BigInt(debit);
      return {
        date,
        debit_total: toText(BigInt(debit)),
        credit_total: toText(BigInt(credit)),
        balance: toText(balance),
      };
    }),
  };
  return { ok: true, data };
}
