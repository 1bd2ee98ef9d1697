import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { Hold, HoldStatus } from '#libs/contracts/holds.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { isTime, type List, Where } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type HoldState, toHold } from '../domain/records.ts';
import { holdColumns, prefixed, toHoldState } from '../rows.ts';
import { bits, listOfAccount } from './lists.ts';

/** Reads holds. An expired hold is shown as Expired even if that is not yet recorded. */

const isOver = "(status = 'Active' and expires_at <= now())";

const shownColumns = holdColumns
  .replace('status', `case when ${isOver} then 'Expired' else status end as status`)
  .replace('updated_at', `case when ${isOver} then expires_at else updated_at end as updated_at`);

export async function getHold(pool: Pool, holdId: string, bound: string | undefined): Promise<Hold | undefined> {
  const { rows } = await pool.query<HoldState>(
    `select ${shownColumns} from holds where hold_id = $1 and ($2::uuid is null or account_id in (select account_id from accounts where client_id = $2))`,
    [bits('hold', holdId), bits('client', bound)],
  );
  return rows[0] && toHold(toHoldState(rows[0]));
}

/** Lists the holds of an account, newest first. */
export function listHolds(
  pool: Pool,
  { status, external_id, ...request }: MessageData<'list_holds'>,
  bound: string | undefined,
): Promise<ReplyBody> {
  const where = new Where().equal({ external_id });
  if (status !== undefined) where.conditions.push(having[status]);
  return listOfAccount(pool, holds, request, bound, where);
}

const having: Record<HoldStatus, string> = {
  Active: "status = 'Active' and expires_at > now()",
  Captured: "status = 'Captured'",
  Released: "status = 'Released'",
  Expired: `(status = 'Expired' or ${isOver})`,
};

const holds: List<HoldState, Hold> = {
  order: ['created_at', 'hold_id'],
  values: ({ at, id }) => (isTime(at) && isId('hold', id) ? [at, bits('hold', id)] : undefined),
  position: (row) => ({ at: row.created_at, id: prefixed('hld', row.hold_id) }),
  item: (row) => toHold(toHoldState(row)),
  select: (where, order, limit) => `select ${shownColumns} from holds where ${where} order by ${order} limit ${limit}`,
};
