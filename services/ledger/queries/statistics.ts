import { maxBuckets, type PostingStatistics } from '#libs/contracts/administration.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { violationsRefusal } from '#libs/contracts/errors.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { Pool } from '#libs/postgres/pool.ts';

/** How many transactions are looked at: some tenths of a second of reading, however long the period. */
export const lookedAt = 200_000;

const hourMs = 3_600_000;
const units = {
  minute: { ms: hourMs / 60, defaultMs: hourMs },
  hour: { ms: hourMs, defaultMs: 24 * hourMs },
  day: { ms: 24 * hourMs, defaultMs: 30 * 24 * hourMs },
};

/** The newest of the period by the index of times, then added up: the first transaction of each operation stands for it. */
export const statisticsStatement = `with looked_at as materialized (
    select created_at, currency, amount_minor, status, transaction_id = operation_id as stands_for_operation
    from transactions where created_at >= $1 and created_at < $2 order by created_at desc, transaction_id desc limit ${lookedAt + 1}
  ), buckets as (
    select date_trunc($3, created_at, 'UTC') as start, count(*)::int as operations, sum(amount_minor) as amount_minor
    from looked_at where status = 'Completed' and stands_for_operation and currency = $4 group by 1
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

/** Operations and amounts of a currency per unit of time. `now`: ISO 8601 UTC. */
export async function getPostingStatistics(pool: Pool, { currency, unit, ...period }: MessageData<'get_posting_statistics'>, now: string): Promise<ReplyBody> {
  const to = period.to ?? now;
  const from = period.from ?? new Date(Date.parse(to) - units[unit].defaultMs).toISOString();
  if ((Date.parse(to) - Date.parse(from)) / units[unit].ms > maxBuckets) {
    return { ok: false, refusal: violationsRefusal([{ field: 'from', code: 'validation_failed', message: `from must be at most ${maxBuckets} times the unit before to` }]) };
  }
  const { rows } = await pool.query<BucketRow>(statisticsStatement, [from, to, unit, currency]);
  const [{ count, oldest } = { count: 0, oldest: null }] = rows;
  const complete = count <= lookedAt;
  const buckets = rows.flatMap(({ start, operations, amount_minor }) => (start === null ? [] : [{ start, operations: operations ?? 0, amount: fromMinor(BigInt(amount_minor ?? 0), currency) }]));
  const data: PostingStatistics = { currency, unit, from, to, complete, counted_from: complete ? from : (oldest ?? from), buckets };
  return { ok: true, data };
}
