import { createHash, hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { DayClosing, DayLine } from '#libs/contracts/days.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { type Sweeping, sweeping } from '#libs/service/sweeping.ts';
import { dayLimit, requireZone } from '../domain/calendar.ts';
import { readLines } from '../queries/days.ts';
import { closerLock, firstId, placed, prefixed } from '../rows.ts';
import { checkZone } from './zone.ts';

/**
 * Calculates what a closed day had, after it was closed (domain/days.ts): no posting waits for it. Since the entries of the
 * day cannot change any more, each account can be read in a statement of its own, whatever is posted meanwhile. A calculation
 * that is interrupted begins again, and writes the same lines. Each statement reads some accounts, so that none holds up a vacuum
 * for longer than these take: seconds, but for a Vault with all of a day's postings in cash.
 */

export interface CloserOptions {
  /** Of two connections: one holds the lock, so that one ledger calculates. */
  pool: Pool;
  /** Returns the offset of the last record of each partition of `transactions`. */
  lastOffsets: () => Promise<Record<string, number>>;
  /** Is called if days were closed in another zone than that of this process: its reads of days would be wrong. */
  fail: (error: Error) => void;
  /** Wakes the outbox relay. */
  wake: () => void;
  logger: Logger;
}

const pauseMs = 10_000;
const publishedWithinMs = 30_000;
/** The accounts, and the lines, that are read at a time. */
const pageSize = 2000;
/** Postgres notices within half a minute that the host of the session is gone, and releases its lock. */
const lockStatement = `select set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '10', false),
  set_config('tcp_keepalives_count', '2', false), pg_try_advisory_lock(${closerLock}) as taken`;

/** Every ledger has one. The first that has the lock calculates, and the next one continues if it is gone. */
export function createCloser({ pool, lastOffsets, fail, wake, logger }: CloserOptions): Sweeping {
  let isStopping = false;
  const continues = () => !isStopping;
  const sweep = async (): Promise<boolean> => {
    await checkZone(pool).catch(fail);
    if ((await firstDue(pool)) === undefined) return false;
    const holder = await pool.connect();
    try {
      const { rows } = await holder.query<{ taken: boolean }>(lockStatement);
      const date = rows[0]?.taken ? await firstDue(pool) : undefined;
      if (date === undefined || !(await eventsPublished(pool, continues))) return false;
      const isDone = await calculateClosing(pool, date, await lastOffsets(), continues);
      if (isDone) wake();
      return isDone;
    } finally {
      // Closing the session releases the lock in any state.
      holder.release(true);
    }
  };
  const { stop, ...work } = sweeping('calculating a closed day', sweep, pauseMs, logger);
  return {
    ...work,
    stop() {
      isStopping = true;
      return stop();
    },
  };
}

/** Returns the first closed day that is not calculated. Throws if it was closed in another zone. */
async function firstDue(pool: Pool): Promise<string | undefined> {
  const { rows } = await pool.query<{ date: string; time_zone: string }>(
    `select date, time_zone from closed_days where date > coalesce((select max(date) from day_closings), '-infinity') order by date limit 1`,
  );
  requireZone(rows[0]?.time_zone);
  return rows[0]?.date;
}

/** Waits until the events of all postings that were committed before are published. Returns false if it ends before. */
async function eventsPublished(pool: Pool, continues: () => boolean): Promise<boolean> {
  const { rows } = await pool.query<{ last: bigint | null }>('select max(batch_id) as last from outbox_batches');
  const last = rows[0]?.last ?? 0n;
  const isWaiting = async () =>
    (await pool.query('select from outbox_batches where published_at is null and batch_id <= $1 limit 1', [last]))
      .rowCount === 1;
  for (const until = performance.now() + publishedWithinMs; await isWaiting(); await sleep(50)) {
    if (!continues()) return false;
    if (performance.now() > until) throw new Error('the events of the day are not published yet');
  }
  return true;
}

/** An account, with what it had on the day. Sums are text, because their SQL type is numeric. */
interface AccountRow {
  account_id: string;
  account_number: string;
  currency: string;
  class: 'liability' | 'asset';
  opening: string;
  debits: string;
  credits: string;
  sum: string;
  count: bigint;
  operations: bigint;
  liability_operations: bigint;
  first_sequence: bigint | null;
  last_sequence: bigint | null;
  is_system: boolean;
}

const isPayment =
  "exists (select from transactions t where id_key(t.transaction_id) = id_key(e.transaction_id) and t.transaction_type = 'Loan Payment')";

/**
 * The accounts after $1, with what they had on the day $3, from $2 to before $4. Those posted to since are searched for the
 * sequences of the day; the others have none. An operation is counted where it has one entry: per currency, of the liabilities
 * its own account's, and of the assets the Vault's, or the Loan's that a transfer pays. The reversal of such a payment by its
 * second leg is the Loan's own operation, and is counted there for the payer's, too.
 */
const countedColumns = `e.direction, e.side, e.amount_minor,
      case class when 'liability' then e.transaction_id = e.operation_id
        else account_type = 'Vault' or (account_type = 'Loan' and (e.transaction_id <> e.operation_id or ${isPayment})) end as is_counted,
      account_type = 'Loan' and e.transaction_id = e.operation_id and ${isPayment} as is_payers`;

const pageStatement = `with recursive page as (
    select account_id, account_number, account_type, currency, class, balance_minor, last_sequence, last_posted_at from accounts
    where account_id > $1 order by account_id limit ${pageSize}
  ), wanted as (
    select account_id, time from page cross join (values ($2::timestamptz), ($4::timestamptz)) t (time) where last_posted_at >= time
  ), ${placed}, spans as (
    select page.*, coalesce(f.sequence, page.last_sequence + 1) as first, coalesce(b.sequence, page.last_sequence + 1) as beyond
    from page left join placed f on f.account_id = page.account_id and f.time = $2 left join placed b on b.account_id = page.account_id and b.time = $4
  ), own as (
    select s.account_id, e.sequence, ${countedColumns} from spans s
      cross join lateral (select * from entries e where e.account_id = s.account_id and e.sequence >= s.first and e.sequence < s.beyond offset 0) e
    where not exists (select from dated_entries d where d.account_id = e.account_id and d.sequence = e.sequence)
    union all
    select account_id, sequence, ${countedColumns} from spans join dated_entries using (account_id) join entries e using (account_id, sequence)
    where effective_date = $3
  ), days as (
    select account_id, coalesce(sum(amount_minor) filter (where side = 'DR'), 0) as debits, coalesce(sum(amount_minor) filter (where side = 'CR'), 0) as credits,
      sum(case direction when 'credit' then amount_minor else -amount_minor end) as sum, count(*) as count, count(*) filter (where is_counted) as operations,
      count(*) filter (where is_payers) as liability_operations, min(sequence) as first_sequence, max(sequence) as last_sequence
    from own group by account_id
  )
  select account_id, account_number, currency, class, coalesce(debits, 0) as debits, coalesce(credits, 0) as credits, coalesce(sum, 0) as sum,
    coalesce(count, 0) as count, coalesce(operations, 0) as operations, coalesce(liability_operations, 0) as liability_operations, days.first_sequence, days.last_sequence, account_type in ('Teller', 'Vault') as is_system,
    (case when first > s.last_sequence then balance_minor
      else coalesce((select balance_after_minor from entries e where e.account_id = s.account_id and e.sequence = first - 1), 0) end)
    + coalesce((select sum(case when (direction = 'credit') = (effective_date < $3) then amount_minor else -amount_minor end)
        from dated_entries d join entries e using (account_id, sequence)
        where d.account_id = s.account_id and (d.sequence >= first) = (effective_date < $3)), 0) as opening
  from spans s left join days using (account_id) order by account_id`;

type Total = Record<'opening' | 'debits' | 'credits' | 'closing', bigint> &
  Record<'entry_count' | 'operation_count', number>;

/**
 * Stores lines, totals, and the event of a closed day. Returns false if it ends before because it does not continue. Only
 * the last statement makes the day known, so an interrupted calculation leaves lines that the next one finds as it writes them.
 */
export async function calculateClosing(
  pool: Pool,
  date: string,
  last_sequences: Record<string, number>,
  continues: () => boolean = () => true,
): Promise<boolean> {
  const totals = new Map<string, Total>();
  const system_accounts: DayLine[] = [];
  const [begins_at, ends_at] = [dayLimit(date), dayLimit(date, 1)];
  for (let after = firstId; ; ) {
    if (!continues()) return false;
    const { rows } = await pool.query<AccountRow>(pageStatement, [after, begins_at, date, ends_at]);
    for (const row of rows) addTo(totals, row);
    const moved = rows.filter(({ count }) => count > 0n);
    system_accounts.push(...moved.filter(({ is_system }) => is_system).map(toLine));
    await insertLines(pool, date, moved);
    const last = rows.at(-1);
    if (last === undefined) break;
    after = last.account_id;
  }
  const accounts_sha256 = await hashLines(pool, date);
  await transaction(pool, async (client) => {
    const { rows } = await client.query<Pick<DayClosing, 'closed_at' | 'closed_by'> & { before: string | null }>(
      `select closed_at, closed_by, (select hash from day_closings where date < $1 order by date desc limit 1) as before
       from closed_days where date = $1`,
      [date],
    );
    const { before, ...closed } = rows[0] as (typeof rows)[0];
    const previous_hash = before ?? '0'.repeat(64);
    const closing = {
      date,
      ...closed,
      totals: [...totals].map(toTotal).sort(byCurrency),
      accounts_sha256,
      previous_hash,
      hash: hash('sha256', previous_hash + accounts_sha256),
    };
    await client.query(
      `insert into day_closings (date, begins_at, ends_at, totals, accounts_sha256, previous_hash, hash) values ($1, $2, $3, $4, $5, $6, $7)`,
      [date, begins_at, ends_at, JSON.stringify(closing.totals), accounts_sha256, previous_hash, closing.hash],
    );
    await writeOutbox(client, [
      {
        id: hash('sha256', `day closed ${date}`).slice(0, 32),
        topic: 'days',
        key: date,
        type: 'corebanking.day.closed.v1',
        time: closing.closed_at,
        payload: JSON.stringify({ ...closing, last_sequences, system_accounts }),
      },
    ]);
  });
  return true;
}

/** Stores the lines of accounts as JSON texts, but for those that an interrupted calculation has stored. */
async function insertLines(pool: Pool, date: string, rows: AccountRow[]): Promise<void> {
  if (rows.length === 0) return;
  await pool.query(
    'insert into day_closing_lines (date, account_id, line) select $1::date, * from unnest($2::uuid[], $3::text[]) on conflict do nothing',
    [date, rows.map(({ account_id }) => account_id), rows.map((row) => JSON.stringify(toLine(row)))],
  );
}

/** Returns the SHA-256 of the lines that are stored. */
async function hashLines(pool: Pool, date: string): Promise<string> {
  const digest = createHash('sha256');
  for (let after = firstId; ; ) {
    const lines = await readLines(pool, date, after, pageSize);
    for (const { line } of lines) digest.update(`${line}\n`);
    const last = lines.at(-1);
    if (last === undefined) return digest.digest('hex');
    after = last.account_id;
  }
}

const none: Total = { opening: 0n, debits: 0n, credits: 0n, closing: 0n, entry_count: 0, operation_count: 0 };

function addTo(totals: Map<string, Total>, row: AccountRow): void {
  const keyOf = (ofClass: AccountRow['class']) => `${row.currency} ${ofClass}`;
  const total = totals.get(keyOf(row.class)) ?? none;
  const opening = BigInt(row.opening);
  totals.set(keyOf(row.class), {
    opening: total.opening + opening,
    debits: total.debits + BigInt(row.debits),
    credits: total.credits + BigInt(row.credits),
    closing: total.closing + opening + BigInt(row.sum),
    entry_count: total.entry_count + Number(row.count),
    operation_count: total.operation_count + Number(row.operations),
  });
  if (row.liability_operations === 0n) return;
  const payers = totals.get(keyOf('liability')) ?? none;
  const operation_count = payers.operation_count + Number(row.liability_operations);
  totals.set(keyOf('liability'), { ...payers, operation_count });
}

/** Its JSON text is what is hashed, so the order of the fields never changes. */
function toLine({
  account_id,
  account_number,
  currency,
  class: ofClass,
  opening,
  sum,
  ...counts
}: AccountRow): DayLine {
  const decimal = (minor: bigint) => fromMinor(minor, currency);
  return {
    account_id: prefixed('acc', account_id),
    account_number,
    currency,
    class: ofClass,
    opening: decimal(BigInt(opening)),
    closing: decimal(BigInt(opening) + BigInt(sum)),
    sum: decimal(BigInt(sum)),
    count: Number(counts.count),
    first_sequence: Number(counts.first_sequence),
    last_sequence: Number(counts.last_sequence),
  };
}

function toTotal([key, { entry_count, operation_count, ...minor }]: [string, Total]): DayClosing['totals'][number] {
  const [currency, ofClass] = key.split(' ') as [string, 'liability' | 'asset'];
  const decimal = (amount: bigint) => fromMinor(amount, currency);
  return {
    currency,
    class: ofClass,
    opening: decimal(minor.opening),
    debits: decimal(minor.debits),
    credits: decimal(minor.credits),
    closing: decimal(minor.closing),
    entry_count,
    operation_count,
  };
}

/** By currency, and liabilities first. */
const byCurrency = (one: { currency: string; class: string }, other: typeof one): number =>
  one.currency === other.currency ? (one.class < other.class ? 1 : -1) : one.currency < other.currency ? -1 : 1;
