import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { StaffDay } from '#libs/contracts/staff-days.ts';
import { type Api, expectError } from '../support/client.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { useBank } from '../support/world.ts';

/** Tests the contract of the days and tills of persons. */
const world = useBank({ env: { ...staffEnv, FOUR_EYES: 'post_above', FOUR_EYES_LIMITS: 'USD:100' } });
const { api } = world;
let manager: Api;
beforeAll(() => {
  manager = api.withToken(staffToken(world.bank, 'manager'));
});

const clerkScopes = 'clients:read accounts:read accounts:write transactions:read transactions:write transfers:write';
/** A person of whom no other test knows. */
function newClerk(scope = clerkScopes) {
  const sub = randomUUID();
  return { api: api.withToken(staffToken(world.bank, sub, { scope })), actor: `jwt:${world.bank.issuer}|${sub}` };
}
const dayOf = async (by: Api, query = '') => (await by.get(`/admin/staff-day${query}`)).data<StaffDay>();
const cash = (by: Api, account_id: string, amount: number, transaction_type = 'Deposit') =>
  by.post('/transactions', { account_id, transaction_type, amount });

describe('The day of a person', () => {
  it('has what they posted, and is seen by themselves, and by others with books:read', async () => {
    // contract: tills-1, tills-2, tills-4
    const clerk = newClerk();
    const account = await api.newAccount({ initial_deposit: 50 });
    const none = { actor: clerk.actor, totals: [], refused: 0, batch_items: 0, customers: [] };
    expect(await dayOf(clerk.api)).toMatchObject(none);
    await cash(clerk.api, account.account_id, 10.5);
    await cash(clerk.api, account.account_id, 3, 'Withdrawal');
    await cash(clerk.api, account.account_id, 60, 'Withdrawal');
    const day = await dayOf(clerk.api);
    const { client_id, account_id } = account;
    expect(day).toMatchObject({
      ...none,
      on: new Date().toISOString().slice(0, 10),
      totals: [
        {
          currency: 'USD',
          cash_in: 10.5,
          cash_in_count: 1,
          cash_out: 3,
          cash_out_count: 1,
          net_cash: 7.5,
          transferred: 0,
          transferred_count: 0,
        },
      ],
      refused: 1,
      customers: [{ client_id, account_id }],
    });
    const ofClerk = `?actor=${encodeURIComponent(clerk.actor)}`;
    expect(await dayOf(manager, ofClerk)).toEqual(day);
    expect(await dayOf(clerk.api, ofClerk)).toEqual(day);
    expect(await dayOf(manager, `${ofClerk}&on=2020-01-01`)).toMatchObject({ on: '2020-01-01', totals: [] });
    expectError(await newClerk().api.get(`/admin/staff-day${ofClerk}`), 403, 'insufficient_scope', /books:read/);
  });

  it('of an API key does not exist, and a mistyped day or person is named', async () => {
    // contract: tills-1
    expectError(await api.get('/admin/staff-day'), 400, 'validation_failed', /^actor must be a person/);
    expectError(await manager.get('/admin/staff-day?actor=ada'), 400, 'validation_failed', /^actor must be a person/);
    expectError(await manager.get('/admin/staff-day?on=yesterday'), 400, 'validation_failed', /^on must be a day/);
    expectError(await manager.get('/admin/staff-day?person=ada'), 400, 'unknown_parameter');
    const account = await api.newAccount();
    const bound = api.withKey(
      (await api.key({ scopes: ['accounts:read'], client_id: account.client_id })).api_key ?? '',
    );
    expectError(await bound.get('/admin/staff-day'), 403, 'insufficient_scope');
  });

  it('counts what a second person has approved for who asked for it', async () => {
    // contract: tills-2
    const [clerk, approver] = [newClerk(), newClerk(`${clerkScopes} approvals:write`)];
    const account = await api.newAccount();
    const asked = await cash(clerk.api, account.account_id, 5000);
    expect([asked.status, (await dayOf(clerk.api)).totals]).toEqual([202, []]);
    const { approval_id } = asked.data<Approval>();
    await approver.api.post(`/admin/approvals/${approval_id}/approval`, {});
    expect((await dayOf(clerk.api)).totals).toMatchObject([{ cash_in: 5000, cash_in_count: 1 }]);
    expect((await dayOf(approver.api)).totals).toEqual([]);
  });

  it('has initial deposits and reversals as cash, and items of batches apart', async () => {
    // contract: tills-3
    const clerk = newClerk(`${clerkScopes} transactions:reverse`);
    const { client_id } = await api.newAccount();
    const opened = await clerk.api.post('/accounts', {
      client_id,
      account_type: 'Savings',
      currency: 'USD',
      initial_deposit: 40,
    });
    const { account_id } = opened.data<{ account_id: string }>();
    expect((await dayOf(clerk.api)).totals).toMatchObject([{ cash_in: 40, cash_in_count: 1, net_cash: 40 }]);
    const posted = await cash(clerk.api, account_id, 7);
    const { transaction_id } = posted.body as { transaction_id: string };
    await clerk.api.post(`/transactions/${transaction_id}/reversal`, { reason: 'wrong amount' });
    const transaction = { account_id, transaction_type: 'Deposit', amount: 1 };
    await clerk.api.once(randomUUID(), '/batches', { mode: 'independent', items: [{ transaction }] });
    expect(await dayOf(clerk.api)).toMatchObject({
      totals: [{ cash_in: 47, cash_in_count: 2, cash_out: 7, cash_out_count: 1, net_cash: 40 }],
      batch_items: 1,
    });
  });
});
