import type { Pool } from 'pg';
import type { Position } from './history.ts';
import type { OutboxEvent } from './outbox.ts';
import { numbered, unpackEvents } from './outbox-messages.ts';

export interface OutboxBatch extends Position {
  events: OutboxEvent[];
}

/** Batches by number: those greater than `after`, up to `last`. */
export interface BatchRange {
  after: bigint;
  last: bigint;
}

const noBatches: BatchRange = { after: 0n, last: 0n };

/** Returns a range that contains these batches. */
export function batchRange(ids: readonly bigint[]): BatchRange {
  const sorted = ids.toSorted((a, b) => (a < b ? -1 : 1));
  return { after: (sorted[0] ?? 1n) - 1n, last: sorted.at(-1) ?? 0n };
}

/** `offset 0` forces one primary-key lookup per batch. */
const readStatement = (condition: string) => `with chosen as (
    select batch_id, created_at, sum(size) over (order by batch_id) - size as events_before
    from (
      select batch_id, created_at, size from outbox_batches where ${condition} order by batch_id limit $1::int
    ) as first_ones
  )
  select batch_id, created_at, records
  from chosen cross join lateral (select records from outbox where outbox.batch_id = chosen.batch_id offset 0) as o
  where events_before < $1 order by batch_id`;
const unpublished = readStatement('published_at is null and batch_id <> all($2::bigint[])');
const inRange = readStatement('batch_id > $2::bigint and batch_id <= $3::bigint');

type Row = Position & { records: Buffer };

/**
 * Returns the next unpublished batches by number: at most maxEvents events, plus the rest of the last batch.
 * `published` lists batches that are published but not yet marked. They are excluded by id, never by "greater
 * than the last id", because a batch with a lower number may be committed meanwhile and must precede later
 * batches with the same keys.
 */
export async function readUnpublished(
  pool: Pool,
  maxEvents: number,
  published: readonly bigint[] = [],
): Promise<OutboxBatch[]> {
  const values = [maxEvents, published];
  const { rows } = await pool.query<Row>({ name: 'outbox_read', text: unpublished, values });
  return rows.map(({ records, ...position }) => ({
    ...position,
    events: numbered(position.batch_id, unpackEvents(records)),
  }));
}

/** Returns the first batches of a range, published or not, as far as the outbox still contains them. */
export async function readRange(pool: Pool, { after, last }: BatchRange, maxEvents: number): Promise<OutboxBatch[]> {
  const values = [maxEvents, after, last];
  const { rows } = await pool.query<Row>({ name: 'outbox_read_range', text: inRange, values });
  return rows.map(({ records, ...position }) => ({ ...position, events: unpackEvents(records) }));
}

/** More than the time after which a holder republishes what it left in doubt (lateMs in relay.ts), if it does not end before. */
const doubtfulMs = 5 * 60_000;

/**
 * A batch with a lower number than a published one may be committed later, by less than a minute, because no transaction
 * takes longer (pool.ts).
 */
const doubtfulStatement = `with published as (
    select created_at from outbox_batches
    where batch_id < coalesce((select min(batch_id) from outbox_batches where published_at is null), ${2n ** 63n - 1n})
      and published_at < $1::timestamptz - $2::int * interval '1 millisecond'
    order by batch_id desc limit 1
  )
  select coalesce((
      select batch_id from outbox_batches where created_at < (select created_at from published) - interval '1 minute'
      order by batch_id desc limit 1
    ), 0) as after, coalesce((select max(batch_id) from outbox_batches), 0) as last`;

/**
 * Returns the batches of which a former holder of the lease may have left copies that are still on their way: those
 * unpublished, or published less than 5 minutes before its lease ended.
 */
export async function readDoubtful(pool: Pool, endedAt: string): Promise<BatchRange> {
  const { rows } = await pool.query<BatchRange>(doubtfulStatement, [endedAt, doubtfulMs]);
  return rows[0] ?? noBatches;
}

const sweepStatement = `with former as (select sweep_after from outbox_lease)
  update outbox_lease set swept_at = clock_timestamp(), sweep_after = sweep_last,
    sweep_last = coalesce((select max(batch_id) from outbox_batches), 0)
  where swept_at < clock_timestamp() - $1::float8 * interval '1 millisecond'
  returning (select sweep_after from former) as after, sweep_last as last`;

/** Once in `everyMs`, returns the batches written in twice that time to one of all relays; otherwise none. */
export async function readSweep(pool: Pool, everyMs: number): Promise<BatchRange> {
  return (await pool.query<BatchRange>(sweepStatement, [everyMs])).rows[0] ?? noBatches;
}

const statsStatement = `select coalesce(sum(size), 0)::int as rows,
    coalesce(extract(epoch from clock_timestamp() - min(created_at)) * 1000, 0)::float8 as oldest_age_ms
  from outbox_batches where published_at is null`;

export interface OutboxStats {
  rows: number;
  oldest_age_ms: number;
}

/** Returns the number and age of unpublished events, over all processes. */
export async function outboxStats(pool: Pool): Promise<OutboxStats> {
  const result = await pool.query<OutboxStats>(statsStatement);
  return result.rows[0] ?? { rows: 0, oldest_age_ms: 0 };
}

const purgeBatches = 20;

const purgeStatement = `with old as materialized (
    select batch_id from (select batch_id, published_at from outbox_batches order by batch_id limit $1::int) as first_ones
    where published_at < clock_timestamp() - $2::float8 * interval '1 millisecond'
      and batch_id < (select max(batch_id) from outbox_batches where published_at is not null)
  ), rows_gone as (
    delete from outbox where batch_id = any (array(select batch_id from old))
  )
  delete from outbox_batches where batch_id = any (array(select batch_id from old))`;

/**
 * Deletes a few batches that were published more than retainMs ago, never the newest (history.ts). Returns true
 * if more may remain.
 */
export async function purge(pool: Pool, retainMs: number): Promise<boolean> {
  const result = await pool.query(purgeStatement, [purgeBatches, retainMs]);
  return result.rowCount === purgeBatches;
}
