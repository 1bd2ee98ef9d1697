import { describe, expect, it } from 'vitest';
import {
  type Api,
  expectError,
  newKey,
  type RestAccount,
  type RestClient,
  type RestTransaction,
  type RestTransfer,
  retail,
} from '../support/client.ts';
import { useSharedBank } from '../support/world.ts';

/** Tests the contract of external_id and metadata. */
const { api } = useSharedBank();

const metadata = { 'crm.id': 'A-17', branch: 'Nairobi 3 – "main"' };
let given = 0;
const newName = () => `Core/${process.pid} #${given++} `;
const find = async <T>(path: string, external_id: string) =>
  (await api.get(`${path}?external_id=${encodeURIComponent(external_id)}`)).list<T>();
const isNamed = /external_id|metadata/;

describe('external_id and metadata', () => {
  it('clients: shown and searchable; external_id is unique, case-sensitive, and not trimmed', async () => {
    // contract: clients-20, names-4
    const external_id = newName();
    const { client_id } = await api.client({ external_id, metadata });
    expect((await api.get(`/clients/${client_id}`)).data()).toMatchObject({ external_id, metadata });
    expect(await find<RestClient>('/clients', external_id)).toMatchObject([{ client_id, external_id, metadata }]);
    expect(await find('/clients', external_id.toLowerCase())).toEqual([]);
    expectError(
      await api.post('/clients', { ...retail(), external_id }),
      400,
      'duplicate_external_id',
      /^Duplicate External ID/,
    );
    await api.client({ external_id: external_id.toLowerCase() });
    await api.client({ external_id: external_id.trim() });
  });

  it('accounts: likewise; a client and an account can have the same external_id', async () => {
    // contract: names-4
    const external_id = newName();
    const { client_id } = await api.client({ external_id });
    const { account_id } = await api.account(client_id, { external_id, metadata });
    expect((await api.get(`/accounts/${account_id}`)).data()).toMatchObject({ external_id, metadata });
    expect(await find<RestAccount>('/accounts', external_id)).toMatchObject([
      { account_id, balance: 0, external_id, metadata },
    ]);
    expectError(
      await api.post('/accounts', { client_id, account_type: 'Savings', currency: 'USD', external_id }),
      400,
      'duplicate_external_id',
    );
    expect(await api.setStatus(account_id, 'Inactive')).toMatchObject({ external_id, metadata });
  });

  it('transactions and transfers: filterable, not unique; both legs have them, a reversal has its own', async () => {
    // contract: names-4, names-6
    const external_id = newName();
    const from = await api.newAccount({ initial_deposit: 100 });
    const to = await api.newAccount();
    expect(await api.transact(from.account_id, 'Deposit', 5, { external_id, metadata })).toMatchObject({
      external_id,
      metadata,
    });
    const { transfer_id } = await api.transfer(from.account_id, to.account_id, 7, { external_id, metadata });
    expect((await api.get(`/transfers/${transfer_id}`)).data()).toMatchObject({ external_id, metadata });
    const found = await find<RestTransaction>('/transactions', external_id);
    expect(found.map(({ amount, direction }) => `${direction} ${amount}`).sort()).toEqual([
      'credit 5',
      'credit 7',
      'debit 7',
    ]);
    for (const each of found) expect(each).toMatchObject({ external_id, metadata });
    expect(await find<RestTransfer>('/transfers', external_id)).toMatchObject([{ transfer_id }]);
    const leg = found.find(({ direction }) => direction === 'debit')?.transaction_id ?? '';
    const own = { external_id: newName(), metadata: { ticket: '4711' } };
    expect((await api.post(`/transactions/${leg}/reversal`, { reason: 'mistake', ...own })).data()).toMatchObject(own);
    expect(await find<RestTransaction>('/transactions', own.external_id)).toHaveLength(2);
    expect((await api.get(`/transactions/${leg}`)).data()).toMatchObject({ external_id, metadata });
  });

  it('omitted if not given', async () => {
    // contract: names-3
    const { client_id, ...client } = await api.client({ metadata: {}, external_id: null });
    const { account_id, ...account } = await api.account(client_id, { initial_deposit: 10 });
    const deposit = await api.transact(account_id, 'Deposit', 1);
    const transfer = await api.transfer(account_id, (await api.newAccount()).account_id, 1);
    for (const shown of [client, account, deposit, transfer, ...(await api.entries(account_id))])
      expect(JSON.stringify(shown)).not.toMatch(isNamed);
  });

  it('PATCH replaces metadata as a whole; null removes them', async () => {
    // contract: names-7, clients-23
    const external_id = newName();
    const { client_id } = await api.client({ metadata: { a: '1', b: '2' } });
    const patch = async (body: object) => (await api.patch(`/clients/${client_id}`, body)).data<RestClient>();
    expect((await patch({ metadata: { b: '3' }, external_id })).metadata).toEqual({ b: '3' });
    expect(await patch({ email: 'new@example.com' })).toMatchObject({ external_id, metadata: { b: '3' } });
    expect(await patch({ metadata: null })).not.toHaveProperty('metadata');
    expect(await patch({ external_id: null })).not.toHaveProperty('external_id');
    expect(await find('/clients', external_id)).toEqual([]);
  });

  it('they are part of the idempotency fingerprint, and a repeat returns them', async () => {
    const [key, { account_id }] = [newKey(), await api.newAccount()];
    const deposit = { account_id, transaction_type: 'Deposit', amount: 1, metadata: { a: '1', b: '2' } };
    const first = await api.once(key, '/transactions', deposit);
    const again = await api.once(key, '/transactions', { ...deposit, metadata: { b: '2', a: '1' } });
    expect([again.status, again.header('idempotent-replayed'), again.text]).toEqual([201, 'true', first.text]);
    for (const other of [{ metadata: { a: '1' } }, { external_id: 'x' }])
      expectError(await api.once(key, '/transactions', { ...deposit, ...other }), 422, 'idempotency_key_reused');
  });

  it('a stored refusal shows them', async () => {
    const [external_id, { account_id }] = [newName(), await api.newAccount()];
    const refused = expectError(
      await api.post('/transactions', { account_id, transaction_type: 'Withdrawal', amount: 1, external_id, metadata }),
      400,
      'insufficient_funds',
    );
    expect(await find('/transactions', external_id)).toMatchObject([
      { transaction_id: refused.details?.['transaction_id'], status: 'Failed', metadata },
    ]);
  });

  describe('bound credentials', () => {
    const boundTo = async (client_id: string): Promise<Api> =>
      api.withKey(
        (
          await api.key({
            scopes: [
              'clients:read',
              'clients:write',
              'accounts:read',
              'accounts:write',
              'transactions:read',
              'transfers:write',
            ],
            client_id,
          })
        ).api_key,
      );

    it('can set metadata but not external_id, and can search their own by it', async () => {
      // contract: names-8
      // asvs: 8.2.3
      const external_id = newName();
      const { client_id } = await api.client();
      const { account_id } = await api.account(client_id, { external_id, initial_deposit: 10 });
      const { account_id: other } = await api.newAccount({ initial_deposit: 10 });
      await api.transfer(other, account_id, 1, { external_id });
      const bound = await boundTo(client_id);
      const transfer = { from_account_id: account_id, to_account_id: other, amount: 1, metadata };
      const opening = { client_id, account_type: 'Savings', currency: 'USD', metadata };
      expectError(await bound.post('/transfers', { ...transfer, external_id }), 403, 'insufficient_scope');
      expectError(await bound.post('/accounts', { ...opening, external_id }), 403, 'insufficient_scope');
      expectError(await bound.patch(`/clients/${client_id}`, { external_id }), 403, 'insufficient_scope');
      for (const made of [
        await bound.post('/transfers', transfer),
        await bound.post('/accounts', opening),
        await bound.patch(`/clients/${client_id}`, { metadata }),
      ])
        expect(made.data()).toMatchObject({ metadata });
      expect((await bound.get(`/accounts?external_id=${encodeURIComponent(external_id)}`)).list()).toMatchObject([
        { account_id },
      ]);
      const seen = (
        await bound.get(`/transactions?external_id=${encodeURIComponent(external_id)}`)
      ).list<RestTransaction>();
      expect(seen.map((each) => each.account_id)).toEqual([account_id]);
    });
  });
});
