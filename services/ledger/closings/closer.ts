import { createHash, hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { DayClosing, DayLine } from '#libs/contracts/days.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { type Sweeping, sweeping } from '#libs/service/sweeping.ts';
import { addDays, dayLimit } from '../domain/calendar.ts';
import { laterEntries } from '../queries/days.ts';
import { prefixed } from '../rows.ts';

/**
 * Calculates what a closed day had, after it was closed (domain/days.ts): no posting waits for it. Since the day is closed,
 * its entries cannot change, so whoever calculates them, and however often that is interrupted, the result is the same.
 */

export interface CloserOptions {
  pool: Pool;
  /** Returns the offset of the last record of each partition of `transactions`. */
  lastOffsets: () => Promise<Record<string, number>>;
  /** Wakes the outbox relay. */
  wake: () => void;
  logger: Logger;
}

const pauseMs = 10_000;
const publishedWithinMs = 30_000;
const linesAtOnce = 2000;
/** A long timeout, because all entries since the day are read. */
const query_timeout = 3_600_000;

/** Every ledger does this. A day that another one has calculated meanwhile is left alone. */
export function createCloser(options: CloserOptions): Sweeping {
  const sweep = async (): Promise<boolean> => {
    const { pool, lastOffsets, wake } = options;
    const { rows } = await pool.query<{ date: string }>(
      'select date from closed_days c where not exists (select from day_closings d where d.date = c.date) order by date limit 1',
    );
    const [due] = rows;
    if (due === undefined) return false;
    await eventsPublished(pool);
    await calculateClosing(pool, due.date, await lastOffsets());
    wake();
    return true;
  };
  return sweeping('calculating a closed day', sweep, pauseMs, options.logger);
}

/** Waits until the events of all postings that were committed before are published. */
async function eventsPublished(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ last: bigint | null }>('select max(batch_id) as last from outbox_batches');
  const last = rows[0]?.last ?? 0n;
  const isWaiting = async () =>
    (await pool.query('select from outbox_batches where published_at is null and batch_id <= $1 limit 1', [last]))
      .rowCount === 1;
  for (const until = performance.now() + publishedWithinMs; await isWaiting(); await sleep(50))
    if (performance.now() > until) throw new Error('the events of the day are not published yet');
}

interface LineRow {
  account_id: string;
  account_number: string;
  currency: string;
  class: 'liability' | 'asset';
  /** As text, because the SQL type is numeric. */
  opening: string;
  sum: string;
  count: bigint;
  first_sequence: bigint;
  last_sequence: bigint;
  is_system: boolean;
}

const day = laterEntries('$1::timestamptz', '$2::date', '$3::timestamptz', '$4::date');

/** What is posted later is taken from today's balances, of which no account's entries need to be read. */
const linesStatement = `with recursive ${day}, changes as (
    select account_id, sum(change) as change, sum(change) filter (where is_of_day) as sum, count(*) filter (where is_of_day) as count,
      min(sequence) filter (where is_of_day) as first_sequence, max(sequence) filter (where is_of_day) as last_sequence
    from later group by account_id
  )
  select account_id, account_number, currency, class, balance_minor - change as opening, sum, count, first_sequence, c.last_sequence, client_id is null as is_system
  from changes c join accounts using (account_id) where count > 0 order by account_id`;

const totalsStatement = `with recursive ${day}, changes as (
    select account_id, sum(change) as change from later group by account_id
  ), openings as (
    select currency, class, sum(balance_minor - coalesce(change, 0)) as opening from accounts left join changes using (account_id) group by currency, class
  ), own as (
    select currency, class, sum(amount_minor) filter (where side = 'DR') as debits, sum(amount_minor) filter (where side = 'CR') as credits,
      sum(change) as change, count(*) as entry_count, count(distinct operation_id) as operation_count
    from later join accounts using (account_id) where is_of_day group by currency, class
  )
  select currency, class, opening, coalesce(debits, 0) as debits, coalesce(credits, 0) as credits, opening + coalesce(change, 0) as closing,
    coalesce(entry_count, 0) as entry_count, coalesce(operation_count, 0) as operation_count
  from openings left join own using (currency, class) order by currency, class desc`;

type TotalRow = Record<'currency' | 'class' | 'opening' | 'debits' | 'credits' | 'closing', string> &
  Record<'entry_count' | 'operation_count', bigint>;

/** Stores lines, totals, and the event of a closed day, in one transaction, from one snapshot. */
export async function calculateClosing(
  pool: Pool,
  date: string,
  last_sequences: Record<string, number>,
): Promise<void> {
  const [begins_at, ends_at] = [dayLimit(date), dayLimit(date, 1)];
  const values = [begins_at, date, ends_at, addDays(date, 1)];
  await transaction(pool, async (client) => {
    await client.query('set transaction isolation level repeatable read');
    await client.query('set local statement_timeout = 0');
    const { accounts_sha256, system_accounts } = await writeLines(client, date, values);
    const { rows: totals } = await client.query<TotalRow>({ text: totalsStatement, values, query_timeout });
    const { rows: before } = await client.query<{ hash: string }>(
      'select hash from day_closings where date < $1 order by date desc limit 1',
      [date],
    );
    const { rows: marks } = await client.query<Pick<DayClosing, 'closed_at' | 'closed_by'>>(
      'select closed_at, closed_by from closed_days where date = $1',
      [date],
    );
    const previous_hash = before[0]?.hash ?? '0'.repeat(64);
    const closing = {
      date,
      ...(marks[0] as (typeof marks)[0]),
      totals: totals.map(toTotal),
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
}

/**
 * Stores the lines of the day as JSON texts. Returns their SHA-256 and those of Teller and Vault, which are few. Reads and
 * holds a part of them at a time.
 */
async function writeLines(
  client: Queries,
  date: string,
  values: unknown[],
): Promise<{ accounts_sha256: string; system_accounts: DayLine[] }> {
  const digest = createHash('sha256');
  const system_accounts: DayLine[] = [];
  await client.query({ text: `declare day_lines no scroll cursor for ${linesStatement}`, values, query_timeout });
  for (;;) {
    const { rows } = await client.query<LineRow>({ text: `fetch ${linesAtOnce} from day_lines`, query_timeout });
    if (rows.length === 0) break;
    system_accounts.push(...rows.filter(({ is_system }) => is_system).map(toLine));
    const lines = rows.map((row) => JSON.stringify(toLine(row)));
    for (const line of lines) digest.update(`${line}\n`);
    await client.query(
      'insert into day_closing_lines (date, account_id, line) select $1::date, * from unnest($2::uuid[], $3::text[])',
      [date, rows.map(({ account_id }) => account_id), lines],
    );
  }
  await client.query('close day_lines');
  return { accounts_sha256: digest.digest('hex'), system_accounts };
}

/** Its JSON text is what is hashed, so the order of the fields never changes. */
function toLine({ account_id, account_number, currency, class: ofClass, opening, sum, ...counts }: LineRow): DayLine {
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

function toTotal({ currency, class: ofClass, entry_count, operation_count, ...minor }: TotalRow) {
  const decimal = (text: string) => fromMinor(BigInt(text), currency);
  return {
    currency,
    class: ofClass as 'liability' | 'asset',
    opening: decimal(minor.opening),
    debits: decimal(minor.debits),
    credits: decimal(minor.credits),
    closing: decimal(minor.closing),
    entry_count: Number(entry_count),
    operation_count: Number(operation_count),
  };
}
