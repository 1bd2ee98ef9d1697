import { join } from 'node:path';
import type { Migrations } from '#libs/postgres/migrate.ts';
import { verificationsTable } from '#libs/service/verifications.ts';

/** The Postgres schema, which only the ledger reads and writes. */
export const ledgerSchema = 'ledger';

/** The views for read-only SQL (contract: double-entry-16). */
const readableViews = ['v_accounts', 'v_entries', 'v_transactions', 'v_holds'] as const;

/**
 * The rights of the service's role: insert, read, and update the columns that change. Not even the owner can
 * change posted rows.
 */
function grants(role: string): string[] {
  return [
    `grant select, insert on transactions, entries, dated_entries, closed_days, day_closings, day_closing_lines, commands, batches, dead_lettered_commands to ${role}`,
    // An account has a balance of 0 when it is inserted, and only entries change it (post_entries).
    `grant select, insert (account_id, account_number, client_id, account_type, currency, status, status_version, created_at) on accounts to ${role}`,
    `grant update (status, status_version, held_minor, active_holds, hold_expires_at, hold_version, minimum_balance_minor, per_transaction_minor, per_day_out_minor, out_day, out_minor) on accounts to ${role}`,
    `grant select, insert, update (status, captured_minor, updated_at) on holds to ${role}`,
    `grant select, insert, update (day, amount_minor) on posted_without_approval to ${role}`,
    `grant select, insert, update (closed_at, balances, reason, closed_by) on tills to ${role}`,
    `grant select, insert on till_postings to ${role}`,
    `grant select, insert, update (ended_at, findings) on verifications to ${role}`,
    // The rows are never updated, but only a role that may update a column can lock them.
    `grant select, insert, update (audit_id), delete on audit_outbox to ${role}`,
    `grant select on ${readableViews.join(', ')} to ${role}`,
  ];
}

export const migrations: Migrations = {
  schema: ledgerSchema,
  dir: join(import.meta.dirname, 'migrations'),
  shared: [verificationsTable],
  grants,
  readable: readableViews,
};
