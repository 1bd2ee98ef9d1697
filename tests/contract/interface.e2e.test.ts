import { describe, expect, it } from 'vitest';
import { corporate, expectError, newKey, type RestTransaction, unknownId } from '../support/client.ts';
import { useSharedBank } from '../support/world.ts';

/** Tests what the service does for its callers, subject by subject. interface-resources tests the exact shapes. */
const world = useSharedBank();
const { api } = world;

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('What the service does', () => {
  it('clients are of two kinds: Retail and Corporate', async () => {
    // contract: clients-1
    expect((await api.client()).client_type).toBe('Retail');
    const answer = await api.post('/clients', corporate());
    expect(answer.data()).toMatchObject({ client_type: 'Corporate' });
  });

  it('accounts are of four types; the number is the prefix of its type, a hyphen, then digits', async () => {
    // contract: accounts-1
    const { client_id } = await api.client();
    for (const [account_type, prefix] of [
      ['Savings', 'SAV'],
      ['Checking', 'CHK'],
      ['Current', 'CUR'],
      ['Loan', 'LOA'],
    ]) {
      const account = await api.account(client_id, { account_type });
      expect(account.account_type).toBe(account_type);
      expect(account.account_number).toMatch(new RegExp(`^${prefix}-\\d+$`));
    }
  });

  it('money moves by deposits, withdrawals, transfers, and loan payments', async () => {
    const savings = await api.newAccount({ initial_deposit: 100 });
    const loan = await api.newAccount({ account_type: 'Loan', initial_deposit: 50 });
    const other = await api.newAccount();
    await api.transact(savings.account_id, 'Deposit', 10);
    await api.transact(savings.account_id, 'Withdrawal', 20);
    await api.transfer(savings.account_id, other.account_id, 30);
    await api.transfer(savings.account_id, loan.account_id, 40);
    const transactions = await api.all<RestTransaction>(`/transactions?account_id=${savings.account_id}&order=asc`);
    expect(transactions.map((t) => t.transaction_type)).toEqual([
      'Deposit',
      'Deposit',
      'Withdrawal',
      'Transfer',
      'Loan Payment',
    ]);
    expect([
      await api.balance(savings.account_id),
      await api.balance(loan.account_id),
      await api.balance(other.account_id),
    ]).toEqual([20, 10, 30]);
  });

  it('a Teller and a Vault account are created if they do not exist', async () => {
    // contract: double-entry-7
    await api.newAccount({ currency: 'CHF', initial_deposit: 1 });
    const system = (await api.get('/admin/system-accounts')).list<{ kind: string; currency: string }>();
    expect(
      system
        .filter(({ currency }) => currency === 'CHF')
        .map(({ kind }) => kind)
        .sort(),
    ).toEqual(['Teller', 'Vault']);
  });

  /** Returns the account kind and direction of every entry of an operation, in order per account. */
  async function readFlow(transactionId: string): Promise<string[]> {
    const rows = await world.sql<{ kind: string; direction: string }>(
      `select coalesce(substring(a.account_number from '^(TLR|VLT)-'), 'customer') as kind, e.direction
       from v_entries e join v_accounts a using (account_id)
       where e.operation_id = (select operation_id from v_transactions where transaction_id = $1) order by e.account_id = $2, a.account_number, e.sequence`,
      [transactionId, ''],
    );
    return rows.map(({ kind, direction }) => `${kind} ${direction}`).sort();
  }

  it('a deposit: credit customer, credit Teller; then debit Teller, credit Vault', async () => {
    // contract: double-entry-2
    const account = await api.newAccount();
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 12.34);
    expect(await readFlow(transaction_id)).toEqual(['TLR credit', 'TLR debit', 'VLT credit', 'customer credit']);
    expect(await api.balance(account.account_id)).toBe(12.34);
  });

  it('a withdrawal: debit Vault, credit Teller; then debit Teller, debit customer', async () => {
    // contract: double-entry-2
    const account = await api.newAccount({ initial_deposit: 20 });
    const { transaction_id } = await api.transact(account.account_id, 'Withdrawal', 12.34);
    expect(await readFlow(transaction_id)).toEqual(['TLR credit', 'TLR debit', 'VLT debit', 'customer debit']);
    expect(await api.balance(account.account_id)).toBe(7.66);
  });

  it('the entries of one operation are applied together or not at all', async () => {
    // contract: double-entry-1
    const account = await api.newAccount({ initial_deposit: 5 });
    const other = await api.newAccount();
    const entries = async () => [await api.entries(account.account_id), await api.entries(other.account_id)];
    const before = await entries();
    expectError(
      await api.post('/transfers', { from_account_id: account.account_id, to_account_id: other.account_id, amount: 6 }),
      400,
      'insufficient_funds',
    );
    expect(await entries()).toEqual(before);
  });
});

describe('Endpoints: Health check', () => {
  it('GET / returns exactly status, message, and apiVersion', async () => {
    // contract: envelope-2
    const answer = await api.get('/');
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      status: 'success',
      message: expect.any(String),
      apiVersion: expect.stringMatching(/^\d+(\.\d+)+(-[\w.]+)?$/),
    });
  });
});

describe('Resources and their fields', () => {
  it('all timestamps are ISO 8601 UTC strings, all identifiers strings', async () => {
    const client = await api.client();
    const account = await api.account(client.client_id, { initial_deposit: 10 });
    const other = await api.account(client.client_id);
    const transaction = await api.transact(account.account_id, 'Deposit', 1);
    const transfer = await api.transfer(account.account_id, other.account_id, 1);
    for (const stamp of [
      client.created_at,
      client.updated_at,
      account.created_at,
      account.updated_at,
      transaction.created_at,
      transfer.created_at,
    ])
      expect(stamp).toMatch(time);
    for (const id of [
      client.client_id,
      account.account_id,
      account.client_id,
      transaction.transaction_id,
      transfer.transfer_id,
    ])
      expect(typeof id).toBe('string');
  });
});

describe('States and transitions', () => {
  it('a transaction or transfer that succeeds is returned with status Completed', async () => {
    // contract: transactions-9
    const [from, to] = [await api.newAccount({ initial_deposit: 10 }), await api.newAccount()];
    expect((await api.transact(from.account_id, 'Deposit', 1)).status).toBe('Completed');
    expect((await api.transact(from.account_id, 'Withdrawal', 1)).status).toBe('Completed');
    expect((await api.transfer(from.account_id, to.account_id, 1)).status).toBe('Completed');
  });

  it.each(['Inactive', 'Frozen'])('an account that is %s cannot perform transactions', async (status) => {
    // contract: errors-6, accounts-17
    const account = await api.newAccount({ status, initial_deposit: 10 });
    const active = await api.newAccount({ initial_deposit: 10 });
    for (const transaction_type of ['Deposit', 'Withdrawal']) {
      expectError(
        await api.post('/transactions', { account_id: account.account_id, transaction_type, amount: 1 }),
        400,
        'inactive_account',
        /^Inactive Account/,
      );
    }
    for (const [from, to] of [
      [account, active],
      [active, account],
    ]) {
      expectError(
        await api.post('/transfers', { from_account_id: from?.account_id, to_account_id: to?.account_id, amount: 1 }),
        400,
        'inactive_account',
      );
    }
  });
});

describe('Authentication', () => {
  it('every endpoint, including GET /, requires authentication', async () => {
    // contract: permission-1
    const nobody = api.with({});
    for (const path of [
      '/',
      '/clients',
      '/clients/ussd/search?ussd_phone=%2B254700000001',
      '/accounts',
      '/transactions',
      '/accounts/number/SAV-1/balance',
      '/accounts/x',
    ]) {
      expectError(await nobody.get(path), 401, 'missing_credentials');
    }
    for (const path of ['/clients', '/accounts', '/transactions', '/transfers'])
      expectError(await nobody.post(path), 401, 'missing_credentials');
  });

  it('a JWT of the identity provider and an API key are accepted', async () => {
    expect((await api.withToken(await world.bank.token()).get('/clients')).status).toBe(200);
    expect((await api.withKey(world.bank.api_key).get('/clients')).status).toBe(200);
  });

  it('invalid credentials are 401', async () => {
    // contract: errors-11
    expectError(await api.withToken('not.a.token').get('/'), 401, 'invalid_credentials');
    expectError(await api.withKey('cbk_live_nonsense').get('/'), 401, 'invalid_credentials');
  });

  it('a caller without permission is 403', async () => {
    // contract: errors-11
    const reader = api.withToken(await world.bank.token(undefined, 'reader'));
    expectError(await reader.post('/clients', corporate()), 403, 'insufficient_scope');
  });
});

describe('Errors', () => {
  it('unknown resources are 404, malformed requests 400', async () => {
    // contract: errors-1, errors-11
    expectError(await api.get(`/clients/${unknownId('cli')}`), 404, 'client_not_found');
    expectError(await api.get(`/accounts/${unknownId('acc')}`), 404, 'account_not_found');
    expectError(await api.send('POST', '/clients', { raw: '{' }), 400, 'malformed_json');
    expectError(await api.get('/clients?client_type=Unknown'), 400, 'validation_failed');
  });

  it('business errors: Insufficient Funds refers to the source account on a transfer', async () => {
    // contract: errors-6, transactions-4
    const [from, to] = [await api.newAccount({ initial_deposit: 1 }), await api.newAccount()];
    const withdrawal = { account_id: from.account_id, transaction_type: 'Withdrawal', amount: 2 };
    expectError(await api.post('/transactions', withdrawal), 400, 'insufficient_funds', /^Insufficient Funds/);
    const transfer = { from_account_id: from.account_id, to_account_id: to.account_id, amount: 2 };
    expectError(
      await api.post('/transfers', transfer),
      400,
      'insufficient_funds',
      /^Insufficient Funds.*source account/i,
    );
  });

  it('business errors: Invalid Account Type', async () => {
    // contract: errors-6
    const loan = await api.newAccount({ account_type: 'Loan', initial_deposit: 10 });
    const deposit = { account_id: loan.account_id, transaction_type: 'Deposit', amount: 1 };
    expectError(
      await api.once(newKey(), '/transactions', deposit),
      400,
      'invalid_account_type',
      /^Invalid Account Type/,
    );
  });
});
