import { z } from 'zod';
import { type Migrations, migrate } from '#libs/postgres/migrate.ts';
import { passwordsOf } from '#libs/postgres/passwords.ts';
import { databaseUrlConfig, loadConfig, processConfig, url } from './config.ts';
import { createLogger, errorMessage } from './logger.ts';

/** For programs that run as the owner of the database. */
export const ownerConfig = {
  MIGRATION_DATABASE_URL: url('postgres', 'postgresql').describe(
    "The owner's database URL; `password_file=<path>` in it names a file with its password",
  ),
};

export const migrationConfig = z.object({
  LOG_LEVEL: processConfig.LOG_LEVEL,
  ...ownerConfig,
  ...databaseUrlConfig,
  DATABASE_URL: databaseUrlConfig.DATABASE_URL.refine((text) => {
    const { username, password } = URL.parse(text) ?? {};
    return username !== '' && password !== '';
  }, 'must have the role of the service and its password, which the migration gives to it'),
});

/**
 * Migrates the database of a service, as its owner. The role of DATABASE_URL is created if it is missing, and gets its
 * first password. On failure it prints one line with the reason and sets the exit code to 1.
 */
export async function runMigration(migrations: Migrations): Promise<void> {
  const service = migrations.schema;
  try {
    const config = loadConfig(migrationConfig);
    const own = new URL(config.DATABASE_URL);
    const [role_password = '', ...former_passwords] = passwordsOf(own);
    const logger = createLogger({
      service: `${service}-migrate`,
      instance: String(process.pid),
      level: config.LOG_LEVEL,
    });
    await migrate(
      {
        ...migrations,
        owner_url: config.MIGRATION_DATABASE_URL,
        role: decodeURIComponent(own.username),
        role_password,
        former_passwords,
      },
      logger,
    );
  } catch (error) {
    console.error(`${service} could not be migrated: ${errorMessage(error)}`);
    process.exitCode = 1;
  }
}
