import { describe, expect, it } from 'vitest';
import {
  type Answer,
  expectError,
  newKey,
  newPhone,
  type RestAccount,
  type RestClient,
  type RestKey,
  type RestTransaction,
  type RestTransition,
  retail,
} from '../support/client.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Tests races with two processes of each service, all of which work. After each the books must balance. */
const world = useBank({ gateways: 2, ledgers: 2, accounts: 2, env: { SPREAD_COMMANDS: 'true' } });
const { api } = world;
const either = (index: number) => world.gateway(index % 2);

const withdraw = (account: RestAccount, amount: number) => ({
  account_id: account.account_id,
  transaction_type: 'Withdrawal',
  amount,
});
const deposit = (account: RestAccount, amount: number) => ({
  account_id: account.account_id,
  transaction_type: 'Deposit',
  amount,
});

async function entryCount(account: RestAccount): Promise<number> {
  const [row] = await world.sql<{ n: number }>('select count(*)::int as n from v_entries where account_id = $1', [
    account.account_id,
  ]);
  return row?.n ?? 0;
}

describe('Races for money', () => {
  it('exactly 50 of 100 concurrent withdrawals of 10 from 500 succeed', async () => {
    // asvs: 2.3.4
    const account = await api.newAccount({ initial_deposit: 500 });
    const answers = await together(100, (i) => either(i).post('/transactions', withdraw(account, 10)), 100);
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused).toHaveLength(50);
    for (const answer of refused) expectError(answer, 400, 'insufficient_funds');
    expect(await api.balance(account.account_id)).toBe(0);
    expect(await entryCount(account)).toBe(51);
    expect(await api.all(`/transactions?account_id=${account.account_id}&status=Failed`)).toHaveLength(50);
    await world.expectBooksInOrder();
  });

  it('crossed transfers all succeed, and nothing is lost', async () => {
    const accounts = await together(4, () => api.newAccount({ initial_deposit: 1000 }));
    const id = (i: number) => accounts[i % 4]?.account_id ?? '';
    const answers = await together(
      200,
      (i) =>
        either(i).post('/transfers', {
          from_account_id: id(i),
          to_account_id: id(i + 1 + (i % 3)),
          amount: 1 + (i % 5),
        }),
      200,
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(200).fill(201));
    const balances = await Promise.all(accounts.map(({ account_id }) => api.balance(account_id)));
    expect(balances.reduce((sum, balance) => sum + balance)).toBe(4000);
    await world.expectBooksInOrder();
  });

  it('two accounts that transfer everything to each other are never negative', async () => {
    const [a, b] = [await api.newAccount({ initial_deposit: 10 }), await api.newAccount({ initial_deposit: 10 })];
    const answers = await together(60, (i) =>
      either(i).post('/transfers', {
        from_account_id: (i % 4 < 2 ? a : b).account_id,
        to_account_id: (i % 4 < 2 ? b : a).account_id,
        amount: 7,
      }),
    );
    for (const answer of answers) if (answer.status !== 201) expectError(answer, 400, 'insufficient_funds');
    expect((await api.balance(a.account_id)) + (await api.balance(b.account_id))).toBe(20);
    expect(
      await world.sql('select * from v_entries where account_id = any($1) and balance_after_minor < 0', [
        [a.account_id, b.account_id],
      ]),
    ).toEqual([]);
    await world.expectBooksInOrder();
  });

  it('many payments of one loan never exceed the outstanding amount', async () => {
    const [payer, loan] = [
      await api.newAccount({ initial_deposit: 1000 }),
      await api.newAccount({ account_type: 'Loan', initial_deposit: 100 }),
    ];
    const answers = await together(40, (i) =>
      either(i).post('/transfers', { from_account_id: payer.account_id, to_account_id: loan.account_id, amount: 7 }),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(14);
    for (const answer of answers) if (answer.status !== 201) expectError(answer, 400, 'amount_exceeds_outstanding');
    expect([await api.balance(payer.account_id), await api.balance(loan.account_id)]).toEqual([902, 2]);
    await world.expectBooksInOrder();
  });
});

describe('50 concurrent requests with the same Idempotency-Key: one effect, equal responses', () => {
  async function fiftyTimes(path: string, body: unknown): Promise<Answer> {
    const key = newKey();
    const answers = await together(50, (i) => either(i).once(key, path, body));
    const [first] = answers as [Answer];
    for (const answer of answers)
      expect({ status: answer.status, text: answer.text }).toEqual({ status: first.status, text: first.text });
    expect(answers.filter((answer) => answer.header('idempotent-replayed') === null)).toHaveLength(1);
    return first;
  }

  it('deposit', async () => {
    // contract: idempotency-3
    const account = await api.newAccount();
    expect((await fiftyTimes('/transactions', deposit(account, 3))).status).toBe(201);
    expect([await api.balance(account.account_id), await entryCount(account)]).toEqual([3, 1]);
  });

  it('transfer', async () => {
    const [from, to] = [await api.newAccount({ initial_deposit: 500 }), await api.newAccount()];
    expect(
      (await fiftyTimes('/transfers', { from_account_id: from.account_id, to_account_id: to.account_id, amount: 9 }))
        .status,
    ).toBe(201);
    expect([await api.balance(from.account_id), await api.balance(to.account_id), await entryCount(to)]).toEqual([
      491, 9, 1,
    ]);
  });

  it('open account', async () => {
    const { client_id } = await api.client();
    expect(
      (await fiftyTimes('/accounts', { client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 4 }))
        .status,
    ).toBe(201);
    const [account, ...more] = await api.all<RestAccount>(`/accounts?client_id=${client_id}`);
    expect(more).toEqual([]);
    expect([account?.balance, await entryCount(account as RestAccount)]).toEqual([4, 1]);
  });

  it('create client', async () => {
    const phone = newPhone();
    expect(
      (await fiftyTimes('/clients', { ...retail(), ussd_phone_number: phone, ussd_status: 'active' })).status,
    ).toBe(201);
    expect(await api.all<RestClient>(`/clients?ussd_phone=${encodeURIComponent(phone)}`)).toHaveLength(1);
  });

  it('status change and reversal', async () => {
    const account = await api.newAccount({ initial_deposit: 50 });
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 5);
    expect((await fiftyTimes(`/transactions/${transaction_id}/reversal`, { reason: 'x' })).status).toBe(201);
    expect(await api.balance(account.account_id)).toBe(50);
    expect(
      (await fiftyTimes(`/accounts/${account.account_id}/status-transitions`, { status: 'Inactive' })).status,
    ).toBe(200);
    expect(await api.all(`/accounts/${account.account_id}/status-transitions`)).toHaveLength(1);
  });

  it('capture to another account and release of a hold', async () => {
    const [account, other] = [await api.newAccount({ initial_deposit: 50 }), await api.newAccount()];
    const placed = await fiftyTimes(`/accounts/${account.account_id}/holds`, { amount: 30 });
    const path = `/holds/${placed.data<{ hold_id: string }>().hold_id}`;
    const part = { amount: 10, to_account_id: other.account_id, final: false };
    expect((await fiftyTimes(`${path}/capture`, part)).status).toBe(201);
    expect((await fiftyTimes(`${path}/release`, {})).status).toBe(200);
    expect((await api.get(`/accounts/${account.account_id}`)).data()).toMatchObject({
      balance: 40,
      available_balance: 40,
    });
    expect([await api.balance(other.account_id), await entryCount(account)]).toEqual([10, 2]);
  });

  it('API key: one key, whose secret is in one response', async () => {
    const key = newKey();
    const answers = await together(20, (i) =>
      either(i).once(key, '/admin/api-keys', { name: 'race', scopes: ['clients:read'] }),
    );
    const made = answers.map((answer) => answer.data<RestKey>());
    expect(new Set(made.map(({ key_id }) => key_id)).size).toBe(1);
    const secrets = made.flatMap(({ api_key }) => api_key ?? []);
    expect(secrets).toHaveLength(1);
    expect((await api.withKey(secrets[0] ?? '').get('/clients')).status).toBe(200);
  });

  it('refusal', async () => {
    const account = await api.newAccount();
    const key = newKey();
    const answers = await together(50, (i) => either(i).once(key, '/transactions', withdraw(account, 1)));
    const ids = answers.map((answer) => expectError(answer, 400, 'insufficient_funds').details?.['transaction_id']);
    expect(new Set(ids).size).toBe(1);
    expect(await api.all(`/transactions?account_id=${account.account_id}`)).toHaveLength(1);
  });

  it('with two bodies, one takes effect and the other gets 422', async () => {
    const [account, other] = [await api.newAccount(), await api.newAccount()];
    const key = newKey();
    const bodies = [deposit(account, 5), deposit(account, 6), deposit(other, 5)];
    const answers = await together(60, (i) => either(i).once(key, '/transactions', bodies[i % 3]));
    const done = answers.filter(({ status }) => status === 201);
    expect(new Set(done.map(({ text }) => text)).size).toBe(1);
    for (const answer of answers) if (answer.status !== 201) expectError(answer, 422, 'idempotency_key_reused');
    expect(done).toHaveLength(20);
    expect((await entryCount(account)) + (await entryCount(other))).toBe(1);
    await world.expectBooksInOrder();
  });
});

describe('A freeze against 50 writers', () => {
  it('nothing sent after its response is completed, and nothing is posted after it', async () => {
    // contract: accounts-23
    const [account, other] = [
      await api.newAccount({ initial_deposit: 100_000 }),
      await api.newAccount({ initial_deposit: 100_000 }),
    ];
    let frozenAt = Infinity;
    let isOver = false;
    const booked: { sentAt: number }[] = [];
    const writer = async (index: number) => {
      for (let i = index; !isOver; i++) {
        const sentAt = performance.now();
        const [from, to] = i % 2 === 0 ? [account, other] : [other, account];
        const answer =
          i % 3 === 0
            ? await either(i).post('/transfers', {
                from_account_id: from.account_id,
                to_account_id: to.account_id,
                amount: 1,
              })
            : await either(i).post('/transactions', i % 3 === 1 ? deposit(account, 1) : withdraw(account, 1));
        if (answer.status === 201) booked.push({ sentAt });
        else expectError(answer, 400, 'inactive_account');
      }
    };
    const writers = together(50, writer);
    await eventually(async () => booked.length > 20);
    await world.gateway(1).setStatus(account.account_id, 'Frozen', 'fraud');
    frozenAt = performance.now();
    const entries = await entryCount(account);
    await new Promise((resolve) => {
      setTimeout(resolve, 700);
    });
    isOver = true;
    await writers;
    expect(booked.filter(({ sentAt }) => sentAt > frozenAt)).toEqual([]);
    expect(await entryCount(account)).toBe(entries);
    await world.expectBooksInOrder();
  });

  it('concurrent status changes form one unbroken history, which ends with the current status', async () => {
    // contract: accounts-22
    const account = await api.newAccount();
    const wanted = ['Active', 'Inactive', 'Frozen'];
    const answers = await together(30, (i) =>
      either(i).post(`/accounts/${account.account_id}/status-transitions`, { status: wanted[i % 3], reason: 'other' }),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(200));
    const history = await api.all<RestTransition>(`/accounts/${account.account_id}/status-transitions?order=asc`);
    let status = 'Active';
    for (const { from_status, to_status } of history) {
      expect(from_status).toBe(status);
      expect(to_status).not.toBe(from_status);
      status = to_status;
    }
    for (const gateway of [0, 1]) {
      expect((await either(gateway).get(`/accounts/${account.account_id}`)).data()).toMatchObject({ status });
      expect(
        (await either(gateway).get(`/accounts?client_id=${account.client_id}&status=${status}`)).list(),
      ).toHaveLength(1);
    }
  });
});

describe('Read your writes, across gateways', () => {
  it('what one gateway has confirmed is immediately visible through the other', async () => {
    await together(10, async (i) => {
      const [writer, reader] = [either(i), either(i + 1)];
      const client = await writer.client();
      expect((await reader.get(`/clients/${client.client_id}`)).data()).toEqual(client);
      const account = await writer.account(client.client_id, { initial_deposit: 10 });
      expect((await reader.get(`/accounts/${account.account_id}`)).data()).toEqual(account);
      expect((await reader.get(`/accounts?client_id=${client.client_id}`)).list()).toEqual([account]);
      const transaction = await writer.transact(account.account_id, 'Deposit', 5);
      expect((await reader.get(`/transactions/${transaction.transaction_id}`)).data()).toEqual(transaction);
      const listed = (await reader.get(`/transactions?account_id=${account.account_id}`)).list<RestTransaction>();
      expect(listed[0]).toEqual(transaction);
      expect(await reader.balance(account.account_id)).toBe(15);
      const second = await writer.account(client.client_id);
      const transfer = await reader.transfer(account.account_id, second.account_id, 15);
      expect((await writer.get(`/transfers/${transfer.transfer_id}`)).data()).toEqual(transfer);
      expect([await writer.balance(account.account_id), await writer.balance(second.account_id)]).toEqual([0, 15]);
      expect((await writer.entries(account.account_id)).length).toBe(3);
    });
    await world.expectBooksInOrder();
  });
});
