import type { Logger } from 'pino';
import { lastMigration } from '#libs/postgres/migrate.ts';
import { type ClientBase, createPool, lookupPlans } from '#libs/postgres/pool.ts';
import type { LedgerConfig } from './config.ts';
import { ledgerSchema, migrationsDir } from './schema.ts';

export type Pools = ReturnType<typeof createPools>;

/**
 * Creates connection pools by purpose, so that none starves another. `verify` checks new connections of pools
 * that write.
 */
export function createPools(
  config: LedgerConfig,
  instance: string,
  verify: (client: ClientBase) => Promise<void>,
  logger: Logger,
) {
  const application_name = `ledger ${instance}`;
  const common = {
    url: config.DATABASE_URL,
    application_name,
    schema: ledgerSchema,
    migration: lastMigration(migrationsDir),
    statement_timeout_ms: config.STATEMENT_TIMEOUT_MS,
  };
  return {
    // One writer for single commands and one for callers' batches.
    writes: createPool({ ...common, verify, max: 2, options: lookupPlans }, logger),
    reads: createPool({ ...common, max: config.DATABASE_POOL_MAX }, logger),
    // For queries that scan many rows, so that other reads always have connections.
    searches: createPool({ ...common, max: 2 }, logger),
    relayPool: createPool({ ...common, verify, max: 4, options: lookupPlans }, logger),
    erasures: createPool({ ...common, verify, max: 1 }, logger),
    // One connection for the lock and one for the check.
    verifyPool: createPool({ ...common, application_name: `${application_name} verifies`, max: 2 }, logger),
  };
}
