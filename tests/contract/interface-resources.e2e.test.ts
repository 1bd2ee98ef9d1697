import { beforeAll, describe, expect, it } from 'vitest';
import {
  corporate,
  expectError,
  newPhone,
  type RestAccount,
  type RestClient,
  type RestTransaction,
  retail,
  unknownId,
} from '../support/client.ts';
import { useBank } from '../support/world.ts';

/** Tests the exact shapes of resources and endpoints. */
const { api } = useBank();

const day = expect.stringMatching(/^\d{4}-\d\d-\d\d$/);
const stamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe('Clients', () => {
  const phone = newPhone();
  const fullRetail = { ...retail(), address: '1 Ada Street', ussd_phone_number: phone, ussd_status: 'active' };
  const fullCorporate = { ...corporate(), address: '2 Babbage Road' };
  let ada: RestClient;
  let engines: RestClient;

  beforeAll(async () => {
    ada = await api.client(fullRetail);
    engines = (await api.post('/clients', fullCorporate)).data<RestClient>();
  });

  it('POST /clients: data is the created Client, Retail', () => {
    // contract: envelope-11, clients-1
    expect(ada).toEqual({ ...fullRetail, client_id: expect.any(String), created_at: stamp, updated_at: stamp });
  });

  it('POST /clients: data is the created Client, Corporate without USSD fields', () => {
    // contract: clients-1
    expect(engines).toEqual({ ...fullCorporate, client_id: expect.any(String), created_at: stamp, updated_at: stamp });
  });

  it('GET /clients/:client_id: data is one Client', async () => {
    // contract: envelope-1
    for (const client of [ada, engines]) {
      const answer = await api.get(`/clients/${client.client_id}`);
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({ status: 'success', data: client });
    }
    expectError(await api.get(`/clients/${unknownId('cli')}`), 404, 'client_not_found');
  });

  it('GET /clients: data is an array of Client', async () => {
    // contract: envelope-1
    const answer = await api.get('/clients');
    expect(answer.body).toEqual({ status: 'success', data: expect.arrayContaining([ada, engines]) });
  });

  it('GET /clients: client_type filters', async () => {
    // contract: clients-20
    const retailers = (await api.get('/clients?client_type=Retail')).list<RestClient>();
    const corporates = (await api.get('/clients?client_type=Corporate')).list<RestClient>();
    expect(retailers).toEqual([ada]);
    expect(corporates).toEqual([engines]);
  });

  it('GET /clients: ussd_phone filters by USSD phone number', async () => {
    // contract: clients-20
    expect((await api.get(`/clients?ussd_phone=${encodeURIComponent(phone)}`)).list()).toEqual([ada]);
    expect((await api.get(`/clients?ussd_phone=${encodeURIComponent(newPhone())}`)).list()).toEqual([]);
    expect((await api.get(`/clients?client_type=Corporate&ussd_phone=${encodeURIComponent(phone)}`)).list()).toEqual(
      [],
    );
  });

  it('GET /clients/ussd/search: data is one Client; ussd_phone is required', async () => {
    expect((await api.get(`/clients/ussd/search?ussd_phone=${encodeURIComponent(phone)}`)).body).toEqual({
      status: 'success',
      data: ada,
    });
    expectError(await api.get('/clients/ussd/search'), 400, 'validation_failed');
    expectError(
      await api.get(`/clients/ussd/search?ussd_phone=${encodeURIComponent(newPhone())}`),
      404,
      'client_not_found',
    );
  });

  it('ussd_status is active or inactive', async () => {
    const inactive = await api.client({ ussd_phone_number: newPhone(), ussd_status: 'inactive' });
    expect(inactive).toMatchObject({ ussd_status: 'inactive' });
    expectError(
      await api.post('/clients', { ...retail(), ussd_phone_number: newPhone(), ussd_status: 'Active' }),
      400,
      'validation_failed',
    );
  });
});

describe('Accounts', () => {
  let owner: RestClient;
  const accounts: RestAccount[] = [];

  beforeAll(async () => {
    owner = await api.client();
    const wanted = [
      ['Savings', 'USD', 'Active'],
      ['Checking', 'EUR', 'Inactive'],
      ['Current', 'USD', 'Frozen'],
      ['Loan', 'KES', 'Active'],
    ];
    for (const [account_type, currency, status] of wanted)
      accounts.push(await api.account(owner.client_id, { account_type, currency, status, initial_deposit: 100.25 }));
  });

  it('POST /accounts: data is the created Account', () => {
    expect(accounts[0]).toEqual({
      account_id: expect.any(String),
      client_id: owner.client_id,
      account_number: expect.stringMatching(/^SAV-\d+$/),
      account_type: 'Savings',
      currency: 'USD',
      balance: 100.25,
      available_balance: 100.25,
      status: 'Active',
      created_at: stamp,
      updated_at: stamp,
    });
    expect(accounts.map(({ status }) => status)).toEqual(['Active', 'Inactive', 'Frozen', 'Active']);
  });

  it('GET /accounts/:account_id: data is one Account', async () => {
    for (const account of accounts)
      expect((await api.get(`/accounts/${account.account_id}`)).body).toEqual({ status: 'success', data: account });
  });

  it('GET /accounts: data is an array of Account', async () => {
    const answer = await api.get('/accounts');
    expect(answer.body).toEqual({ status: 'success', data: expect.arrayContaining(accounts) });
  });

  const of = (...indexes: number[]) => expect.arrayContaining(indexes.map((index) => accounts[index]));

  it('GET /accounts: client_id filters', async () => {
    // contract: accounts-10
    const list = (await api.get(`/accounts?client_id=${owner.client_id}`)).list();
    expect(list).toHaveLength(4);
    expect(list).toEqual(of(0, 1, 2, 3));
  });

  it.each(['Savings', 'Checking', 'Current', 'Loan'])('GET /accounts: account_type=%s filters', async (type) => {
    // contract: accounts-10
    const list = (await api.get(`/accounts?account_type=${type}`)).list<RestAccount>();
    expect(list).toEqual(accounts.filter(({ account_type }) => account_type === type));
  });

  it.each(['Active', 'Inactive', 'Frozen'])('GET /accounts: status=%s filters', async (wanted) => {
    // contract: accounts-10
    const list = (await api.get(`/accounts?status=${wanted}&order=asc`)).list<RestAccount>();
    expect(list).toEqual(accounts.filter(({ status }) => status === wanted));
  });

  it('GET /accounts: currency filters, and filters combine', async () => {
    // contract: accounts-10
    expect((await api.get('/accounts?currency=USD&order=asc')).list()).toEqual([accounts[0], accounts[2]]);
    expect((await api.get('/accounts?currency=USD&status=Frozen&account_type=Current')).list()).toEqual([accounts[2]]);
    expect((await api.get('/accounts?currency=USD&status=Inactive')).list()).toEqual([]);
  });

  it('GET /accounts/number/:accountNumber/balance: exactly four fields', async () => {
    // contract: accounts-13
    const [{ account_id, account_number, currency } = accounts[0] as RestAccount] = accounts;
    const answer = await api.get(`/accounts/number/${account_number}/balance`);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ status: 'success', data: { account_id, account_number, balance: 100.25, currency } });
  });

  it('GET /accounts/number/:accountNumber/balance: 404 names the account number as not found', async () => {
    // contract: accounts-13
    expectError(
      await api.get('/accounts/number/SAV-0000000000/balance'),
      404,
      'account_not_found',
      /SAV-0000000000.*not found/,
    );
  });
});

describe('Transactions and transfers', () => {
  let account: RestAccount;
  let loan: RestAccount;
  let other: RestAccount;

  beforeAll(async () => {
    const { client_id } = await api.client();
    [account, other, loan] = [
      await api.account(client_id),
      await api.account(client_id),
      await api.account(client_id, { account_type: 'Loan', initial_deposit: 80 }),
    ];
  });

  it('POST /transactions: the created Transaction is the body itself', async () => {
    // contract: envelope-3
    for (const [transaction_type, direction] of [
      ['Deposit', 'credit'],
      ['Withdrawal', 'debit'],
    ]) {
      const body = {
        account_id: account.account_id,
        transaction_type,
        amount: 40.5,
        currency: 'USD',
        description: 'over the counter',
        reference: 'R-1',
      };
      const answer = await api.post('/transactions', body);
      expect(answer.status).toBe(201);
      expect(answer.body).toEqual({
        ...body,
        transaction_id: expect.any(String),
        status: 'Completed',
        created_at: stamp,
        effective_date: day,
        direction,
      });
    }
  });

  it('POST /transfers: data is the Transfer with status Completed', async () => {
    await api.transact(account.account_id, 'Deposit', 100);
    const body = {
      from_account_id: account.account_id,
      to_account_id: other.account_id,
      amount: 25,
      currency: 'USD',
      description: 'rent',
    };
    const answer = await api.post('/transfers', body);
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      status: 'success',
      data: { ...body, transfer_id: expect.any(String), status: 'Completed', created_at: stamp, effective_date: day },
    });
  });

  it('GET /transactions: data is an array of Transaction', async () => {
    const answer = await api.get('/transactions');
    expect(answer.body).toMatchObject({ status: 'success', data: expect.any(Array) });
    for (const transaction of answer.list<RestTransaction>()) {
      const fields = [
        'transaction_id',
        'account_id',
        'transaction_type',
        'amount',
        'currency',
        'description',
        'reference',
        'status',
        'created_at',
      ];
      expect(Object.keys(transaction)).toEqual(expect.arrayContaining(fields));
      expect(typeof transaction.amount).toBe('number');
    }
  });

  it('GET /transactions: account_id, transaction_type and status filter', async () => {
    // contract: transactions-17
    await api.transfer(account.account_id, loan.account_id, 30);
    expectError(
      await api.post('/transactions', { account_id: account.account_id, transaction_type: 'Withdrawal', amount: 1e6 }),
      400,
      'insufficient_funds',
    );
    const ofAccount = async (filter: string) =>
      (await api.get(`/transactions?account_id=${account.account_id}${filter}`)).list<RestTransaction>();
    const all = await ofAccount('');
    expect(all.every(({ account_id }) => account_id === account.account_id)).toBe(true);
    for (const type of ['Deposit', 'Withdrawal', 'Transfer', 'Loan Payment']) {
      const filtered = await ofAccount(`&transaction_type=${encodeURIComponent(type)}`);
      expect(filtered).toEqual(all.filter(({ transaction_type }) => transaction_type === type));
      expect(filtered.length).toBeGreaterThan(0);
    }
    for (const wanted of ['Pending', 'Completed', 'Failed'])
      expect(await ofAccount(`&status=${wanted}`)).toEqual(all.filter(({ status }) => status === wanted));
    expect(await ofAccount('&status=Failed')).toHaveLength(1);
  });

  it.each(['client_type=retail', 'status=Active'])(
    'enumerations are case-sensitive and complete: /transactions?%s is refused',
    async (filter) => {
      // contract: envelope-19
      expect((await api.get(`/transactions?${filter}`)).status).toBe(400);
    },
  );
});
