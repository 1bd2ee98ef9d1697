import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import { type EventData, events } from '#libs/contracts/events.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { type Sweeping, sweeping } from '#libs/service/sweeping.ts';

const type = 'corebanking.audit.head.v1';

/** One primary-key lookup per chain. */
const headsQuery = `select head.* from generate_series(0, 15) as chains (number) cross join lateral (
    select chain, sequence::int8, audit_id, encode(hash, 'hex') as hash from audit_chain where chain = number order by sequence desc limit 1
  ) head order by chain`;

/**
 * Publishes the last link of each audit chain. With the records of that topic, anyone can prove that no earlier audit
 * record was changed, whatever happened to the database since. The same heads have the same ce_id, whichever process
 * publishes them. Returns that id, or undefined if the heads are those of `lastId`.
 */
export async function publishHeads(pool: Pool, now: Date, lastId?: string): Promise<string | undefined> {
  const { rows } = await pool.query<{ chain: number; sequence: bigint; audit_id: string; hash: string }>(headsQuery);
  const data: EventData<typeof type> = {
    heads: rows.map(({ sequence, ...head }) => ({ ...head, sequence: Number(sequence) })),
  };
  const payload = JSON.stringify(data);
  const id = createHash('sha256').update(payload).digest('hex').slice(0, 32);
  if (rows.length === 0 || id === lastId) return undefined;
  await transaction(pool, (client) =>
    writeOutbox(client, [
      { id, topic: events[type].topic, key: 'audit-chain', type, time: now.toISOString(), payload },
    ]),
  );
  return id;
}

export interface HeadPublisherOptions {
  pool: Pool;
  now: () => Date;
  /** Called after a commit that wrote to the outbox. */
  wakeRelay(): void;
  logger: Logger;
}

/** Publishes the heads every minute if they have changed. */
export function createHeadPublisher({ pool, now, wakeRelay, logger }: HeadPublisherOptions): Sweeping {
  let lastId: string | undefined;
  const turn = async () => {
    const id = await publishHeads(pool, now(), lastId);
    if (id !== undefined) {
      lastId = id;
      wakeRelay();
    }
    return false;
  };
  return sweeping('publishing audit heads', turn, 60_000, logger);
}
