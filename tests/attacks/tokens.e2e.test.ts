import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomUUID,
  sign,
} from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AUDIENCE, MAIN_CLIENT, startIdentityProvider } from '../../tools/local/bank.ts';
import { freePort } from '../../tools/local/ports.ts';
import { awaitReady } from '../../tools/local/ready.ts';
import { exchange, expectNothingDone, expectRefused } from '../support/hostile.ts';
import { eventually, together, useBank } from '../support/world.ts';

/**
 * Attacks on the tokens of the real identity provider. Some tokens are signed with its true key, as by a thief of that
 * key, and the others as anyone could sign them. A proxy counts requests for its keys; a trap counts connections to
 * URLs in tokens.
 */
const dir = mkdtempSync(join(tmpdir(), 'core-banking-attacks-'));
const issuer = `http://127.0.0.1:${await freePort()}`;
const clientSecret = randomUUID();
const provider = startIdentityProvider({
  port: Number(new URL(issuer).port),
  keysFile: join(dir, 'keys.json'),
  clientSecret,
  userPassword: randomUUID(),
  log: join(dir, 'identity-provider.log'),
});
await awaitReady({ url: `${issuer}/jwks` }, 20_000);

const fetched: number[] = [];
const tap = createServer((request, response) => {
  fetched.push(performance.now());
  fetch(issuer + request.url).then(async (answer) =>
    response.setHeader('content-type', 'application/json').end(await answer.text()),
  );
});
let trapped = 0;
const trap = createTcpServer((socket) => {
  trapped++;
  socket.destroy();
});
const listen = (server: typeof tap | typeof trap) =>
  new Promise<string>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
const [tapUrl, trapUrl] = await Promise.all([listen(tap), listen(trap)]);
const world = useBank({ env: { JWT_ISSUER: issuer, JWKS_URL: `${tapUrl}/jwks` } });
const { api } = world;
afterAll(async () => {
  tap.closeAllConnections();
  tap.close();
  trap.close();
  await provider.stop(2000);
  rmSync(dir, { recursive: true, force: true });
});

const [stolen] = (
  JSON.parse(readFileSync(join(dir, 'keys.json'), 'utf8')) as { jwks: { keys: [JsonWebKey & { kid: string }] } }
).jwks.keys;
const { kid } = stolen;
const key = createPrivateKey({ key: stolen, format: 'jwk' });
const publicKey = createPublicKey(key);
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });

const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
type Sign = (input: Buffer) => Buffer;
const rs256 =
  (by: KeyObject): Sign =>
  (input) =>
    sign('sha256', input, by);
const es256 =
  (by: KeyObject): Sign =>
  (input) =>
    sign('sha256', input, { key: by, dsaEncoding: 'ieee-p1363' });
const hmac =
  (secret: string | Buffer): Sign =>
  (input) =>
    createHmac('sha256', secret).update(input).digest();
const bytes =
  (signature: Buffer): Sign =>
  () =>
    signature;
const now = Math.floor(Date.now() / 1000);
const good = {
  iss: issuer,
  aud: AUDIENCE,
  sub: MAIN_CLIENT,
  client_id: MAIN_CLIENT,
  iat: now,
  exp: now + 3600,
  scope: 'clients:read',
  jti: 'x',
};
function token(claims: object | string = {}, header: object = {}, signer: Sign = rs256(key)): string {
  const input = `${part({ alg: 'RS256', typ: 'at+jwt', kid, ...header })}.${part(typeof claims === 'string' ? claims : { ...good, ...claims })}`;
  return `${input}.${signer(Buffer.from(input)).toString('base64url')}`;
}
const by = (signer: Sign, header: object) => token({}, header, signer);
const pem = publicKey.export({ type: 'spki', format: 'pem' });
const jwk = { ...stranger.publicKey.export({ format: 'jwk' }), kid };
const zeros = Buffer.alloc(64);

/** Attacks by name. Each must get 401 with the same body. */
const attacks: Record<string, string> = {
  'alg none': by(bytes(Buffer.alloc(0)), { alg: 'none' }),
  'alg None, signed': token({}, { alg: 'None' }),
  'no alg': token({}, { alg: undefined }),
  'RS/HS confusion, PEM': by(hmac(pem), { alg: 'HS256' }),
  'RS/HS confusion, DER': by(hmac(publicKey.export({ type: 'spki', format: 'der' })), { alg: 'HS256' }),
  'RS/HS confusion, JWK': by(hmac(JSON.stringify(publicKey.export({ format: 'jwk' }))), { alg: 'HS256' }),
  'HMAC under RS256': by(hmac(pem), {}),
  'ES/RS confusion': token({}, { alg: 'ES256' }),
  'RS/ES confusion': by(es256(ec.privateKey), {}),
  'ES256 by a stranger': by(es256(ec.privateKey), { alg: 'ES256' }),
  'psychic signature': by(bytes(zeros), { alg: 'ES256' }),
  'psychic signature, DER': by(bytes(Buffer.from('3006020100020100', 'hex')), { alg: 'ES256' }),
  'another key with the same kid': by(rs256(stranger.privateKey), {}),
  'the true key, RS384 said': token({}, { alg: 'RS384' }),
  'PS256 said': token({}, { alg: 'PS256' }),
  expired: token({ exp: now - 31 }),
  'not yet valid': token({ nbf: now + 3600 }),
  'no exp': token({ exp: undefined }),
  'exp as a text': token({ exp: String(now + 3600) }),
  'exp beyond numbers': token(JSON.stringify(good).replace(/"exp":\d+/, '"exp":1e999')),
  'another audience': token({ aud: 'shop' }),
  'no audience': token({ aud: undefined }),
  'an ID token: its audience is the client': token({ aud: MAIN_CLIENT, nonce: 'n' }, { typ: 'JWT' }),
  'another issuer': token({ iss: 'https://evil.example' }),
  'the issuer with a slash': token({ iss: `${issuer}/` }),
  'the trap as issuer': token({ iss: trapUrl }),
  'no subject': token({ sub: undefined }),
  'kid a path': token({}, { kid: '../../../../dev/null' }),
  'kid /dev/null, HMAC of nothing': by(hmac(''), { alg: 'HS256', kid: '/dev/null' }),
  'kid SQL': token({}, { kid: `${kid}' or '1'='1` }),
  'kid a URL': by(rs256(stranger.privateKey), { kid: `${trapUrl}/kid` }),
  'kid __proto__': token({}, { kid: '__proto__' }),
  'kid with a NUL': token({}, { kid: `${kid}\u0000` }),
  jku: by(rs256(stranger.privateKey), { jku: `${trapUrl}/jku` }),
  'jku of the issuer, userinfo': by(rs256(stranger.privateKey), { jku: `${issuer}@${new URL(trapUrl).host}/jwks` }),
  x5u: by(rs256(stranger.privateKey), { x5u: `${trapUrl}/x5u` }),
  x5c: by(rs256(stranger.privateKey), {
    x5c: [stranger.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')],
  }),
  'an embedded jwk': by(rs256(stranger.privateKey), { jwk }),
  'jku, x5u and jwk, unknown kid': by(rs256(stranger.privateKey), {
    kid: 'new',
    jku: `${trapUrl}/jku`,
    x5u: `${trapUrl}/x5u`,
    jwk,
  }),
  crit: token({}, { crit: ['exp'] }),
  'crit b64': token({}, { crit: ['b64'], b64: false }),
  'claims of another token': token().replace(/\.[^.]+\./, `.${part({ ...good, scope: 'keys:manage' })}.`),
  '64 KB': token({ padding: 'x'.repeat(48_000) }, {}, rs256(stranger.privateKey)),
  '64 KB of A': 'A'.repeat(65_536),
};

describe('forged tokens', () => {
  expectNothingDone(world);
  const answers = new Set<string>();

  it('a token signed with the true key is accepted, so the others are refused because of their own defects', async () => {
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: MAIN_CLIENT,
      client_secret: clientSecret,
    });
    const { access_token } = (await (await fetch(`${issuer}/token`, { method: 'POST', body: form })).json()) as {
      access_token: string;
    };
    for (const jwt of [access_token, token()]) expect((await api.withToken(jwt).get('/clients')).status).toBe(200);
  });

  it.each(Object.entries(attacks))('%s', async (_, forged) => {
    // asvs: 9.1.1, 9.1.2, 9.1.3, 9.2.1, 9.2.2, 9.2.3
    const answer = await api.withToken(forged).get('/clients');
    expectRefused(answer, 401, 'invalid_credentials');
    answers.add(JSON.stringify([{ ...answer.error, request_id: '' }, answer.header('www-authenticate')]));
  });

  it('all have the same body and challenge as a wrong API key; no URL was requested', async () => {
    const wrongKey = await api.withKey('cbk_live_x').get('/clients');
    answers.add(JSON.stringify([{ ...wrongKey.error, request_id: '' }, wrongKey.header('www-authenticate')]));
    expect([...answers]).toHaveLength(1);
    expect(trapped).toBe(0);
  });

  it('two credentials are refused even if both are valid', async () => {
    const bodies = new Set<string>();
    for (const [jwt, apiKey] of [
      [token(), world.bank.api_key],
      [token(), 'x'],
      ['x', world.bank.api_key],
      ['x', 'x'],
    ] as const) {
      const answer = await api.with({ authorization: `Bearer ${jwt}`, 'x-api-key': apiKey }).get('/clients');
      expectRefused(answer, 401, 'ambiguous_credentials');
      bodies.add(JSON.stringify({ ...answer.error, request_id: '' }));
    }
    expect(bodies.size).toBe(1);
    const twice = await exchange(
      api.baseUrl,
      `GET /clients HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token()}\r\nAuthorization: Bearer ${token()}\r\n\r\n`,
      { quietMs: 50 },
    );
    expect(twice.answers.map(({ status }) => status)).toEqual([401]);
  });
});

describe('requests to the issuer are limited', () => {
  beforeAll(() => eventually(async () => (await api.withToken(token()).get('/clients')).status === 200));

  it('300 unknown kids, 40 at a time, cause at most one fetch every five seconds', async () => {
    const before = fetched.length;
    const startedAt = performance.now();
    for (let round = 0; round < 8; round++) {
      const statuses = await together(
        40,
        async () => (await api.withToken(token({}, { kid: randomUUID() })).get('/clients')).status,
      );
      expect(new Set(statuses)).toEqual(new Set([401]));
    }
    expect(fetched.length - before).toBeLessThanOrEqual(1 + Math.floor((performance.now() - startedAt) / 5000));
  });

  it('the time between two fetches is never shorter than the limit', () => {
    const gaps = fetched.slice(1).map((at, i) => at - (fetched[i] ?? 0));
    // This process records the times, and may do so late.
    expect(Math.min(...gaps, 5000)).toBeGreaterThan(4000);
  });
});
