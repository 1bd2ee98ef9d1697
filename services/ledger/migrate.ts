import { runMigration } from '#libs/service/migration.ts';
import { migrateLedger } from './schema.ts';

/** Brings the database of the ledger up to date. Run before the service, as the database's owner; safe to repeat. */
if (import.meta.main) await runMigration('ledger', migrateLedger);
