import { describe, expect, it } from 'vitest';
import { type Answer, newKey, type RestAccount, type RestTransaction } from '../support/client.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Tests rollouts, and an unavailable database: nothing is lost or executed twice. */
const world = useBank({ gateways: 2, ledgers: 2, accounts: 2 });
const { api } = world;

interface Write {
  key: string;
  answer: Answer;
}

/** `lanes` concurrent callers make deposits of 1, each with its own key, while `use` runs. Returns all responses. */
async function underLoad(
  account: RestAccount,
  lanes: number,
  use: () => Promise<void>,
  gateway: (i: number) => number = (i) => i % 2,
): Promise<Write[]> {
  const writes: Write[] = [];
  let isOver = false;
  const load = together(lanes, async (lane) => {
    for (let i = lane; !isOver; i++) {
      const key = newKey();
      const answer = await world
        .gateway(gateway(i))
        .once(key, '/transactions', { account_id: account.account_id, transaction_type: 'Deposit', amount: 1 });
      writes.push({ key, answer });
    }
  });
  await use();
  isOver = true;
  await load;
  return writes;
}

const countBy = (writes: Write[]) =>
  Object.fromEntries(
    [...Map.groupBy(writes, ({ answer }) => answer.status)].map(([status, group]) => [status, group.length]),
  );

/** Checks that every write has one final outcome, whether repeated or not, and that the balance is their sum. */
async function expectEachOnce(account: RestAccount, writes: Write[]): Promise<void> {
  const repeated = [
    ...writes.filter(({ answer }) => answer.status !== 201),
    ...writes.filter(({ answer }) => answer.status === 201).slice(-50),
  ];
  await together(10, async (lane) => {
    for (let i = lane; i < repeated.length; i += 10) {
      const { key } = repeated[i] as Write;
      await eventually(
        async () =>
          (
            await world
              .gateway(i % 2)
              .once(key, '/transactions', { account_id: account.account_id, transaction_type: 'Deposit', amount: 1 })
          ).status === 201,
        30_000,
      );
    }
  });
  expect(await api.balance(account.account_id)).toBe(writes.length);
  const rows = await world.sql<{ n: number }>('select count(*)::int as n from v_transactions where account_id = $1', [
    account.account_id,
  ]);
  expect(rows).toEqual([{ n: writes.length }]);
  await world.expectBooksInOrder();
}

const sleep = (ms: number) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

describe('A rollout under load', () => {
  it.each([['ledger'], ['accounts']])(
    'of %s: processes are stopped and started one after the other, and every request is accepted',
    async (kind) => {
      const account = await api.newAccount();
      const writes = await underLoad(account, 8, async () => {
        for (const name of [kind, `${kind}-2`]) {
          await sleep(300);
          await world.bank.process(name).stop();
          await world.bank.process(name).restart();
        }
        await sleep(300);
      });
      for (const { answer } of writes) expect([201, 202], answer.text).toContain(answer.status);
      expect(countBy(writes)[201]).toBeGreaterThan(20);
      await expectEachOnce(account, writes);
    },
  );

  it('of the gateway: accepted requests are answered before it stops', async () => {
    const account = await api.newAccount();
    let isLeaving = false;
    const writes = await underLoad(
      account,
      8,
      async () => {
        await sleep(300);
        isLeaving = true;
        await sleep(50);
        await world.bank.process('gateway').stop();
        await world.bank.process('gateway').restart();
        isLeaving = false;
        await sleep(300);
      },
      (i) => (isLeaving ? 1 : i % 2),
    );
    expect(Object.keys(countBy(writes))).toEqual(['201']);
    await expectEachOnce(account, writes);
  });
});

describe('The database is unavailable for a while', () => {
  it.each(['ledger', 'accounts'])(
    'for %s: nothing is skipped or executed twice, and the service recovers by itself',
    async (service) => {
      const account = await api.newAccount();
      const [{ role } = { role: '' }] = await world.sql<{ role: string }>(
        'select rolname as role from pg_roles where rolname = current_database() || $1',
        [`_${service}`],
      );
      const writes = await underLoad(account, 4, async () => {
        await sleep(200);
        await world.sql(`alter role ${role} nologin`);
        await world.sql('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role]);
        await sleep(2500);
        await world.sql(`alter role ${role} login`);
        await eventually(
          async () =>
            (await api.post('/transactions', { account_id: unknownAccount, transaction_type: 'Deposit', amount: 1 }))
              .status === 404,
        );
      });
      for (const { answer } of writes) expect([201, 202, 503, 504], answer.text).toContain(answer.status);
      await expectEachOnce(account, writes);
      const opened = await eventually(async () => {
        const answer = await api.post('/accounts', {
          client_id: account.client_id,
          account_type: 'Savings',
          currency: 'USD',
          initial_deposit: 2,
        });
        return answer.status === 201 && answer.data<RestAccount>();
      });
      const transactions = (await api.get(`/transactions?account_id=${opened.account_id}`)).list<RestTransaction>();
      expect(transactions).toHaveLength(1);
    },
  );

  const unknownAccount = `acc_${'0'.repeat(32)}`;
});
