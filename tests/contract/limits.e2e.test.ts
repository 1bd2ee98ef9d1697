import { beforeAll, describe, expect, it } from 'vitest';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { type Api, expectError, type RestAccount, unknownId } from '../support/client.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests the contract of the limits of accounts. */
const world = useBank({ env: { ...staffEnv, FOUR_EYES: 'raise_limit' } });
const { api } = world;
let alice: Api;
let bob: Api;
beforeAll(() => {
  alice = api.withToken(staffToken(world.bank, 'alice'));
  bob = api.withToken(staffToken(world.bank, 'bob'));
});

const put = (account: Pick<RestAccount, 'account_id'>, limits: unknown, by = api) =>
  by.send('PUT', `/accounts/${account.account_id}/limits`, { body: limits as object });
const get = (account: Pick<RestAccount, 'account_id'>, by = api) => by.get(`/accounts/${account.account_id}/limits`);
const rich = () => api.newAccount({ initial_deposit: 1000 });
const withdraw = ({ account_id }: RestAccount, amount: number) =>
  api.post('/transactions', { account_id, transaction_type: 'Withdrawal', amount });

describe('Limits', () => {
  it('PUT replaces all of them, GET returns them, and postings keep them', async () => {
    // contract: limits-1, limits-5
    const account = await rich();
    const { account_id } = account;
    const none = { account_id, currency: 'USD' };
    expect((await get(account)).data()).toEqual(none);
    const set = await put(account, { minimum_balance: 100, per_transaction: 250.5, per_day_out: 300 });
    expect([set.status, set.data()]).toEqual([
      200,
      { ...none, minimum_balance: 100, per_transaction: 250.5, per_day_out: 300, out_today: 0 },
    ]);
    const refused = expectError(
      await withdraw(account, 250.51),
      400,
      'limit_exceeded',
      /^Limit Exceeded: per_transaction/,
    );
    expect(refused.details).toMatchObject({ limit: 'per_transaction', transaction_id: expect.any(String) });
    const failed = (await api.get(`/transactions/${String(refused.details?.['transaction_id'])}`)).data();
    expect(failed).toMatchObject({ status: 'Failed', failure_code: 'limit_exceeded' });
    expect((await withdraw(account, 250.5)).status).toBe(201);
    expect(expectError(await withdraw(account, 49.51), 400, 'limit_exceeded').details).toMatchObject({
      limit: 'per_day_out',
    });
    expect((await get(account)).data()).toMatchObject({ out_today: 250.5 });
    expect((await put(account, { minimum_balance: 700 })).data()).toEqual({ ...none, minimum_balance: 700 });
    expect(expectError(await withdraw(account, 50), 400, 'limit_exceeded').details).toMatchObject({
      limit: 'minimum_balance',
    });
    expect((await put(account, {})).data()).toEqual(none);
    expect((await withdraw(account, 500)).status).toBe(201);
  });

  it.each([
    ['minimum_balance', null, 'validation_failed'],
    ['per_transaction', -1, 'invalid_amount'],
    ['per_day_out', '5', 'invalid_amount'],
    ['per_day_out', 1.001, 'invalid_amount_precision'],
    ['per_transaction', 1e15, 'amount_too_large'],
    ['per_week', 1, 'unknown_field'],
  ])('refuses %s %s', async (field, value, code) => {
    // contract: limits-2
    const account = await rich();
    const error = expectError(await put(account, { [field]: value }), 400, code);
    expect(error.errors?.[0]?.field).toBe(field);
    expect((await get(account)).data()).toEqual({ account_id: account.account_id, currency: 'USD' });
  });

  it('a Loan has none, an unknown account is 404, and bound credentials never read or set them', async () => {
    // contract: limits-2, limits-3
    const loan = await api.newAccount({ account_type: 'Loan', initial_deposit: 10 });
    expectError(await put(loan, {}), 400, 'invalid_account_type');
    for (const answer of [await put({ account_id: unknownId('acc') }, {}), await get({ account_id: unknownId('acc') })])
      expectError(answer, 404, 'account_not_found');
    const account = await rich();
    const bound = api.withKey(
      (await api.key({ scopes: ['accounts:read'], client_id: account.client_id })).api_key ?? '',
    );
    for (const answer of [await get(account, bound), await put(account, {}, bound)])
      expectError(answer, 403, 'insufficient_scope');
    const reader = api.withKey((await api.key({ scopes: ['accounts:read'] })).api_key ?? '');
    expect((await get(account, reader)).status).toBe(200);
    expectError(await put(account, {}, reader), 403, 'insufficient_scope');
    expectError(
      await api.post('/admin/api-keys', {
        name: 'x',
        scopes: ['accounts:limits'],
        environment: 'live',
        client_id: account.client_id,
      }),
      400,
      'validation_failed',
    );
  });

  it('setting them is audited, and a change that allows more waits for a second person', async () => {
    // contract: limits-4, four-eyes-1
    const account = await rich();
    expect((await put(account, { per_transaction: 10 }, alice)).status).toBe(200);
    const audits = await eventually(async () => {
      const list = (
        await api.get(`/admin/audit?resource_id=${account.account_id}&action=set_account_limits`)
      ).list<AuditRecord>();
      return list.length > 0 ? list : undefined;
    });
    expect(audits).toMatchObject([{ outcome: 'success', details: { per_transaction: '10', before: {} } }]);
    const asked = await put(account, { per_transaction: 20 }, alice);
    expect([asked.status, asked.data<Approval>()]).toMatchObject([202, { action: 'raise_limit', status: 'Waiting' }]);
    expect((await get(account)).data()).toMatchObject({ per_transaction: 10 });
    const { approval_id } = asked.data<Approval>();
    const decided = await bob.post(`/admin/approvals/${approval_id}/approval`, {});
    expect(decided.data<Approval>()).toMatchObject({
      status: 'Approved',
      outcome: { status: 'success', data: { per_transaction: 20 } },
    });
    expect((await get(account)).data()).toMatchObject({ per_transaction: 20 });
    await eventually(async () => {
      const list = (
        await api.get(`/admin/audit?resource_id=${account.account_id}&action=set_account_limits`)
      ).list<AuditRecord>();
      return list.some(({ details }) => JSON.stringify(details['before']) === '{"per_transaction":"10.00"}');
    });
  });
});
