import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Till } from '#libs/contracts/tills.ts';
import { isTime, type List, listed, readPage, Where } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { prefixed, type TillRow, tillColumns, toTill } from '../rows.ts';
import { unknown } from './by-id.ts';
import { bits } from './lists.ts';

/** Reads tills. */

export async function getTill(pool: Pool, tillId: string): Promise<ReplyBody> {
  const { rows } = await pool.query<TillRow>(`select ${tillColumns} from tills where till_id = $1`, [
    bits('till', tillId),
  ]);
  return rows[0] ? { ok: true, data: toTill(rows[0]) } : unknown(pool, tillId, 'till');
}

/** Lists tills, those opened last first. */
export async function listTills(pool: Pool, { actor, status, ...page }: MessageData<'list_tills'>): Promise<ReplyBody> {
  const where = new Where().equal({ actor });
  if (status !== undefined) where.conditions.push(`closed_at is ${status === 'Open' ? '' : 'not '}null`);
  return listed(await readPage(pool, where, tills, page));
}

const tills: List<TillRow, Till> = {
  order: ['opened_at', 'till_id'],
  values: ({ at, id }) => (isTime(at) && isId('till', id) ? [at, bits('till', id)] : undefined),
  position: (row) => ({ at: row.opened_at, id: prefixed('til', row.till_id) }),
  item: toTill,
  select: (where, order, limit) => `select ${tillColumns} from tills where ${where} order by ${order} limit ${limit}`,
};
