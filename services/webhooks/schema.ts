import { join } from 'node:path';
import type { Migrations } from '#libs/postgres/migrate.ts';

/** The Postgres schema that only webhooks reads and writes. */
export const schema = 'webhooks';

/** Returns the grants of the service's role. A stored event never changes; only retention deletes it. */
function grants(role: string): string[] {
  return [
    `grant select, update (position) on event_head to ${role}`,
    `grant select, insert, delete on events to ${role}`,
    `grant select, insert, delete on event_subjects to ${role}`,
    `grant select, insert on account_owners to ${role}`,
    `grant select, insert, update (url, event_types, description, status, secret, previous_secret, previous_secret_ends_at, url_set_by, secret_set_by, updated_at, failing_since, last_ordinal, ordering) on webhooks to ${role}`,
    `grant select, insert on disabled_callers to ${role}`,
    `grant select, insert, update (position, pauses, from_time, is_over), delete on feeds to ${role}`,
    `grant select, insert, update (position, is_ready), delete on held_keys to ${role}`,
    `grant select, insert, update (status, tries, claim, next_attempt_at, waits_since, finished_at, attempts), delete on deliveries to ${role}`,
    `grant select, insert on commands, dead_lettered_commands to ${role}`,
  ];
}

export const migrations: Migrations = { schema, dir: join(import.meta.dirname, 'migrations'), grants };
