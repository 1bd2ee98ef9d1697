import { beforeAll, describe, expect, it } from 'vitest';
import {
  expectError,
  newKey,
  type RestAccount,
  type RestTransaction,
  type RestTransfer,
  unknownId,
} from '../support/client.ts';
import { useSharedBank } from '../support/world.ts';

/** Tests the contract of transactions and transfers. */
const world = useSharedBank();
const { api } = world;

const transact = (account_id: string, transaction_type: string, amount: number, rest: object = {}) =>
  api.post('/transactions', { account_id, transaction_type, amount, ...rest });
const transfer = (from_account_id: string, to_account_id: string, amount: number, rest: object = {}) =>
  api.post('/transfers', { from_account_id, to_account_id, amount, ...rest });
const readTransaction = async (id: string) => (await api.get(`/transactions/${id}`)).data<RestTransaction>();
const readTransactions = (accountId: string, filter = '') =>
  api.all<RestTransaction>(`/transactions?account_id=${accountId}${filter}`);

describe('Transactions and transfers: POST /transactions', () => {
  it('transaction_type is Deposit or Withdrawal', async () => {
    // contract: transactions-1
    const { account_id } = await api.newAccount({ initial_deposit: 10 });
    for (const type of ['Transfer', 'Loan Payment', 'deposit', '', 'Refund'])
      expectError(await transact(account_id, type, 1), 400, 'invalid_transaction_type');
  });

  it('currency defaults to that of the account; another one is currency_mismatch', async () => {
    // contract: transactions-2
    const { account_id } = await api.newAccount({ currency: 'EUR', initial_deposit: 10 });
    expect(await api.transact(account_id, 'Deposit', 1)).toMatchObject({ currency: 'EUR' });
    expect(await api.transact(account_id, 'Deposit', 1, { currency: 'EUR' })).toMatchObject({ currency: 'EUR' });
    expectError(
      await transact(account_id, 'Deposit', 1, { currency: 'USD' }),
      400,
      'currency_mismatch',
      /^Currency Mismatch/,
    );
    expectError(await transact(account_id, 'Deposit', 1, { currency: 'eur' }), 400, 'unsupported_currency');
  });

  it('description (up to 255 characters) and reference (up to 100, not unique) are optional', async () => {
    // contract: transactions-3
    const { account_id } = await api.newAccount();
    const long = { description: 'd'.repeat(255), reference: 'r'.repeat(100) };
    expect(await api.transact(account_id, 'Deposit', 1, long)).toMatchObject(long);
    expect(await api.transact(account_id, 'Deposit', 1, long)).toMatchObject(long);
    expect(await api.transact(account_id, 'Deposit', 1)).toMatchObject({ description: null, reference: null });
    for (const fields of [{ description: 'd'.repeat(256) }, { reference: 'r'.repeat(101) }, { reference: 5 }])
      expectError(await transact(account_id, 'Deposit', 1, fields), 400, 'validation_failed');
    expectError(await transact(account_id, 'Deposit', 1, { status: 'Completed' }), 400, 'unknown_field');
  });

  it('an amount with too many digits for the account’s currency is stored under its id and appears in no list', async () => {
    const { account_id } = await api.newAccount({ currency: 'JPY', initial_deposit: 10 });
    const { errors, details } = expectError(
      await transact(account_id, 'Deposit', 1.5),
      400,
      'invalid_amount_precision',
    );
    expect(errors).toMatchObject([{ field: 'amount', code: 'invalid_amount_precision' }]);
    expect(await readTransactions(account_id, '&status=Failed')).toEqual([]);
    expect(await readTransaction(details?.['transaction_id'] ?? '')).toMatchObject({
      status: 'Failed',
      amount: 1.5,
      failure_code: 'invalid_amount_precision',
    });
  });
});

describe('Transactions and transfers: POST /transfers', () => {
  it('the same account is 400; an unknown account is 404 with its id', async () => {
    // contract: transactions-5
    const { account_id } = await api.newAccount({ initial_deposit: 10 });
    const { details } = expectError(await transfer(account_id, account_id, 1), 400, 'same_account');
    const kept = { transaction_id: details?.['transaction_id'], status: 'Failed', failure_code: 'same_account' };
    expect(await readTransactions(account_id, '&status=Failed')).toMatchObject([kept]);
    const unknown = unknownId('acc');
    expectError(await transfer(unknown, account_id, 1), 404, 'account_not_found', /from_account_id/);
    expectError(await transfer(account_id, unknown, 1), 404, 'account_not_found', /to_account_id/);
    expect(await readTransactions(account_id, '&status=Failed')).toMatchObject([kept]);
  });

  it('different currencies are currency_mismatch', async () => {
    // contract: transactions-6
    const [usd, eur] = [await api.newAccount({ initial_deposit: 10 }), await api.newAccount({ currency: 'EUR' })];
    expectError(await transfer(usd.account_id, eur.account_id, 1), 400, 'currency_mismatch');
    expectError(
      await transfer(usd.account_id, (await api.newAccount()).account_id, 1, { currency: 'EUR' }),
      400,
      'currency_mismatch',
    );
  });

  it('Insufficient Funds names the source account but not its balance', async () => {
    // contract: transactions-7
    const [from, to] = [await api.newAccount({ initial_deposit: 987.65 }), await api.newAccount()];
    const { message } = expectError(
      await transfer(from.account_id, to.account_id, 1000),
      400,
      'insufficient_funds',
      /^Insufficient Funds: .*source account/i,
    );
    expect(message).toContain(from.account_id);
    // The message must not contain the balance. Ids can contain any digits, so they are removed first.
    expect(message.replaceAll(from.account_id, '')).not.toMatch(/\d/);
    expectError(await transact(from.account_id, 'Withdrawal', 987.66), 400, 'insufficient_funds');
    expect(await api.transact(from.account_id, 'Withdrawal', 987.65)).toMatchObject({ status: 'Completed' });
  });

  it('appears in GET /transactions as two Transactions, one per account', async () => {
    // contract: transactions-8
    const [from, to] = [await api.newAccount({ initial_deposit: 10 }), await api.newAccount()];
    const { transfer_id, created_at } = await api.transfer(from.account_id, to.account_id, 4.5, {
      description: 'rent',
    });
    const common = {
      transaction_type: 'Transfer',
      amount: 4.5,
      currency: 'USD',
      status: 'Completed',
      transfer_id,
      created_at,
      description: 'rent',
    };
    const [debit] = await readTransactions(from.account_id, '&transaction_type=Transfer');
    const [credit] = await readTransactions(to.account_id);
    expect(debit).toMatchObject({
      ...common,
      account_id: from.account_id,
      direction: 'debit',
      counterparty_account_id: to.account_id,
    });
    expect(credit).toMatchObject({
      ...common,
      account_id: to.account_id,
      direction: 'credit',
      counterparty_account_id: from.account_id,
    });
    expect(await api.all(`/transactions?transfer_id=${transfer_id}`)).toHaveLength(2);
    for (const leg of [debit, credit]) expect(await readTransaction(leg?.transaction_id ?? '')).toEqual(leg);
  });

  it('GET /transfers filters by account_id, from, and to; GET /transfers/:transfer_id returns one', async () => {
    // contract: transactions-17
    const [a, b, c] = [await api.newAccount({ initial_deposit: 10 }), await api.newAccount(), await api.newAccount()];
    const first = await api.transfer(a.account_id, b.account_id, 1);
    const second = await api.transfer(a.account_id, c.account_id, 1);
    const list = async (query: string) => (await api.get(`/transfers?${query}`)).list<RestTransfer>();
    expect(await list(`account_id=${a.account_id}`)).toEqual([second, first]);
    expect(await list(`account_id=${b.account_id}`)).toEqual([first]);
    expect(await list(`account_id=${unknownId('acc')}`)).toEqual([]);
    expect(await list(`account_id=${a.account_id}&from=${second.created_at}`)).toEqual([second]);
    expect(await list(`account_id=${a.account_id}&to=${second.created_at}`)).toEqual([first]);
    expect((await api.get(`/transfers/${first.transfer_id}`)).data()).toEqual(first);
    expectError(await api.get(`/transfers/${unknownId('trf')}`), 404, 'transfer_not_found');
  });
});

describe('Transactions and transfers: refusals', () => {
  it('a refusal on an existing account is stored as a Failed Transaction without entries', async () => {
    // contract: transactions-10
    const { account_id } = await api.newAccount({ initial_deposit: 5 });
    const before = await api.entries(account_id);
    const error = expectError(
      await transact(account_id, 'Withdrawal', 6, { description: 'too much', reference: 'R-9' }),
      400,
      'insufficient_funds',
    );
    const failed = await readTransaction(error.details?.['transaction_id'] ?? '');
    expect(failed).toMatchObject({
      account_id,
      transaction_type: 'Withdrawal',
      amount: 6,
      currency: 'USD',
      description: 'too much',
      reference: 'R-9',
      status: 'Failed',
      failure_code: 'insufficient_funds',
    });
    expect(await readTransactions(account_id, '&status=Failed')).toEqual([failed]);
    expect(await api.entries(account_id)).toEqual(before);
  });

  it('a refused transfer stores one Failed Transaction, on the source account', async () => {
    // contract: transactions-16
    const [from, to] = [await api.newAccount(), await api.newAccount()];
    const error = expectError(await transfer(from.account_id, to.account_id, 6), 400, 'insufficient_funds');
    const failed = await readTransaction(error.details?.['transaction_id'] ?? '');
    expect(failed).toMatchObject({
      account_id: from.account_id,
      transaction_type: 'Transfer',
      direction: 'debit',
      status: 'Failed',
      failure_code: 'insufficient_funds',
    });
    expect(await readTransactions(from.account_id)).toEqual([failed]);
    expect(await readTransactions(to.account_id)).toEqual([]);
  });

  it('a refused transfer is a Transfer with status Failed, in lists and by id; ?status= filters', async () => {
    // contract: transactions-16
    const [from, to] = [await api.newAccount({ initial_deposit: 1 }), await api.newAccount()];
    const { details } = expectError(await transfer(from.account_id, to.account_id, 6), 400, 'insufficient_funds');
    const done = await api.transfer(from.account_id, to.account_id, 1);
    const failed = (await api.get(`/transfers/trf_${details?.['transaction_id']?.slice(4)}`)).data<RestTransfer>();
    expect(failed).toMatchObject({
      from_account_id: from.account_id,
      to_account_id: to.account_id,
      amount: 6,
      status: 'Failed',
      failure_code: 'insufficient_funds',
    });
    const list = async (query: string) =>
      (await api.get(`/transfers?account_id=${from.account_id}${query}`)).list<RestTransfer>();
    expect(await list('')).toEqual([done, failed]);
    expect([await list('&status=Failed'), await list('&status=Completed'), await list('&status=Pending')]).toEqual([
      [failed],
      [done],
      [],
    ]);
    expect((await api.get('/transfers?status=Failed')).list()).toContainEqual(failed);
    expect((await api.get(`/transfers?account_id=${to.account_id}`)).list()).toEqual([done]);
    expectError(await api.get('/transfers?status=failed'), 400, 'validation_failed');
  });

  it('an outcome without an account is returned by id and in no list', async () => {
    // contract: transactions-15
    const { account_id } = await api.newAccount({ initial_deposit: 5 });
    const [unknown, reference] = [unknownId('acc'), newKey()];
    const { details } = expectError(await transact(unknown, 'Deposit', 6, { reference }), 404, 'account_not_found');
    expect(details).toEqual({
      field: 'account_id',
      account_id: unknown,
      transaction_id: expect.stringMatching(/^txn_/),
    });
    expect(await readTransaction(details?.['transaction_id'] ?? '')).toMatchObject({
      account_id: unknown,
      amount: 6,
      currency: null,
      status: 'Failed',
      failure_code: 'account_not_found',
    });
    const moved =
      expectError(await transfer(account_id, unknown, 6), 404, 'account_not_found').details?.['transaction_id'] ?? '';
    expect((await api.get(`/transfers/trf_${moved.slice(4)}`)).data()).toMatchObject({
      from_account_id: account_id,
      to_account_id: unknown,
      status: 'Failed',
      failure_code: 'account_not_found',
    });
    const lists = [
      `/transactions?reference=${reference}`,
      `/transactions?account_id=${unknown}`,
      `/transfers?account_id=${account_id}`,
      `/transactions?account_id=${account_id}&status=Failed`,
    ];
    for (const path of lists) expect((await api.get(path)).list()).toEqual([]);
    for (const path of ['/transactions', '/transfers'])
      expect((await api.get(`${path}?status=Failed&limit=500`)).text).not.toContain('account_not_found');
  });

  it('validation errors are not stored, and outcomes for an unknown account appear in no list', async () => {
    // contract: transactions-13
    const { account_id } = await api.newAccount();
    for (const body of [
      { transaction_type: 'Deposit', amount: 0 },
      { transaction_type: 'Deposit', amount: 1.001, currency: 'USD' },
      { transaction_type: 'Nothing', amount: 1 },
    ]) {
      expect((await api.post('/transactions', { account_id, ...body })).error.details).toBeUndefined();
    }
    await transfer(account_id, unknownId('acc'), 1);
    expect(await readTransactions(account_id)).toEqual([]);
  });

  describe('the first reason in this order is returned: accounts exist; source: type, status, currency, limits, funds; destination', () => {
    const accounts: Record<string, RestAccount> = {};
    const id = (name: string) => accounts[name]?.account_id ?? name;
    beforeAll(async () => {
      const { client_id } = await api.client();
      accounts['frozen loan'] = await api.account(client_id, {
        account_type: 'Loan',
        status: 'Frozen',
        initial_deposit: 10,
      });
      accounts['loan'] = await api.account(client_id, { account_type: 'Loan', initial_deposit: 10 });
      accounts['frozen'] = await api.account(client_id, { status: 'Frozen' });
      accounts['frozen eur'] = await api.account(client_id, { status: 'Frozen', currency: 'EUR' });
      accounts['full'] = await api.account(client_id, { initial_deposit: 9_999_999_999_999.99 });
      accounts['empty'] = await api.account(client_id);
      accounts['rich'] = await api.account(client_id, { initial_deposit: 100 });
      accounts['eur'] = await api.account(client_id, { currency: 'EUR' });
      accounts['eur loan'] = await api.account(client_id, {
        account_type: 'Loan',
        currency: 'EUR',
        initial_deposit: 10,
      });
    });

    it.each([
      ['type before status', 'frozen loan', 'Deposit', 'EUR', 'invalid_account_type'],
      ['type before currency', 'loan', 'Withdrawal', 'EUR', 'invalid_account_type'],
      ['status before currency', 'frozen', 'Deposit', 'EUR', 'inactive_account'],
      ['status before funds', 'frozen', 'Withdrawal', 'USD', 'inactive_account'],
      ['currency before limits', 'full', 'Deposit', 'EUR', 'currency_mismatch'],
      ['currency before funds', 'empty', 'Withdrawal', 'EUR', 'currency_mismatch'],
      ['limits', 'full', 'Deposit', 'USD', 'balance_limit_exceeded'],
      ['funds', 'empty', 'Withdrawal', 'USD', 'insufficient_funds'],
    ])('%s', async (_, account, type, currency, code) => {
      expectError(await transact(id(account), type, 1, { currency }), 400, code);
    });

    it.each([
      ['source exists before type', 'unknown', 'loan', 'account_not_found'],
      ['destination exists before type', 'loan', 'unknown', 'account_not_found'],
      ['destination exists before status', 'frozen', 'unknown', 'account_not_found'],
      ['type before status', 'frozen loan', 'frozen', 'invalid_account_type'],
      ['type before currency', 'loan', 'eur', 'invalid_account_type'],
      ['status of the source before currency', 'frozen', 'eur', 'inactive_account'],
      ['funds of the source before status of the destination', 'empty', 'frozen', 'insufficient_funds'],
      ['funds of the source before currency of the destination', 'empty', 'eur', 'insufficient_funds'],
      ['funds of the source before limits of the destination', 'empty', 'full', 'insufficient_funds'],
      ['funds of the source before what is outstanding', 'empty', 'loan', 'insufficient_funds'],
      ['status of the destination before currency', 'rich', 'frozen eur', 'inactive_account'],
      ['currency of the destination before outstanding', 'rich', 'eur loan', 'currency_mismatch'],
      ['limits of the destination', 'rich', 'full', 'balance_limit_exceeded'],
      ['outstanding', 'rich', 'loan', 'amount_exceeds_outstanding'],
    ])('transfer: %s', async (_, from, to, code) => {
      expectError(await transfer(id(from), id(to), 11), code === 'account_not_found' ? 404 : 400, code);
    });
  });
});

describe('Transactions and transfers: GET /transactions filters', () => {
  it('reference, idempotency_key', async () => {
    // contract: transactions-3, transactions-17
    const { account_id } = await api.newAccount();
    const [reference, key] = [newKey(), newKey()];
    const answer = await api.once(key, '/transactions', {
      account_id,
      transaction_type: 'Deposit',
      amount: 1,
      reference,
    });
    await api.transact(account_id, 'Deposit', 1, { reference: 'other' });
    for (const filter of [`reference=${reference}`, `idempotency_key=${key}`])
      expect((await api.get(`/transactions?${filter}`)).list()).toEqual([answer.body]);
    expect((await api.get(`/transactions?reference=${reference.slice(0, -1)}`)).list()).toEqual([]);
  });

  it('from is inclusive and to exclusive; min_amount and max_amount are inclusive', async () => {
    // contract: transactions-18
    const { account_id } = await api.newAccount();
    const made: RestTransaction[] = [];
    for (const amount of [1, 2.5, 4]) {
      made.unshift(await api.transact(account_id, 'Deposit', amount));
      await new Promise((resolve) => {
        setTimeout(resolve, 5);
      });
    }
    const [third, second, first] = made as [RestTransaction, RestTransaction, RestTransaction];
    const filtered = (filter: string) => readTransactions(account_id, `&${filter}`);
    expect(await filtered(`from=${second.created_at}`)).toEqual([third, second]);
    expect(await filtered(`to=${second.created_at}`)).toEqual([first]);
    expect(await filtered(`from=${second.created_at}&to=${third.created_at}`)).toEqual([second]);
    const offset = `${new Date(Date.parse(second.created_at) + 2 * 3_600_000).toISOString().slice(0, -1)}+02:00`;
    expect(await filtered(`from=${encodeURIComponent(offset)}`)).toEqual([third, second]);
    expect(await filtered('from=2020-01-01&to=2020-01-02')).toEqual([]);
    expect(await filtered('min_amount=2.5')).toEqual([third, second]);
    expect(await filtered('max_amount=2.50')).toEqual([second, first]);
    expect(await filtered('min_amount=2&max_amount=3')).toEqual([second]);
  });

  it.each([
    'from=yesterday',
    'to=2026-13-01',
    'to=1700000000',
    'min_amount=ten',
    'max_amount=-1',
    'status=completed',
    'transaction_type=transfer',
  ])('refuses %s', async (filter) => {
    const answer = await api.get(`/transactions?${filter}`);
    expect(answer.status).toBe(400);
    expect(answer.error.errors?.map(({ field }) => field)).toEqual([filter.split('=')[0]]);
  });
});

describe('Transactions and transfers: Loan', () => {
  it('the balance is the outstanding principal; a Loan Payment lowers it, and both Transactions have that type', async () => {
    // contract: transactions-20, transactions-22
    const [payer, loan] = [
      await api.newAccount({ initial_deposit: 100 }),
      await api.newAccount({ account_type: 'Loan', initial_deposit: 60 }),
    ];
    const { transfer_id } = await api.transfer(payer.account_id, loan.account_id, 25);
    expect([await api.balance(payer.account_id), await api.balance(loan.account_id)]).toEqual([75, 35]);
    const legs = await api.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`);
    expect(legs.map(({ transaction_type, direction, amount }) => [transaction_type, direction, amount])).toEqual([
      ['Loan Payment', 'debit', 25],
      ['Loan Payment', 'debit', 25],
    ]);
  });

  it('Deposit and Withdrawal on a Loan, and a transfer from one, are invalid_account_type', async () => {
    // contract: transactions-21
    const [loan, other] = [await api.newAccount({ account_type: 'Loan', initial_deposit: 60 }), await api.newAccount()];
    for (const type of ['Deposit', 'Withdrawal'])
      expectError(await transact(loan.account_id, type, 1), 400, 'invalid_account_type', /^Invalid Account Type/);
    expectError(await transfer(loan.account_id, other.account_id, 1), 400, 'invalid_account_type');
    expectError(
      await transfer(loan.account_id, (await api.newAccount({ account_type: 'Loan' })).account_id, 1),
      400,
      'invalid_account_type',
    );
  });

  it('more than the outstanding amount is amount_exceeds_outstanding; exactly that amount pays off the loan', async () => {
    // contract: transactions-23
    const [payer, loan] = [
      await api.newAccount({ initial_deposit: 100 }),
      await api.newAccount({ account_type: 'Loan', initial_deposit: 60 }),
    ];
    expectError(await transfer(payer.account_id, loan.account_id, 60.01), 400, 'amount_exceeds_outstanding');
    await api.transfer(payer.account_id, loan.account_id, 60);
    expect(await api.balance(loan.account_id)).toBe(0);
    expectError(await transfer(payer.account_id, loan.account_id, 0.01), 400, 'amount_exceeds_outstanding');
  });
});
