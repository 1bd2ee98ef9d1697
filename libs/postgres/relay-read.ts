import type { Pool } from 'pg';
import type { EncodedMessage } from '#libs/contracts/record.ts';
import { bigintArray } from './arrays.ts';
import type { CommittedBatch, Probe } from './handover.ts';
import type { OutboxEvent } from './outbox.ts';
import { eventOf, unpackMessages } from './outbox-messages.ts';

/**
 * `offset 0` keeps the join a look-up by primary key per batch; the statement has no name, so that it is planned for the
 * tables as they are now, not as they were when they were empty.
 */
const readStatement = `with unpublished as (
    select batch_id, sum(size) over (order by batch_id) - size as events_before
    from (select batch_id, size from outbox_batches where published_at is null and batch_id <> all($2::bigint[]) order by batch_id limit $1::int) as first_ones
  )
  select o.batch_id, o.records
  from unpublished cross join lateral (select * from outbox where outbox.batch_id = unpublished.batch_id offset 0) as o
  where events_before < $1 order by o.batch_id`;

/**
 * The next batches to publish, by number: unpublished by mark, together at most maxEvents and those of one batch more.
 * `underWay`: batches that are being published, but not marked yet. They are named one by one, never by "beyond the last": a
 * batch with a lower number may be committed meanwhile, and must come before those behind it that share a key with it.
 */
export async function readChunk(pool: Pool, source: string, maxEvents: number, underWay: readonly bigint[] = []): Promise<CommittedBatch[]> {
  const { rows } = await pool.query<PackedBatch>(readStatement, [maxEvents, bigintArray(underWay)]);
  return rows.map(({ batch_id, records }) => ({ batch_id, messages: unpackMessages(records, source) }));
}

/** A row of the table outbox. */
interface PackedBatch {
  batch_id: bigint;
  records: Buffer;
}

/** Batches that are published together. */
export interface Chunk {
  ids: bigint[];
  count: number;
  /** To be published under the names that the topics have on the broker. */
  messages: EncodedMessage[];
  /** Events that Debezium publishes. */
  debeziums: OutboxEvent[];
}

export interface ChunkOptions {
  topicName: (topic: string) => string;
  isDebeziums: (topic: string) => boolean;
}

export function chunkOf(batches: readonly CommittedBatch[], { topicName, isDebeziums }: ChunkOptions): Chunk {
  const all = batches.flatMap((batch) => batch.messages);
  return {
    ids: batches.map(({ batch_id }) => batch_id),
    count: all.length,
    messages: all.filter(({ topic }) => !isDebeziums(topic)).map((message) => ({ ...message, topic: topicName(message.topic) })),
    debeziums: all.filter(({ topic }) => isDebeziums(topic)).map(eventOf),
  };
}

const probeStatement = `select coalesce((select last_value from pg_sequences where schemaname = current_schema() and sequencename = 'outbox_batches_batch_id_seq'), 0) as last,
  pg_snapshot_xmin(snapshot)::text::bigint as xmin, pg_snapshot_xmax(snapshot)::text::bigint as xmax from pg_current_snapshot() as snapshot`;

/** For the handover. */
export async function probe(pool: Pool): Promise<Probe> {
  const { rows } = await pool.query<Probe>(probeStatement);
  return rows[0] ?? { last: 0n, xmin: 0n, xmax: 0n };
}

const statsStatement = `select count(*)::int as batches, coalesce(sum(size), 0)::int as rows,
    coalesce(extract(epoch from clock_timestamp() - min(created_at)) * 1000, 0)::float8 as oldest_age_ms
  from outbox_batches where published_at is null`;

export interface OutboxStats {
  batches: number;
  rows: number;
  oldest_age_ms: number;
}

/** What waits to be published, over all processes. */
export async function outboxStats(pool: Pool): Promise<OutboxStats> {
  const result = await pool.query<OutboxStats>(statsStatement);
  return result.rows[0] ?? { batches: 0, rows: 0, oldest_age_ms: 0 };
}

const purgeBatches = 20;

const purgeStatement = `with old as materialized (
    select batch_id from (select batch_id, published_at from outbox_batches order by batch_id limit $1::int) as first_ones
    where published_at < clock_timestamp() - $2::float8 * interval '1 millisecond'
  ), rows_gone as (
    delete from outbox where batch_id = any (array(select batch_id from old))
  )
  delete from outbox_batches where batch_id = any (array(select batch_id from old))`;

/** Deletes a few batches published longer than retainMs ago; true where more may be left. */
export async function purge(pool: Pool, retainMs: number): Promise<boolean> {
  const result = await pool.query(purgeStatement, [purgeBatches, retainMs]);
  return result.rowCount === purgeBatches;
}
