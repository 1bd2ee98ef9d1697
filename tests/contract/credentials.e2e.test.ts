import { createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { expectError } from '../support/client.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Tests the contract of authentication, with tokens that no real issuer would sign, and of rate limits. */
interface SigningKey {
  kid: string;
  alg: 'RS256' | 'PS256' | 'ES256' | 'EdDSA';
  privateKey: KeyObject;
  publicKey: KeyObject;
}

function newKeyPair(alg: SigningKey['alg']): SigningKey {
  const pair =
    alg === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : alg === 'EdDSA'
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { kid: randomUUID(), alg, ...pair };
}

const published = (['RS256', 'PS256', 'ES256', 'EdDSA'] as const).map(newKeyPair);
const [rsa] = published as [SigningKey, ...SigningKey[]];
let fetches = 0;
let isAway = false;
const server = createServer((_, response) => {
  fetches += 1;
  if (isAway) return void response.writeHead(503).end();
  const keys = published.map(({ kid, alg, publicKey }) => ({
    ...publicKey.export({ format: 'jwk' }),
    kid,
    alg,
    use: 'sig',
  }));
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys }));
});
await new Promise<void>((resolve) => {
  server.listen(0, '127.0.0.1', resolve);
});

const issuer = 'https://issuer.example';
const audience = 'bank-under-test';
const limit = 400;
const world = useBank({
  env: {
    JWT_WHOLE_BANK_CLIENTS: '*',
    JWT_ISSUER: issuer,
    JWT_AUDIENCE: audience,
    JWKS_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`,
    RATE_LIMIT_PER_MINUTE: String(limit),
    AUTH_FAILURES_PER_MINUTE: '300',
  },
});
const { api } = world;
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const seconds = () => Math.floor(Date.now() / 1000);
const claims = (changes: object = {}) => ({
  iss: issuer,
  aud: audience,
  sub: 'teller-7',
  exp: seconds() + 300,
  iat: seconds(),
  scope: 'clients:read accounts:read',
  ...changes,
});
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signed(key: SigningKey, payload: object, header: object = {}): string {
  const text = `${encode({ alg: key.alg, kid: key.kid, typ: 'JWT', ...header })}.${encode(payload)}`;
  const options = {
    RS256: { key: key.privateKey },
    PS256: { key: key.privateKey, padding: 6, saltLength: 32 },
    ES256: { key: key.privateKey, dsaEncoding: 'ieee-p1363' as const },
    EdDSA: { key: key.privateKey },
  };
  return `${text}.${sign(key.alg === 'EdDSA' ? null : 'sha256', Buffer.from(text), options[key.alg]).toString('base64url')}`;
}

function hmacSigned(secret: string | Buffer, payload: object): string {
  const text = `${encode({ alg: 'HS256', kid: rsa.kid, typ: 'JWT' })}.${encode(payload)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

const withToken = (token: string) => api.withToken(token);

describe('Authorization: Bearer JWT', () => {
  it.each(published.map((key) => [key.alg, key] as const))('%s is accepted', async (_, key) => {
    expect((await withToken(signed(key, claims())).get('/clients')).status).toBe(200);
  });

  it('iss, aud, exp, and nbf are checked, with a clock skew of 30 s', async () => {
    // contract: permission-7
    for (const changes of [
      { exp: seconds() - 15 },
      { nbf: seconds() + 15 },
      { iat: seconds() + 15 },
      { aud: ['other', audience] },
    ]) {
      expect((await withToken(signed(rsa, claims(changes))).get('/clients')).status, JSON.stringify(changes)).toBe(200);
    }
  });

  const unpublished = newKeyPair('RS256');
  const refused: [string, () => string][] = [
    ['expired', () => signed(rsa, claims({ exp: seconds() - 60 }))],
    ['not yet valid', () => signed(rsa, claims({ nbf: seconds() + 60 }))],
    ['without exp', () => signed(rsa, claims({ exp: undefined }))],
    ['exp as a string', () => signed(rsa, claims({ exp: String(seconds() + 300) }))],
    ['nbf as a string', () => signed(rsa, claims({ nbf: 'now' }))],
    ['another issuer', () => signed(rsa, claims({ iss: 'https://evil.example' }))],
    ['without an issuer', () => signed(rsa, claims({ iss: undefined }))],
    ['another audience', () => signed(rsa, claims({ aud: 'someone-else' }))],
    ['without an audience', () => signed(rsa, claims({ aud: undefined }))],
    ['without a subject', () => signed(rsa, claims({ sub: undefined }))],
    ['an unknown critical header', () => signed(rsa, claims(), { crit: ['b64'], b64: false })],
    ['an unknown kid', () => signed(unpublished, claims())],
    ['a known kid, signed by another key', () => signed({ ...unpublished, kid: rsa.kid }, claims())],
    ['alg none', () => `${encode({ alg: 'none', kid: rsa.kid })}.${encode(claims())}.`],
    [
      'alg none with a signature',
      () => `${encode({ alg: 'none', kid: rsa.kid })}.${encode(claims())}.${signed(rsa, claims()).split('.')[2]}`,
    ],
    [
      'HS256 with the public key as secret (PEM)',
      () => hmacSigned(rsa.publicKey.export({ format: 'pem', type: 'spki' }), claims()),
    ],
    [
      'HS256 with the public key as secret (DER)',
      () => hmacSigned(rsa.publicKey.export({ format: 'der', type: 'spki' }), claims()),
    ],
    ['another algorithm than the key has', () => signed(rsa, claims(), { alg: 'PS256' })],
    ['an algorithm that is not allowed', () => signed(rsa, claims(), { alg: 'RS512' })],
    [
      'a changed payload',
      () =>
        signed(rsa, claims())
          .split('.')
          .map((part, i) => (i === 1 ? encode(claims({ scope: 'keys:manage' })) : part))
          .join('.'),
    ],
    [
      'a payload that is not JSON',
      () =>
        signed(rsa, claims())
          .split('.')
          .map((part, i) => (i === 1 ? 'bm8' : part))
          .join('.'),
    ],
    ['two parts', () => signed(rsa, claims()).split('.').slice(0, 2).join('.')],
    ['a payload that is a list', () => signed(rsa, [] as object)],
  ];
  it.each(refused)('refuses %s', async (_, token) => {
    const answer = await withToken(token()).get('/clients');
    expectError(answer, 401, 'invalid_credentials');
    expect(answer.header('www-authenticate')).toMatch(/^Bearer/);
  });

  it('scopes are the space-separated words of `scope`; without it there are none', async () => {
    // contract: permission-11
    const caller = withToken(
      signed(rsa, claims({ scope: undefined, scopes: ['clients:read'], roles: ['clients:read'] })),
    );
    expect((await caller.get('/')).status).toBe(200);
    expectError(await caller.get('/clients'), 403, 'insufficient_scope');
    expectError(
      await withToken(signed(rsa, claims({ scope: 'clients:readx xclients:read' }))).get('/clients'),
      403,
      'insufficient_scope',
    );
  });

  it('the claim bank_client_id binds the token; client_id is the OAuth client and does not', async () => {
    const [own, other] = [await api.client(), await api.client()];
    const bound = withToken(signed(rsa, claims({ bank_client_id: own.client_id, client_id: other.client_id })));
    expect((await bound.get('/clients')).list()).toEqual([own]);
    expectError(await bound.get(`/clients/${other.client_id}`), 404, 'client_not_found');
    const free = withToken(signed(rsa, claims({ client_id: own.client_id })));
    expect((await free.get(`/clients/${other.client_id}`)).status).toBe(200);
  });

  it('a malformed bank_client_id does not remove the binding', async () => {
    for (const bank_client_id of ['', 'x', 5, null, ['a'], {}]) {
      const answer = await withToken(signed(rsa, claims({ bank_client_id }))).get('/clients');
      if (answer.status === 200) expect(answer.list(), JSON.stringify(bank_client_id)).toEqual([]);
      else expect([401, 403]).toContain(answer.status);
    }
  });

  it('a newly published key is fetched, once', async () => {
    const fresh = newKeyPair('ES256');
    published.push(fresh);
    const before = fetches;
    // Tokens with an unknown kid, as in the tests above, make a gateway fetch the keys, but only every few seconds.
    await eventually(async () => (await withToken(signed(fresh, claims())).get('/clients')).status === 200);
    expect(fetches - before).toBe(1);
    await Promise.all(Array.from({ length: 20 }, () => withToken(signed(rsa, claims({ jti: randomUUID() }))).get('/')));
    expect(fetches - before).toBe(1);
  });

  it('known keys remain valid while the issuer is unavailable', async () => {
    isAway = true;
    expect((await withToken(signed(rsa, claims({ jti: randomUUID() }))).get('/clients')).status).toBe(200);
    isAway = false;
  });
});

describe('Rate limits', () => {
  it('apply per caller, with RateLimit headers; 429 rate_limited has Retry-After; other callers are not affected', async () => {
    // contract: errors-15, permission-29
    const caller = withToken(signed(rsa, claims({ sub: 'busy' })));
    const first = await caller.get('/');
    expect(first.header('ratelimit-limit')).toBe(String(limit));
    expect(Number(first.header('ratelimit-remaining'))).toBeLessThan(limit);
    expect(Number(first.header('ratelimit-reset'))).toBeLessThanOrEqual(60);
    // A new minute may begin during the requests, so twice the limit exceeds it in one of the two minutes.
    const answers = await together(2 * limit + 1, () => caller.get('/'));
    const refused = answers.find(({ status }) => status === 429);
    expectError(refused as NonNullable<typeof refused>, 429, 'rate_limited');
    expect(Number(refused?.header('retry-after'))).toBeGreaterThan(0);
    expect(refused?.header('ratelimit-remaining')).toBe('0');
    expect((await withToken(signed(rsa, claims({ sub: 'calm' }))).get('/')).status).toBe(200);
  });

  it('failed authentications are limited per address; correct credentials are still accepted', async () => {
    // contract: permission-30
    const answers = await together(601, () => api.withKey('wrong').get('/'));
    const statuses = new Set(answers.map(({ status }) => status));
    expect(statuses).toEqual(new Set([401, 429]));
    expectError(answers.find(({ status }) => status === 429) as (typeof answers)[number], 429, 'rate_limited');
    expect((await withToken(signed(rsa, claims({ sub: 'calm' }))).get('/')).status).toBe(200);
  });
});
