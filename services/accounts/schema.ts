import { join } from 'node:path';
import type { Migrations } from '#libs/postgres/migrate.ts';
import { verificationsTable } from '#libs/service/verifications.ts';
import { foldedColumns, refoldAll } from './clients/folded.ts';
import { warnOfStrayPhones } from './clients/stored-phones.ts';

/** The Postgres schema that only accounts reads and writes. */
export const schema = 'accounts';

/**
 * Returns the grants of the service's role. The status history and the audit can be written and read, but never
 * changed.
 */
function grants(role: string): string[] {
  return [
    `grant select, insert, update (first_name, last_name, company_name, registration_number, email, contact_number, address, ussd_phone_number, ussd_status, external_id, metadata, client_metadata, updated_at, erased_at, ${foldedColumns}) on clients to ${role}`,
    `grant select, insert, update (state, status, status_version, updated_at) on accounts to ${role}`,
    `grant select, insert, update (secret_hash, expires_at, revoked_at, last_used_at, version, expiry_told) on api_keys to ${role}`,
    `grant select, insert, update (state, decided_by, decided_at, drop_reason) on dead_letters to ${role}`,
    `grant select, insert on status_transitions, notes, audit, dead_lettered_commands to ${role}`,
    `grant select, insert, update (name, folded, signed_in_at) on staff_names to ${role}`,
    `grant select on audit_chain to ${role}`,
    `grant select, insert, update (ended_at, findings) on verifications to ${role}`,
    // The request of an approval cannot be changed.
    `grant select, insert, update (status, decided_by, decided_at, reason, outcome, key_claimed_at) on approvals to ${role}`,
    `grant select, insert, update (reply, repeats), delete on commands to ${role}`,
    `grant select, insert, delete on waiting_replies to ${role}`,
    `grant select, insert, update (attempts, next_attempt_at), delete on saga_steps to ${role}`,
    // Personal data in these tables is replaced by a function of the owner, for a client whose erasure this
    // service has recorded.
    `grant execute on function erase_records(text, text) to ${role}`,
  ];
}

export const migrations: Migrations = {
  schema,
  dir: join(import.meta.dirname, 'migrations'),
  shared: [verificationsTable],
  grants,
  async review(client, logger) {
    await refoldAll(client, logger);
    await warnOfStrayPhones(client, logger);
  },
};
