import { expect, test } from 'vitest';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { snapshotStates } from '../../services/accounts/snapshot-events.ts';
import { newClient, useAccounts } from '../../services/accounts/test/harness.ts';
import { republishBalances } from '../../services/ledger/batch/republish.ts';
import { useLedger } from '../../services/ledger/test/harness.ts';

/** States that are written again are marked in the outbox, so that sweeps of the relay do not republish them for ever. */
const ledger = useLedger();
const accounts = useAccounts();

const marks = async (pool: Parameters<typeof readOutbox>[0], key: string, topic: string) =>
  (await readOutbox(pool)).filter((event) => event.key === key && event.topic === topic).map(({ isAgain }) => isAgain);

test('the ledger marks balances that it writes again, and not those of changes', async () => {
  const account_id = await ledger.open('Savings', '100');
  await republishBalances(ledger.writes, [account_id]);
  await ledger.book([ledger.cash('Deposit', account_id, '1')]);
  expect(await marks(ledger.owner, account_id, 'balances')).toEqual([undefined, true, undefined]);
});

test('accounts marks master data that it writes again, and not that of changes', async () => {
  const client_id = await newClient(accounts);
  await snapshotStates(accounts.pool, Date.now).republish([{ topic: 'client-masters', key: client_id }]);
  await accounts.send('update_client', { client_id, changes: { email: 'again@example.com' } });
  expect(await marks(accounts.pool, client_id, 'client-masters')).toEqual([undefined, true, undefined]);
});
