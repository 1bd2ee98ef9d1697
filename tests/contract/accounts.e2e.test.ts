import { describe, expect, it } from 'vitest';
import { currencies } from '#libs/contracts/money.ts';
import {
  expectError,
  type RestAccount,
  type RestEntry,
  type RestTransaction,
  type RestTransition,
  unknownId,
} from '../support/client.ts';
import { useSharedBank } from '../support/world.ts';

/** Tests the contract of accounts, opening, status transitions, and entries. */
const world = useSharedBank();
const { api } = world;

const open = (fields: object) => api.post('/accounts', fields);
const readTransactions = async (accountId: string) =>
  (await api.get(`/transactions?account_id=${accountId}`)).list<RestTransaction>();

/** Computes the Luhn checksum, in which every second digit from the right is doubled. */
function luhn(digits: string): boolean {
  const sum = [...digits].reverse().reduce((total, digit, i) => {
    const value = Number(digit) * (i % 2 === 1 ? 2 : 1);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

describe('Accounts: number', () => {
  it('an account number is the prefix, a hyphen, and ten random digits, the last a Luhn check digit; it is unique', async () => {
    // contract: accounts-1
    const { client_id } = await api.client();
    const types = ['Savings', 'Checking', 'Current', 'Loan'];
    const accounts = await Promise.all(
      Array.from({ length: 40 }, (_, i) => api.account(client_id, { account_type: types[i % 4] })),
    );
    for (const { account_number } of accounts) {
      expect(account_number).toMatch(/^(SAV|CHK|CUR|LOA)-\d{10}$/);
      expect(luhn(account_number.slice(4)), account_number).toBe(true);
    }
    expect(new Set(accounts.map(({ account_number }) => account_number)).size).toBe(40);
  });
});

describe('Accounts: opening', () => {
  it('client_id, account_type, and currency are required; an unknown client is 404', async () => {
    // contract: accounts-4
    const { client_id } = await api.client();
    for (const field of ['client_id', 'account_type', 'currency']) {
      expectError(
        await open({ client_id, account_type: 'Savings', currency: 'USD', [field]: undefined }),
        400,
        'validation_failed',
      );
    }
    for (const unknown of [unknownId('cli'), 'nonsense'])
      expectError(
        await open({ client_id: unknown, account_type: 'Savings', currency: 'USD' }),
        404,
        'client_not_found',
      );
    expectError(await open({ client_id, account_type: 'Savings', currency: 'USD', balance: 1 }), 400, 'unknown_field');
    for (const fields of [{ account_type: 'savings' }, { account_type: 'Teller' }, { status: 'Closed' }]) {
      expectError(
        await open({ client_id, account_type: 'Savings', currency: 'USD', ...fields }),
        400,
        'validation_failed',
      );
    }
  });

  it.each(['usd', 'XXX', 'US', 'EURO', '', 'BTC'])('%j is not an ISO 4217 code in upper case', async (currency) => {
    // contract: money-10
    expectError(
      await open({ client_id: unknownId('cli'), account_type: 'Savings', currency }),
      400,
      'unsupported_currency',
    );
  });

  it('currencies with 0, 2, 3, and 4 digits are supported', async () => {
    expect(currencies).toEqual(expect.arrayContaining(['JPY', 'USD', 'KWD', 'CLF']));
    for (const [currency, amount] of [
      ['JPY', 100],
      ['USD', 100.25],
      ['KWD', 100.125],
      ['CLF', 100.0625],
    ] as const) {
      expect((await api.newAccount({ currency, initial_deposit: amount })).balance).toBe(amount);
    }
  });

  it('the defaults are initial_deposit 0 and status Active', async () => {
    // contract: accounts-4
    const account = await api.newAccount();
    expect(account).toMatchObject({ balance: 0, status: 'Active' });
    expect(await readTransactions(account.account_id)).toEqual([]);
    expect(await api.newAccount({ initial_deposit: 0 })).toMatchObject({ balance: 0 });
  });

  it.each<[unknown, string]>([
    [-1, 'invalid_amount'],
    ['5', 'invalid_amount'],
    [true, 'invalid_amount'],
    [0.001, 'invalid_amount_precision'],
    [1e15, 'amount_too_large'],
    [null, 'validation_failed'],
  ])('initial_deposit %j is %s', async (initial_deposit, code) => {
    const { client_id } = await api.client();
    expectError(await open({ client_id, account_type: 'Savings', currency: 'USD', initial_deposit }), 400, code);
  });

  it.each(['Active', 'Inactive', 'Frozen'])(
    'initial_deposit posts a Deposit if the opening status is %s',
    async (status) => {
      // contract: accounts-5
      const account = await api.newAccount({ status, initial_deposit: 75.5 });
      expect(account).toMatchObject({ status, balance: 75.5 });
      const [transaction, ...more] = await readTransactions(account.account_id);
      expect(more).toEqual([]);
      expect(transaction).toMatchObject({
        transaction_type: 'Deposit',
        direction: 'credit',
        amount: 75.5,
        currency: 'USD',
        description: 'Initial deposit',
        status: 'Completed',
      });
      expect(
        await world.sql("select count(*)::int as n from v_entries where operation_id = 'opr_' || substr($1, 5)", [
          transaction?.transaction_id,
        ]),
      ).toEqual([{ n: 4 }]);
    },
  );

  it('initial_deposit on a Loan is a Withdrawal “Loan disbursement” with direction credit', async () => {
    // contract: accounts-6
    const loan = await api.newAccount({ account_type: 'Loan', initial_deposit: 1000 });
    expect(loan.balance).toBe(1000);
    expect(await readTransactions(loan.account_id)).toEqual([
      expect.objectContaining({
        transaction_type: 'Withdrawal',
        direction: 'credit',
        description: 'Loan disbursement',
        amount: 1000,
      }),
    ]);
  });

  it('after the response the account accepts postings from every gateway', async () => {
    // contract: accounts-9
    const { client_id } = await api.client();
    for (let i = 0; i < 10; i++) {
      const account = await world.gateway(i % 2).account(client_id);
      const other = world.gateway((i + 1) % 2);
      await other.transact(account.account_id, 'Deposit', 5);
      expect(await other.balance(account.account_id)).toBe(5);
    }
  });
});

describe('Accounts: lists and balance', () => {
  it('an unknown client_id returns an empty list', async () => {
    // contract: accounts-10
    for (const id of [unknownId('cli'), 'nonsense'])
      expect((await api.get(`/accounts?client_id=${id}`)).body).toEqual({ status: 'success', data: [] });
  });

  it('Teller and Vault are never shown', async () => {
    // contract: accounts-11
    const numbers = (await api.all<RestAccount>('/accounts?limit=500')).map(({ account_number }) =>
      account_number.slice(0, 3),
    );
    expect(new Set(numbers)).toEqual(new Set(['SAV', 'CHK', 'CUR', 'LOA']));
    const system = (await api.get('/admin/system-accounts')).list<{
      account_id: string;
      account_number: string;
      slots: { account_id: string; account_number: string }[];
    }>();
    const customer = await api.newAccount({ initial_deposit: 10 });
    for (const { account_id, account_number } of [...system, ...system.flatMap(({ slots }) => slots)].slice(0, 8)) {
      expectError(await api.get(`/accounts/${account_id}`), 404, 'account_not_found');
      expectError(await api.get(`/accounts/${account_id}/entries`), 404, 'account_not_found');
      expectError(
        await api.get(`/accounts/number/${encodeURIComponent(account_number)}/balance`),
        404,
        'account_not_found',
      );
      expectError(
        await api.post('/transactions', { account_id, transaction_type: 'Deposit', amount: 1 }),
        404,
        'account_not_found',
      );
      expectError(
        await api.post('/transfers', { from_account_id: customer.account_id, to_account_id: account_id, amount: 1 }),
        404,
        'account_not_found',
      );
    }
  });

  it('every way to read a balance includes an operation whose response was 201', async () => {
    // contract: accounts-15
    const account = await api.newAccount();
    for (let i = 1; i <= 10; i++) {
      await world.gateway(i % 2).transact(account.account_id, 'Deposit', 1.1);
      const reader = world.gateway((i + 1) % 2);
      const [one, list, number] = await Promise.all([
        reader.get(`/accounts/${account.account_id}`),
        reader.get(`/accounts?client_id=${account.client_id}`),
        reader.get(`/accounts/number/${account.account_number}/balance`),
      ]);
      const balances = [one.data<RestAccount>(), list.list<RestAccount>()[0], number.data<RestAccount>()].map(
        (read) => read?.balance,
      );
      expect(balances).toEqual(Array(3).fill(Math.round(i * 110) / 100));
    }
  });
});

describe('Accounts: status transitions', () => {
  const change = (id: string, body: object) => api.post(`/accounts/${id}/status-transitions`, body);
  const history = async (id: string) => (await api.get(`/accounts/${id}/status-transitions`)).list<RestTransition>();

  it('every transition is allowed and returns the account; the history has actor and time', async () => {
    // contract: accounts-18, accounts-21
    const account = await api.newAccount({ initial_deposit: 3 });
    const moves = ['Inactive', 'Frozen', 'Active', 'Frozen', 'Inactive', 'Active'];
    for (const status of moves) {
      const answer = await change(account.account_id, {
        status,
        ...(status === 'Frozen' ? { reason: 'fraud', note: 'case 7' } : {}),
      });
      expect(answer.status).toBe(200);
      expect(answer.data()).toMatchObject({
        account_id: account.account_id,
        status,
        balance: 3,
        account_number: account.account_number,
      });
      expect((await api.get(`/accounts/${account.account_id}`)).data()).toEqual(answer.data());
    }
    const rows = await history(account.account_id);
    expect(rows.map(({ from_status, to_status }) => `${from_status} ${to_status}`).reverse()).toEqual(
      moves.map((to, i) => `${moves[i - 1] ?? 'Active'} ${to}`),
    );
    expect(rows[4]).toEqual({
      transition_id: expect.any(String),
      account_id: account.account_id,
      from_status: 'Inactive',
      to_status: 'Frozen',
      reason: 'fraud',
      note: 'case 7',
      actor: expect.stringMatching(/^key:/),
      created_at: expect.stringMatching(/Z$/),
    });
    expect(new Set(rows.map(({ transition_id }) => transition_id)).size).toBe(6);
  });

  it.each(['Active', 'Inactive', 'Frozen'])(
    'setting the same status (%s) changes and records nothing',
    async (status) => {
      // contract: accounts-19
      const account = await api.newAccount({ status });
      expect((await change(account.account_id, { status, reason: 'other' })).data()).toEqual(account);
      expect(await history(account.account_id)).toEqual([]);
    },
  );

  it.each(['fraud', 'legal', 'customer_request', 'deceased', 'other'])(
    'Frozen requires a reason (%s), other statuses do not',
    async (reason) => {
      // contract: accounts-20
      const account = await api.newAccount();
      expect((await change(account.account_id, { status: 'Frozen', reason })).data()).toMatchObject({
        status: 'Frozen',
      });
      expect((await history(account.account_id))[0]).toMatchObject({ reason, note: null });
    },
  );

  it('Frozen without a reason, an unknown reason or status, and an unknown account are refused', async () => {
    // contract: accounts-20
    const { account_id } = await api.newAccount();
    for (const body of [
      { status: 'Frozen' },
      { status: 'Frozen', reason: 'because' },
      { status: 'Closed' },
      {},
      { status: null },
    ]) {
      expectError(await change(account_id, body), 400, 'validation_failed');
    }
    expectError(await change(unknownId('acc'), { status: 'Active' }), 404, 'account_not_found');
    expectError(await api.get(`/accounts/${unknownId('acc')}/status-transitions`), 404, 'account_not_found');
    expect(await history(account_id)).toEqual([]);
  });

  it('GET /accounts?status= shows the new status immediately', async () => {
    const account = await api.newAccount();
    await api.setStatus(account.account_id, 'Frozen', 'legal');
    const frozen = (await world.gateway(1).get(`/accounts?status=Frozen&client_id=${account.client_id}`)).list();
    expect(frozen).toEqual([expect.objectContaining({ account_id: account.account_id, status: 'Frozen' })]);
    expect((await api.get(`/accounts?status=Active&client_id=${account.client_id}`)).list()).toEqual([]);
  });

  it('after the response nothing can be posted, on either side of a transfer, until the account is Active again', async () => {
    // contract: accounts-23
    const [account, other] = [
      await api.newAccount({ initial_deposit: 10 }),
      await api.newAccount({ initial_deposit: 10 }),
    ];
    await api.setStatus(account.account_id, 'Frozen', 'fraud');
    const second = world.gateway(1);
    const bodies = [
      second.post('/transactions', { account_id: account.account_id, transaction_type: 'Deposit', amount: 1 }),
      second.post('/transactions', { account_id: account.account_id, transaction_type: 'Withdrawal', amount: 1 }),
      second.post('/transfers', { from_account_id: account.account_id, to_account_id: other.account_id, amount: 1 }),
      second.post('/transfers', { from_account_id: other.account_id, to_account_id: account.account_id, amount: 1 }),
    ];
    for (const answer of await Promise.all(bodies)) expectError(answer, 400, 'inactive_account', /^Inactive Account/);
    await api.setStatus(account.account_id, 'Active');
    await api.transact(account.account_id, 'Withdrawal', 10);
  });
});

describe('Accounts: GET /accounts/:account_id/entries', () => {
  it('lists the entries of the account with balance_after, newest first', async () => {
    // contract: accounts-24, double-entry-6
    const account = await api.newAccount({ initial_deposit: 10 });
    await api.transact(account.account_id, 'Deposit', 5.5);
    const withdrawal = await api.transact(account.account_id, 'Withdrawal', 2.25);
    const entries = (await api.get(`/accounts/${account.account_id}/entries`)).list<RestEntry>();
    expect(
      entries.map(({ sequence, direction, side, amount, balance_after }) => [
        sequence,
        direction,
        side,
        amount,
        balance_after,
      ]),
    ).toEqual([
      [3, 'debit', 'DR', 2.25, 13.25],
      [2, 'credit', 'CR', 5.5, 15.5],
      [1, 'credit', 'CR', 10, 10],
    ]);
    expect(entries[0]).toEqual({
      entry_id: expect.any(String),
      operation_id: expect.any(String),
      transaction_id: withdrawal.transaction_id,
      account_id: account.account_id,
      sequence: 3,
      direction: 'debit',
      side: 'DR',
      amount: 2.25,
      currency: 'USD',
      balance_after: 13.25,
      created_at: expect.stringMatching(/Z$/),
      effective_date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      transaction_type: 'Withdrawal',
      description: null,
      reference: null,
    });
    expectError(await api.get(`/accounts/${unknownId('acc')}/entries`), 404, 'account_not_found');
    expect((await api.get(`/accounts/${(await api.newAccount()).account_id}/entries`)).list()).toEqual([]);
  });
});

describe('Accounts: GET /accounts/:account_id/balance', () => {
  it('returns the current balance, or the balance after the last entry posted before a moment', async () => {
    // contract: accounts-28
    const { account_id, account_number } = await api.newAccount({ initial_deposit: 10 });
    await api.transact(account_id, 'Deposit', 5.5);
    const [second, first] = await api.entries(account_id);
    const balance = async (at?: string) =>
      (await api.get(`/accounts/${account_id}/balance${at === undefined ? '' : `?at=${at}`}`)).data();
    const known = { account_id, account_number, currency: 'USD' };
    expect(await balance()).toEqual({
      ...known,
      balance: 15.5,
      available_balance: 15.5,
      at: expect.stringMatching(/Z$/),
      sequence: 2,
    });
    expect(await balance(second?.created_at)).toEqual({ ...known, balance: 10, at: second?.created_at, sequence: 1 });
    expect(await balance(first?.created_at)).toMatchObject({ balance: 0, sequence: 0 });
    expectError(
      await api.get(`/accounts/${account_id}/balance?at=2999-01-01`),
      400,
      'validation_failed',
      /^at must not/,
    );
    expectError(await api.get(`/accounts/${account_id}/balance?at=yesterday`), 400, 'validation_failed');
    expectError(await api.get(`/accounts/${unknownId('acc')}/balance`), 404, 'account_not_found');
  });
});

describe('Accounts: account_number', () => {
  it('requires accounts:import and the format of the type; if taken, it is duplicate_account_number', async () => {
    // contract: errors-6, accounts-3
    const { client_id } = await api.client();
    const account_number = `CHK-${Date.now()}`;
    const opening = { client_id, account_type: 'Checking', currency: 'USD', account_number };
    const { account_id } = (await api.post('/accounts', { ...opening, initial_deposit: 5 })).data<RestAccount>();
    expect((await api.get(`/accounts/number/${account_number}/balance`)).data()).toEqual({
      account_id,
      account_number,
      balance: 5,
      currency: 'USD',
    });
    expectError(await api.post('/accounts', opening), 400, 'duplicate_account_number', /^Duplicate Account Number/);
    for (const wrong of [{ account_number: 'CHK-123' }, { account_number: `SAV-${Date.now()}` }])
      expectError(await api.post('/accounts', { ...opening, ...wrong }), 400, 'validation_failed');
    const plain = api.withKey((await api.key({ scopes: ['accounts:write'] })).api_key);
    expectError(await plain.post('/accounts', opening), 403, 'insufficient_scope', /accounts:import/);
  });

  it('migrated requires the same scope and describes the initial_deposit as an opening balance', async () => {
    const { client_id } = await api.client();
    const opening = { client_id, currency: 'USD', initial_deposit: 5, migrated: true };
    for (const account_type of ['Savings', 'Loan']) {
      const { account_id } = (await api.post('/accounts', { ...opening, account_type })).data<RestAccount>();
      expect((await api.get(`/transactions?account_id=${account_id}`)).list()).toMatchObject([
        { description: 'Opening balance', amount: 5 },
      ]);
    }
    const plain = api.withKey((await api.key({ scopes: ['accounts:write', 'transactions:write'] })).api_key);
    const refused = await plain.post('/accounts', { ...opening, account_type: 'Savings' });
    expectError(refused, 403, 'insufficient_scope', /migrated.*accounts:import/);
  });
});
