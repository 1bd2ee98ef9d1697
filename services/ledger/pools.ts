import type { Logger } from 'pino';
import { lastMigration } from '#libs/postgres/migrate.ts';
import { type ClientBase, createPool, lookupPlans } from '#libs/postgres/pool.ts';
import type { LedgerConfig } from './config.ts';
import { ledgerSchema, migrationsDir } from './migrate.ts';

export type Pools = ReturnType<typeof createPools>;

/** Connections by what they are for, so that none of it starves another. `verify`: for those that write. */
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
    // One writer for single commands, one for callers' batches.
    writes: createPool({ ...common, verify, max: 2, options: lookupPlans }, logger),
    reads: createPool({ ...common, max: config.DATABASE_POOL_MAX }, logger),
    // For what looks at many rows: however much of it is asked, other reads find connections.
    searches: createPool({ ...common, max: 2 }, logger),
    relayPool: createPool({ ...common, verify, max: 4, options: lookupPlans }, logger),
    erasures: createPool({ ...common, verify, max: 1 }, logger),
    // One connection for the lock, one for the check.
    verifyPool: createPool({ ...common, application_name: `${application_name} verifies`, max: 2 }, logger),
  };
}
