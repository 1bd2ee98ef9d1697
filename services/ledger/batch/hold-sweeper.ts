import type { Logger } from 'pino';
import type { Pool } from '#libs/postgres/pool.ts';
import { type Sweeping, sweeping } from '#libs/service/sweeping.ts';
import { runBatch } from './engine.ts';

export interface HoldSweeperOptions {
  pool: Pool;
  /** Wakes the outbox relay. */
  wake: () => void;
  logger: Logger;
}

const holdsAtOnce = 200;
/** Holds must be recorded as Expired within 10 s. */
const pauseMs = 2_000;

/**
 * Records expired holds of accounts for which no command has arrived since. Decisions ignore a hold from
 * expires_at on, whether or not it is recorded as Expired. Every ledger sweeps, and skips holds that another
 * one has recorded.
 */
export function createHoldSweeper({ pool, wake, logger }: HoldSweeperOptions): Sweeping {
  const sweep = async (): Promise<boolean> => {
    const found = await sweepHolds(pool);
    if (found > 0) wake();
    return found === holdsAtOnce;
  };
  return sweeping('recording expired holds', sweep, pauseMs, logger);
}

/** Returns the number of due holds that were found; their accounts may have had more. */
export async function sweepHolds(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ account_id: string }>({
    name: 'due_holds',
    text: `select account_id from holds where status = 'Active' and expires_at <= clock_timestamp() order by expires_at limit ${holdsAtOnce}`,
  });
  const accounts = new Set(rows.map(({ account_id }) => account_id));
  if (accounts.size > 0) await runBatch(pool, [], 0, [...accounts]);
  return rows.length;
}
