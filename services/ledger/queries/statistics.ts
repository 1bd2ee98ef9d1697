import { maxBuckets, type PostingStatistics, type PostingTotals } from '#libs/contracts/administration.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { violationsRefusal } from '#libs/contracts/errors.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
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

/**
 * Selects the newest transactions of the period by the index of times, then aggregates. The first transaction
 * of each operation represents it.
 */
export const statisticsStatement = `with looked_at as materialized (
    select created_at, currency, amount_minor, status, transaction_id = operation_id as is_first_of_operation
    from transactions where created_at >= $1 and created_at < $2 order by created_at desc, transaction_id desc limit ${lookedAt + 1}
  ), buckets as (
    select date_trunc($3, created_at, 'UTC') as start, count(*)::int as operations, sum(amount_minor) as amount_minor
    from looked_at where status = 'Completed' and is_first_of_operation and currency = $4 group by 1
  )
  select count, oldest, start, operations, amount_minor from (select count(*)::int as count, min(created_at) as oldest from looked_at) total left join buckets on true order by start`;

interface BucketRow {
  count: number;
  oldest: string | null;
  start: string | null;
  operations: number | null;
  /** numeric */
  amount_minor: string | null;
}

/** Returns operations and amounts per currency and unit of time. `now`: ISO 8601 UTC. */
export async function getPostingStatistics(
  pool: Pool,
  { currency, unit, ...period }: MessageData<'get_posting_statistics'>,
  now: string,
): Promise<ReplyBody> {
  const to = period.to ?? now;
  const from = period.from ?? new Date(Date.parse(to) - units[unit].defaultMs).toISOString();
  if ((Date.parse(to) - Date.parse(from)) / units[unit].ms > maxBuckets) {
    return {
      ok: false,
      refusal: violationsRefusal([
        {
          field: 'from',
          code: 'validation_failed',
          message: `from must be at most ${maxBuckets} times the unit before to`,
        },
      ]),
    };
  }
  const { rows } = await pool.query<BucketRow>(statisticsStatement, [from, to, unit, currency]);
  const [{ count, oldest } = { count: 0, oldest: null }] = rows;
  const complete = count <= lookedAt;
  const buckets = rows.flatMap(({ start, operations, amount_minor }) =>
    start === null
      ? []
      : [{ start, operations: operations ?? 0, amount: fromMinor(BigInt(amount_minor ?? 0), currency) }],
  );
  const data: PostingStatistics = {
    currency,
    unit,
    from,
    to,
    complete,
    counted_from: complete ? from : (oldest ?? from),
    buckets,
  };
  return { ok: true, data };
}

const isCash = "transaction_type in ('Deposit', 'Withdrawal')";
// A reversal moves money in the direction opposite to its type.
const isIn = "((transaction_type = 'Deposit') <> (reverses_transaction_id is not null))";
const sumOf = (condition: string) =>
  `coalesce(sum(amount_minor) filter (where status = 'Completed' and ${condition}), 0)`;

/** Aggregates the same rows by currency. */
const totalsStatement = `with looked_at as materialized (
    select created_at, currency, amount_minor, status, transaction_type, reverses_transaction_id, transaction_id = operation_id as is_first_of_operation
    from transactions where created_at >= $1 and created_at < $2 order by created_at desc, transaction_id desc limit ${lookedAt + 1}
  ), totals as (
    select currency, (count(*) filter (where status = 'Completed'))::int as operations, (count(*) filter (where status = 'Failed'))::int as refused,
      ${sumOf(`${isCash} and ${isIn}`)} as money_in, ${sumOf(`${isCash} and not ${isIn}`)} as money_out, ${sumOf(`not ${isCash}`)} as transferred
    from looked_at where is_first_of_operation and currency is not null group by currency
  )
  select count, oldest, totals.* from (select count(*)::int as count, min(created_at) as oldest from looked_at) total left join totals on true order by operations desc, currency`;

interface TotalsRow {
  count: number;
  oldest: string | null;
  currency: string | null;
  operations: number;
  refused: number;
  /** numeric */
  money_in: string;
  money_out: string;
  transferred: string;
}

/** Returns the posted totals by currency. `now`: ISO 8601 UTC. */
export async function getPostingTotals(
  pool: Pool,
  period: MessageData<'get_posting_totals'>,
  now: string,
): Promise<ReplyBody> {
  const to = period.to ?? now;
  const from = period.from ?? new Date(Date.parse(to) - units.day.ms).toISOString();
  const { rows } = await pool.query<TotalsRow>(totalsStatement, [from, to]);
  const [{ count, oldest } = { count: 0, oldest: null }] = rows;
  const complete = count <= lookedAt;
  const totals = rows.flatMap(({ currency, operations, refused, money_in, money_out, transferred }) => {
    if (currency === null) return [];
    const text = (minor: string) => fromMinor(BigInt(minor), currency);
    const sums = { money_in: text(money_in), money_out: text(money_out), transferred: text(transferred) };
    return [{ currency, operations, refused, ...sums }];
  });
  const data: PostingTotals = { from, to, complete, counted_from: complete ? from : (oldest ?? from), totals };
  return { ok: true, data };
}
