import type { Pool } from 'pg';
import type { Position } from './history.ts';
import type { OutboxEvent } from './outbox.ts';
import { numberedEvents } from './outbox-messages.ts';

export interface UnpublishedBatch extends Position {
  events: OutboxEvent[];
}

/** `offset 0` forces one primary-key lookup per batch. */
const readStatement = `with unpublished as (
    select batch_id, created_at, sum(size) over (order by batch_id) - size as events_before
    from (
      select batch_id, created_at, size from outbox_batches where published_at is null and batch_id <> all($2::bigint[]) order by batch_id limit $1::int
    ) as first_ones
  )
  select batch_id, created_at, records
  from unpublished cross join lateral (select records from outbox where outbox.batch_id = unpublished.batch_id offset 0) as o
  where events_before < $1 order by batch_id`;

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
): Promise<UnpublishedBatch[]> {
  const values = [maxEvents, published];
  const { rows } = await pool.query<Position & { records: Buffer }>({
    name: 'outbox_read',
    text: readStatement,
    values,
  });
  return rows.map(({ records, ...position }) => ({ ...position, events: numberedEvents(position.batch_id, records) }));
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
