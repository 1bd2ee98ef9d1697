import { beforeAll, describe, expect, it } from 'vitest';
import { type Endpoint, type EndpointName, endpoints, neededScopes } from '#libs/contracts/endpoints.ts';
import { bankScopes, type Scope, scopes } from '#libs/contracts/scopes.ts';
import {
  type Answer,
  type Api,
  corporate,
  expectError,
  newPhone,
  type RestAccount,
  type RestClient,
  type RestTransaction,
  type RestTransfer,
  retail,
  unknownId,
} from '../support/client.ts';
import { useSharedBank } from '../support/world.ts';

/** Tests the contract of permissions: scopes × routes, and callers that are bound to one client. */
const world = useSharedBank();
const { api } = world;

const table = Object.entries(endpoints) as [EndpointName, Endpoint][];
const ids: Record<string, string> = {
  client_id: unknownId('cli'),
  account_id: unknownId('acc'),
  transaction_id: unknownId('txn'),
  transfer_id: unknownId('trf'),
  key_id: unknownId('key'),
  accountNumber: 'SAV-0000000000',
};
const examplePath = ({ path }: Endpoint) => path.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? name);
const call = (caller: Api, endpoint: Endpoint) =>
  caller.send(endpoint.method, examplePath(endpoint), endpoint.method === 'GET' ? {} : { body: {} });

describe('Scopes × routes', () => {
  const withOnly = new Map<Scope, Api>();
  const without = new Map<Scope, Api>();

  beforeAll(async () => {
    for (const scope of scopes) {
      withOnly.set(scope, api.withToken(await world.bank.token([scope])));
      without.set(scope, api.withKey((await api.key({ scopes: scopes.filter((other) => other !== scope) })).api_key));
    }
  });

  it('the scopes are those of the contract', () => {
    // contract: permission-22
    expect([...scopes].sort()).toEqual([
      'accounts:import',
      'accounts:limits',
      'accounts:read',
      'accounts:status',
      'accounts:write',
      'approvals:write',
      'audit:read',
      'books:close',
      'books:read',
      'clients:erase',
      'clients:read',
      'clients:write',
      'holds:write',
      'keys:manage',
      'ops:manage',
      'transactions:backdate',
      'transactions:read',
      'transactions:reverse',
      'transactions:write',
      'transfers:write',
      'webhooks:manage',
    ]);
  });

  it.each(table)('%s', async (_, endpoint) => {
    const needed = neededScopes(endpoint);
    expectError(await call(api.with({}), endpoint), 401, 'missing_credentials');
    expectError(await call(api.withKey('cbk_live_no'), endpoint), 401, 'invalid_credentials');
    if (needed.length === 0) {
      for (const caller of [...withOnly.values(), ...without.values()])
        expect([401, 403]).not.toContain((await call(caller, endpoint)).status);
      return;
    }
    for (const [scope] of needed.filter((sufficient) => sufficient.length === 1))
      expectError(await call(without.get(scope as Scope) as Api, endpoint), 403, 'insufficient_scope');
    for (const [other, caller] of withOnly) {
      const answer = await call(caller, endpoint);
      if (needed.length === 1 && needed[0]?.includes(other))
        expect([401, 403], answer.text).not.toContain(answer.status);
      else expectError(answer, 403, 'insufficient_scope');
    }
  });

  it.each<[string, string, Scope]>([
    ['GET', '/clients', 'clients:read'],
    ['GET', '/clients/x', 'clients:read'],
    ['GET', '/clients/ussd/search', 'clients:read'],
    ['POST', '/clients', 'clients:write'],
    ['PATCH', '/clients/x', 'clients:write'],
    ['GET', '/accounts', 'accounts:read'],
    ['GET', '/accounts/x', 'accounts:read'],
    ['GET', '/accounts/number/x/balance', 'accounts:read'],
    ['POST', '/accounts', 'accounts:write'],
    ['POST', '/accounts/x/status-transitions', 'accounts:status'],
    ['GET', '/accounts/x/status-transitions', 'accounts:read'],
    ['GET', '/accounts/x/entries', 'transactions:read'],
    ['GET', '/transactions', 'transactions:read'],
    ['GET', '/transactions/x', 'transactions:read'],
    ['POST', '/transactions', 'transactions:write'],
    ['POST', '/transactions/x/reversal', 'transactions:reverse'],
    ['GET', '/transfers', 'transactions:read'],
    ['GET', '/transfers/x', 'transactions:read'],
    ['POST', '/transfers', 'transfers:write'],
    ['POST', '/admin/api-keys', 'keys:manage'],
    ['GET', '/admin/api-keys', 'keys:manage'],
  ])('%s %s needs %s', async (method, path, scope) => {
    // contract: permission-22
    // asvs: 8.2.1
    const body = method === 'GET' ? {} : { body: {} };
    expect([400, 404, 200]).toContain((await (withOnly.get(scope) as Api).send(method, path, body)).status);
    expectError(await (without.get(scope) as Api).send(method, path, body), 403, 'insufficient_scope');
  });

  it('403 precedes errors in the body or the parameters', async () => {
    // contract: permission-22
    const caller = withOnly.get('audit:read') as Api;
    expectError(await caller.send('POST', '/clients', { body: { nonsense: 1 } }), 403, 'insufficient_scope');
    expectError(await caller.get('/clients?nonsense=1'), 403, 'insufficient_scope');
  });
});

describe.each(['API key', 'JWT'])('A caller bound to one client, with %s', (kind) => {
  let own: RestClient;
  let account: RestAccount;
  let second: RestAccount;
  let foreign: RestAccount;
  let foreignTransaction: RestTransaction;
  let foreignTransfer: RestTransfer;
  let bound: Api;
  const phone = newPhone();

  beforeAll(async () => {
    own = await api.client();
    [account, second] = [await api.account(own.client_id, { initial_deposit: 100 }), await api.account(own.client_id)];
    const other = await api.client({ ussd_phone_number: phone, ussd_status: 'active' });
    foreign = await api.account(other.client_id, { initial_deposit: 100 });
    foreignTransaction = await api.transact(foreign.account_id, 'Deposit', 1);
    foreignTransfer = await api.transfer(foreign.account_id, (await api.account(other.client_id)).account_id, 1);
    bound =
      kind === 'JWT'
        ? api.withToken(await world.bank.token(undefined, `bound:${own.client_id}`))
        : api.withKey(
            (await api.key({ scopes: scopes.filter((scope) => !bankScopes.includes(scope)), client_id: own.client_id }))
              .api_key,
          );
  });

  it('can read, transfer, and open accounts for its own client', async () => {
    // contract: permission-23
    expect((await bound.get(`/clients/${own.client_id}`)).data()).toEqual(own);
    expect((await bound.get(`/accounts/${account.account_id}`)).status).toBe(200);
    const deposit = await api.transact(account.account_id, 'Deposit', 10);
    expect((await bound.get(`/transactions/${deposit.transaction_id}`)).data()).toEqual(deposit);
    await bound.transfer(account.account_id, second.account_id, 1);
    expect((await bound.account(own.client_id, { account_type: 'Current' })).client_id).toBe(own.client_id);
    expect((await bound.patch(`/clients/${own.client_id}`, { address: `of ${kind}` })).status).toBe(200);
    expect((await bound.get(`/accounts/number/${account.account_number}/balance`)).status).toBe(200);
    expect((await bound.entries(account.account_id)).length).toBeGreaterThan(0);
  });

  it('can transfer to any account', async () => {
    // contract: permission-23
    const transfer = await bound.transfer(account.account_id, foreign.account_id, 2);
    expect((await bound.get(`/transfers/${transfer.transfer_id}`)).data()).toEqual(transfer);
  });

  it('gets the same error for every refusal that another client’s account causes', async () => {
    // contract: permission-27
    const { client_id } = await api.client();
    const poor = await bound.account(own.client_id);
    const foreigners = [
      await api.account(client_id, { status: 'Frozen' }),
      await api.account(client_id, { currency: 'EUR' }),
      await api.account(client_id, { account_type: 'Loan', initial_deposit: 1 }),
      await api.account(client_id, { initial_deposit: 9_999_999_999_999.99 }),
    ];
    for (const { account_id: to_account_id } of foreigners) {
      const refused = await bound.post('/transfers', { from_account_id: account.account_id, to_account_id, amount: 2 });
      const { message, details } = expectError(refused, 400, 'destination_refused');
      expect(message).toBe('the destination account cannot take this payment');
      const shown = (await bound.get(`/transactions/${details?.['transaction_id']}`)).data();
      expect(shown).toMatchObject({
        transaction_type: 'Transfer',
        status: 'Failed',
        currency: 'USD',
        failure_code: 'destination_refused',
      });
      expectError(
        await bound.post('/transfers', { from_account_id: poor.account_id, to_account_id, amount: 2 }),
        400,
        'insufficient_funds',
      );
    }
  });

  it('sees only destination_refused also for payments that staff attempted from its account', async () => {
    const { client_id } = await api.client();
    const theirs = await api.account(client_id);
    const frozen = await api.account(client_id, { status: 'Frozen' });
    const loan = await api.account(client_id, { account_type: 'Loan', initial_deposit: 1 });
    const { account_id } = await api.account(own.client_id, { initial_deposit: 100 });
    const paid = await api.transfer(account_id, theirs.account_id, 50);
    await api.transact(theirs.account_id, 'Withdrawal', 20);
    const [debit] = await api.all<RestTransaction>(
      `/transactions?transfer_id=${paid.transfer_id}&account_id=${account_id}`,
    );
    const hold = (await api.post(`/accounts/${account_id}/holds`, { amount: 2 })).data<{ hold_id: string }>();
    const pay = (to_account_id: string) =>
      api.post('/transfers', { from_account_id: account_id, to_account_id, amount: 2 });
    const refused: [string, Answer][] = [
      ['inactive_account', await pay(frozen.account_id)],
      ['amount_exceeds_outstanding', await pay(loan.account_id)],
      ['inactive_account', await api.post(`/holds/${hold.hold_id}/capture`, { to_account_id: frozen.account_id })],
      ['insufficient_funds', await api.post(`/transactions/${debit?.transaction_id}/reversal`, { reason: 'x' })],
    ];
    for (const [code, answer] of refused) {
      const id = expectError(answer, 400, code).details?.['transaction_id'];
      expect((await api.get(`/transactions/${id}`)).data()).toMatchObject({ failure_code: code });
      const shown = (await bound.get(`/transactions/${id}`)).data<RestTransaction>();
      expect(shown).toMatchObject({ transaction_type: 'Transfer', failure_code: 'destination_refused' });
      expect(await bound.all<RestTransaction>(`/transactions?account_id=${account_id}`)).toContainEqual(shown);
      if (shown.reverses_transaction_id !== undefined) continue;
      const transfer = (await bound.get(`/transfers/${shown.transfer_id}`)).data<RestTransfer>();
      expect(transfer).toMatchObject({ failure_code: 'destination_refused' });
      expect(await bound.all<RestTransfer>(`/transfers?account_id=${account_id}`)).toContainEqual(transfer);
    }
    const toOwn = await api.account(own.client_id, { status: 'Frozen' });
    const { details } = expectError(await pay(toOwn.account_id), 400, 'inactive_account');
    expect((await bound.get(`/transactions/${details?.['transaction_id']}`)).data()).toMatchObject({
      failure_code: 'inactive_account',
    });
  });

  it('gets 404 when reading resources of another client', async () => {
    // contract: permission-24
    // asvs: 8.2.2, 8.4.1
    const { account_id, account_number, client_id } = foreign;
    for (const path of [
      `/accounts/${account_id}`,
      `/accounts/${account_id}/entries`,
      `/accounts/${account_id}/status-transitions`,
      `/accounts/number/${account_number}/balance`,
    ]) {
      expectError(await bound.get(path), 404, 'account_not_found');
    }
    expectError(await bound.get(`/clients/${client_id}`), 404, 'client_not_found');
    expectError(
      await bound.get(`/clients/ussd/search?ussd_phone=${encodeURIComponent(phone)}`),
      404,
      'client_not_found',
    );
    expectError(await bound.get(`/transactions/${foreignTransaction.transaction_id}`), 404, 'transaction_not_found');
    expectError(await bound.get(`/transfers/${foreignTransfer.transfer_id}`), 404, 'transfer_not_found');
  });

  it('gets 404 when writing to resources of another client, and nothing changes', async () => {
    // contract: permission-23
    // asvs: 8.2.2, 8.4.1
    const { account_id, client_id } = foreign;
    expectError(
      await bound.post('/transfers', { from_account_id: account_id, to_account_id: account.account_id, amount: 1 }),
      404,
      'account_not_found',
    );
    expectError(
      await bound.post('/accounts', { client_id, account_type: 'Savings', currency: 'USD' }),
      404,
      'client_not_found',
    );
    expectError(await bound.patch(`/clients/${client_id}`, { address: 'x' }), 404, 'client_not_found');
    expect((await api.get(`/accounts/${account_id}`)).data()).toMatchObject({ status: 'Active' });
  });

  it('cannot access the credit transaction of its transfer to another client', async () => {
    const { transfer_id } = await bound.transfer(account.account_id, foreign.account_id, 1);
    const legs = await bound.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`);
    expect(legs.map(({ account_id }) => account_id)).toEqual([account.account_id]);
    const credit = (await api.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`)).find(
      ({ account_id }) => account_id === foreign.account_id,
    );
    expectError(await bound.get(`/transactions/${credit?.transaction_id}`), 404, 'transaction_not_found');
  });

  it('opens Active accounts, and no Loans: status and credit are the bank’s', async () => {
    // contract: permission-42
    const opening = { client_id: own.client_id, account_type: 'Savings', currency: 'USD' };
    for (const more of [{ status: 'Frozen' }, { status: 'Inactive' }, { account_type: 'Loan' }, { initial_deposit: 1 }])
      expectError(await bound.post('/accounts', { ...opening, ...more }), 403, 'insufficient_scope');
    expect((await bound.post('/accounts', { ...opening, status: 'Active' })).data()).toMatchObject({
      status: 'Active',
    });
  });

  it('sees only its own resources in lists', async () => {
    // contract: permission-24
    expect((await bound.all<RestClient>('/clients')).map(({ client_id }) => client_id)).toEqual([own.client_id]);
    const accounts = await bound.all<RestAccount>('/accounts');
    expect(new Set(accounts.map(({ client_id }) => client_id))).toEqual(new Set([own.client_id]));
    const mine = new Set(accounts.map(({ account_id }) => account_id));
    expect(
      (await bound.all<RestTransaction>('/transactions')).filter(({ account_id }) => !mine.has(account_id)),
    ).toEqual([]);
    const transfers = await bound.all<RestTransfer>('/transfers');
    expect(transfers.length).toBeGreaterThan(0);
    expect(
      transfers.filter(({ from_account_id, to_account_id }) => !mine.has(from_account_id) && !mine.has(to_account_id)),
    ).toEqual([]);
    for (const path of [
      `/accounts?client_id=${foreign.client_id}`,
      `/transactions?account_id=${foreign.account_id}`,
      `/transfers?account_id=${foreignTransfer.to_account_id}`,
      `/clients?ussd_phone=${encodeURIComponent(phone)}`,
    ]) {
      expect((await bound.get(path)).list()).toEqual([]);
    }
  });

  it('sees that its account was frozen and a transaction reversed, but not why or by whom', async () => {
    // contract: permission-28
    const { account_id } = await api.account(own.client_id);
    const { transaction_id } = await api.transact(account_id, 'Deposit', 1);
    const reversal = (
      await api.post(`/transactions/${transaction_id}/reversal`, { reason: 'told by police' })
    ).data<RestTransaction>();
    expect(
      (
        await api.post(`/accounts/${account_id}/status-transitions`, {
          status: 'Frozen',
          reason: 'fraud',
          note: 'SAR filed',
        })
      ).status,
    ).toBe(200);
    expect((await bound.get(`/accounts/${account_id}/status-transitions`)).list()).toEqual([
      {
        transition_id: expect.any(String),
        account_id,
        from_status: 'Active',
        to_status: 'Frozen',
        created_at: expect.any(String),
      },
    ]);
    expect((await bound.get(`/transactions/${reversal.transaction_id}`)).data()).toEqual({
      ...reversal,
      description: null,
    });
    const paths = ['', '/entries', '/statement', '/status-transitions'].map((part) => `/accounts/${account_id}${part}`);
    for (const path of [...paths, `/transactions?account_id=${account_id}`])
      expect((await bound.get(path)).text, path).not.toMatch(/police|SAR|fraud/);
  });

  it('gets 403 for POST /clients and for all endpoints of the bank, even for its own accounts', async () => {
    // contract: permission-24
    for (const body of [retail(), corporate()])
      expectError(await bound.post('/clients', body), 403, 'insufficient_scope');
    for (const path of [
      '/admin/trial-balance',
      '/admin/audit',
      '/admin/api-keys',
      '/admin/dead-letters',
      '/admin/search?q=x',
    ])
      expectError(await bound.get(path), 403, 'insufficient_scope');
    const { account_id } = account;
    const mine = await api.transact(account_id, 'Deposit', 1);
    const writes: [string, object][] = [
      ['/transactions', { account_id, transaction_type: 'Deposit', amount: 1 }],
      ['/transactions', { account_id, transaction_type: 'Withdrawal', amount: 1 }],
      [`/transactions/${mine.transaction_id}/reversal`, { reason: 'x' }],
      [`/accounts/${account_id}/status-transitions`, { status: 'Inactive' }],
      ['/accounts', { client_id: own.client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 1 }],
      ['/admin/api-keys', { name: 'x', scopes: ['accounts:read'] }],
    ];
    for (const [path, body] of writes) expectError(await bound.post(path, body), 403, 'insufficient_scope');
  });
});
