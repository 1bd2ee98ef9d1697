import type { Pool } from '../pool.ts';
import { transaction } from '../transaction.ts';

/** The published events that the outbox still contains. */
export interface Republishable {
  batches: bigint;
  messages: bigint;
  /** The time since which all published batches are still in the outbox; null if it contains none. */
  kept_since: string | null;
}

const countStatement = `select count(*) filter (where published_at >= $1) as batches,
    coalesce(sum(size) filter (where published_at >= $1), 0)::bigint as messages, min(published_at) as kept_since
  from outbox_batches`;

export async function countRepublishable(pool: Pool, since: Date): Promise<Republishable> {
  const {
    rows: [counted],
  } = await pool.query<Republishable>(countStatement, [since]);
  return counted ?? { batches: 0n, messages: 0n, kept_since: null };
}

/**
 * Marks every batch published since that time as unpublished, so that the relay publishes it again with the same bytes
 * and ce_ids, in the same order per key. Returns the number of batches.
 *
 * The lease is taken from the active relay. Until this transaction commits, the relay cannot mark the batches that it
 * publishes, and afterwards it must read the table again from its first unpublished batch. An older batch is therefore
 * never published last, which would make it the state of its key in a compacted topic.
 */
export async function republish(pool: Pool, since: Date): Promise<number> {
  return transaction(pool, async (client) => {
    await client.query('update outbox_lease set expires_at = clock_timestamp()');
    const { rowCount } = await client.query('update outbox_batches set published_at = null where published_at >= $1', [
      since,
    ]);
    return rowCount ?? 0;
  });
}
