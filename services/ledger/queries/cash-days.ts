import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { plusDays } from '#libs/contracts/times.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { bankZone, dayAt, dayLimit } from '../domain/calendar.ts';
import { isCash, isIn, lookedAt } from './statistics.ts';

/** The cash of the last days. A day that has ended is counted once per process: no command is decided a day after it was accepted. */

type CashDay = MessageResult<'get_cash_days'>['days'][number];

const dayMs = 86_400_000;
const mostKept = 62;
const kept = new WeakMap<Pool, Map<string, CashDay[]>>();

const sumOf = (condition: string) =>
  `coalesce(sum(amount_minor) filter (where ${isCash} and ${condition} and status = 'Completed'), 0)::text`;
/** Of the newest transactions of a day. `rows`: how many were looked at. */
const statement = `with day as materialized (
    select currency, amount_minor, status, transaction_type, reverses_transaction_id, transaction_id = operation_id as is_first from transactions
    where created_at >= $1 and created_at < $2 order by created_at desc limit $3
  )
  select currency, ${sumOf(isIn)} as money_in, ${sumOf(`not ${isIn}`)} as money_out, (select count(*) from day) as rows
  from day where is_first and currency is not null group by currency order by currency`;

interface Row {
  currency: string;
  money_in: string;
  money_out: string;
  rows: bigint;
}

async function countDay(pool: Pool, date: string, most: number): Promise<{ days: CashDay[]; rows: number }> {
  const { rows } = await pool.query<Row>(statement, [dayLimit(date), dayLimit(date, 1), most]);
  const days = rows.map(({ currency, money_in, money_out }) => ({
    date,
    currency,
    money_in: fromMinor(BigInt(money_in), currency),
    money_out: fromMinor(BigInt(money_out), currency),
  }));
  return { days: days.filter((day) => /[1-9]/.test(day.money_in + day.money_out)), rows: Number(rows[0]?.rows ?? 0) };
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
  const known = kept.get(pool) ?? new Map<string, CashDay[]>();
  kept.set(pool, known);
  const today = await countDay(pool, to, most + 1);
  let counted_from = today.rows > most ? plusDays(to, 1) : to;
  const found = [today.days];
  let left = most;
  for (let date = plusDays(to, -1); date >= from && counted_from <= to; date = plusDays(date, -1)) {
    const key = `${bankZone()} ${date}`;
    let day = known.get(key);
    if (day === undefined) {
      if (left <= 0) break;
      const counted = await countDay(pool, date, 2 ** 31);
      left -= counted.rows;
      day = counted.days;
      if (Date.parse(now) - Date.parse(dayLimit(date, 1)) > dayMs) known.set(key, day);
      const [oldest] = known.keys();
      if (known.size > mostKept && oldest !== undefined) known.delete(oldest);
    }
    found.unshift(day);
    counted_from = date;
  }
  return { from, to, complete: counted_from === from, counted_from, days: found.flat() };
}
