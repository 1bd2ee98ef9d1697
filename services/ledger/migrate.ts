import { runMigration } from '#libs/service/migration.ts';
import { migrations } from './schema.ts';

/**
 * Migrates the database of the ledger. Run it as the database's owner before the service starts; it is safe to
 * repeat.
 */
if (import.meta.main) await runMigration(migrations);
