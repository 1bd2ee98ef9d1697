import type { MessageResult } from '#libs/contracts/messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { toLimits } from '../domain/limits.ts';
import type { AccountState } from '../domain/records.ts';
import { accountColumns, toAccountState } from '../rows.ts';
import { bits } from './lists.ts';

/** Returns the limits of a customer's account, and what has left it today; undefined if there is no such account. */
export async function getAccountLimits(
  pool: Pool,
  accountId: string,
): Promise<MessageResult<'get_account_limits'> | undefined> {
  const { rows } = await pool.query<AccountState & { now: string }>(
    `select ${accountColumns}, clock_timestamp() as now from accounts where account_id = $1 and client_id is not null`,
    [bits('account', accountId)],
  );
  const [row] = rows;
  return row && toLimits(toAccountState(row), row.now);
}
