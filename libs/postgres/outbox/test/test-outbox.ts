import type { Queries } from '../../pool.ts';
import type { OutboxEvent } from '../outbox.ts';
import { unpackEvents } from '../outbox-messages.ts';

export interface KeptEvent extends OutboxEvent {
  batch_id: bigint;
  is_published: boolean;
}

/** For tests: returns every event in an outbox, in order. `table` is the name of one that is not on the search_path. */
export async function readOutbox(pool: Queries, table = 'outbox'): Promise<KeptEvent[]> {
  const { rows } = await pool.query<{ batch_id: bigint; is_published: boolean; records: Buffer }>(
    `select batch_id, published_at is not null as is_published, records from ${table} join ${table}_batches using (batch_id) order by batch_id`,
  );
  return rows.flatMap(({ records, ...row }) => unpackEvents(records).map((event) => ({ ...row, ...event })));
}
