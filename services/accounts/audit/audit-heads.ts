import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import { type EventData, events } from '#libs/contracts/events.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { type Sweeping, sweeping } from '#libs/service/sweeping.ts';

const type = 'corebanking.audit.head.v1';
/** If somebody has removed the records of all heads. */
const start = new Date(0).toISOString();

/** One primary-key lookup per chain, and one for its record. */
const headsQuery = `select head.*, created_at from generate_series(0, 15) as chains (number) cross join lateral (
    select chain, sequence::int8, audit_id, encode(hash, 'hex') as hash from audit_chain where chain = number order by sequence desc limit 1
  ) head left join audit using (audit_id) order by chain`;

/**
 * Publishes the last link of each audit chain. With the records of that topic, anyone can prove that no earlier audit
 * record was changed, whatever happened to the database since. The same heads are the same event, byte for byte, whichever
 * process publishes them: its time is that of the newest record. Returns its id, or undefined if the heads are those of
 * `lastId`.
 */
export async function publishHeads(pool: Pool, lastId?: string): Promise<string | undefined> {
  type Head = { chain: number; sequence: bigint; audit_id: string; hash: string; created_at: string | null };
  const { rows } = await pool.query<Head>(headsQuery);
  const data: EventData<typeof type> = {
    heads: rows.map(({ sequence, created_at: _, ...head }) => ({ ...head, sequence: Number(sequence) })),
  };
  const time = rows.reduce(
    (newest, { created_at }) => ((created_at ?? '') > newest ? (created_at ?? '') : newest),
    start,
  );
  const payload = JSON.stringify(data);
  const id = createHash('sha256').update(payload).digest('hex').slice(0, 32);
  if (rows.length === 0 || id === lastId) return undefined;
  await transaction(pool, (client) =>
    writeOutbox(client, [{ id, topic: events[type].topic, key: 'audit-chain', type, time, payload }]),
  );
  return id;
}

export interface HeadPublisherOptions {
  pool: Pool;
  /** Called after a commit that wrote to the outbox. */
  wakeRelay(): void;
  logger: Logger;
}

/** Publishes the heads every minute if they have changed. */
export function createHeadPublisher({ pool, wakeRelay, logger }: HeadPublisherOptions): Sweeping {
  let lastId: string | undefined;
  const turn = async () => {
    const id = await publishHeads(pool, lastId);
    if (id !== undefined) {
      lastId = id;
      wakeRelay();
    }
    return false;
  };
  return sweeping('publishing audit heads', turn, 60_000, logger);
}
