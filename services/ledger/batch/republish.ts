import { wakeRelay, writeStatesAgain } from '#libs/postgres/outbox/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { readTime } from '#libs/postgres/time.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { prefixed } from '../rows.ts';
import { balanceEvent } from './events.ts';
import { lockAccounts } from './store.ts';

const accountsAtOnce = 500;

/**
 * Publishes the current balance of every customer account again. Postings continue meanwhile and wait for at
 * most one page. Returns the number of accounts.
 */
export async function republishAllBalances(pool: Pool, schema: string): Promise<number> {
  let count = 0;
  for (let last = '00000000-0000-0000-0000-000000000000'; ; ) {
    const { rows } = await pool.query<{ account_id: string }>(
      `select account_id from accounts where client_id is not null and account_id > $1 order by account_id limit ${accountsAtOnce}`,
      [last],
    );
    const next = rows.at(-1)?.account_id;
    if (next === undefined) return count;
    await republishBalances(
      pool,
      rows.map((row) => prefixed('acc', row.account_id)),
    );
    await wakeRelay(pool, schema);
    count += rows.length;
    last = next;
  }
}

/**
 * Publishes the current balances of these accounts again, in one transaction. The accounts are locked as for a posting, so
 * that the states are in order in the outbox.
 */
export async function republishBalances(pool: Pool, ids: readonly (string | null)[]): Promise<void> {
  await transaction(pool, async (client) => {
    const accounts = await lockAccounts(
      client,
      ids.flatMap((id) => id ?? []),
    );
    const now = new Date(await readTime(client)).toISOString();
    await writeStatesAgain(
      client,
      accounts.map((account) => balanceEvent(account, now, true)),
    );
  });
}
