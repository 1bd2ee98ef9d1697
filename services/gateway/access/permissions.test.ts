import { describe, expect, test } from 'vitest';
import { scopes } from '#libs/contracts/scopes.ts';
import { ids, ok, type Service, samples, testApp, useTestCaller } from '../test/test-app.ts';
import { testToken, testTokens } from '../test/test-token.ts';

const start = useTestCaller();

describe('callers bound to one client', () => {
  const bound = { client_id: ids.client };

  test('are named as such in messages', async () => {
    const { call, sent, keyHeader } = await start(() => ok(samples.transfer));
    await call(
      'POST',
      '/transfers',
      { from_account_id: ids.account, to_account_id: ids.other, amount: 5 },
      keyHeader(bound),
    );
    expect(sent[0]?.headers['bound-client-id']).toBe(ids.client);
  });

  test('cannot create clients, leave or read notes, search, or deposit, whatever the rest of the request', async () => {
    // contract: permission-26
    const { call, sent, keyHeader } = await start(() => 'not_sent');
    const headers = keyHeader(bound);
    const client = {
      client_type: 'Corporate',
      company_name: 'x',
      registration_number: 'y',
      email: 'a@b.cc',
      contact_number: '+254700000001',
    };
    const opening = { client_id: ids.client, account_type: 'Savings', currency: 'USD' };
    const refused = [
      ['POST', '/clients', client],
      ['POST', '/clients', { client_type: 'Other' }],
      ['POST', '/clients', '{'],
      ['POST', `/accounts/${ids.account}/notes`, {}],
      ['GET', `/clients/${ids.client}/notes?limit=0`, undefined],
      ['GET', '/admin/search?q=x', undefined],
      ['GET', '/admin/search', undefined],
      ['POST', '/accounts', { ...opening, initial_deposit: 1 }],
    ] as const;
    for (const [method, url, body] of refused)
      expect((await call(method, url, body, headers)).body.code).toBe('insufficient_scope');
    expect(sent).toEqual([]);
    for (const initial_deposit of [undefined, 0])
      expect((await call('POST', '/accounts', { ...opening, initial_deposit }, headers)).status).toBe(503);
  });

  test('cannot do so with a token either: scopes of the bank are ignored', async () => {
    // contract: permission-25
    const { app } = await testApp(() => 'not_sent', { tokens: testTokens });
    const scope = scopes.join(' ');
    const status = async (url: string, bank_client_id?: string) =>
      (await app.inject({ url, headers: { authorization: `Bearer ${testToken({ scope, bank_client_id })}` } }))
        .statusCode;
    expect([
      await status('/admin/audit'),
      await status('/admin/audit', ids.client),
      await status('/accounts', ids.client),
    ]).toEqual([503, 403, 503]);
    await app.close();
  });
});

test('an initial deposit is cash and requires transactions:write', async () => {
  // contract: permission-26
  const { call, keyHeader } = await start(() => 'not_sent');
  const open = (initial_deposit: number, ...scopes: string[]) =>
    call(
      'POST',
      '/accounts',
      { client_id: ids.client, account_type: 'Savings', currency: 'USD', initial_deposit },
      keyHeader({ scopes: ['accounts:write', ...scopes] }),
    );
  expect((await open(1)).body).toMatchObject({
    code: 'insufficient_scope',
    message: expect.stringContaining('transactions:write'),
  });
  expect([(await open(0)).status, (await open(1, 'transactions:write')).status]).toEqual([503, 503]);
});

describe('API keys', () => {
  test('the secret is shown once; only its hash is sent; the response waits until this gateway knows the key', async () => {
    // contract: idempotency-11
    const { call, sent, takeKey, app } = await start(({ data }) => {
      const { key_id, secret_hash } = data as { key_id: string; secret_hash: string };
      setTimeout(() => takeKey({ key_id, secret_hash, scopes: ['accounts:read'] }), 30);
      return ok({ ...samples.key, key_id });
    });
    const { status, body, headers } = await call('POST', '/admin/api-keys', {
      name: 'x',
      scopes: ['accounts:read', 'accounts:read'],
      environment: 'test',
    });
    expect([status, headers.location]).toEqual([201, `/admin/api-keys/${body.data.key_id}`]);
    expect(body.data.api_key).toMatch(new RegExp(`^cbk_test_${body.data.key_id.slice(4)}_[0-9A-Za-z]{49}$`));
    expect(String(sent[0]?.value)).not.toContain(body.data.api_key.slice(-49));
    expect(JSON.parse(String(sent[0]?.value)).scopes).toEqual(['accounts:read']);
    expect(
      (await app.inject({ method: 'GET', url: '/', headers: { 'x-api-key': body.data.api_key } })).statusCode,
    ).toBe(200);
  });

  test('a repeat does not show the secret again', async () => {
    const { call, takeKey } = await start(({ data }) => {
      takeKey({ key_id: String(data['key_id']), secret_hash: 'x' });
      return { ok: true, replayed: true, data: { ...samples.key, key_id: data['key_id'] } };
    });
    const { status, body } = await call(
      'POST',
      '/admin/api-keys',
      { name: 'x', scopes: ['accounts:read'] },
      { 'idempotency-key': 'k' },
    );
    expect([status, body.data.api_key]).toEqual([201, undefined]);
  });

  test('a key bound to one client cannot have scopes of the bank, which are named', async () => {
    // contract: permission-25
    const { call, sent } = await start(() => 'not_sent');
    const ofTheBank = [
      'accounts:status',
      'transactions:write',
      'transactions:reverse',
      'keys:manage',
      'audit:read',
      'books:read',
      'ops:manage',
    ];
    const { status, body } = await call('POST', '/admin/api-keys', {
      name: 'x',
      scopes: ['accounts:read', ...ofTheBank],
      client_id: ids.client,
    });
    expect([status, body.code, body.errors.map(({ field }: { field: string }) => field)]).toEqual([
      400,
      'validation_failed',
      ['scopes'],
    ]);
    for (const scope of ofTheBank) expect(body.message).toContain(scope);
    expect([body.message.includes('accounts:read'), sent]).toEqual([false, []]);
    expect(
      (
        await call('POST', '/admin/api-keys', {
          name: 'x',
          scopes: ['accounts:read', 'transfers:write'],
          client_id: ids.client,
        })
      ).status,
    ).toBe(503);
  });

  test('accounts receives the key that creates or rotates another, and the bank’s maximum lifetime', async () => {
    const { call, sent } = await start(() => 'not_sent');
    const before = Date.now();
    await call('POST', '/admin/api-keys', { name: 'x', scopes: ['accounts:read'] });
    await call('POST', `/admin/api-keys/key_${'d'.repeat(32)}/rotation`);
    const [made, rotated] = sent.map(({ value }) => JSON.parse(String(value)) as Record<string, string | null>);
    const maker_key_id = `key_${'1'.padStart(32, '0')}`;
    expect([made?.['maker_key_id'], made?.['expires_at'], rotated?.['maker_key_id']]).toEqual([
      maker_key_id,
      null,
      maker_key_id,
    ]);
    const limitMs = Date.parse(made?.['not_after'] ?? '') - 365 * 24 * 3_600_000;
    expect(limitMs >= before && limitMs <= Date.now()).toBe(true);
  });

  test('a repeat may write the expiry in another form', async () => {
    const { call, sent } = await start(() => 'not_sent');
    for (const expires_at of ['2099-01-01T00:00:00Z', '2099-01-01T02:00:00.000+02:00', '2099-01-01T00:00:00.001Z'])
      await call(
        'POST',
        '/admin/api-keys',
        { name: 'x', scopes: ['accounts:read'], expires_at },
        { 'idempotency-key': 'k' },
      );
    const [first, again, other] = sent.map(({ headers }) => headers['fingerprint']);
    expect([first === again, first === other]).toEqual([true, false]);
  });

  test('a key cannot get scopes that its creator lacks', async () => {
    const { call, keyHeader, sent } = await start(() => 'not_sent');
    const poor = keyHeader({ scopes: ['keys:manage', 'accounts:read'] });
    expect(
      (await call('POST', '/admin/api-keys', { name: 'x', scopes: ['accounts:read', 'ops:manage'] }, poor)).body,
    ).toMatchObject({ code: 'insufficient_scope', message: expect.stringContaining('ops:manage') });
    expect(sent).toEqual([]);
  });

  test('rotation and revocation need no body, and take effect here before the response', async () => {
    const old = `key_${'d'.repeat(32)}`;
    let webhooks: ReturnType<Service> = ok(['whk_1', 'whk_2']);
    const { call, takeKey, apiKeys, sent } = await start(({ name, data }) => {
      if (name === 'revoke_api_key') {
        setTimeout(
          () => takeKey({ key_id: old, secret_hash: 'x', version: 3, revoked_at: '2026-01-01T00:00:00.000Z' }),
          30,
        );
        return ok({ ...samples.key, key_id: old, status: 'revoked', families: [old, 'key_made_with_it'] });
      }
      if (name === 'list_webhooks_set_by') return webhooks;
      setTimeout(() => takeKey({ key_id: String(data['key_id']), secret_hash: 'y', environment: 'test' }), 30);
      setTimeout(
        () =>
          takeKey({
            key_id: old,
            secret_hash: 'x',
            version: 2,
            environment: 'test',
            expires_at: new Date().toISOString(),
          }),
        60,
      );
      return ok({ ...samples.key, key_id: data['key_id'], rotated_from: old });
    });
    takeKey({ key_id: old, secret_hash: 'x', environment: 'test' });
    const rotated = await call('POST', `/admin/api-keys/${old}/rotation`, { overlap_seconds: 0 });
    expect([rotated.status, rotated.body.data.api_key.slice(0, 9)]).toEqual([201, 'cbk_test_']);
    expect(await apiKeys.seen(old, ({ version }) => version === 2, 0)).toBe(true);
    const revoked = await call('POST', `/admin/api-keys/${old}/revocation`);
    expect([revoked.status, revoked.body.data]).toEqual([
      200,
      { ...samples.key, key_id: old, status: 'revoked', disabled_webhooks: ['whk_1', 'whk_2'] },
    ]);
    expect(JSON.parse(String(sent.at(-1)?.value))).toEqual({ actors: [`key:${old}`, 'key:key_made_with_it'] });
    expect(await apiKeys.seen(old, ({ revoked_at }) => revoked_at !== null, 0)).toBe(true);
    // The key is revoked and its webhooks are disabled, whether or not webhooks can list them now.
    webhooks = 'not_sent';
    const unlisted = await call('POST', `/admin/api-keys/${old}/revocation`);
    expect([unlisted.status, unlisted.body.data]).toEqual([200, { ...samples.key, key_id: old, status: 'revoked' }]);
  });
});

test('messages about webhooks say whether the caller may use those of others; a bound one never may', async () => {
  // contract: webhooks-2
  const { call, keyHeader, sent } = await start(() => 'not_sent');
  const webhook = `/webhooks/whk_${'a'.repeat(32)}`;
  for (const [state, expected] of [
    [{ scopes: ['webhooks:manage', 'clients:read'] }, undefined],
    [{ scopes: ['webhooks:manage', 'ops:manage', 'clients:read'] }, 'true'],
    [{ scopes: ['webhooks:manage', 'ops:manage', 'clients:read'], client_id: ids.client }, undefined],
  ] as const) {
    const caller = keyHeader({ ...state, scopes: [...state.scopes] });
    sent.length = 0;
    await call('GET', '/webhooks', undefined, caller);
    await call('GET', `${webhook}/deliveries`, undefined, caller);
    await call('PATCH', webhook, { status: 'Paused' }, caller);
    await call('POST', `${webhook}/secret-rotation`, {}, caller);
    expect(sent.map(({ headers }) => headers['all-webhooks'])).toEqual([expected, expected, expected, expected]);
    await call('GET', `/clients/${ids.client}`, undefined, caller);
    expect(sent.at(-1)?.headers).not.toHaveProperty('all-webhooks');
  }
});
