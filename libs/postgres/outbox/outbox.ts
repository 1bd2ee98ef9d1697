import type { Pool, Queries } from '../pool.ts';
import type { Known } from './handed.ts';
import type { Position } from './history.ts';
import { packEvents } from './outbox-messages.ts';

/** A message to publish after its transaction has committed. */
export interface OutboxEvent {
  /** A uuid, or an id ending in 32 hex digits. It becomes the ce_id of every publication. */
  id: string;
  /** The topic without prefix. */
  topic: string;
  /** Messages with the same key are published in the order in which their transactions held that key's lock. */
  key: string | null;
  /** ce_type. */
  type: string;
  /** ce_time, ISO 8601. */
  time: string;
  /** Additional headers (correlation-id, traceparent, …). They override CloudEvents headers with the same name. */
  headers?: Record<string, string>;
  /** The value, published byte for byte; null is a tombstone. */
  payload: string | null;
  /** Set only if the sender must choose the partition (replies). */
  partition?: number;
  /** True for a state that writeStatesAgain wrote. It is not published. */
  isAgain?: true;
}

/**
 * Returns two CTEs (without WITH) that write the events of outboxValues as one batch, as part of a statement
 * that writes other rows too. Their parameters are $first and $first+1. Without events they write nothing.
 *
 * batch_id is assigned when this statement runs. The transaction must hold the row locks that order a key's
 * events BEFORE it starts this statement. The order of batch_id is then the commit order per key, which is the
 * order of publication.
 */
export function outboxInsert(first: number): string {
  return `outbox_batch as (
    insert into outbox_batches (size) select $${first}::int where $${first}::int > 0 returning batch_id, created_at
  ), outbox_messages as (
    insert into outbox (batch_id, records) select batch_id, $${first + 1}::bytea from outbox_batch
  )`;
}

/** Returns the parameters of outboxInsert, in order. */
export function outboxValues(events: readonly OutboxEvent[]): [size: number, records: Buffer | null] {
  return [events.length, events.length === 0 ? null : packEvents(events)];
}

const insertStatement = `with ${outboxInsert(1)} select`;

const insertNextStatement = `with ${outboxInsert(1)}
  select batch_id, created_at,
    not exists (select from outbox_batches where published_at is null and batch_id <> all($3::bigint[])) as is_next
  from outbox_batch`;

/** A batch as its writer knows it. After the commit, the relay of the same process can publish it (Relay.wake). */
export interface WrittenBatch extends Position {
  events: readonly OutboxEvent[];
  known: Known;
  /** True if every other batch that was visible when it was written was published or known. */
  isNext: boolean;
}

/**
 * Writes events to the outbox of the schema on the search_path, as one batch in the given order (see
 * outboxInsert for the locks that must be held). After the commit, call the relay's wake(), or wakeRelay if
 * this process has no relay. With `known` (Relay.known), returns the batch for wake(), or undefined if there are no events.
 */
export async function writeOutbox(
  client: Queries,
  events: readonly OutboxEvent[],
  known?: Known,
): Promise<WrittenBatch | undefined> {
  if (events.length === 0) return undefined;
  const values = outboxValues(events);
  if (known === undefined) {
    await client.query({ name: 'outbox_insert', text: insertStatement, values });
    return undefined;
  }
  const { rows } = await client.query<Position & { is_next: boolean }>({
    name: 'outbox_insert_next',
    text: insertNextStatement,
    values: [...values, known.ids],
  });
  return rows.map(({ is_next: isNext, ...position }) => ({ ...position, events, known, isNext }))[0];
}

/**
 * Does the same for states of compacted topics that changes already wrote, and marks them, so that a sweep does not publish
 * again what sweeps wrote (stale-states.ts). Every state must first have been written by writeOutbox.
 */
export async function writeStatesAgain(client: Queries, states: readonly OutboxEvent[]): Promise<void> {
  await writeOutbox(
    client,
    states.map((state) => ({ ...state, isAgain: true })),
  );
}

/** Returns the NOTIFY channel of a schema's relay. */
export function outboxChannel(schema: string): string {
  return `${schema}_outbox`;
}

/**
 * Wakes the relay in whichever process it runs. Call this after the commit, never inside the transaction: NOTIFY takes
 * a lock on the whole database, and committing transactions then wait for each other.
 */
export async function wakeRelay(pool: Pool, schema: string): Promise<void> {
  await pool.query('select pg_notify($1, $2)', [outboxChannel(schema), '']);
}

/**
 * Returns a function that calls wakeRelay. It never waits and never fails, because a relay also polls. At most one
 * NOTIFY is running and one is queued, regardless of the number of calls.
 */
export function createNotifier(pool: Pool, schema: string): () => void {
  let running: Promise<void> | undefined;
  let again = false;
  return function notify() {
    again = running !== undefined;
    running ??= wakeRelay(pool, schema)
      .catch(() => undefined)
      .then(() => {
        running = undefined;
        if (again) notify();
      });
  };
}
