import type { Pool, Queries } from '../pool.ts';
import { packEvents } from './outbox-messages.ts';

/** One message to be published after the transaction that writes it has committed. */
export interface OutboxEvent {
  /** A uuid, or an id ending in 32 hex digits; ce_id of every publication of it. */
  id: string;
  /** The topic without the common prefix. */
  topic: string;
  /** Messages of one key stay in the order in which their transactions held that key's lock. */
  key: string | null;
  /** ce_type. */
  type: string;
  /** ce_time, ISO 8601. */
  time: string;
  /** Further headers (correlation-id, traceparent, …); one named like a CloudEvents header replaces it. */
  headers?: Record<string, string>;
  /** The value, published byte for byte; null is a tombstone. */
  payload: string | null;
  /** Only where the sender must choose it (replies). */
  partition?: number;
}

/**
 * Two CTEs (without WITH) that write the events of outboxValues as one batch, for a statement that writes other rows
 * too; their parameters are $first and $first+1. With no events they write nothing.
 *
 * batch_id is drawn when this runs. The transaction must hold the row locks that order a key's events BEFORE it starts
 * this statement: then the order of batch_id is the commit order per key, which is the order of publication.
 */
export function outboxInsert(first: number): string {
  return `outbox_batch as (
    insert into outbox_batches (size) select $${first}::int where $${first}::int > 0 returning batch_id
  ), outbox_messages as (
    insert into outbox (batch_id, records) select batch_id, $${first + 1}::bytea from outbox_batch
  )`;
}

/** The parameters of outboxInsert, in its order. */
export function outboxValues(events: readonly OutboxEvent[]): [size: number, records: Buffer | null] {
  return [events.length, events.length === 0 ? null : packEvents(events)];
}

const insertStatement = `with ${outboxInsert(1)} select`;

/**
 * Writes events into the outbox of the schema on the search_path, as one batch, in the order given
 * (see outboxInsert for the locks that must be held). After the commit call the relay's wake(), or
 * wakeRelay where there is none in this process.
 */
export async function writeOutbox(client: Queries, events: readonly OutboxEvent[]): Promise<void> {
  if (events.length === 0) return;
  await client.query({ name: 'outbox_insert', text: insertStatement, values: outboxValues(events) });
}

/** The NOTIFY channel of a schema's relay. */
export function outboxChannel(schema: string): string {
  return `${schema}_outbox`;
}

/**
 * Wakes the relay of whatever process runs it. Call it after the commit, never inside the transaction: NOTIFY takes a
 * lock over the whole database that makes committing transactions queue.
 */
export async function wakeRelay(pool: Pool, schema: string): Promise<void> {
  await pool.query('select pg_notify($1, $2)', [outboxChannel(schema), '']);
}
