import { describe, expect, it } from 'vitest';
import { apiKeyChecksum } from '#libs/contracts/api-key.ts';
import { expectError, newKey, type RestKey, unknownId } from '../support/client.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests the contract of API keys. Changes on one gateway must take effect on the other. */
const world = useBank({ gateways: 2, accounts: 2 });
const { api } = world;

const statusWith = async (apiKey: string, gateway: number) =>
  (await world.gateway(gateway).withKey(apiKey).get('/')).status;
const works = async (apiKey: string) => (await statusWith(apiKey, 0)) === 200 && (await statusWith(apiKey, 1)) === 200;
const isDead = async (apiKey: string) => (await statusWith(apiKey, 0)) === 401 && (await statusWith(apiKey, 1)) === 401;
const shown = async (keyId: string) => (await api.get(`/admin/api-keys/${keyId}`)).data<RestKey>();
const sleep = (ms: number) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

const year = 365 * 24 * 3600 * 1000;

describe('API keys: creation', () => {
  it('returns 201 with key_id and, only in this response, api_key, which works on every gateway within 2 s', async () => {
    // contract: permission-14
    const answer = await api.post('/admin/api-keys', { name: 'partner', scopes: ['clients:read', 'accounts:read'] });
    expect(answer.status).toBe(201);
    const { api_key = '', ...key } = answer.data<RestKey>();
    expect(key).toEqual({
      key_id: expect.any(String),
      name: 'partner',
      scopes: ['clients:read', 'accounts:read'],
      environment: 'live',
      client_id: null,
      status: 'active',
      created_at: expect.any(String),
      created_by: expect.stringMatching(/^key:/),
      expires_at: expect.any(String),
      last_used_at: null,
      revoked_at: null,
      rotated_from: null,
    });
    expect(answer.header('location')).toContain(`/admin/api-keys/${key.key_id}`);
    expect(await statusWith(api_key, 0)).toBe(200);
    await eventually(() => works(api_key), 2000);
    expect(await shown(key.key_id)).toEqual({
      ...key,
      last_used_at: expect.toSatisfy((value: unknown) => value === null || typeof value === 'string'),
    });
  });

  it('the format is cbk_<live|test>_<id>_<secret><checksum>, with 256 random bits', async () => {
    // contract: permission-13
    for (const environment of ['live', 'test'] as const) {
      const keys = await Promise.all(
        Array.from({ length: 3 }, () => api.key({ scopes: ['clients:read'], environment })),
      );
      for (const { api_key, key_id } of keys) {
        const [prefix, kind, id, rest = ''] = api_key.split('_');
        expect([prefix, kind]).toEqual(['cbk', environment]);
        expect(key_id).toContain(id);
        expect(rest.slice(-6)).toBe(apiKeyChecksum(api_key.slice(0, -6)));
        expect(62 ** (rest.length - 6)).toBeGreaterThanOrEqual(2 ** 256);
      }
      expect(new Set(keys.map(({ api_key }) => api_key)).size).toBe(3);
    }
  });

  it('expires after one year by default, and never later than the key that created it', async () => {
    // contract: permission-17
    const staff = api.withToken(await world.bank.token());
    const key = await staff.key({ scopes: ['clients:read', 'keys:manage'] });
    expect(Date.parse(key.expires_at) - Date.parse(key.created_at)).toBe(year);
    const short = await staff.key({
      scopes: ['clients:read', 'keys:manage'],
      expires_at: new Date(Date.now() + 7_200_000).toISOString(),
    });
    const maker = api.withKey(short.api_key);
    expect((await maker.key({ scopes: ['clients:read'] })).expires_at).toBe(short.expires_at);
    for (const [caller, expires_at] of [
      [maker, key.expires_at],
      [staff, new Date(Date.now() + year + 60_000).toISOString()],
    ] as const) {
      expectError(
        await caller.post('/admin/api-keys', { name: 'x', scopes: ['clients:read'], expires_at }),
        400,
        'validation_failed',
        /expires_at must not be later/,
      );
    }
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    expect((await api.key({ scopes: ['clients:read'], expires_at })).expires_at).toBe(expires_at);
    expectError(
      await api.post('/admin/api-keys', { name: 'x', scopes: ['clients:read'], expires_at: '2020-01-01T00:00:00Z' }),
      400,
      'validation_failed',
    );
  });

  it('an expired key is 401 on every gateway and shown as expired', async () => {
    // contract: permission-20
    const expires_at = new Date(Date.now() + 4000).toISOString();
    const key = await api.key({ scopes: ['clients:read'], expires_at });
    expect(await statusWith(key.api_key, 0)).toBe(200);
    await sleep(Date.parse(expires_at) - Date.now() + 100);
    await eventually(() => isDead(key.api_key), 2000);
    await eventually(async () => (await shown(key.key_id)).status === 'expired', 2000);
  });

  it('a key cannot grant scopes that its creator lacks', async () => {
    // contract: permission-16
    const maker = api.withKey((await api.key({ scopes: ['keys:manage', 'clients:read'] })).api_key);
    expect((await maker.key({ scopes: ['clients:read'] })).scopes).toEqual(['clients:read']);
    expectError(
      await maker.post('/admin/api-keys', { name: 'x', scopes: ['clients:read', 'transfers:write'] }),
      403,
      'insufficient_scope',
      /transfers:write/,
    );
    const strong = await api.key({ scopes: ['transfers:write', 'clients:read'] });
    expectError(await maker.post(`/admin/api-keys/${strong.key_id}/rotation`), 403, 'insufficient_scope');
  });

  it('created_by is the issuer and subject of a JWT caller', async () => {
    // contract: permission-15
    const key = await api.withToken(await world.bank.token()).key({ scopes: ['clients:read'] });
    expect(key.created_by).toMatch(/^jwt:http/);
  });

  it.each([
    {},
    { name: 'x' },
    { name: 'x', scopes: [] },
    { name: 'x', scopes: ['everything'] },
    { name: '', scopes: ['clients:read'] },
    { name: 'x', scopes: ['clients:read'], environment: 'prod' },
    { name: 'x', scopes: ['clients:read'], expires_at: 'soon' },
  ])('refuses %j', async (body) => {
    expectError(await api.post('/admin/api-keys', body), 400, 'validation_failed');
  });

  it('a key bound to an unknown client is 404', async () => {
    expectError(
      await api.post('/admin/api-keys', { name: 'x', scopes: ['clients:read'], client_id: unknownId('cli') }),
      404,
      'client_not_found',
    );
  });
});

describe('API keys: reading', () => {
  it('the secret is shown once; neither the list nor the database contains it', async () => {
    // contract: permission-15
    const key = await api.key({ scopes: ['clients:read'] });
    const texts = [(await api.get('/admin/api-keys')).text, (await api.get(`/admin/api-keys/${key.key_id}`)).text];
    for (const text of texts) {
      expect(text).toContain(key.key_id);
      expect(text).not.toContain(key.api_key.slice(-40));
      expect(text).not.toMatch(/secret|hash|api_key"/);
    }
    expect(
      await world.sql('select count(*)::int as n from accounts.api_keys where secret_hash like $1', [
        `%${key.api_key.slice(-20)}%`,
      ]),
    ).toEqual([{ n: 0 }]);
  });

  it('last_used_at is updated after use', async () => {
    // contract: permission-15
    const key = await api.key({ scopes: ['clients:read'] });
    await api.withKey(key.api_key).get('/');
    const used = await eventually(async () => (await shown(key.key_id)).last_used_at ?? undefined);
    expect(used >= key.created_at).toBe(true);
  });

  it('an unknown key is 404 api_key_not_found', async () => {
    for (const id of [unknownId('key'), 'x']) {
      expectError(await api.get(`/admin/api-keys/${id}`), 404, 'api_key_not_found');
      for (const action of ['rotation', 'revocation'])
        expectError(await api.post(`/admin/api-keys/${id}/${action}`), 404, 'api_key_not_found');
    }
  });

  it('a key with any wrong character is 401', async () => {
    const { api_key } = await api.key({ scopes: ['clients:read'] });
    const swapped = (text: string, at: number) =>
      text.slice(0, at) + (text.charAt(at) === 'a' ? 'b' : 'a') + text.slice(at + 1);
    const withChecksum = (text: string) => text.slice(0, -6) + apiKeyChecksum(text.slice(0, -6));
    const wrong = [
      swapped(api_key, api_key.length - 1),
      withChecksum(swapped(api_key, api_key.length - 10)),
      withChecksum(api_key.replace('_live_', '_test_')),
      withChecksum(swapped(api_key, 12)),
      api_key.toUpperCase(),
      `${api_key}x`,
    ];
    for (const key of wrong) expectError(await api.withKey(key).get('/'), 401, 'invalid_credentials');
  });
});

describe('API keys: rotation', () => {
  it('returns 201 with the new key; during the overlap both keys work, then the old one fails on both gateways', async () => {
    // contract: permission-18
    const old = await api.key({
      scopes: ['clients:read', 'accounts:read'],
      environment: 'test',
      expires_at: new Date(Date.now() + 7_200_000).toISOString(),
    });
    const answer = await api.post(`/admin/api-keys/${old.key_id}/rotation`, { overlap_seconds: 5 });
    expect(answer.status).toBe(201);
    const fresh = answer.data<RestKey & { api_key: string }>();
    expect(fresh).toMatchObject({
      rotated_from: old.key_id,
      scopes: old.scopes,
      expires_at: old.expires_at,
      name: old.name,
      environment: 'test',
      status: 'active',
    });
    expect(fresh.api_key).toMatch(/^cbk_test_/);
    expect(fresh.api_key).not.toBe(old.api_key);
    await eventually(async () => (await works(fresh.api_key)) && (await works(old.api_key)), 2000);
    await sleep(5000);
    await eventually(() => isDead(old.api_key), 2000);
    expect(await works(fresh.api_key)).toBe(true);
    expect((await shown(old.key_id)).status).toBe('expired');
  });

  it('a key bound to a client stays bound', async () => {
    const { client_id } = await api.client();
    const old = await api.key({ scopes: ['clients:read'], client_id });
    const fresh = (await api.post(`/admin/api-keys/${old.key_id}/rotation`)).data<RestKey & { api_key: string }>();
    expect(fresh.client_id).toBe(client_id);
    expect((await api.withKey(fresh.api_key).get('/clients')).list()).toHaveLength(1);
  });

  it('overlap_seconds 0 ends the old key on every gateway within 2 s', async () => {
    const old = await api.key({ scopes: ['clients:read'] });
    const fresh = (await api.post(`/admin/api-keys/${old.key_id}/rotation`, { overlap_seconds: 0 })).data<
      RestKey & { api_key: string }
    >();
    expect(await statusWith(old.api_key, 0)).toBe(401);
    await eventually(async () => (await isDead(old.api_key)) && works(fresh.api_key), 2000);
  });

  it('a repeat returns the same body without api_key, and the key of the first response works', async () => {
    const old = await api.key({ scopes: ['clients:read'] });
    const key = newKey();
    const path = `/admin/api-keys/${old.key_id}/rotation`;
    const { api_key, ...first } = (await api.once(key, path, {})).data<RestKey>();
    const again = await world.gateway(1).once(key, path, {});
    expect([again.status, again.data()]).toEqual([201, first]);
    await eventually(() => works(api_key ?? ''), 2000);
  });

  it('an invalid key cannot be rotated; overlap_seconds must be a whole number of at least 0', async () => {
    const old = await api.key({ scopes: ['clients:read'] });
    for (const overlap_seconds of [-1, 1.5, '5'])
      expectError(
        await api.post(`/admin/api-keys/${old.key_id}/rotation`, { overlap_seconds }),
        400,
        'validation_failed',
      );
    await api.post(`/admin/api-keys/${old.key_id}/revocation`);
    expect((await api.post(`/admin/api-keys/${old.key_id}/rotation`)).status).toBe(400);
  });
});

describe('API keys: revocation', () => {
  it('takes effect immediately on the gateway that responds, and within 2 s on the other', async () => {
    // contract: permission-20
    const key = await api.key({ scopes: ['clients:read'] });
    await eventually(() => works(key.api_key), 2000);
    const answer = await api.post(`/admin/api-keys/${key.key_id}/revocation`);
    const answeredAt = Date.now();
    expect(answer.status).toBe(200);
    expect(answer.data()).toMatchObject({ key_id: key.key_id, status: 'revoked', revoked_at: expect.any(String) });
    expectError(await world.gateway(0).withKey(key.api_key).get('/'), 401, 'invalid_credentials');
    await eventually(() => isDead(key.api_key), 2000);
    expect(Date.now() - answeredAt).toBeLessThan(2500);
    expect(await shown(key.key_id)).toMatchObject({ status: 'revoked' });
  });

  it('revokes the family, and with descendants also the keys that it created, on both gateways', async () => {
    // contract: permission-19
    const old = await api.key({ scopes: ['clients:read', 'keys:manage'] });
    const fresh = (await api.post(`/admin/api-keys/${old.key_id}/rotation`)).data<RestKey & { api_key: string }>();
    const made = await api.withKey(fresh.api_key).key({ scopes: ['clients:read'] });
    await eventually(() => works(made.api_key), 2000);
    await api.post(`/admin/api-keys/${old.key_id}/revocation`);
    await eventually(async () => (await isDead(old.api_key)) && isDead(fresh.api_key), 2000);
    expect(await works(made.api_key)).toBe(true);
    expect((await api.post(`/admin/api-keys/${old.key_id}/revocation`, { descendants: true })).status).toBe(200);
    await eventually(() => isDead(made.api_key), 2000);
  });

  it('needs no body', async () => {
    const key = await api.key({ scopes: ['clients:read'] });
    expect((await api.send('POST', `/admin/api-keys/${key.key_id}/revocation`)).status).toBe(200);
    expectError(await api.post(`/admin/api-keys/${key.key_id}/revocation`, { reason: 'x' }), 400, 'unknown_field');
  });

  it('repeating it changes nothing', async () => {
    const key = await api.key({ scopes: ['clients:read'] });
    const first = (await api.post(`/admin/api-keys/${key.key_id}/revocation`)).data<RestKey>();
    const second = await world.gateway(1).post(`/admin/api-keys/${key.key_id}/revocation`);
    expect([second.status, second.data<RestKey>().revoked_at]).toEqual([200, first.revoked_at]);
  });

  it('still applies after a gateway was restarted', async () => {
    const [dead, alive] = [await api.key({ scopes: ['clients:read'] }), await api.key({ scopes: ['clients:read'] })];
    await api.post(`/admin/api-keys/${dead.key_id}/revocation`);
    await world.bank.process('gateway-2').restart();
    expect([await statusWith(dead.api_key, 1), await statusWith(alive.api_key, 1)]).toEqual([401, 200]);
  });

  it('unknown, expired, and revoked keys get the same message', async () => {
    // contract: permission-3
    const key = await api.key({ scopes: ['clients:read'] });
    await api.post(`/admin/api-keys/${key.key_id}/revocation`);
    const unknown = key.api_key.replace(/_[0-9a-f]{32}_/, `_${'0'.repeat(32)}_`);
    const texts = await Promise.all(
      [key.api_key, unknown, 'x'].map(async (text) => (await api.withKey(text).get('/')).error.message),
    );
    expect(new Set(texts).size).toBe(1);
  });
});
