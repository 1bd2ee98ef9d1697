import type { Logger } from 'pino';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { type Sweeping, sweeping } from '#libs/service/sweeping.ts';
import { tellExpiries } from '../api-keys/api-keys.ts';
import { expireApprovals } from '../approvals/expire.ts';
import { foldedAtOnce, refoldClients } from '../clients/folded.ts';
import { stepMessage, takeDueSteps } from './inbox.ts';

export interface SweeperOptions {
  pool: Pool;
  prefix: string;
  /** Called after a commit that wrote to the outbox. */
  wakeRelay(): void;
  logger: Logger;
}

const stepsPerSweep = 200;

/**
 * Returns no row while messages have been waiting in the outbox for 2 s, because a repeated step would only wait behind
 * the first one.
 */
const dueStatement = `select from saga_steps where next_attempt_at <= clock_timestamp()
  and not exists (select from outbox_batches where published_at is null and created_at < clock_timestamp() - interval '2 seconds') limit 1`;

/**
 * Sends every saga step again that has had no reply for 2 s (then 4, 8 … 60 s), through the outbox. Several processes
 * can do this concurrently; the ledger recognizes repeats by their id. Returns the number of steps.
 */
export async function sweep({ pool, prefix }: Pick<SweeperOptions, 'pool' | 'prefix'>): Promise<number> {
  if ((await pool.query({ name: 'due_steps', text: dueStatement })).rowCount === 0) return 0;
  return transaction(pool, async (client) => {
    const steps = await takeDueSteps(client, stepsPerSweep);
    await writeOutbox(
      client,
      steps.map((step) => stepMessage(step, prefix)),
    );
    return steps.length;
  });
}

/** Every two seconds until stopped: sends due steps again, ends what has expired, approvals and webhooks of keys, and folds names. */
export function createSweeper({ pool, prefix, wakeRelay, logger }: SweeperOptions): Sweeping {
  const turn = async (): Promise<boolean> => {
    const sent = await sweep({ pool, prefix });
    const expired = (await expireApprovals(pool)) + (await tellExpiries(pool));
    if (sent > 0) logger.warn({ steps: sent }, 'saga steps sent again');
    if (sent + expired > 0) wakeRelay();
    // Processes of another version may still store clients during an upgrade.
    return (await transaction(pool, refoldClients)) === foldedAtOnce;
  };
  return sweeping('sending saga steps again', turn, 2_000, logger);
}
