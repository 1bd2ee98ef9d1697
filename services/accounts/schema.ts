import { join } from 'node:path';
import type { Logger } from 'pino';
import { migrate } from '#libs/postgres/migrate.ts';

/** The Postgres schema that accounts alone reads and writes. */
export const schema = 'accounts';

/** What the service's role may do: the history of statuses and the audit are written and read, never changed. */
function grants(role: string): string[] {
  return [
    `grant select, insert, update on clients, accounts, api_keys, dead_letters to ${role}`,
    `grant select, insert on status_transitions, audit to ${role}`,
    `grant select, insert, update, delete on commands, waiting_replies, saga_steps to ${role}`,
    `grant select, insert, update, delete on outbox, outbox_batches, outbox_lease to ${role}`,
  ];
}

export const migrationsDir = join(import.meta.dirname, 'migrations');

/** Brings schema, role and grants up to date; see migrate. */
export async function migrateAccounts(options: { owner_url: string; role: string; role_password: string }, logger: Logger): Promise<void> {
  await migrate({ ...options, schema, dir: migrationsDir, grants }, logger);
}
