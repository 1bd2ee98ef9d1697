import type { Logger } from 'pino';
import { lastMigration } from '#libs/postgres/migrate.ts';
import { createPool, lookupPlans } from '#libs/postgres/pool.ts';
import type { AccountsConfig } from './config.ts';
import { migrationsDir, schema } from './schema.ts';

/** Creates connection pools by purpose, so that a busy service cannot starve the relay. */
export function createPools(config: AccountsConfig, logger: Logger) {
  const common = {
    url: config.DATABASE_URL,
    schema,
    migration: lastMigration(migrationsDir),
    statement_timeout_ms: config.STATEMENT_TIMEOUT_MS,
  };
  return {
    pool: createPool({ ...common, application_name: 'accounts', max: config.DATABASE_POOL_MAX }, logger),
    // For checks of the audit, which take minutes.
    verifyPool: createPool({ ...common, application_name: 'accounts-verify', max: 1 }, logger),
    relayPool: createPool({ ...common, application_name: 'accounts-relay', max: 3, options: lookupPlans }, logger),
  };
}
