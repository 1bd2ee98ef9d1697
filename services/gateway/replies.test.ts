import { afterEach, describe, expect, test } from 'vitest';
import { bucketOf, bucketOfId } from '#libs/contracts/ids.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import { ids, ok, refused, samples, testApp } from './test-app.ts';
import type { Service } from './test-app.ts';

let close: () => Promise<void>;
afterEach(() => close());

async function start(service: Service) {
  const made = await testApp(service);
  close = () => made.app.close();
  const key = made.keyHeader();
  const call = async (method: 'GET' | 'POST' | 'PATCH', url: string, body?: unknown, headers: Record<string, string> = {}) => {
    const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const response = await made.app.inject({ method, url, headers: { ...key, ...(payload === undefined ? {} : { 'content-type': 'application/json' }), ...headers }, payload });
    return { status: response.statusCode, body: response.json(), headers: response.headers };
  };
  return { ...made, call };
}

const deposit = { account_id: ids.account, transaction_type: 'Deposit', amount: 25 };
const transfer = { from_account_id: ids.account, to_account_id: ids.other, amount: 5 };

describe('commands', () => {
  test('a transaction is answered bare, with its Location, money as numbers', async () => {
    const { call, sent } = await start(() => ok(samples.transaction));
    const { status, body, headers } = await call('POST', '/transactions', '{"account_id":"' + ids.account + '","transaction_type":"Deposit","amount":2.50e1}');
    expect([status, body]).toEqual([201, { ...samples.transaction, amount: 25 }]);
    const [message] = sent;
    const data = JSON.parse(String(message?.value));
    expect(data).toEqual({ transaction_id: expect.stringMatching(/^txn_[0-9a-f]{32}$/), account_id: ids.account, transaction_type: 'Deposit', amount: '25', currency: null, description: null, reference: null });
    expect(headers.location).toBe(`/transactions/${data.transaction_id}`);
    expect(bucketOfId(data.transaction_id)).toBe(bucketOf(ids.account));
    expect(message).toMatchObject({ topic: 'test.ledger.commands', key: ids.account, partition: commandPartition(bucketOf(ids.account)) });
    const { ce_id, ce_type, actor, ce_time = '', deadline = '', ...more } = message?.headers ?? {};
    expect({ ce_id, ce_type }).toEqual({ ce_id: data.transaction_id, ce_type: 'corebanking.command.create_transaction.v1' });
    expect(actor).toMatch(/^key:key_/);
    expect([Date.parse(deadline) - Date.parse(ce_time), Date.parse(more['reply-by'] ?? '') - Date.parse(ce_time)]).toEqual([30_000, 5_000]);
    expect([more['idempotency-key'], more['fingerprint']]).toEqual([undefined, undefined]);
  });

  test('with an Idempotency-Key every repeat is the same command, and another body another fingerprint', async () => {
    const { call, sent, keyHeader } = await start(() => ok(samples.transaction));
    const key = { 'idempotency-key': 'k 1' };
    await call('POST', '/transactions', deposit, key);
    await call('POST', '/transactions', `{"amount":25.00,"transaction_type":"Deposit","description":null,"account_id":"${ids.account}"}`, key);
    await call('POST', '/transactions', { ...deposit, amount: 26 }, key);
    await call('POST', '/transactions', deposit, { 'idempotency-key': 'k 2' });
    await call('POST', '/transactions', deposit, { ...key, ...keyHeader() });
    const [first, second, third, otherKey, otherCaller] = sent.map(({ headers }) => headers);
    expect(second?.['ce_id']).toBe(first?.['ce_id']);
    expect(second?.['fingerprint']).toBe(first?.['fingerprint']);
    expect(third?.['ce_id']).toBe(first?.['ce_id']);
    expect(third?.['fingerprint']).not.toBe(first?.['fingerprint']);
    expect(new Set([first, otherKey, otherCaller].map((headers) => headers?.['ce_id'])).size).toBe(3);
    expect(first?.['idempotency-key']).toBe('k 1');
  });

  test.each(['', 'x'.repeat(256), 'é', 'a\tb'])('the Idempotency-Key "%s" is refused', async (value) => {
    const { call, sent } = await start(() => ok(samples.transaction));
    const { status, body } = await call('POST', '/transactions', deposit, { 'idempotency-key': value });
    expect([status, body.errors[0].field, sent.length]).toEqual([400, 'Idempotency-Key', 0]);
  });

  test('Idempotent-Replayed is said only to who sent a key', async () => {
    const { call } = await start(() => ({ ok: true, replayed: true, data: samples.transaction }));
    expect((await call('POST', '/transactions', deposit, { 'idempotency-key': 'k' })).headers['idempotent-replayed']).toBe('true');
    expect((await call('POST', '/transactions', deposit)).headers['idempotent-replayed']).toBeUndefined();
  });

  test('a refusal is answered with the status of its code, its details, and the replay mark', async () => {
    const { call } = await start(() => ({ ...refused('insufficient_funds', 'too little', { transaction_id: ids.transaction }), replayed: true }));
    const { status, body, headers } = await call('POST', '/transactions', deposit, { 'idempotency-key': 'k', 'x-request-id': 'r' });
    expect([status, body]).toEqual([400, { status: 'error', message: 'Insufficient Funds: too little', code: 'insufficient_funds', request_id: 'r', details: { transaction_id: ids.transaction } }]);
    expect(headers['idempotent-replayed']).toBe('true');
  });

  test('malformed account ids are unknown accounts, named', async () => {
    const { call, sent } = await start(() => ok(samples.transfer));
    expect((await call('POST', '/transactions', { ...deposit, account_id: 'nope' })).body).toMatchObject({ code: 'account_not_found', message: 'account nope not found' });
    expect((await call('POST', '/transfers', { ...transfer, to_account_id: 'there' })).body).toMatchObject({ code: 'account_not_found', message: 'account there not found' });
    expect((await call('POST', '/accounts', { client_id: 'me', account_type: 'Savings', currency: 'USD' })).body).toMatchObject({ code: 'client_not_found' });
    expect(sent).toEqual([]);
  });

  test('no reply in time: 202 Pending for transactions and transfers, and then GET never answers 404', async () => {
    let stage: 'no_reply' | 'not_found' = 'no_reply';
    const { call } = await start(({ name }) => (stage === 'not_found' && name.startsWith('get_') ? refused('transaction_not_found') : 'no_reply'));
    const posted = await call('POST', '/transactions', { ...deposit, currency: 'USD' });
    expect([posted.status, posted.body.status, posted.body.amount, posted.headers['retry-after']]).toEqual([202, 'Pending', 25, '1']);
    expect(posted.headers.location).toBe(`/transactions/${posted.body.transaction_id}`);
    const moved = await call('POST', '/transfers', transfer);
    expect([moved.status, moved.body.status, moved.body.data.status, moved.headers.location]).toEqual([202, 'success', 'Pending', `/transfers/${moved.body.data.transfer_id}`]);
    const silent = await call('GET', posted.headers.location ?? '');
    expect([silent.status, silent.body.data]).toEqual([200, posted.body]);
    stage = 'not_found';
    expect((await call('GET', posted.headers.location ?? '')).body.data.status).toBe('Pending');
    expect((await call('GET', `/transactions/${ids.transaction}`)).status).toBe(404);
  });

  test('another gateway than the one that answered 202 says 503 while it cannot know', async () => {
    const { call } = await start(({ name, topic }) => (name === 'get_transaction' && topic.endsWith('queries') ? refused('transaction_not_found') : 'no_reply'));
    expect((await call('GET', `/transactions/${ids.transaction}`)).status).toBe(503);
  });

  test.each([
    ['not_sent', 503, 503, 503],
    ['unacknowledged', 504, 504, 504],
    ['no_reply', 202, 504, 504],
    ['malformed', 504, 504, 504],
  ] as const)('%s: what is answered follows from what is known', async (stage, money, client, reversal) => {
    const { call } = await start(() => stage);
    expect((await call('POST', '/transactions', deposit)).status).toBe(money);
    expect((await call('POST', '/transfers', transfer)).status).toBe(money);
    const created = await call('POST', '/clients', { client_type: 'Corporate', company_name: 'x', registration_number: 'y', email: 'a@b.cc', contact_number: '+254700000001' });
    expect(created.status).toBe(client);
    if (client === 504) expect(created.body).toMatchObject({ code: 'outcome_unknown', details: { client_id: expect.stringMatching(/^cli_/) } });
    else expect(created.headers['retry-after']).toBe('1');
    expect((await call('POST', `/transactions/${ids.transaction}/reversal`, { reason: 'x' })).status).toBe(reversal);
    expect((await call('PATCH', `/clients/${ids.client}`, { address: 'x' })).status).toBe(client);
    expect((await call('GET', `/clients/${ids.client}`)).status).toBe(503);
  });
});

describe('reads', () => {
  test('an account is made of both halves, asked at the same time; status and balance are the ledger\'s', async () => {
    const { call, sent } = await start(({ name }) => ok(name === 'get_account' ? samples.master : [samples.ledger]));
    const { body } = await call('GET', `/accounts/${ids.account}`);
    expect(body.data).toEqual({ ...samples.master, status: 'Frozen', balance: 10.5 });
    expect(sent.map(({ topic }) => topic).sort()).toEqual(['test.accounts.queries', 'test.ledger.queries']);
  });

  test('no balance, no account: 503 for one and for the whole list; 404 wins', async () => {
    let ledger: ReturnType<Service> = ok([]);
    const { call } = await start(({ name }) =>
      name === 'get_account' ? ok(samples.master) : name === 'list_accounts' ? ok({ items: [samples.master, { ...samples.master, account_id: ids.other }] }) : ledger);
    expect((await call('GET', `/accounts/${ids.account}`)).status).toBe(503);
    ledger = ok([samples.ledger]);
    expect((await call('GET', '/accounts')).body.code).toBe('service_unavailable');
    ledger = 'no_reply';
    expect((await call('GET', '/accounts')).status).toBe(503);
    ledger = ok([{ ...samples.ledger, account_id: ids.other }, samples.ledger]);
    expect((await call('GET', '/accounts')).body.data.map(({ account_id }: { account_id: string }) => account_id)).toEqual([ids.account, ids.other]);
  });

  test('an unknown account is 404 whatever the ledger says; an empty page asks for no balances', async () => {
    const { call, sent } = await start(({ name }) => (name === 'get_account' ? refused('account_not_found', 'account x not found') : name === 'list_accounts' ? ok({ items: [] }) : 'no_reply'));
    expect((await call('GET', `/accounts/${ids.account}`)).status).toBe(404);
    sent.length = 0;
    expect((await call('GET', '/accounts')).body).toEqual({ status: 'success', data: [] });
    expect(sent).toHaveLength(1);
  });

  test.each([
    ['no_reply', 500], ['not_sent', 500], ['unacknowledged', 500], ['malformed', 500], [refused('service_unavailable'), 500], [refused('internal_error'), 500],
  ] as const)('a balance that cannot be fetched is 500 (%#)', async (answer, status) => {
    const { call } = await start(() => answer);
    const response = await call('GET', '/accounts/number/SAV-1234567897/balance');
    expect([response.status, response.body.message]).toEqual([status, 'An error occurred while fetching the balance']);
  });

  test('a balance by number, and the number that is not there', async () => {
    const balance = { account_id: ids.account, account_number: 'SAV-1', balance: '10.50', currency: 'USD' };
    let answer: ReturnType<Service> = ok(balance);
    const { call } = await start(() => answer);
    expect((await call('GET', '/accounts/number/SAV-1/balance')).body).toEqual({ status: 'success', data: { ...balance, balance: 10.5 } });
    answer = refused('account_not_found', 'whatever');
    expect((await call('GET', '/accounts/number/SAV-1/balance')).body).toMatchObject({ status: 'error', code: 'account_not_found', message: 'account number SAV-1 not found' });
  });

  test('what the ledger does not know is asked once more behind the commands of its bucket', async () => {
    const { call, sent } = await start(({ topic }) => (topic.endsWith('.commands') ? ok(samples.transfer) : refused('transfer_not_found')));
    const { status, body } = await call('GET', `/transfers/${ids.transfer}`);
    expect([status, body.data.amount]).toEqual([200, 5]);
    expect(sent.map(({ topic, partition }) => [topic, partition])[1]).toEqual(['test.ledger.commands', commandPartition(bucketOfId(ids.transfer))]);
  });

  test('pages: the Link names the next one, its cursor goes only there', async () => {
    const next = { at: samples.transaction.created_at, id: ids.transaction };
    const { call, sent } = await start(() => ok({ items: [samples.transaction], next }));
    const url = `/transactions?account_id=${ids.account}&from=2026-01-01T00:00:00%2B02:00&min_amount=1.50&limit=1`;
    const first = await call('GET', url);
    expect(first.body.data[0].amount).toBe(25);
    const link = /^<([^>]+)>; rel="next"$/.exec(String(first.headers.link))?.[1] ?? '';
    expect(link.startsWith('/transactions?account_id=')).toBe(true);
    expect((await call('GET', link)).status).toBe(200);
    expect(JSON.parse(String(sent[1]?.value))).toEqual({ account_id: ids.account, from: '2025-12-31T22:00:00.000Z', min_amount: '1.5', limit: 1, order: 'desc', after: next });
    expect((await call('GET', link.replace('limit=1', 'limit=7'))).status).toBe(200);
    const cursor = new URL(link, 'http://x').searchParams.get('cursor');
    for (const other of [`/transactions?cursor=${cursor}`, `/accounts?cursor=${cursor}`, `${link}&order=asc`, `/transactions?cursor=x`, '/transactions?cursor=']) {
      expect((await call('GET', other)).body.code).toBe('invalid_cursor');
    }
  });

  test('the path is part of a cursor\'s list', async () => {
    const { call } = await start(() => ok({ items: [], next: { at: 'x', id: '1' } }));
    const { headers } = await call('GET', `/accounts/${ids.account}/entries`);
    const link = /^<([^>]+)>/.exec(String(headers.link))?.[1] ?? '';
    expect((await call('GET', link)).status).toBe(200);
    expect((await call('GET', link.replace(ids.account, ids.other))).body.code).toBe('invalid_cursor');
  });
});

describe('callers bound to one client', () => {
  const bound = { client_id: ids.client };

  test('their messages say so; they create no clients and do not see the whole bank', async () => {
    const { call, sent, keyHeader } = await start(() => ok(samples.transaction));
    const headers = keyHeader(bound);
    await call('POST', '/transactions', deposit, headers);
    expect(sent[0]?.headers['bound-client-id']).toBe(ids.client);
    const client = { client_type: 'Corporate', company_name: 'x', registration_number: 'y', email: 'a@b.cc', contact_number: '+254700000001' };
    for (const [method, url, body] of [['POST', '/clients', client], ['GET', '/admin/trial-balance', undefined], ['GET', '/admin/system-accounts', undefined]] as const) {
      expect((await call(method, url, body, headers)).status).toBe(403);
    }
  });

  test('a Pending answer is shown to the same binding and to unbound callers, not to another one', async () => {
    const { call, keyHeader } = await start(() => 'no_reply');
    const mine = keyHeader(bound);
    const { headers } = await call('POST', '/transactions', deposit, mine);
    expect((await call('GET', headers.location ?? '', undefined, mine)).status).toBe(200);
    expect((await call('GET', headers.location ?? '')).status).toBe(200);
    expect((await call('GET', headers.location ?? '', undefined, keyHeader({ client_id: `cli_${'f'.repeat(32)}` }))).status).toBe(503);
  });
});

describe('API keys', () => {
  test('the secret is shown once; only its hash travels; the answer waits for this gateway to know the key', async () => {
    const { call, sent, takeKey, app } = await start(({ data }) => {
      const { key_id, secret_hash } = data as { key_id: string; secret_hash: string };
      setTimeout(() => takeKey({ key_id, secret_hash, scopes: ['accounts:read'] }), 30);
      return ok({ ...samples.key, key_id });
    });
    const { status, body, headers } = await call('POST', '/admin/api-keys', { name: 'x', scopes: ['accounts:read', 'accounts:read'], environment: 'test' });
    expect([status, headers.location]).toEqual([201, `/admin/api-keys/${body.data.key_id}`]);
    expect(body.data.api_key).toMatch(new RegExp(`^cbk_test_${body.data.key_id.slice(4)}_[0-9A-Za-z]{49}$`));
    expect(String(sent[0]?.value)).not.toContain(body.data.api_key.slice(-49));
    expect(JSON.parse(String(sent[0]?.value)).scopes).toEqual(['accounts:read']);
    expect((await app.inject({ method: 'GET', url: '/', headers: { 'x-api-key': body.data.api_key } })).statusCode).toBe(200);
  });

  test('a replay does not show it again', async () => {
    const { call, takeKey } = await start(({ data }) => {
      takeKey({ key_id: String(data['key_id']), secret_hash: 'x' });
      return { ok: true, replayed: true, data: { ...samples.key, key_id: data['key_id'] } };
    });
    const { status, body } = await call('POST', '/admin/api-keys', { name: 'x', scopes: ['accounts:read'] }, { 'idempotency-key': 'k' });
    expect([status, body.data.api_key]).toEqual([201, undefined]);
  });

  test('no key gets scopes that its maker lacks, nor leaves its maker\'s client', async () => {
    const { call, keyHeader, sent } = await start(() => 'not_sent');
    const poor = keyHeader({ scopes: ['keys:manage', 'accounts:read'] });
    expect((await call('POST', '/admin/api-keys', { name: 'x', scopes: ['accounts:read', 'ops:manage'] }, poor)).body).toMatchObject({ code: 'insufficient_scope', message: expect.stringContaining('ops:manage') });
    const bound = keyHeader({ client_id: ids.client });
    expect((await call('POST', '/admin/api-keys', { name: 'x', scopes: ['accounts:read'], client_id: `cli_${'f'.repeat(32)}` }, bound)).status).toBe(403);
    expect(sent).toEqual([]);
    await call('POST', '/admin/api-keys', { name: 'x', scopes: ['accounts:read'] }, bound);
    expect(JSON.parse(String(sent[0]?.value)).client_id).toBe(ids.client);
  });

  test('rotation and revocation need no body, and take effect here before they are answered', async () => {
    const old = `key_${'d'.repeat(32)}`;
    const { call, takeKey, apiKeys } = await start(({ name, data }) => {
      if (name === 'revoke_api_key') {
        setTimeout(() => takeKey({ key_id: old, secret_hash: 'x', version: 3, revoked_at: '2026-01-01T00:00:00.000Z' }), 30);
        return ok({ ...samples.key, key_id: old, status: 'revoked' });
      }
      setTimeout(() => {
        takeKey({ key_id: String(data['key_id']), secret_hash: 'y', environment: 'test' });
        takeKey({ key_id: old, secret_hash: 'x', version: 2, environment: 'test', expires_at: new Date().toISOString() });
      }, 30);
      return ok({ ...samples.key, key_id: data['key_id'], rotated_from: old });
    });
    takeKey({ key_id: old, secret_hash: 'x', environment: 'test' });
    const rotated = await call('POST', `/admin/api-keys/${old}/rotation`, { overlap_seconds: 0 });
    expect([rotated.status, rotated.body.data.api_key.slice(0, 9)]).toEqual([201, 'cbk_test_']);
    expect(await apiKeys.seen(old, ({ version }) => version === 2, 0)).toBe(true);
    expect((await call('POST', `/admin/api-keys/${old}/revocation`)).status).toBe(200);
    expect(await apiKeys.seen(old, ({ revoked_at }) => revoked_at !== null, 0)).toBe(true);
  });
});
