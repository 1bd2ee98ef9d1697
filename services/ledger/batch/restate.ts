import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { PublishedEvent } from '#libs/postgres/outbox/outbox-messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { balanceEvent } from './events.ts';
import { lockAccounts, look } from './store.ts';

/**
 * Publishes the present balance of every account of which these messages tell a balance: a late copy of an older state, which
 * may be the last record of its key in the compacted topic, is replaced. The accounts are locked as for a posting, so that the
 * order of the outbox is that of the states.
 */
export async function restateBalances(pool: Pool, messages: readonly PublishedEvent[], balancesTopic: string): Promise<void> {
  const ids = new Set(messages.flatMap(({ topic, key }) => (topic === balancesTopic && key !== null ? [key] : [])));
  if (ids.size === 0) return;
  await transaction(pool, async (client) => {
    const accounts = await lockAccounts(client, [...ids]);
    const { now } = await look(client, []);
    await writeOutbox(client, accounts.map((account) => balanceEvent(account, now, true)));
  });
}
