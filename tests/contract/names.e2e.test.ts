import { describe, expect, it } from 'vitest';
import {
  type Api,
  expectError,
  newKey,
  newPhone,
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

  it('transactions and transfers of an account or a period can be found by metadata, page by page', async () => {
    // contract: names-11, transactions-17
    const from = await api.newAccount({ initial_deposit: 100 });
    const to = await api.newAccount();
    const order = `${process.pid} & "17"`;
    const named = { metadata: { order, 'crm.id': 'A' } };
    const first = await api.transfer(from.account_id, to.account_id, 1, named);
    const second = await api.transfer(from.account_id, to.account_id, 2, { metadata: { order } });
    await api.transfer(from.account_id, to.account_id, 3, { metadata: { order: `${order} ` } });
    await api.transact(from.account_id, 'Deposit', 4);
    const filter = `metadata.order=${encodeURIComponent(order)}`;
    const period = `from=${first.created_at}`;
    for (const confined of [`account_id=${from.account_id}`, period]) {
      expect((await api.get(`/transfers?${confined}&${filter}`)).list()).toEqual([second, first]);
      expect((await api.get(`/transfers?${confined}&${filter}&metadata.crm.id=A`)).list()).toEqual([first]);
    }
    const page = await api.get(`/transactions?account_id=${from.account_id}&${filter}&limit=1`);
    const next = /<(.*)>; rel="next"/.exec(page.header('link') ?? '')?.[1] ?? '';
    expect(new URLSearchParams(next.split('?')[1]).get('metadata.order')).toBe(order);
    expect([...page.list(), ...(await api.get(next)).list()]).toMatchObject([
      { transfer_id: second.transfer_id },
      { transfer_id: first.transfer_id },
    ]);
    expectError(await api.get(next.replace('17', '18')), 400, 'invalid_cursor');
    for (const path of ['/transactions', '/transfers'])
      expect(expectError(await api.get(`${path}?${filter}`), 400, 'validation_failed').errors).toMatchObject([
        { field: 'metadata.order', message: expect.stringContaining('needs account_id or a period') },
      ]);
    const withTo = await api.get(
      `/transactions?account_id=${from.account_id}&counterparty_account_id=${to.account_id}&max_amount=2`,
    );
    expect(withTo.list()).toMatchObject([{ transfer_id: second.transfer_id }, { transfer_id: first.transfer_id }]);
    expect((await api.get(`/transactions?${period}&counterparty_account_id=${to.account_id}`)).list()).toHaveLength(3);
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
    const customer = [
      'clients:read',
      'clients:write',
      'accounts:read',
      'accounts:write',
      'transactions:read',
      'transfers:write',
    ];
    const boundTo = async (client_id: string): Promise<Api> =>
      api.withKey((await api.key({ scopes: customer, client_id })).api_key);

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
      expect((await bound.post('/transfers', transfer)).data()).toMatchObject({ metadata });
      expect((await bound.get(`/accounts?external_id=${encodeURIComponent(external_id)}`)).list()).toMatchObject([
        { account_id },
      ]);
      const seen = (
        await bound.get(`/transactions?external_id=${encodeURIComponent(external_id)}`)
      ).list<RestTransaction>();
      expect(seen.map((each) => each.account_id)).toEqual([account_id]);
    });

    it('their metadata of a client or account is client_metadata: the bank sees it beside its own, and neither changes the other’s', async () => {
      // contract: names-9
      const { client_id } = await api.client({ metadata });
      const bound = await boundTo(client_id);
      const path = `/clients/${client_id}`;
      const own = { theme: 'dark' };
      for (const given of [{ client_metadata: own }, { metadata: own }]) {
        const answer = (await bound.patch(path, given)).data<Record<string, unknown>>();
        expect(answer).toMatchObject({ client_metadata: own });
        expect(answer).not.toHaveProperty('metadata');
        expect((await api.get(path)).data()).toMatchObject({ metadata, client_metadata: own });
      }
      expect((await bound.patch(path, { metadata: null })).data()).not.toHaveProperty('client_metadata');
      expect((await api.get(path)).data()).toMatchObject({ metadata });
      await bound.patch(path, { client_metadata: own });
      expect((await api.patch(path, { metadata: null })).data()).toMatchObject({ client_metadata: own });
      expectError(await api.patch(path, { client_metadata: {} }), 403, 'insufficient_scope');
      expectError(await api.post('/clients', { ...retail(), client_metadata: own }), 400, 'unknown_field');
      expectError(await bound.patch(path, { metadata: own, client_metadata: own }), 400, 'validation_failed');
      const opening = { client_id, account_type: 'Savings', currency: 'USD' };
      const opened = (await bound.post('/accounts', { ...opening, metadata: own })).data<RestAccount>();
      expect(opened).toMatchObject({ client_metadata: own });
      expect(opened).not.toHaveProperty('metadata');
      expect((await api.get(`/accounts/${opened.account_id}`)).data()).toMatchObject({ client_metadata: own });
      expectError(await api.post('/accounts', { ...opening, client_metadata: own }), 403, 'insufficient_scope');
    });

    it('their ETag tells nothing of the bank’s metadata, and changes with their own', async () => {
      // contract: names-9
      const { client_id } = await api.client();
      const bound = await boundTo(client_id);
      const path = `/clients/${client_id}`;
      const etag = async () => (await bound.get(path)).header('etag') ?? '';
      const patch = (tag: string, n: string) =>
        bound.send('PATCH', path, { body: { client_metadata: { n } }, headers: { 'if-match': tag } });
      const before = await etag();
      expect((await patch(before, '1')).status).toBe(200);
      expect(await etag()).not.toBe(before);
      expectError(await patch(before, '2'), 412, 'version_mismatch');
      // The time of the change is shown.
      await api.patch(path, { metadata });
      const { updated_at: _, ...seen } = (await bound.get(path)).data<RestClient>();
      expect(JSON.stringify(seen)).not.toContain('Nairobi');
    });

    it.each([
      'the client',
      'lists of clients',
      'the search by USSD phone',
      'the account',
      'lists of accounts',
      'transactions',
      'a transaction',
      'transfers',
      'a transfer',
      'a transfer of another client',
      'holds',
      'a hold',
      'batches',
      'entries',
      'a statement',
    ])('metadata that others gave is not shown: %s', async (door) => {
      // contract: names-9
      const world = await (secrets ??= prepare());
      const path = world.doors[door] ?? '';
      const answer = await world.bound.get(path);
      expect([answer.status, answer.text.match(/bank secret|secret of another/)]).toEqual([200, null]);
      expect(answer.text).toMatch(/(acc|cli|bat)_[0-9a-f]{32}/);
      // The bank sees it there, unless that door shows no metadata.
      if (!['batches', 'entries', 'a statement'].includes(door))
        expect((await api.get(world.asBank[door] ?? path)).text).toMatch(/bank secret|secret of another/);
    });

    it('their own is shown wherever the bank’s would be, also of transfers between their accounts, and by a repeat', async () => {
      // contract: names-9
      const { client_id } = await api.client();
      const { account_id: from } = await api.account(client_id, { initial_deposit: 10 });
      const { account_id: to } = await api.account(client_id);
      const bound = await boundTo(client_id);
      const key = newKey();
      const body = { from_account_id: from, to_account_id: to, amount: 1, metadata };
      const made = (await bound.once(key, '/transfers', body)).data<RestTransfer>();
      expect((await bound.once(key, '/transfers', body)).data()).toEqual(made);
      expect(made).toMatchObject({ metadata });
      const legs = (await bound.get(`/transactions?transfer_id=${made.transfer_id}`)).list();
      expect(legs).toMatchObject([{ metadata }, { metadata }]);
      expect((await bound.get(`/transfers/${made.transfer_id}`)).data()).toMatchObject({ metadata });
      expect((await api.get(`/transfers/${made.transfer_id}`)).data()).toMatchObject({
        metadata,
        metadata_client_id: client_id,
      });
      const { metadata: _, ...plain } = body;
      const items = [{ transfer: body }, { transfer: plain }];
      const batch = await bound.once(newKey(), '/batches', { mode: 'atomic', items, metadata });
      const { batch_id } = batch.data<{ batch_id: string }>();
      for (const seen of [batch, await bound.get(`/batches/${batch_id}`)])
        expect(seen.data()).toMatchObject({ metadata, results: [{ transfer: { metadata } }, {}] });
    });

    it('a filter by metadata finds only their own, so it cannot be used to guess the bank’s', async () => {
      // contract: names-11
      // asvs: 8.2.3
      const { client_id } = await api.client({ metadata });
      const { account_id } = await api.account(client_id, { initial_deposit: 10 });
      const { account_id: other } = await api.newAccount();
      const bound = await boundTo(client_id);
      await api.transact(account_id, 'Deposit', 5, { metadata: { risk: 'high' } });
      await api.transfer(account_id, other, 1, { metadata: { risk: 'high' } });
      const { transfer_id } = await bound.transfer(account_id, other, 2, { metadata: { risk: 'high' } });
      const filter = `account_id=${account_id}&metadata.risk=high`;
      for (const [caller, transactions, transfers] of [
        [bound, [2], [2]],
        [api, [2, 1, 5], [2, 1]],
      ] as const) {
        const seen = (await caller.get(`/transactions?${filter}`)).list<RestTransaction>();
        expect(seen.map(({ amount }) => amount)).toEqual(transactions);
        expect((await caller.get(`/transfers?${filter}`)).list<RestTransfer>().map(({ amount }) => amount)).toEqual(
          transfers,
        );
      }
      const ownPeriod = await bound.get('/transfers?from=2020-01-01&metadata.risk=high');
      expect(ownPeriod.list()).toMatchObject([{ transfer_id }]);
      for (const path of ['/clients', '/accounts', '/batches'])
        expectError(await bound.get(`${path}?metadata.branch=x`), 400, 'unknown_parameter');
    });

    let secrets: ReturnType<typeof prepare> | undefined;

    /** A client of whom every resource has metadata of the bank, and one of another client. */
    async function prepare() {
      const bank = { metadata: { risk: 'bank secret' } };
      const phone = newPhone();
      const { client_id } = await api.client({ ...bank, ussd_phone_number: phone, ussd_status: 'active' });
      const { account_id } = await api.account(client_id, { ...bank, initial_deposit: 100 });
      const stranger = await api.newAccount({ initial_deposit: 100 });
      const deposit = await api.transact(account_id, 'Deposit', 5, bank);
      await api.post(`/transactions/${deposit.transaction_id}/reversal`, { reason: 'x', ...bank });
      const out = await api.transfer(account_id, stranger.account_id, 1, bank);
      const other = await boundTo(stranger.client_id);
      const into = await other.transfer(stranger.account_id, account_id, 1, {
        metadata: { note: 'secret of another' },
      });
      const hold = (await api.post(`/accounts/${account_id}/holds`, { amount: 2, ...bank })).data<{
        hold_id: string;
      }>();
      await api.post(`/holds/${hold.hold_id}/capture`, { amount: 1, to_account_id: stranger.account_id, ...bank });
      const bound = await boundTo(client_id);
      await bound.once(newKey(), '/batches', {
        mode: 'atomic',
        items: [{ transfer: { from_account_id: account_id, to_account_id: stranger.account_id, amount: 1 } }],
      });
      await api.patch(`/clients/${client_id}`, { metadata: { risk: 'another bank secret' } });
      const doors: Record<string, string> = {
        'the client': `/clients/${client_id}`,
        'lists of clients': '/clients',
        'the search by USSD phone': `/clients/ussd/search?ussd_phone=${encodeURIComponent(phone)}`,
        'the account': `/accounts/${account_id}`,
        'lists of accounts': `/accounts?client_id=${client_id}`,
        transactions: '/transactions',
        'a transaction': `/transactions/${deposit.transaction_id}`,
        transfers: '/transfers',
        'a transfer': `/transfers/${out.transfer_id}`,
        'a transfer of another client': `/transfers/${into.transfer_id}`,
        holds: `/accounts/${account_id}/holds`,
        'a hold': `/holds/${hold.hold_id}`,
        batches: '/batches',
        entries: `/accounts/${account_id}/entries`,
        'a statement': `/accounts/${account_id}/statement?from=2020-01-01&to=2099-01-01`,
      };
      const asBank: Record<string, string> = {
        'lists of clients': `/clients?ussd_phone=${encodeURIComponent(phone)}`,
        transactions: `/transactions?account_id=${account_id}`,
        transfers: `/transfers?account_id=${account_id}`,
      };
      return { bound, doors, asBank };
    }
  });
});
