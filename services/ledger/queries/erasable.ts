import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { idBits } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { prefixed } from '../rows.ts';

const maxNamed = 100;

interface AccountRow {
  account_id: string;
  status: string;
  balance_minor: bigint;
  /** The time at which the account was opened or last posted to. */
  used_at: string;
}

/**
 * The ledger's step of an erasure (services/accounts/erasure): refuses it if one of the client's accounts must be kept.
 * It changes nothing, because books are kept (decision 46). What it finds stays true, because accounts starts no change
 * of the client's accounts before the erasure has ended, and an account that is not Active takes no posting.
 */
export async function checkErasure(
  pool: Pool,
  { client_id, kept_since }: MessageData<'check_erasure'>,
): Promise<ReplyBody> {
  const { rows } = await pool.query<AccountRow>(
    `select account_id, status, balance_minor, greatest(created_at, last_posted_at) as used_at
     from accounts where client_id = $1 order by account_id`,
    [idBits(client_id)],
  );
  const kept = rows.flatMap((row) => keptAccount(row, kept_since));
  if (kept.length === 0) return { ok: true, data: {} };
  const message = `client ${client_id} cannot be erased: ${kept.length} of their accounts must be kept`;
  return refused(refusal('erasure_refused', message, { details: { accounts: kept.slice(0, maxNamed) } }));
}

function keptAccount({ account_id, status, balance_minor, used_at }: AccountRow, keptSince: string) {
  const reasons = [
    ...(status === 'Inactive' ? [] : ['not_inactive']),
    ...(balance_minor === 0n ? [] : ['has_money']),
    ...(used_at > keptSince ? ['within_retention'] : []),
  ];
  return reasons.length === 0 ? [] : [{ account_id: prefixed('acc', account_id), reasons }];
}
