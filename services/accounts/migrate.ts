import { runMigration } from '#libs/service/migration.ts';
import { migrateAccounts } from './schema.ts';

/** Brings the database of accounts up to date. Run before the service, as the database's owner; safe to repeat. */
if (import.meta.main) await runMigration('accounts', migrateAccounts);
