import type { Logger } from 'pino';
import { type ClientBase, lookupPlans } from '#libs/postgres/pool.ts';
import { createPoolFactory, watching } from '#libs/service/service.ts';
import type { LedgerConfig } from './config.ts';
import { migrations } from './schema.ts';

/** Connections of a process for reads. */
export const readConnections = 10;

export type Pools = ReturnType<typeof createPools>;

/**
 * Creates a connection pool per purpose, so that none starves another. `verify` checks new connections of pools
 * that write.
 */
export function createPools(
  config: LedgerConfig,
  instance: string,
  verify: (client: ClientBase) => Promise<void>,
  logger: Logger,
) {
  const newPool = createPoolFactory(config, migrations, logger);
  const name = `ledger ${instance}`;
  return {
    // One writer for single commands and one for callers' batches.
    writes: newPool(name, { verify, max: 2, options: lookupPlans }),
    watch: newPool(name, watching),
    reads: newPool(name, { max: readConnections }),
    // For queries that scan many rows, so that other reads always have connections.
    searches: newPool(name, { max: 2 }),
    relayPool: newPool(name, { verify, max: 4, options: lookupPlans }),
    // Calculates closed days. A page can have a Vault with all postings in cash of a day.
    closePool: newPool(`${name} closes`, { verify, max: 2, statement_timeout_ms: 600_000 }),
    // One connection for the lock and one for the check.
    verifyPool: newPool(`${name} verifies`, { max: 2 }),
  };
}
