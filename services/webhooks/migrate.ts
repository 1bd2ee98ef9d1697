import { runMigration } from '#libs/service/migration.ts';
import { migrateWebhooks } from './schema.ts';

/** Brings the database of webhooks up to date. Run before the service, as the database's owner; safe to repeat. */
if (import.meta.main) await runMigration('webhooks', migrateWebhooks);
