import { z } from 'zod';
import { loadConfig, processConfig, url } from '#libs/service/config.ts';
import { createLogger } from '#libs/service/logger.ts';
import { migrateAccounts } from './schema.ts';

/** Brings the database of accounts up to date. Run before the service, as the database's owner; safe to repeat. */
export const migrationConfig = z.object({
  LOG_LEVEL: processConfig.LOG_LEVEL,
  MIGRATION_DATABASE_URL: url('postgres', 'postgresql').describe("The owner's database URL"),
  SERVICE_ROLE: z.string().min(1).max(63).describe("The service's log-in role; made when missing"),
  SERVICE_ROLE_PASSWORD: z.string().min(1).describe('Its password'),
});

if (import.meta.main) {
  try {
    const config = loadConfig(migrationConfig);
    const logger = createLogger({ service: 'accounts-migrate', instance: String(process.pid), level: config.LOG_LEVEL });
    await migrateAccounts({ owner_url: config.MIGRATION_DATABASE_URL, role: config.SERVICE_ROLE, role_password: config.SERVICE_ROLE_PASSWORD }, logger);
  } catch (error) {
    console.error(`accounts could not be migrated: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
