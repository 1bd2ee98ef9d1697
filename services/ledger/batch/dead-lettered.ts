import { idBits } from '#libs/contracts/ids.ts';
import { type MessageName, messageOfType } from '#libs/contracts/messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';

/**
 * Which postings were dead-lettered: nothing is decided about them until somebody redrives or drops them, but a query for what
 * they were to create must not answer that it is unknown, because their callers may have been told 202.
 */

/** Those whose outcome always has a record under the command's own id. */
const postings: readonly (MessageName | undefined)[] = ['create_transaction', 'create_transfer'];

/** Before the message goes to the dead letters. */
export async function recordDeadLettered(pool: Pool, headers: Record<string, string>): Promise<void> {
  const { ce_id = '', ce_type = '' } = headers;
  if (!/_[0-9a-f]{32}$/.test(ce_id) || !postings.includes(messageOfType(ce_type))) return;
  await pool.query('insert into dead_lettered_commands (command_id) values ($1) on conflict do nothing', [idBits(ce_id)]);
}
