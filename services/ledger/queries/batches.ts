import type { BatchSummary } from '#libs/contracts/batches.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { isPerson } from '#libs/contracts/staff-days.ts';
import { isTime, type List, type Page, readPage, Where } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { batchColumns, type ListedBatch, prefixed, selectListedBatches, toBatchSummary } from '../rows.ts';
import { bits } from './lists.ts';

/** Lists batches, newest first. A bound caller sees those of its own client. */
export function listBatches(
  pool: Pool,
  { external_id, actor, from, to, ...page }: MessageData<'list_batches'>,
  bound: string | undefined,
): Promise<Page<BatchSummary> | undefined> {
  const where = new Where()
    .equal({ external_id, actor, bound_client_id: bits('client', bound) ?? undefined })
    .between('created_at', from, to);
  // Written as a literal, so that the partial index of people's batches can be used.
  if (actor !== undefined && isPerson(actor)) where.conditions.push("actor like 'jwt:%'");
  return readPage(pool, where, batches, page);
}

const batches: List<ListedBatch, BatchSummary> = {
  order: ['created_at', 'batch_id'],
  values: ({ at, id }) => (isTime(at) && isId('batch', id) ? [at, bits('batch', id)] : undefined),
  position: (row) => ({ at: row.created_at, id: prefixed('bat', row.batch_id) }),
  item: toBatchSummary,
  select: (where, order, limit) =>
    `${selectListedBatches(`(select ${batchColumns} from batches where ${where} order by ${order} limit ${limit})`)} order by ${order}`,
};
