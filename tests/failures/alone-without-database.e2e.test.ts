import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { commandPartitions } from '#libs/contracts/topics.ts';
import { retail } from '../support/client.ts';
import { scrape } from '../support/metrics.ts';
import { Proxy } from '../support/proxy.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Tests processes that cannot use the database while others of their service can. */
const world = useBank({ ledgers: 2, accounts: 2 });
const { api } = world;
const count = 24;

/** Deposits to accounts of all partitions. */
async function depositsToAll(accounts: { account_id: string }[]): Promise<number[]> {
  const deposit = { transaction_type: 'Deposit', amount: 1 };
  const answers = await together(accounts.length, (i) =>
    api.post('/transactions', { ...deposit, account_id: accounts[i]?.account_id ?? '' }),
  );
  return answers.map(({ status }) => status);
}

it('a ledger that starts without its database takes no partitions from the others', async () => {
  const accounts = await together(count, () => api.newAccount());
  const ledger = world.bank.process('ledger-2');
  await ledger.stop();
  // If it joined, it would be no spare, but get half of the partitions.
  await ledger.startWith({
    DATABASE_URL: 'postgres://nobody:nothing@127.0.0.1:1/nothing',
    SPREAD_COMMANDS: 'true',
  });
  await eventually(async () => readFileSync(ledger.log, 'utf8').includes('staying out of the consumer groups'), 45_000);
  // Joining would take some seconds.
  for (const until = Date.now() + 8_000; Date.now() < until; )
    expect(await depositsToAll(accounts)).toEqual(Array(count).fill(201));
  expect((await fetch(ledger.health_url)).status).toBe(503);
  await ledger.restart();
});

it('processes that lose their database let the others take their partitions, and return as spares', async () => {
  const accounts = await together(count, () => api.newAccount());
  const proxy = await new Proxy({ target: world.bank.database_url }).start();
  const cutOff = [world.bank.process('ledger-2'), world.bank.process('accounts-2')];
  const are = (status: number) => async () => {
    const found = await Promise.all(cutOff.map(async ({ health_url }) => (await fetch(health_url)).status));
    return found.every((one) => one === status);
  };
  for (const one of cutOff) await one.startWith({ DATABASE_URL: proxy.url });
  await eventually(are(200), 45_000);
  // The other ledger becomes the hot spare, so that it is the working one that loses its database.
  const worksAlone = async () =>
    (await scrape(world.bank.process('ledger-2'))).value('corebanking_command_partitions') === commandPartitions;
  await world.bank.process('ledger').stop();
  await eventually(worksAlone);
  await world.bank.process('ledger').restart();
  await eventually(worksAlone);
  await proxy.set({ kind: 'silent' });
  // While the fault lasts, everything is executed and read again, by the processes that can.
  const everything = async () => [
    ...(await depositsToAll(accounts)),
    ...(await together(count, () => api.post('/clients', retail()))).map(({ status }) => status),
    ...(await together(count, (i) => api.get(`/accounts/${accounts[i]?.account_id}`))).map(({ status }) => status),
  ];
  await eventually(async () => (await everything()).every((status) => status === 200 || status === 201), 60_000);
  expect(await are(503)()).toBe(true);
  for (const { health_url } of cutOff) expect((await fetch(new URL('/livez', health_url))).status).toBe(200);
  await proxy.heal();
  await eventually(are(200), 45_000);
  expect(await depositsToAll(accounts)).toEqual(Array(count).fill(201));
  for (const one of cutOff) await one.restart();
  await proxy.stop();
}, 180_000);
