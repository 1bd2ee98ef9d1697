import { runMigration } from '#libs/service/migration.ts';
import { migrations } from './schema.ts';

/** Migrates the database of accounts. Run it before the service, as the database's owner. It can be repeated. */
if (import.meta.main) await runMigration(migrations);
