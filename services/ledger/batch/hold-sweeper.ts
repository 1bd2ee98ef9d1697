import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Pool } from '#libs/postgres/pool.ts';
import { prefixed } from '../rows.ts';
import { recordExpired } from './hold-books.ts';

export interface HoldSweeperOptions {
  pool: Pool;
  /** Wakes the outbox relay. */
  wake: () => void;
  logger: Logger;
  /** Holds must be recorded as Expired within 10 s. */
  sweepMs?: number;
}

const accountsAtOnce = 200;

/**
 * Records expired holds whose accounts no command has touched since. Decisions have ignored them from
 * expires_at on. Every ledger sweeps; holds already recorded by another one are skipped.
 */
export function createHoldSweeper({ pool, wake, logger, sweepMs = 2_000 }: HoldSweeperOptions): {
  start(): void;
  stop(): Promise<void>;
} {
  const stopping = new AbortController();
  const { signal } = stopping;
  let loop: Promise<void> = Promise.resolve();

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const found = await sweepHolds(pool).catch((error: unknown) => {
        logger.warn({ err: error }, 'expired holds could not be recorded; trying again');
        return 0;
      });
      if (found > 0) wake();
      if (found < accountsAtOnce) await sleep(sweepMs, undefined, { signal }).catch(() => undefined);
    }
  }

  return {
    start: () => void (loop = run()),
    stop: () => {
      stopping.abort();
      return loop;
    },
  };
}

/** Returns the number of accounts with expired holds. */
export async function sweepHolds(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ account_id: string }>({
    name: 'due_holds',
    text: `select distinct account_id from (select account_id from holds where status = 'Active' and expires_at <= clock_timestamp() order by expires_at limit ${accountsAtOnce}) due`,
  });
  if (rows.length > 0)
    await recordExpired(
      pool,
      rows.map(({ account_id }) => prefixed('acc', account_id)),
    );
  return rows.length;
}
