import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { placed } from '../rows.ts';

/** Returns the sequence of each of these times as `placed` does, in their order, or none if there is no such account. */
export async function placeTimes(pool: Pool, account: string | null, times: readonly string[]): Promise<bigint[]> {
  const { rows } = await pool.query<{ sequence: bigint }>(
    `with recursive wanted as (select $1::uuid as account_id, time from unnest($2::timestamptz[]) as time), ${placed}
     select sequence from unnest($2::timestamptz[]) with ordinality as wanted (time, n)
       cross join lateral (select sequence from placed p where p.time = wanted.time limit 1) p order by n`,
    [account, times],
  );
  return rows.map(({ sequence }) => sequence);
}

/** Only so long ago, a posting may have got its time and not be committed yet. */
const recentMs = 60_000;

/**
 * If one of the times is recent, waits for the postings to the account that are under way: each has read its time after
 * it locked the account, and holds the lock until it is committed. What is read afterwards about these times does not
 * change any more. Rejects if the lock is not available within lock_timeout.
 */
export async function awaitPostings(
  pool: Pool,
  account: string | null,
  client: string | null,
  times: readonly (string | undefined)[],
): Promise<void> {
  const since = Date.now() - recentMs;
  if (!times.some((time) => time !== undefined && Date.parse(time) > since)) return;
  await transaction(pool, async (connection) => {
    // The lock is written to the row. Nobody depends on it, so this commit waits for no disk and no standby.
    await connection.query('set local synchronous_commit to off');
    await connection.query(
      'select from accounts where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2) for share',
      [account, client],
    );
  });
}
