import { parseJson } from '#libs/contracts/exchange.ts';
import { idBits, isId, itemBits } from '#libs/contracts/ids.ts';
import { type MessageName, messageOfType, messages } from '#libs/contracts/messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';

/**
 * Records which postings were dead-lettered. They are undecided until an operator redrives or drops them. A
 * query for such an id must not report it as unknown, because the caller may have received a 202.
 */

/** Commands whose outcome is always recorded under their own id. */
const postings: readonly (MessageName | undefined)[] = ['create_transaction', 'create_transfer', 'create_batch'];

interface Dead {
  headers: Record<string, string>;
  value: Buffer | null;
}

/** Called before the message is dead-lettered. */
export async function recordDeadLettered(pool: Pool, { headers, value }: Dead): Promise<void> {
  const { ce_id = '', ce_type = '' } = headers;
  const name = messageOfType(ce_type);
  if (!/_[0-9a-f]{32}$/.test(ce_id) || !postings.includes(name)) return;
  const ids = [idBits(ce_id), ...(name === 'create_batch' ? itemIds(value) : [])];
  await pool.query('insert into dead_lettered_commands (command_id) select unnest($1::uuid[]) on conflict do nothing', [
    ids,
  ]);
}

/**
 * Returns the item ids of a message that is readable but could not be executed. Items that were decided have
 * records of their own.
 */
function itemIds(value: Buffer | null): string[] {
  const parsed = messages.create_batch.data.safeParse(parseJson(value));
  if (!parsed.success || !isId('batch', parsed.data.batch_id)) return [];
  const { batch_id, items } = parsed.data;
  return items.map((_, index) => itemBits(batch_id, index));
}
