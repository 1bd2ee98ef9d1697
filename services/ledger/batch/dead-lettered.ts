import { parseJson } from '#libs/contracts/exchange.ts';
import { commandKey, idBits, isId, itemBits } from '#libs/contracts/ids.ts';
import { messages, messageType } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { isGiven } from '#libs/service/dead-lettered.ts';

type Dead = Pick<ReceivedMessage, 'headers' | 'value'>;

/** Records the id of a message that is being dead-lettered, and of a batch also those of its items. */
export const recordIn =
  (pool: Pool) =>
  async ({ headers: { ce_id, ce_type }, value }: Dead): Promise<void> => {
    if (!isGiven(ce_id)) return;
    const recorded = [
      [idBits(ce_id), commandKey(ce_id)],
      ...(ce_type === messageType('create_batch') ? items(value) : []),
    ];
    await pool.query(
      'insert into dead_lettered_commands (command_id, decided_as) select * from unnest($1::uuid[], $2::uuid[]) on conflict do nothing',
      [recorded.map(([id]) => id), recorded.map(([, key]) => key)],
    );
  };

/**
 * Returns the items of a message that is readable but could not be executed: their ids, and the ids of the replies that
 * decide them. Independent items that were decided have records of their own.
 */
function items(value: Buffer | null): [string, string][] {
  const parsed = messages.create_batch.data.safeParse(parseJson(value));
  if (!parsed.success || !isId('batch', parsed.data.batch_id)) return [];
  const { batch_id, mode, items } = parsed.data;
  return items.map((_, index) => {
    const bits = itemBits(batch_id, index);
    return [bits, commandKey(mode === 'atomic' ? batch_id : bits)];
  });
}
