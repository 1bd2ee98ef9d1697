import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { Answer, Api, RestAccount } from '../support/client.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, together, useBank } from '../support/world.ts';

/**
 * Approvals while accounts and the ledger are killed: requests approved concurrently are executed
 * exactly once.
 */
const world = useBank({
  ledgers: 1,
  accounts: 2,
  env: { ...staffEnv, FOUR_EYES: 'all', FOUR_EYES_LIMITS: 'USD:1000' },
});
const { api } = world;
const person = (name: string): Api => api.withToken(staffToken(world.bank, name));

const rounds = 4;
const perRound = 12;

/** Kills and restarts one process after the other until it is stopped. */
async function disturb(isOver: () => boolean): Promise<number> {
  let kills = 0;
  for (const name of ['accounts', 'ledger', 'accounts-2', 'ledger', 'accounts']) {
    if (isOver()) break;
    await sleep(300);
    world.bank.process(name).kill('SIGKILL');
    kills++;
    await world.bank.process(name).restart();
  }
  return kills;
}

/** Resolves with the final response: 503 and 504 are retried, as the contract requires. */
async function settled(call: () => Promise<Answer>): Promise<Answer> {
  return eventually(async () => {
    const answer = await call();
    return answer.status < 500 && answer;
  }, 60_000);
}

/** Returns the balance as soon as the services answer queries again. */
async function balance(account_id: string): Promise<number> {
  const answer = await settled(() => api.get(`/accounts/${account_id}`));
  return answer.data<RestAccount>().balance;
}

it('each approved deposit is posted once and no rejected one is, also while processes are killed', async () => {
  // contract: four-eyes-17
  const alice = person('alice');
  const accounts = await together(perRound, () => api.newAccount());
  let expected = 0;
  let kills = 0;
  for (let round = 0; round < rounds; round++) {
    let isOver = false;
    const disturbance = disturb(() => isOver);
    const done = await together(perRound, async (index) => {
      const { account_id = '' } = accounts[index] ?? {};
      const key = `${round}-${index}`;
      const asked = await settled(() =>
        alice.once(key, '/transactions', { account_id, transaction_type: 'Deposit', amount: 2_000 }),
      );
      expect(asked.status, asked.text).toBe(202);
      const { approval_id } = asked.data<Approval>();
      const rejects = index % 4 === 3;
      const decisions = await Promise.all(
        ['bob', 'carol', 'dan'].map((name, i) =>
          settled(() =>
            rejects
              ? person(name).once(`${key}-${i}`, `/admin/approvals/${approval_id}/rejection`, { reason: 'no' })
              : person(name).once(`${key}-${i}`, `/admin/approvals/${approval_id}/approval`),
          ),
        ),
      );
      expect(decisions.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
      return { approval_id, rejects };
    });
    isOver = true;
    kills += await disturbance;
    for (const { approval_id, rejects } of done) {
      const approval = await eventually(async () => {
        const found = (await alice.get(`/admin/approvals/${approval_id}`)).data<Approval>();
        return (found.status === 'Rejected' || found.outcome !== undefined) && found;
      }, 60_000);
      expect(approval).toMatchObject(
        rejects ? { status: 'Rejected' } : { status: 'Approved', outcome: { status: 'success' } },
      );
    }
    expected += 1;
    for (const [index, { account_id }] of accounts.entries())
      expect(await balance(account_id)).toBe(index % 4 === 3 ? 0 : expected * 2_000);
  }
  expect(kills).toBeGreaterThan(0);
  const steps = await eventually(async () => {
    const [left] = await world.sql<{ steps: number }>('select count(*)::int as steps from accounts.saga_steps');
    return left?.steps === 0 && left;
  });
  expect(steps).toEqual({ steps: 0 });
  const decided = await world.sql(
    `select status, count(*)::int as approvals, count(outcome)::int as outcomes from accounts.approvals
     group by status order by status`,
  );
  expect(decided).toEqual([
    { status: 'Approved', approvals: rounds * perRound * 0.75, outcomes: rounds * perRound * 0.75 },
    { status: 'Rejected', approvals: rounds * perRound * 0.25, outcomes: 0 },
  ]);
}, 300_000);

it('an approval is accepted while the ledger is unavailable, and executed when it is back', async () => {
  const [alice, bob] = [person('alice'), person('bob')];
  const { account_id } = await api.newAccount();
  const asked = await alice.post('/transactions', { account_id, transaction_type: 'Deposit', amount: 3_000 });
  const path = `/admin/approvals/${asked.data<Approval>().approval_id}`;
  const ledger = world.bank.process('ledger');
  ledger.kill('SIGSTOP');
  const approved = await bob.post(`${path}/approval`);
  expect([approved.status, approved.data()]).toMatchObject([200, { status: 'Approved' }]);
  expect(approved.data()).not.toHaveProperty('outcome');
  ledger.kill('SIGCONT');
  const outcome = await eventually(async () => (await alice.get(path)).data<Approval>().outcome);
  expect(outcome).toMatchObject({ status: 'success', data: { amount: 3_000 } });
  expect(await balance(account_id)).toBe(3_000);
}, 60_000);
