import { describe, expect, test } from 'vitest';
import { ids, ok, samples, useTestCaller } from '../test/test-app.ts';

const start = useTestCaller();

const deposit = { account_id: ids.account, transaction_type: 'Deposit', amount: 25 };

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
      setTimeout(() => takeKey({ key_id: String(data['key_id']), secret_hash: 'y', environment: 'test' }), 30);
      setTimeout(() => takeKey({ key_id: old, secret_hash: 'x', version: 2, environment: 'test', expires_at: new Date().toISOString() }), 60);
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
