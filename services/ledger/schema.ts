import { join } from 'node:path';
import type { Logger } from 'pino';
import { migrate, outboxGrants } from '#libs/postgres/migrate.ts';

/** The Postgres schema that the ledger alone reads and writes. */
export const ledgerSchema = 'ledger';

/** The contract for read-only SQL (docs/warehouse.md). */
const readableViews = ['v_accounts', 'v_entries', 'v_transactions', 'v_holds'] as const;

/**
 * What the service's role may do: insert, read, and update the columns that change. What has been booked cannot be changed,
 * not even by the owner.
 */
function grants(role: string): string[] {
  return [
    `grant select, insert on transactions, entries, commands, dead_lettered_commands to ${role}`,
    // An account is opened empty, and only its entries change its balance (post_entries).
    `grant select, insert (account_id, account_number, client_id, account_type, currency, status, status_version, created_at) on accounts to ${role}`,
    `grant update (status, status_version, held_minor, hold_expires_at, hold_version) on accounts to ${role}`,
    `grant select, insert, update (status, captured_minor, updated_at) on holds to ${role}`,
    `grant select, insert, update (ended_at, findings) on verifications to ${role}`,
    ...outboxGrants(role),
    // They are never updated, but only a role that may update a column can lock rows.
    `grant select, insert, update (audit_id), delete on audit_outbox to ${role}`,
    // The caller's texts of a client that is erased, by a function of the owner.
    `grant execute on function erase_texts(uuid, uuid[]), erase_hold_texts(uuid) to ${role}`,
    `grant select on ${readableViews.join(', ')} to ${role}`,
  ];
}

export const migrationsDir = join(import.meta.dirname, 'migrations');

/** Brings schema, role and grants up to date; see migrate. */
export async function migrateLedger(
  options: { owner_url: string; role: string; role_password: string },
  logger: Logger,
): Promise<void> {
  await migrate({ ...options, schema: ledgerSchema, dir: migrationsDir, grants, readable: readableViews }, logger);
}
