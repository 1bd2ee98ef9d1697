import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { Operations } from '#libs/contracts/operations.ts';
import type { StaffDay } from '#libs/contracts/staff-days.ts';
import type { Till } from '#libs/contracts/tills.ts';
import { type Api, expectError, unknownId } from '../support/client.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

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
    expectError(await api.get('/admin/staff-day'), 400, 'validation_failed', /^actor is required, because API keys/);
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

const usd = (amount: unknown, currency: unknown = 'USD') => ({ counted: [{ currency, amount }] });
const openTill = async (by: Api, body: object = usd(100)) => (await by.post('/tills', body)).data<Till>();

describe('A till', () => {
  it('is opened and closed with a count, and keeps what its person posted between them, a difference, and why', async () => {
    // contract: tills-5, tills-6, tills-8, tills-9
    const clerk = newClerk();
    const account = await api.newAccount({ initial_deposit: 50 });
    await cash(clerk.api, account.account_id, 9);
    const opened = await clerk.api.post('/tills', usd(100.5));
    const { till_id } = opened.data<Till>();
    expect([opened.status, opened.header('location'), opened.data()]).toEqual([
      201,
      `/tills/${till_id}`,
      expect.objectContaining({
        actor: clerk.actor,
        status: 'Open',
        opening: [{ currency: 'USD', amount: 100.5 }],
        balances: [],
      }),
    ]);
    const again = expectError(await clerk.api.post('/tills', usd(1)), 409, 'till_open', /is open: close it first/);
    expect(again.details).toEqual({ till_id });
    await cash(clerk.api, account.account_id, 10.25);
    await cash(clerk.api, account.account_id, 3, 'Withdrawal');
    await clerk.api.once(randomUUID(), '/batches', {
      mode: 'independent',
      items: [{ transaction: { account_id: account.account_id, transaction_type: 'Deposit', amount: 77 } }],
    });
    const close = `/tills/${till_id}/closing`;
    const lacking = expectError(
      await clerk.api.post(close, usd(1, 'EUR')),
      400,
      'till_not_counted',
      /counted lacks USD/,
    );
    expect(lacking.details).toEqual({ currencies: ['USD'] });
    const key = randomUUID();
    const different = expectError(
      await clerk.api.once(key, close, usd(107)),
      400,
      'till_difference',
      /not what is expected in USD: count again, or give a reason/,
    );
    expect(different.details).toEqual({ currencies: ['USD'] });
    expectError(await clerk.api.once(key, close, { ...usd(107), reason: 'x' }), 422, 'idempotency_key_reused');
    const body = { ...usd(107), reason: 'a coin fell down' };
    const secondKey = randomUUID();
    const closed = await clerk.api.once(secondKey, close, body);
    const balance = {
      currency: 'USD',
      opening: 100.5,
      cash_in: 10.25,
      cash_in_count: 1,
      cash_out: 3,
      cash_out_count: 1,
    };
    expect([closed.status, closed.data()]).toEqual([
      200,
      expect.objectContaining({
        status: 'Closed',
        reason: 'a coin fell down',
        balances: [{ ...balance, expected: 107.75, counted: 107, difference: -0.75 }],
      }),
    ]);
    expect((await clerk.api.once(secondKey, close, body)).data()).toEqual(closed.data());
    await cash(clerk.api, account.account_id, 5);
    expect((await clerk.api.get(`/tills/${till_id}`)).data()).toEqual(closed.data());
    expectError(await clerk.api.post(close, body), 409, 'till_closed', new RegExp(`till ${till_id} is closed`));
    expect((await clerk.api.post('/tills', usd(0))).status).toBe(201);
  });

  it('is seen and closed by its own person; with books:read everybody sees all', async () => {
    // contract: tills-8, tills-10
    const [clerk, other] = [newClerk(), newClerk()];
    const { till_id } = await openTill(clerk.api);
    expectError(await other.api.get(`/tills/${till_id}`), 404, 'till_not_found', /not found/);
    expectError(await other.api.post(`/tills/${till_id}/closing`, usd(100)), 404, 'till_not_found');
    const ill = await openTill(other.api);
    expectError(await manager.post(`/tills/${ill.till_id}/closing`, usd(100)), 400, 'validation_failed', /^reason/);
    const account = await api.newAccount({ initial_deposit: 1 });
    await cash(other.api, account.account_id, 7.5);
    await cash(other.api, account.account_id, 2, 'Withdrawal');
    const taken = { currency: 'USD', opening: 100, cash_in: 7.5, cash_in_count: 1, cash_out: 2, cash_out_count: 1 };
    const so_far = [{ ...taken, expected: 105.5 }];
    expect((await manager.get(`/tills/${ill.till_id}`)).data()).toMatchObject({ balances: [], so_far });
    const ofOther = `/tills?actor=${encodeURIComponent(other.actor)}`;
    expect((await manager.get(ofOther)).list()).toMatchObject([{ till_id: ill.till_id, so_far }]);
    // Who counts does not know it.
    expect((await other.api.get(`/tills/${ill.till_id}`)).data()).not.toHaveProperty('so_far');
    expect((await other.api.get('/tills')).list()[0]).not.toHaveProperty('so_far');
    const closed = await manager.post(`/tills/${ill.till_id}/closing`, { ...usd(105.5), reason: 'ill' });
    expect(closed.data()).not.toHaveProperty('so_far');
    expect(closed.data()).toMatchObject({ actor: other.actor, closed_by: `jwt:${world.bank.issuer}|manager` });
    expectError(await clerk.api.post(`/tills/${unknownId('til')}/closing`, usd(1)), 404, 'till_not_found');
    expectError(await clerk.api.post('/tills/x/closing', usd(1)), 404, 'till_not_found');
    const ids = async (by: Api, query = '') =>
      (await by.get(`/tills${query}`)).list<Till>().map((till) => till.till_id);
    expect([await ids(clerk.api), await ids(other.api)]).toEqual([[till_id], [ill.till_id]]);
    const ofClerk = `?actor=${encodeURIComponent(clerk.actor)}`;
    expect(await ids(manager, ofClerk)).toEqual([till_id]);
    expect(await ids(manager)).toContain(till_id);
    expect(await ids(manager, `${ofClerk}&status=Closed`)).toEqual([]);
    expect((await manager.get(`/tills/${till_id}`)).data()).toMatchObject({ till_id, actor: clerk.actor });
    expectError(await other.api.get(`/tills${ofClerk}`), 403, 'insufficient_scope', /books:read/);
  });

  it.each([
    ['nothing', {}, 'validation_failed', /counted/],
    ['no currency', { counted: [] }, 'validation_failed', /^counted must have at least one currency/],
    ['a negative amount', usd(-1), 'invalid_amount', /^counted\.0\.amount must not be negative/],
    ['a text', usd('1'), 'invalid_amount', /^counted\.0\.amount must be a JSON number/],
    [
      'too many decimals',
      usd(1.005),
      'invalid_amount_precision',
      /^counted\.0\.amount has more decimal places than USD has/,
    ],
    ['decimals of yen', usd(1.5, 'JPY'), 'invalid_amount_precision', /than JPY has/],
    ['too much', usd(10 ** 15), 'amount_too_large', /^counted\.0\.amount exceeds/],
    ['an unknown currency', usd(1, 'ABC'), 'unsupported_currency', /^counted\.0\.currency must be an ISO 4217/],
    [
      'a currency twice',
      { counted: [...usd(1).counted, ...usd(2).counted] },
      'validation_failed',
      /^counted must name each currency once/,
    ],
    ['an unknown field', { ...usd(1), till: 1 }, 'unknown_field', /till/],
  ] as const)('is not opened with %s, and says which rule', async (_what, body, code, message) => {
    // contract: tills-5
    expectError(await newClerk().api.post('/tills', body), 400, code, message);
  });

  it('is not closed with a reason that is empty, and belongs to no API key', async () => {
    // contract: tills-5, tills-9
    const clerk = newClerk();
    const { till_id } = await openTill(clerk.api);
    expectError(
      await clerk.api.post(`/tills/${till_id}/closing`, { ...usd(1), reason: '' }),
      400,
      'validation_failed',
      /^reason/,
    );
    expectError(await api.post('/tills', usd(1)), 403, 'insufficient_scope', /API keys and OAuth clients have none/);
    expectError(
      await api.post(`/tills/${till_id}/closing`, usd(1)),
      403,
      'insufficient_scope',
      /API keys and OAuth clients have none/,
    );
    // An OAuth client's own token, by which nobody signed in.
    const machine = api.withToken(staffToken(world.bank, 'service-account-front-end', { gty: 'client-credentials' }));
    expectError(await machine.post('/tills', usd(1)), 403, 'insufficient_scope', /OAuth clients have none/);
    expectError(await newClerk('accounts:read').api.post('/tills', usd(1)), 403, 'insufficient_scope');
  });

  it('has each posting of its person once, whatever is posted while it is closed, and the books agree', async () => {
    // contract: tills-7, tills-9
    const clerk = newClerk();
    const accounts = await Promise.all(Array.from({ length: 4 }, () => api.newAccount()));
    const closed: Till[] = [];
    let isOver = false;
    const rounds = (async () => {
      for (let round = 0; round < 5; round++) {
        const { till_id } = await openTill(clerk.api, usd(0));
        await Promise.all(accounts.map(({ account_id }) => cash(clerk.api, account_id, 0.05)));
        const answer = await clerk.api.post(`/tills/${till_id}/closing`, { ...usd(0), reason: 'not counted' });
        closed.push(answer.data<Till>());
      }
      isOver = true;
    })();
    let posted = 0;
    const postings = accounts.map(async ({ account_id }) => {
      for (; !isOver; posted++) await cash(clerk.api, account_id, 0.01);
    });
    await Promise.all([rounds, ...postings]);
    const counts = closed.map(({ balances }) => Number(balances[0]?.cash_in_count));
    const cents = closed.map(({ balances: [usdOf] }) => Math.round(Number(usdOf?.cash_in) * 100));
    expect(counts.every((count) => count >= accounts.length)).toBe(true);
    const total = (await dayOf(clerk.api)).totals[0];
    expect(counts.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(Number(total?.cash_in_count));
    // Those of 5 cents are in tills for certain, the others wherever they were decided.
    const expected = counts.map((count) => count + 4 * accounts.length);
    expect(cents).toEqual(expected);
    await api.post('/admin/verifications');
    await eventually(async () => {
      const { last_verification } = (await api.get('/admin/operations')).data<Operations>();
      return last_verification?.state === 'passed';
    });
    expect(posted).toBeGreaterThan(0);
  });

  it('is audited when it is opened and closed', async () => {
    // contract: tills-11
    const clerk = newClerk();
    const { till_id } = await openTill(clerk.api);
    await clerk.api.post(`/tills/${till_id}/closing`, usd(0));
    await clerk.api.post(`/tills/${till_id}/closing`, usd(100));
    const records = await eventually(async () => {
      const list = (await api.get(`/admin/audit?resource_id=${till_id}`)).list<AuditRecord>();
      return list.length === 3 && list;
    });
    expect(records).toMatchObject([
      {
        action: 'close_till',
        actor: clerk.actor,
        outcome: 'success',
        details: { counted: [{ currency: 'USD', amount: '100' }], differences: [] },
      },
      {
        action: 'close_till',
        outcome: 'till_difference',
        details: {
          counted: [{ currency: 'USD', amount: '0' }],
          differences: [{ currency: 'USD', difference: '-100.00' }],
        },
      },
      { action: 'open_till', actor: clerk.actor, outcome: 'success' },
    ]);
  });
});
