import type { Pool } from 'pg';
import { bigintArray } from './arrays.ts';
import type { CommittedBatch, Probe } from './handover.ts';
import type { OutboxEvent } from './outbox.ts';
import { unpackMessages } from './outbox-messages.ts';

/** What the relay hands to a publisher: the same form as libs/kafka's OutgoingMessage. */
export interface OutgoingMessage {
  topic: string;
  key: string | null;
  value: string | null;
  headers: Record<string, string>;
  partition?: number;
}

/**
 * `offset 0` keeps the join a look-up by primary key per batch; the statement has no name, so that it is planned for the
 * tables as they are now, not as they were when they were empty.
 */
const readStatement = `with unpublished as (
    select batch_id, sum(size) over (order by batch_id) - size as events_before
    from (select batch_id, size from outbox_batches where published_at is null and batch_id <> all($2::bigint[]) order by batch_id limit $1::int) as first_ones
  )
  select o.batch_id, o.messages
  from unpublished cross join lateral (select * from outbox where outbox.batch_id = unpublished.batch_id offset 0) as o
  where events_before < $1 order by o.batch_id`;

/**
 * The next batches to publish, by number: unpublished by mark, together at most maxEvents and those of one batch more.
 * `underWay`: batches that are being published, but not marked yet. They are named one by one, never by "beyond the last": a
 * batch with a lower number may be committed meanwhile, and must come before those behind it that share a key with it.
 */
export async function readChunk(pool: Pool, maxEvents: number, underWay: readonly bigint[] = []): Promise<CommittedBatch[]> {
  const { rows } = await pool.query<PackedBatch>(readStatement, [maxEvents, bigintArray(underWay)]);
  return rows.map(({ batch_id, messages }) => ({ batch_id, events: unpackMessages(messages) }));
}

/** A row of the table outbox. */
interface PackedBatch {
  batch_id: bigint;
  messages: Buffer;
}

/** Batches that are published together. */
export interface Chunk {
  ids: bigint[];
  count: number;
  messages: OutgoingMessage[];
  /** Events that Debezium publishes. */
  debeziums: OutboxEvent[];
}

export interface ChunkOptions {
  source: string;
  topicName: (topic: string) => string;
  isDebeziums: (topic: string) => boolean;
}

export function chunkOf(batches: readonly CommittedBatch[], { source, topicName, isDebeziums }: ChunkOptions): Chunk {
  const events = batches.flatMap((batch) => batch.events);
  return {
    ids: batches.map(({ batch_id }) => batch_id),
    count: events.length,
    messages: events.filter(({ topic }) => !isDebeziums(topic)).map((event) => messageOf(event, source, topicName)),
    debeziums: events.filter(({ topic }) => isDebeziums(topic)),
  };
}

/** CloudEvents 1.0, Kafka binary content mode: attributes as ce_ headers, the value as it was written. */
export function messageOf(event: OutboxEvent, source: string, topicName: (topic: string) => string): OutgoingMessage {
  const headers: Record<string, string> = { ce_specversion: '1.0', ce_id: uuidOf(event.id), ce_type: event.type, ce_source: source, ce_time: event.time };
  if (event.key !== null) headers['ce_subject'] = event.key;
  headers['content-type'] = 'application/json';
  for (const name in event.headers) headers[name] = event.headers[name] ?? '';
  const message = { topic: topicName(event.topic), key: event.key, value: event.payload, headers };
  return event.partition === undefined ? message : { ...message, partition: event.partition };
}

/** The id of an event as Postgres prints it. */
export function uuidOf(id: string): string {
  if (id.length === 36 && id.charAt(8) === '-') return id;
  const bits = id.slice(-32);
  return `${bits.slice(0, 8)}-${bits.slice(8, 12)}-${bits.slice(12, 16)}-${bits.slice(16, 20)}-${bits.slice(20)}`;
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
    select batch_id, created_at from (select batch_id, created_at, published_at from outbox_batches order by batch_id limit $1::int) as first_ones
    where published_at < clock_timestamp() - $2::float8 * interval '1 millisecond'
  ), rows_gone as (
    delete from outbox where batch_id = any (array(select batch_id from old))
  ), noted as (
    insert into outbox_purged (batch_id, created_at) select max(batch_id), max(created_at) from old having count(*) > 0
    on conflict (only_row) do update set batch_id = greatest(outbox_purged.batch_id, excluded.batch_id), created_at = greatest(outbox_purged.created_at, excluded.created_at)
  )
  delete from outbox_batches where batch_id = any (array(select batch_id from old))`;

/** Deletes a few batches published longer than retainMs ago; true where more may be left. */
export async function purge(pool: Pool, retainMs: number): Promise<boolean> {
  const result = await pool.query(purgeStatement, [purgeBatches, retainMs]);
  return result.rowCount === purgeBatches;
}
