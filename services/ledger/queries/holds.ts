import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import type { Hold, HoldStatus } from '#libs/contracts/holds.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { isTime, type List, listed, readPage, Where } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type HoldState, toHold } from '../domain/records.ts';
import { holdColumns, holdOf, prefixed } from '../rows.ts';
import { bits } from './lists.ts';

/** Reads holds. An expired hold is shown as Expired even if that is not yet recorded. */

const isOver = "(status = 'Active' and expires_at <= now())";

const shownColumns = holdColumns
  .replace('status', `case when ${isOver} then 'Expired' else status end as status`)
  .replace('updated_at', `case when ${isOver} then expires_at else updated_at end as updated_at`);

export async function getHold(pool: Pool, holdId: string, bound: string | undefined): Promise<Hold | undefined> {
  if (!isId('hold', holdId)) return undefined;
  const { rows } = await pool.query<HoldState>(
    `select ${shownColumns} from holds where hold_id = $1 and ($2::uuid is null or account_id in (select account_id from accounts where client_id = $2))`,
    [bits(holdId), bound === undefined ? null : bits(bound)],
  );
  return rows[0] && toHold(holdOf(rows[0]));
}

/** Lists holds, newest first. An account that is hidden from the caller is unknown. */
export async function listHolds(
  pool: Pool,
  { account_id, status, external_id, ...page }: MessageData<'list_holds'>,
  bound: string | undefined,
): Promise<ReplyBody> {
  const owner = await pool.query(
    'select from accounts where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2)',
    [bits(isId('account', account_id) ? account_id : ''), bound === undefined ? null : bits(bound)],
  );
  if (owner.rowCount === 0)
    return { ok: false, refusal: refusal('account_not_found', `account ${account_id} not found`) };
  const where = new Where().equal({ account_id: bits(account_id), external_id });
  if (status !== undefined) where.conditions.push(having[status]);
  return listed(await readPage(pool, where, holds, page));
}

const having: Record<HoldStatus, string> = {
  Active: "status = 'Active' and expires_at > now()",
  Captured: "status = 'Captured'",
  Released: "status = 'Released'",
  Expired: `(status = 'Expired' or ${isOver})`,
};

const holds: List<HoldState, Hold> = {
  order: ['created_at', 'hold_id'],
  values: ({ at, id }) => (isTime(at) && isId('hold', id) ? [at, bits(id)] : undefined),
  position: (row) => ({ at: row.created_at, id: prefixed('hld', row.hold_id) }),
  item: (row) => toHold(holdOf(row)),
  select: (where, order, limit) => `select ${shownColumns} from holds where ${where} order by ${order} limit ${limit}`,
};
