import { parseArgs } from 'node:util';
import { z } from 'zod';
import { createPool } from '#libs/postgres/pool.ts';
import { databaseUrlConfig, loadConfig, processConfig } from '#libs/service/config.ts';
import { createLogger, errorMessage } from '#libs/service/logger.ts';
import { pepperConfig } from '#libs/service/signing.ts';
import { createBootstrapKey } from './api-keys/api-keys.ts';
import { schema } from './schema.ts';

/**
 * Creates an API key with all scopes and prints it once. Gateways accept it as soon as the relay of accounts
 * has run. `--test`: a key of the environment test.
 */
export const bootstrapConfig = z.object({
  LOG_LEVEL: processConfig.LOG_LEVEL,
  ...databaseUrlConfig,
  ...pepperConfig,
});

if (import.meta.main) {
  try {
    const { test } = parseArgs({ options: { test: { type: 'boolean' } } }).values;
    const config = loadConfig(bootstrapConfig);
    const logger = createLogger({
      service: 'accounts-bootstrap-key',
      instance: String(process.pid),
      level: config.LOG_LEVEL,
    });
    const pool = createPool(
      { url: config.DATABASE_URL, application_name: 'accounts-bootstrap-key', schema, max: 1 },
      logger,
    );
    try {
      console.log(
        await createBootstrapKey(pool, {
          pepper: config.API_KEY_PEPPER[0] ?? '',
          environment: test === true ? 'test' : 'live',
          schema,
          now: new Date(),
        }),
      );
    } finally {
      await pool.end();
    }
  } catch (error) {
    console.error(`no API key could be created: ${errorMessage(error)}`);
    process.exitCode = 1;
  }
}
