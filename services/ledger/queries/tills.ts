import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Till } from '#libs/contracts/tills.ts';
import { isTime, type List, listed, readPage, Where } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { sumsSoFar } from '../domain/tills.ts';
import { prefixed, type TillRow, tillColumns, toTill } from '../rows.ts';
import { cashOf, readCash } from '../till-cash.ts';
import { unknown } from './by-id.ts';
import { bits } from './lists.ts';

/** Reads tills. */

export async function getTill(pool: Pool, tillId: string): Promise<ReplyBody> {
  const { rows } = await pool.query<TillRow>(`select ${tillColumns} from tills where till_id = $1`, [
    bits('till', tillId),
  ]);
  const [till] = await withSums(pool, rows.map(toTill));
  return till ? { ok: true, data: till } : unknown(pool, tillId, 'till');
}

/** Lists tills, those opened last first. */
export async function listTills(pool: Pool, { actor, status, ...page }: MessageData<'list_tills'>): Promise<ReplyBody> {
  const where = new Where().equal({ actor });
  if (status !== undefined) where.conditions.push(`closed_at is ${status === 'Open' ? '' : 'not '}null`);
  const read = await readPage(pool, where, tills, page);
  return listed(read && { ...read, items: await withSums(pool, read.items) });
}

/** Adds to the open ones of these tills what they have taken so far. */
async function withSums(pool: Pool, tills: readonly Till[]): Promise<Till[]> {
  const open = tills.flatMap(({ till_id, closed_at }) => (closed_at === null ? [till_id] : []));
  const sums = await readCash(pool, open);
  return tills.map((till) => {
    if (till.closed_at !== null) return till;
    return { ...till, so_far: sumsSoFar({ till, cash: cashOf(till, sums) }) };
  });
}

const tills: List<TillRow, Till> = {
  order: ['opened_at', 'till_id'],
  values: ({ at, id }) => (isTime(at) && isId('till', id) ? [at, bits('till', id)] : undefined),
  position: (row) => ({ at: row.opened_at, id: prefixed('til', row.till_id) }),
  item: toTill,
  select: (where, order, limit) => `select ${tillColumns} from tills where ${where} order by ${order} limit ${limit}`,
};
