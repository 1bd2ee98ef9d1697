import { describe, expect, it } from 'vitest';
import { messageType } from '#libs/contracts/messages.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import {
  type Answer,
  corporate,
  expectError,
  newKey,
  newPhone,
  type RestAccount,
  type RestKey,
  type RestTransaction,
  type RestTransfer,
  retail,
  unknownId,
} from '../support/client.ts';
import { again, caughtUp, publish, readTopic } from '../support/kafka.ts';
import { useSharedBank } from '../support/world.ts';

/** Tests the contract of idempotency. Repeats go to the other gateway. */
const world = useSharedBank();
const { api } = world;

/** Asserts that `second` has the outcome of `first`, byte for byte. */
function expectReplay(first: Answer, second: Answer): void {
  expect({ status: second.status, text: second.text }).toEqual({ status: first.status, text: first.text });
  expect(first.header('idempotent-replayed')).toBeNull();
  expect(second.header('idempotent-replayed')).toBe('true');
  expect(second.header('location')).toBe(first.header('location'));
}

/** Sends the same request with one key to both gateways in turn. */
async function twice(path: string, body: unknown, key = newKey()): Promise<[Answer, Answer]> {
  return [await world.gateway(0).once(key, path, body), await world.gateway(1).once(key, path, body)];
}

const deposit = (account: RestAccount, amount = 5, rest: object = {}) => ({
  account_id: account.account_id,
  transaction_type: 'Deposit',
  amount,
  ...rest,
});

describe('Idempotency: a repeat gets the same status and body', () => {
  it('POST /transactions', async () => {
    // contract: idempotency-2
    const account = await api.newAccount();
    const [first, second] = await twice('/transactions', deposit(account));
    expect(first.status).toBe(201);
    expectReplay(first, second);
    expect(await api.balance(account.account_id)).toBe(5);
  });

  it('POST /transfers', async () => {
    const [from, to] = [await api.newAccount({ initial_deposit: 10 }), await api.newAccount()];
    expectReplay(
      ...(await twice('/transfers', { from_account_id: from.account_id, to_account_id: to.account_id, amount: 10 })),
    );
    expect([await api.balance(from.account_id), await api.balance(to.account_id)]).toEqual([0, 10]);
  });

  it('POST /clients and POST /accounts', async () => {
    // contract: idempotency-2
    const [first, second] = await twice('/clients', {
      ...retail(),
      ussd_phone_number: newPhone(),
      ussd_status: 'active',
    });
    expectReplay(first, second);
    const { client_id } = first.data<{ client_id: string }>();
    expectReplay(
      ...(await twice('/accounts', { client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 7 })),
    );
    expect((await api.get(`/accounts?client_id=${client_id}`)).list()).toEqual([
      expect.objectContaining({ balance: 7 }),
    ]);
  });

  it('replies whose resource changes later are stored: an account whose status changed since', async () => {
    // contract: idempotency-10
    const { client_id } = await api.client();
    const key = newKey();
    const body = { client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 7 };
    const first = await api.once(key, '/accounts', body);
    const account = first.data<RestAccount>();
    await api.transact(account.account_id, 'Deposit', 1);
    await api.setStatus(account.account_id, 'Frozen', 'legal');
    expectReplay(first, await world.gateway(1).once(key, '/accounts', body));
  });

  it('status transitions add one history row', async () => {
    const account = await api.newAccount();
    const path = `/accounts/${account.account_id}/status-transitions`;
    const key = newKey();
    const first = await api.once(key, path, { status: 'Frozen', reason: 'fraud' });
    await api.setStatus(account.account_id, 'Active');
    expectReplay(first, await world.gateway(1).once(key, path, { status: 'Frozen', reason: 'fraud' }));
    expect((await api.get(path)).list()).toHaveLength(2);
    expect((await api.get(`/accounts/${account.account_id}`)).data()).toMatchObject({ status: 'Active' });
  });

  it('POST /admin/api-keys returns the same body without api_key', async () => {
    // contract: idempotency-11
    const [first, second] = await twice('/admin/api-keys', { name: 'twice', scopes: ['clients:read'] });
    const { api_key, ...rest } = first.data<RestKey>();
    expect(api_key).toMatch(/^cbk_live_/);
    expect(second.status).toBe(201);
    expect(second.data()).toEqual(rest);
    expect(second.header('idempotent-replayed')).toBe('true');
    expect(
      (
        await world
          .gateway(1)
          .withKey(api_key ?? '')
          .get('/clients')
      ).status,
    ).toBe(200);
  });

  it('a Transaction is rebuilt from its immutable columns: one that was reversed since is returned unchanged', async () => {
    // contract: idempotency-10
    const account = await api.newAccount();
    const key = newKey();
    const first = await api.once(key, '/transactions', deposit(account));
    await api.post(`/transactions/${(first.body as RestTransaction).transaction_id}/reversal`, { reason: 'x' });
    await api.setStatus(account.account_id, 'Frozen', 'legal');
    expectReplay(first, await world.gateway(1).once(key, '/transactions', deposit(account)));
    expect(await api.balance(account.account_id)).toBe(0);
  });

  it('refusals are returned again', async () => {
    // contract: idempotency-6
    const account = await api.newAccount();
    const key = newKey();
    const body = { account_id: account.account_id, transaction_type: 'Withdrawal', amount: 5 };
    const first = await api.once(key, '/transactions', body);
    expectError(first, 400, 'insufficient_funds');
    await api.transact(account.account_id, 'Deposit', 100);
    const second = await world.gateway(1).once(key, '/transactions', body);
    const { request_id: _, ...kept } = first.error;
    expect(second.error).toMatchObject(kept);
    expect(second.status).toBe(400);
    expect(second.header('idempotent-replayed')).toBe('true');
    expect(await api.balance(account.account_id)).toBe(100);
    expect((await api.get(`/transactions?account_id=${account.account_id}&status=Failed`)).list()).toHaveLength(1);
  });

  it('refusals of transfers and clients are returned again', async () => {
    const [from, to] = [await api.newAccount(), await api.newAccount()];
    const [, again] = await twice('/transfers', {
      from_account_id: from.account_id,
      to_account_id: to.account_id,
      amount: 10,
    });
    expectError(again, 400, 'insufficient_funds');
    const phone = newPhone();
    const holder = await api.client({ ussd_phone_number: phone, ussd_status: 'active' });
    const key = newKey();
    const body = { ...retail(), ussd_phone_number: phone, ussd_status: 'active' };
    expectError(await api.once(key, '/clients', body), 400, 'duplicate_ussd_phone');
    await api.patch(`/clients/${holder.client_id}`, { ussd_status: 'inactive' });
    expectError(await world.gateway(1).once(key, '/clients', body), 400, 'duplicate_ussd_phone');
  });

  it('without a key, equal bodies are different requests', async () => {
    // contract: idempotency-9
    const account = await api.newAccount();
    const ids = [
      await api.transact(account.account_id, 'Deposit', 5),
      await api.transact(account.account_id, 'Deposit', 5),
    ].map(({ transaction_id }) => transaction_id);
    expect(new Set(ids).size).toBe(2);
    expect(await api.balance(account.account_id)).toBe(10);
  });
});

/** Expects that another gateway returns the same refusal again, and that another body with the same key is refused. */
async function expectKept(
  path: string,
  body: object,
  other: object,
  code: string,
  caller = (index: number) => world.gateway(index),
): Promise<void> {
  const key = newKey();
  const [first, second] = [await caller(0).once(key, path, body), await caller(1).once(key, path, body)];
  const { request_id: _, ...error } = expectError(first, 404, code);
  expect([second.status, second.error]).toMatchObject([404, error]);
  expect([first.header('idempotent-replayed'), second.header('idempotent-replayed')]).toEqual([null, 'true']);
  expectError(await caller(0).once(key, path, other), 422, 'idempotency_key_reused');
}

describe('Idempotency: a 404 from a service is stored', () => {
  it('for a transaction, and for both accounts of a transfer', async () => {
    // contract: idempotency-6
    const account = await api.newAccount({ initial_deposit: 1 });
    await expectKept(
      '/transactions',
      { ...deposit(account), account_id: unknownId('acc') },
      deposit(account),
      'account_not_found',
    );
    const transfer = {
      from_account_id: account.account_id,
      to_account_id: (await api.newAccount()).account_id,
      amount: 1,
    };
    await expectKept('/transfers', { ...transfer, to_account_id: unknownId('acc') }, transfer, 'account_not_found');
    await expectKept('/transfers', { ...transfer, from_account_id: unknownId('acc') }, transfer, 'account_not_found');
    expect(await api.balance(account.account_id)).toBe(1);
  });

  it('for an account of an unknown client', async () => {
    const opening = { client_id: (await api.client()).client_id, account_type: 'Savings', currency: 'USD' };
    await expectKept('/accounts', { ...opening, client_id: unknownId('cli') }, opening, 'client_not_found');
    await expectKept(
      '/admin/api-keys',
      { name: 'x', scopes: ['clients:read'], client_id: unknownId('cli') },
      { name: 'x', scopes: ['clients:read'] },
      'client_not_found',
    );
  });

  it('for a reversal and a status transition', async () => {
    await expectKept(
      `/transactions/${unknownId('txn')}/reversal`,
      { reason: 'x' },
      { reason: 'y' },
      'transaction_not_found',
    );
    await expectKept(
      `/accounts/${unknownId('acc')}/status-transitions`,
      { status: 'Inactive' },
      { status: 'Active' },
      'account_not_found',
    );
  });

  it('for an account of another client: under the key of the caller, who alone can read it', async () => {
    const [own, foreign] = [await api.newAccount(), await api.newAccount({ initial_deposit: 100 })];
    const bound = api.withKey(
      (await api.key({ scopes: ['transactions:read', 'transfers:write'], client_id: own.client_id })).api_key,
    );
    const owner = api.withKey((await api.key({ scopes: ['transactions:read'], client_id: foreign.client_id })).api_key);
    const key = newKey();
    const body = { from_account_id: foreign.account_id, to_account_id: own.account_id, amount: 1 };
    const { details } = expectError(await bound.once(key, '/transfers', body), 404, 'account_not_found');
    expect((await bound.once(key, '/transfers', body)).header('idempotent-replayed')).toBe('true');
    const id = details?.['transaction_id'] ?? '';
    const shown = { ...body, amount: 1, currency: null, status: 'Failed', failure_code: 'account_not_found' };
    for (const caller of [bound, api])
      expect((await caller.get(`/transfers/trf_${id.slice(4)}`)).data()).toMatchObject(shown);
    for (const path of ['/transactions', '/transfers']) {
      for (const caller of [bound, owner]) expect((await caller.get(path)).text).not.toContain('account_not_found');
      expect((await api.get(`${path}?account_id=${foreign.account_id}`)).text).not.toContain('account_not_found');
    }
    expect(await api.balance(foreign.account_id)).toBe(100);
  });

  it('a message that is delivered again after the account was opened moves no money', async () => {
    // contract: transactions-14
    const account = await api.newAccount();
    const topic = topicName(world.bank.topic_prefix, 'ledger.commands');
    const account_id = unknownId('acc');
    expectError(
      await api.post('/transactions', { account_id, transaction_type: 'Deposit', amount: 60 }),
      404,
      'account_not_found',
    );
    const message = (await readTopic(world.bank, 'ledger.commands')).findLast(
      ({ key }) => key === account_id,
    ) as ReceivedMessage;
    // Opens an account with a known id, as the saga would.
    const data = {
      account_id,
      client_id: account.client_id,
      account_number: `SAV-${account_id.slice(-10)}`,
      account_type: 'Savings',
      currency: 'USD',
      status: 'Active',
      initial_deposit: '0',
    };
    const headers = {
      ...message.headers,
      ce_id: account_id,
      ce_type: messageType('open_ledger_account'),
      fingerprint: unknownId('acc').slice(4),
    };
    const opening = { topic, partition: message.partition, key: account_id, value: JSON.stringify(data), headers };
    await publish(world.bank, [opening, again(message)]);
    await caughtUp(world.bank, 'ledger');
    const [row] = await world.sql<{ balance_minor: bigint }>(
      'select balance_minor from v_accounts where account_id = $1',
      [account_id],
    );
    expect(row).toEqual({ balance_minor: 0n });
  });
});

describe('Idempotency: responses that are not stored', () => {
  it('after validation errors, 401, and a 404 of the gateway, the same key can be used for a correct request', async () => {
    // contract: idempotency-7
    const account = await api.newAccount();
    const key = newKey();
    expectError(await api.once(key, '/transactions', deposit(account, 0)), 400, 'invalid_amount');
    expectError(
      await api.once(key, '/transactions', { ...deposit(account), account_id: 'acc_malformed' }),
      404,
      'account_not_found',
    );
    expectError(
      await api.with({ 'x-api-key': 'x' }).once(key, '/transactions', deposit(account)),
      401,
      'invalid_credentials',
    );
    const answer = await api.once(key, '/transactions', deposit(account));
    expect(answer.status).toBe(201);
    expect(answer.header('idempotent-replayed')).toBeNull();
  });

  it('the same is possible after a validation error for an API key', async () => {
    const key = newKey();
    const body = { name: 'x', scopes: ['clients:read'] };
    expectError(
      await api.once(key, '/admin/api-keys', { ...body, expires_at: '2020-01-01T00:00:00Z' }),
      400,
      'validation_failed',
    );
    expect((await api.once(key, '/admin/api-keys', body)).status).toBe(201);
  });
});

describe('Idempotency: 422 idempotency_key_reused', () => {
  it('for the same key with another body', async () => {
    // contract: idempotency-5
    const [account, other] = [await api.newAccount(), await api.newAccount()];
    const key = newKey();
    const body = deposit(account, 5, { description: 'one' });
    const first = await api.once(key, '/transactions', body);
    for (const changes of [
      { amount: 6 },
      { description: 'two' },
      { reference: 'R' },
      { transaction_type: 'Withdrawal' },
      { account_id: other.account_id },
      { currency: 'USD' },
    ]) {
      expectError(
        await world.gateway(1).once(key, '/transactions', { ...body, ...changes }),
        422,
        'idempotency_key_reused',
      );
    }
    expectReplay(first, await world.gateway(1).once(key, '/transactions', body));
    expect([await api.balance(account.account_id), await api.balance(other.account_id)]).toEqual([5, 0]);
  });

  it('for another source or destination of a transfer, another client, account, key, or path parameter', async () => {
    // contract: idempotency-5
    const [a, b, c] = [
      await api.newAccount({ initial_deposit: 10 }),
      await api.newAccount({ initial_deposit: 10 }),
      await api.newAccount(),
    ];
    const key = newKey();
    const body = { from_account_id: a.account_id, to_account_id: b.account_id, amount: 1 };
    await api.once(key, '/transfers', body);
    for (const changes of [{ to_account_id: c.account_id }, { from_account_id: c.account_id }, { amount: 2 }])
      expectError(await api.once(key, '/transfers', { ...body, ...changes }), 422, 'idempotency_key_reused');
    await api.once(key, '/clients', retail());
    expectError(await api.once(key, '/clients', corporate()), 422, 'idempotency_key_reused');
    const opening = { client_id: a.client_id, account_type: 'Savings', currency: 'USD' };
    await api.once(key, '/accounts', opening);
    expectError(await api.once(key, '/accounts', { ...opening, initial_deposit: 5 }), 422, 'idempotency_key_reused');
    await api.once(key, '/admin/api-keys', { name: 'a', scopes: ['clients:read'] });
    expectError(
      await api.once(key, '/admin/api-keys', { name: 'b', scopes: ['clients:read'] }),
      422,
      'idempotency_key_reused',
    );
    await api.once(key, `/accounts/${a.account_id}/status-transitions`, { status: 'Inactive' });
    expectError(
      await api.once(key, `/accounts/${b.account_id}/status-transitions`, { status: 'Inactive' }),
      422,
      'idempotency_key_reused',
    );
  });
});

describe('Idempotency: the fingerprint of the normalized body', () => {
  it('ignores number formats (10.0 = 10.00 = 1e1), key order, and blanks, and normalizes phone numbers', async () => {
    // contract: idempotency-5
    const account = await api.newAccount();
    const key = newKey();
    const send = (raw: string) => api.send('POST', '/transactions', { raw, headers: { 'idempotency-key': key } });
    const first = await send(
      `{"account_id":"${account.account_id}","transaction_type":"Deposit","amount":10.0,"description":"a"}`,
    );
    expectReplay(
      first,
      await send(
        `{"account_id":"${account.account_id}","transaction_type":"Deposit","amount":10.00,"description":"a"}`,
      ),
    );
    expectReplay(
      first,
      await send(
        `{ "description":" a ", "amount":1e1, "transaction_type":"Deposit",\n"account_id":"${account.account_id}" }`,
      ),
    );
    const phones = newKey();
    const client = await api.once(phones, '/clients', { ...retail(), contact_number: '+254 700 000 009' });
    expectReplay(client, await api.once(phones, '/clients', { ...retail(), contact_number: '00254-700-000-009' }));
  });
});

describe('Idempotency: keys are scoped to caller and route', () => {
  it('two callers can use the same key', async () => {
    // contract: idempotency-4
    const account = await api.newAccount();
    const key = newKey();
    const callers = [
      api,
      api.withKey((await api.key({ scopes: ['transactions:write'] })).api_key),
      api.withToken(await world.bank.token()),
    ];
    const ids = await Promise.all(
      callers.map(
        async (caller) =>
          ((await caller.once(key, '/transactions', deposit(account))).body as RestTransaction).transaction_id,
      ),
    );
    expect(new Set(ids).size).toBe(3);
    expect(await api.balance(account.account_id)).toBe(15);
  });

  it('a JWT caller is iss + sub: a new token is the same caller', async () => {
    // contract: idempotency-4
    const account = await api.newAccount();
    const key = newKey();
    const caller = async () => api.withToken(await world.bank.token());
    expectReplay(
      await (await caller()).once(key, '/transactions', deposit(account)),
      await (await caller()).once(key, '/transactions', deposit(account)),
    );
  });

  it('an API key’s caller is its family: the rotated key is the same caller', async () => {
    // contract: idempotency-4
    const account = await api.newAccount();
    const made = await api.key({ scopes: ['transactions:write'] });
    const key = newKey();
    const first = await api.withKey(made.api_key).once(key, '/transactions', deposit(account));
    const rotated = (await api.post(`/admin/api-keys/${made.key_id}/rotation`)).data<RestKey>();
    expectReplay(first, await api.withKey(rotated.api_key ?? '').once(key, '/transactions', deposit(account)));
  });

  it('two routes can use the same key', async () => {
    // contract: idempotency-4
    const [from, to] = [await api.newAccount({ initial_deposit: 10 }), await api.newAccount()];
    const key = newKey();
    const answers = [
      await api.once(key, '/transactions', deposit(from)),
      await api.once(key, '/transfers', { from_account_id: from.account_id, to_account_id: to.account_id, amount: 1 }),
      await api.once(key, '/clients', retail()),
      await api.once(key, '/accounts', { client_id: from.client_id, account_type: 'Savings', currency: 'USD' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(answers[1]?.data<RestTransfer>().transfer_id.slice(4)).not.toBe(
      (answers[0]?.body as RestTransaction).transaction_id.slice(4),
    );
  });
});

describe('Idempotency-Key: 1-255 printable ASCII', () => {
  it.each([' ', 'x'.repeat(256), 'tab\there', 'umlaut-\u00fc'])('refuses %j', async (key) => {
    // contract: idempotency-1
    const account = await api.newAccount();
    const answer = await api.once(key, '/transactions', deposit(account));
    if (key === ' ') expect([201, 400]).toContain(answer.status);
    else expectError(answer, 400, 'validation_failed');
  });

  it('accepts 255 characters, blanks, and punctuation', async () => {
    // contract: idempotency-1
    const account = await api.newAccount();
    for (const key of ['x'.repeat(255), 'a b~!"#$%&\'()*+,-./:;<=>?@[]^_`{|}'])
      expectReplay(...(await twice('/transactions', deposit(account), key)));
  });
});
