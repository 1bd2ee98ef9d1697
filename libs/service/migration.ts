import { z } from 'zod';
import { type Migrations, migrate } from '#libs/postgres/migrate.ts';
import { loadConfig, processConfig, url } from './config.ts';
import { createLogger, errorMessage } from './logger.ts';

export const migrationConfig = z.object({
  LOG_LEVEL: processConfig.LOG_LEVEL,
  MIGRATION_DATABASE_URL: url('postgres', 'postgresql').describe("The owner's database URL"),
  SERVICE_ROLE: z.string().min(1).max(63).describe("The service's login role, created if missing"),
  SERVICE_ROLE_PASSWORD: z.string().min(1).describe('Its password'),
});

/**
 * Migrates the database of a service, as its owner. On failure it prints one line with the reason and sets the
 * exit code to 1.
 */
export async function runMigration(migrations: Migrations): Promise<void> {
  const service = migrations.schema;
  try {
    const config = loadConfig(migrationConfig);
    const logger = createLogger({
      service: `${service}-migrate`,
      instance: String(process.pid),
      level: config.LOG_LEVEL,
    });
    await migrate(
      {
        ...migrations,
        owner_url: config.MIGRATION_DATABASE_URL,
        role: config.SERVICE_ROLE,
        role_password: config.SERVICE_ROLE_PASSWORD,
      },
      logger,
    );
  } catch (error) {
    console.error(`${service} could not be migrated: ${errorMessage(error)}`);
    process.exitCode = 1;
  }
}
