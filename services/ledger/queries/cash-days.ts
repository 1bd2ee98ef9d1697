import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { plusDays } from '#libs/contracts/times.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { bankZone, dayAt, dayLimit } from '../domain/calendar.ts';
import { countedIn, lookedAt, sumTotals } from './statistics.ts';

/**
 * The cash of the last days. What a process has summed up of a day that has ended, it keeps as long as the day has as many
 * transactions. It counts them for each answer, but at most once an hour if the day ended a day ago: then only a command
 * that an operator sends again is still decided with a time of that day.
 */

type CashDay = MessageResult<'get_cash_days'>['days'][number];
interface Kept {
  /** The number of the day's transactions. */
  rows: number;
  /** When they were last counted, in ms since 1970. */
  countedAt: number;
  day: CashDay[];
}

const dayMs = 86_400_000;
const hourMs = 3_600_000;
const mostKept = 62;
const kept = new WeakMap<Pool, Map<string, Kept>>();

/** Sums up the cash of a day, from this time on. */
async function sumDay(pool: Pool, date: string, from = dayLimit(date)): Promise<CashDay[]> {
  const totals = await sumTotals(pool, from, dayLimit(date, 1));
  const text = (minor: bigint, currency: string) => fromMinor(minor, currency);
  return totals
    .filter(({ money_in, money_out }) => money_in > 0n || money_out > 0n)
    .map(({ currency, money_in, money_out }) => ({
      date,
      currency,
      money_in: text(money_in, currency),
      money_out: text(money_out, currency),
    }))
    .sort((a, b) => (a.currency < b.currency ? -1 : 1));
}

/** Counts the transactions of a day in the index of times alone. */
async function countRows(pool: Pool, date: string): Promise<number> {
  const { rows } = await pool.query<{ count: bigint }>(
    'select count(*) from transactions where created_at >= $1 and created_at < $2',
    [dayLimit(date), dayLimit(date, 1)],
  );
  return Number(rows[0]?.count ?? 0);
}

/**
 * Returns the cash of these days, the oldest first. It counts at most `most` transactions of the current day, and as many of
 * ended days that were not counted before, or one of these: what is missing then is there when it is asked for again.
 */
export async function getCashDays(
  pool: Pool,
  { days: asked }: MessageData<'get_cash_days'>,
  now: string,
  most = lookedAt,
): Promise<MessageResult<'get_cash_days'>> {
  const to = dayAt(now);
  const from = plusDays(to, 1 - Number(asked));
  const known = kept.get(pool) ?? new Map<string, Kept>();
  kept.set(pool, known);
  const today = await countedIn(pool, dayLimit(to), dayLimit(to, 1), most);
  const found = [await sumDay(pool, to, today.counted_from)];
  let counted_from = today.complete ? to : plusDays(to, 1);
  let left = most;
  const countedAt = Date.parse(now);
  for (let date = plusDays(to, -1); date >= from && counted_from <= to; date = plusDays(date, -1)) {
    const key = `${bankZone()} ${date}`;
    let one = known.get(key);
    const isLongOver = countedAt - Date.parse(dayLimit(date, 1)) > dayMs;
    if (one === undefined || !isLongOver || countedAt - one.countedAt >= hourMs) {
      const rows = await countRows(pool, date);
      if (rows === one?.rows) one = { ...one, countedAt };
      else if (left <= 0) break;
      else {
        left -= rows;
        one = { rows, countedAt, day: await sumDay(pool, date) };
      }
      known.set(key, one);
      const [oldest] = known.keys();
      if (known.size > mostKept && oldest !== undefined) known.delete(oldest);
    }
    found.unshift(one.day);
    counted_from = date;
  }
  return { from, to, complete: counted_from === from, counted_from, days: found.flat() };
}
