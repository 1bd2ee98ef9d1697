import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { eventually, together, useBank } from '../support/world.ts';

const world = useBank({ ledgers: 2 });
const { api } = world;

it('a ledger that starts without its database takes no partitions from the others', async () => {
  const accounts = await together(24, () => api.newAccount());
  const ledger = world.bank.process('ledger-2');
  await ledger.stop();
  await ledger.startWith({ DATABASE_URL: 'postgres://nobody:nothing@127.0.0.1:1/nothing' });
  await eventually(
    async () => readFileSync(ledger.log, 'utf8').includes('joining no consumer group until it can'),
    45_000,
  );
  const deposit = { transaction_type: 'Deposit', amount: 1 };
  const answers = await together(24, (i) =>
    api.post('/transactions', { ...deposit, account_id: accounts[i]?.account_id ?? '' }),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(24).fill(201));
  expect((await fetch(ledger.health_url)).status).toBe(503);
  await ledger.restart();
});
