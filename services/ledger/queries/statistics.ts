import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { invalidField } from '#libs/contracts/errors.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { maxBuckets, type PostingStatistics, type PostingTotals } from '#libs/contracts/statistics.ts';
import type { Pool } from '#libs/postgres/pool.ts';

/**
 * The maximum number of transactions to scan. It limits a query to some tenths of a second, however long the
 * period is.
 */
export const lookedAt = 200_000;

const hourMs = 3_600_000;
const units = {
  minute: { ms: hourMs / 60, defaultMs: hourMs },
  hour: { ms: hourMs, defaultMs: 24 * hourMs },
  day: { ms: 24 * hourMs, defaultMs: 30 * 24 * hourMs },
};

/** Reads, from the index of times alone, the time of the oldest transaction that is scanned; no row: all are. */
export const oldestStatement =
  'select created_at from transactions where created_at >= $1 and created_at < $2 order by created_at desc offset $3 limit 1';

/** Which part of a period is counted: the whole of it, or its newest transactions. */
export async function countedIn(
  pool: Pool,
  from: string,
  to: string,
  most = lookedAt,
): Promise<{ complete: boolean; counted_from: string }> {
  const { rows } = await pool.query<{ created_at: string }>(oldestStatement, [from, to, most]);
  return { complete: rows.length === 0, counted_from: rows[0]?.created_at ?? from };
}

/** The first transaction of each operation represents it. Every unit divides the day of UTC; date_trunc takes twice as long. */
const statisticsStatement = `select date_bin($3::interval, created_at, timestamptz '2000-01-01Z') as start, count(*)::int as operations, sum(amount_minor) as amount_minor
  from transactions where created_at >= $1 and created_at < $2 and status = 'Completed' and transaction_id = operation_id and currency = $4
  group by 1 order by 1`;

interface BucketRow {
  start: string;
  operations: number;
  /** numeric */
  amount_minor: string;
}

/** Returns operations and amounts per currency and unit of time. `now`: ISO 8601 UTC. */
export async function getPostingStatistics(
  pool: Pool,
  { currency, unit, ...period }: MessageData<'get_posting_statistics'>,
  now: string,
): Promise<ReplyBody> {
  const to = period.to ?? now;
  const from = period.from ?? new Date(Date.parse(to) - units[unit].defaultMs).toISOString();
  if ((Date.parse(to) - Date.parse(from)) / units[unit].ms > maxBuckets)
    return refused(invalidField('from', `from must be at most ${maxBuckets} times the unit before to`));
  const { complete, counted_from } = await countedIn(pool, from, to);
  const { rows } = await pool.query<BucketRow>(statisticsStatement, [counted_from, to, `1 ${unit}`, currency]);
  const buckets = rows.map(({ start, operations, amount_minor }) => ({
    start,
    operations,
    amount: fromMinor(BigInt(amount_minor), currency),
  }));
  const data: PostingStatistics = { currency, unit, from, to, complete, counted_from, buckets };
  return { ok: true, data };
}

export const isCash = "transaction_type in ('Deposit', 'Withdrawal')";
// A reversal moves money in the direction opposite to its type.
export const isIn = "((transaction_type = 'Deposit') <> (reverses_transaction_id is not null))";

/**
 * What became of the operations of a period, by currency. One sum of each group takes half the time of a sum for each
 * condition. The case has no meaning, but the plan then expects rows, and does not sort them.
 */
const totalsStatement = `select currency, status, ${isCash} as is_cash, ${isIn} as is_in, count(*)::int as operations, coalesce(sum(amount_minor), 0)::text as amount_minor
  from transactions where created_at >= $1 and created_at < $2 and case when transaction_id = operation_id then true else false end and currency is not null
  group by 1, 2, 3, 4`;

interface TotalsRow {
  currency: string;
  status: 'Completed' | 'Failed';
  is_cash: boolean;
  is_in: boolean;
  operations: number;
  amount_minor: string;
}

/** Operations and sums of a currency, in its minor unit. */
interface Totals {
  currency: string;
  operations: number;
  refused: number;
  money_in: bigint;
  money_out: bigint;
  transferred: bigint;
}

/** Returns the totals of a period, by currency, those with most operations first. */
export async function sumTotals(pool: Pool, from: string, to: string): Promise<Totals[]> {
  const { rows } = await pool.query<TotalsRow>(totalsStatement, [from, to]);
  const totals = new Map<string, Totals>();
  for (const { currency, status, is_cash, is_in, operations, amount_minor } of rows) {
    const none = { operations: 0, refused: 0, money_in: 0n, money_out: 0n, transferred: 0n };
    const total = totals.get(currency) ?? { currency, ...none };
    totals.set(currency, total);
    if (status === 'Failed') total.refused += operations;
    else {
      total.operations += operations;
      total[is_cash ? (is_in ? 'money_in' : 'money_out') : 'transferred'] += BigInt(amount_minor);
    }
  }
  return [...totals.values()].sort((a, b) => b.operations - a.operations || (a.currency < b.currency ? -1 : 1));
}

/** Returns the posted totals by currency. `now`: ISO 8601 UTC. */
export async function getPostingTotals(
  pool: Pool,
  period: MessageData<'get_posting_totals'>,
  now: string,
): Promise<ReplyBody> {
  const to = period.to ?? now;
  const from = period.from ?? new Date(Date.parse(to) - units.day.ms).toISOString();
  const { complete, counted_from } = await countedIn(pool, from, to);
  const totals = (await sumTotals(pool, counted_from, to)).map(({ money_in, money_out, transferred, ...row }) => {
    const text = (minor: bigint) => fromMinor(minor, row.currency);
    return { ...row, money_in: text(money_in), money_out: text(money_out), transferred: text(transferred) };
  });
  const data: PostingTotals = { from, to, complete, counted_from, totals };
  return { ok: true, data };
}
