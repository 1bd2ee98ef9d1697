import { z } from 'zod';
import { createPool } from '#libs/postgres/pool.ts';
import { databaseUrlConfig, loadConfig } from '#libs/service/config.ts';
import { run } from '#libs/service/run.ts';
import { republishApiKeys } from './api-keys/api-keys.ts';
import { schema } from './schema.ts';

/**
 * Publishes every API key on the topic `api-keys` again, through the outbox of accounts (docs/operations.md,
 * Kafka is lost).
 */
export const republishConfig = z.object(databaseUrlConfig);

if (import.meta.main) {
  run('republish-keys', async ({ logger }) => {
    const pool = createPool(
      { url: loadConfig(republishConfig).DATABASE_URL, application_name: 'republish-keys', schema, max: 1 },
      logger,
    );
    try {
      logger.info({ keys: await republishApiKeys(pool, schema, new Date()) }, 'API keys will be published');
    } finally {
      await pool.end();
    }
  });
}
