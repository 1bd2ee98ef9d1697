import type { StateName } from '#libs/postgres/outbox/doubts.ts';
import { wakeRelay, writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { prefixed } from '../rows.ts';
import { balanceEvent } from './events.ts';
import { lockAccounts, readClockAndKnownIds } from './store.ts';

/**
 * Publishes the current balances among these states, in one transaction. This replaces a late copy of an older
 * balance, which may be the last record of its key in the compacted topic.
 */
export async function republishBalances(
  pool: Pool,
  states: readonly StateName[],
  balancesTopic: string,
): Promise<void> {
  const ids = new Set(states.flatMap(({ topic, key }) => (topic === balancesTopic && key !== null ? [key] : [])));
  if (ids.size > 0) await republish(pool, [...ids]);
}

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
    await republish(
      pool,
      rows.map((row) => prefixed('acc', row.account_id)),
    );
    await wakeRelay(pool, schema);
    count += rows.length;
    last = next;
  }
}

/** The accounts are locked as for a posting, so that the states are in order in the outbox. */
async function republish(pool: Pool, ids: string[]): Promise<void> {
  await transaction(pool, async (client) => {
    const accounts = await lockAccounts(client, ids);
    const { now } = await readClockAndKnownIds(client, []);
    await writeOutbox(
      client,
      accounts.map((account) => balanceEvent(account, now, true)),
    );
  });
}
