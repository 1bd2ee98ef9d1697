import type { Pool } from 'pg';
import { textArray, uuidArray } from './arrays.ts';
import type { OutboxEvent } from './outbox.ts';

/** Rows of former calls were in the write-ahead log before this one begins: nobody reads them from the table. */
const statement = `with given as (delete from outbox_events)
  insert into outbox_events (id, aggregatetype, aggregateid, type, time, headers, payload)
  select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])`;

/** Puts events where Debezium finds them (docs/debezium.md), in their order; durably when this resolves. */
export async function giveToDebezium(pool: Pool, events: readonly OutboxEvent[]): Promise<void> {
  if (events.length === 0) return;
  await pool.query(statement, [
    uuidArray(events.map(({ id }) => id)),
    textArray(events.map(({ topic }) => topic)),
    textArray(events.map(({ key }) => key)),
    textArray(events.map(({ type }) => type)),
    textArray(events.map(({ time }) => time)),
    textArray(events.map(({ headers }) => JSON.stringify(headers ?? {}))),
    textArray(events.map(({ payload }) => payload)),
  ]);
}
