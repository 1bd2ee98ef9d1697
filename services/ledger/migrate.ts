import { join } from 'node:path';
import { z } from 'zod';
import { migrate, outboxGrants } from '#libs/postgres/migrate.ts';
import { loadConfig, url } from '#libs/service/config.ts';
import { run } from '#libs/service/run.ts';

/** Migrates the ledger's schema, its role, and the role's grants. It can be repeated and run concurrently. */
export const migrateConfig = z.object({
  MIGRATION_DATABASE_URL: url('postgres', 'postgresql').describe("The owner's database URL"),
  SERVICE_ROLE: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,62}$/)
    .describe("The ledger's login role"),
  SERVICE_ROLE_PASSWORD: z.string().min(8).describe('Its password'),
});

/**
 * Returns the grants. The ledger may insert, read, and change mutable columns. Nobody, not even the owner, can
 * change what is posted.
 */
export function grants(role: string): string[] {
  return [
    `grant select, insert on transactions, entries, commands, dead_lettered_commands to ${role}`,
    // A new account has balance 0; its first balance comes with its first entry.
    `grant select, insert (account_id, account_number, client_id, account_type, currency, status, status_version, created_at) on accounts to ${role}`,
    `grant update (status, status_version, balance_minor, last_sequence, held_minor, hold_expires_at, hold_version) on accounts to ${role}`,
    `grant select, insert, update (status, captured_minor, updated_at) on holds to ${role}`,
    `grant select, insert, update (ended_at, findings) on verifications to ${role}`,
    ...outboxGrants(role),
    // Audit records do not change, but locking a row requires a right to update it.
    `grant select, insert, update (audit_id), delete on audit_outbox to ${role}`,
    `grant usage on all sequences in schema ledger to ${role}`,
    // Of what is posted, only callers' texts can be replaced, by a function of the owner.
    `grant execute on function erase_texts(uuid, uuid[]), erase_hold_texts(uuid) to ${role}`,
    `grant select on v_accounts, v_entries, v_transactions, v_holds to ${role}`,
  ];
}

export const ledgerSchema = 'ledger';
export const migrationsDir = join(import.meta.dirname, 'migrations');

if (import.meta.main) {
  run('ledger-migrate', async ({ logger }) => {
    const config = loadConfig(migrateConfig);
    await migrate(
      {
        owner_url: config.MIGRATION_DATABASE_URL,
        schema: ledgerSchema,
        role: config.SERVICE_ROLE,
        role_password: config.SERVICE_ROLE_PASSWORD,
        dir: migrationsDir,
        grants,
      },
      logger,
    );
  });
}
