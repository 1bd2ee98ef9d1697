import type { KeyObject } from 'node:crypto';
import { createHmac, createSign, generateKeyPairSync, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';
import { importSPKI } from 'jose';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { testApp } from '../test/test-app.ts';
import { createKeySet } from './jwks.ts';
import type { TokenOptions } from './tokens.ts';
import { asymmetricAlgorithms, createTokenVerifier } from './tokens.ts';

const issuer = 'https://issuer.example';
const audience = 'core-banking';
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ed = generateKeyPairSync('ed25519');
const hmacSecret = 'a secret of more than thirty-two characters';

const jwk = (key: KeyObject, rest: object) => ({ ...key.export({ format: 'jwk' }), use: 'sig', ...rest });
let published: object[] = [];
let away = false;
let fetches = 0;
/** A real issuer: it publishes the keys in `published`, or closes connections while `away`. */
const server = createServer((request, response) => {
  fetches += 1;
  if (away) return void request.socket.destroy();
  // A busy machine would reuse a connection at the moment when the server closes it.
  response
    .setHeader('connection', 'close')
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify({ keys: published }));
});
let url = '';

const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
type Signer = (input: string) => Buffer;
const signers: Record<string, Signer> = {
  RS256: (input) => createSign('sha256').update(input).sign(rsa.privateKey),
  PS256: (input) => createSign('sha256').update(input).sign({ key: rsa.privateKey, padding: 6, saltLength: 32 }),
  ES256: (input) => createSign('sha256').update(input).sign({ key: ec.privateKey, dsaEncoding: 'ieee-p1363' }),
  EdDSA: (input) => sign(null, Buffer.from(input), ed.privateKey),
  HS256: (input) => createHmac('sha256', hmacSecret).update(input).digest(),
};
const kids: Record<string, string> = { RS256: 'rsa', PS256: 'rsa', ES256: 'ec', EdDSA: 'ed' };
const nowS = Math.floor(Date.now() / 1000);
const goodClaims = {
  iss: issuer,
  aud: audience,
  sub: 'me',
  iat: nowS,
  exp: nowS + 300,
  scope: 'accounts:read clients:read',
};

function token(options: { alg?: string; header?: object; claims?: unknown; signer?: Signer } = {}): string {
  const alg = options.alg ?? 'RS256';
  const header = { alg, typ: 'JWT', kid: kids[alg], ...options.header };
  const input = `${part(header)}.${part(options.claims ?? goodClaims)}`;
  return `${input}.${(options.signer ?? signers[alg] ?? (() => Buffer.alloc(0)))(input).toString('base64url')}`;
}

const silent = pino({ level: 'silent' });
const keySetOptions = () => ({ url, logger: silent, cooldownMs: 100, maxStaleMs: 300_000, timeoutMs: 10_000 });
const tokenOptions = (): TokenOptions => ({
  issuer,
  audience,
  algorithms: asymmetricAlgorithms,
  keySet: createKeySet(keySetOptions()),
  wholeBankClients: ['*'],
  maxLifetimeS: 3600,
  types: ['at+jwt', 'JWT'],
});

async function start(options: Partial<TokenOptions> = {}, now?: () => number) {
  const { app } = await testApp(undefined, {
    tokens: { ...tokenOptions(), ...options },
    ...(now && { now }),
  });
  const status = async (bearer: string, path = '/') =>
    (await app.inject({ method: 'GET', url: path, headers: { authorization: `Bearer ${bearer}` } })).statusCode;
  return { app, status };
}

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
});
afterAll(
  () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    }),
);
beforeEach(() => {
  away = false;
  fetches = 0;
  published = [
    jwk(rsa.publicKey, { kid: 'rsa' }),
    jwk(ec.publicKey, { kid: 'ec', alg: 'ES256' }),
    jwk(ed.publicKey, { kid: 'ed' }),
  ];
});

describe('valid tokens', () => {
  test.each(asymmetricAlgorithms)('%s', async (alg) => {
    // contract: permission-6
    const { status } = await start();
    expect(await status(token({ alg }))).toBe(200);
    expect(await status(token({ alg }), '/nowhere')).toBe(404);
  });

  test('may have a list of aud, no scope, and 30 s of clock difference in both directions', async () => {
    const { status } = await start();
    expect(await status(token({ claims: { ...goodClaims, aud: ['other', audience] } }))).toBe(200);
    expect(await status(token({ claims: { ...goodClaims, exp: nowS - 5 } }))).toBe(200);
    expect(await status(token({ claims: { ...goodClaims, nbf: nowS + 20 } }))).toBe(200);
    for (const scope of [undefined, null, ['accounts:read'], { 'clients:read': true }, 7, '']) {
      expect(await status(token({ claims: { ...goodClaims, scope } }), '/clients')).toBe(403);
    }
  });

  test('may have a text or a list as scope', async () => {
    const verify = await createTokenVerifier(fastify(), tokenOptions());
    for (const scope of ['clients:read accounts:read', ['clients:read', 'accounts:read', 7]])
      expect((await verify(claims({ scope })))?.scopes).toEqual(new Set(['clients:read', 'accounts:read']));
  });

  test('are of the types that are configured, in any case, with or without application/', async () => {
    const cases: [TokenOptions['types'], string | undefined, boolean][] = [
      [['at+jwt'], 'at+jwt', true],
      [['at+jwt'], 'application/AT+JWT', true],
      [['at+jwt'], 'JWT', false],
      [['JWT'], 'jwt', true],
      [['JWT', 'none'], undefined, true],
      [['JWT', 'none'], 'none', false],
      [['JWT', 'none'], '', false],
      [['at+jwt', 'JWT'], undefined, false],
    ];
    for (const [types, typ, isAccepted] of cases) {
      const verify = await createTokenVerifier(fastify(), { ...tokenOptions(), types });
      expect([types, typ, (await verify(token({ header: { typ } }))) !== undefined]).toEqual([types, typ, isAccepted]);
    }
  });

  test('caller and binding are iss, sub, and bank_client_id; client_id is ignored', async () => {
    const { app } = await testApp(
      ({ headers }) => {
        seen.push([headers['actor'], headers['bound-client-id']]);
        return 'not_sent';
      },
      { tokens: tokenOptions() },
    );
    const seen: unknown[] = [];
    for (const claims of [
      { ...goodClaims, client_id: 'cli_x' },
      { ...goodClaims, bank_client_id: 'cli_y' },
    ]) {
      await app.inject({
        method: 'GET',
        url: `/clients/cli_${'a'.repeat(32)}`,
        headers: { authorization: `bearer  ${token({ claims })}` },
      });
    }
    expect(seen).toEqual([
      [`jwt:${issuer}|me`, undefined],
      [`jwt:${issuer}|me`, 'cli_y'],
    ]);
  });
});

const publicPem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString();
const hmacWith =
  (secret: string): Signer =>
  (input) =>
    createHmac('sha256', secret).update(input).digest();
const byStranger: Signer = (input) => createSign('sha256').update(input).sign(stranger.privateKey);
const embedded = jwk(stranger.publicKey, { kid: 'stranger' });
const good = token();
const claims = (changes: object) => token({ claims: { ...goodClaims, ...changes } });

describe('a token with the nonce of the sign-in', () => {
  test.each<[string, () => string]>([
    ['Keycloak before 24', () => claims({ nonce: 'n', typ: 'Bearer' })],
    ['PingAM', () => claims({ nonce: 'n', tokenName: 'access_token', token_type: 'Bearer' })],
    ['PingAM, by tokenName alone', () => claims({ nonce: 'n', tokenName: 'access_token' })],
    ['Curity', () => claims({ nonce: 'n', purpose: 'access_token' })],
    ['Cognito', () => claims({ nonce: 'n', token_use: 'access' })],
    ['RFC 9068', () => token({ header: { typ: 'at+jwt' }, claims: { ...goodClaims, nonce: 'n' } })],
    [
      'RFC 9068, in full',
      () => token({ header: { typ: 'application/AT+JWT' }, claims: { ...goodClaims, nonce: 'n' } }),
    ],
  ])('is accepted if it says that it is an access token: %s', async (_what, make) => {
    expect(await (await start()).status(make())).toBe(200);
  });

  test('needs no name without a nonce, and its purpose may be any other', async () => {
    for (const changes of [{}, { purpose: 'payments' }, { tokenName: 'mine' }, { purpose: ['a'] }])
      expect(await (await start()).status(claims(changes))).toBe(200);
  });
});

describe('forged and invalid tokens are 401, never 500', () => {
  test.each<[string, () => string]>([
    ['alg none', () => token({ alg: 'none', header: { kid: 'rsa' } })],
    ['alg None, signed', () => token({ alg: 'nOnE', header: { kid: 'rsa' }, signer: signers['RS256'] })],
    ['no signature', () => `${good.split('.').slice(0, 2).join('.')}.`],
    ['two parts', () => good.split('.').slice(0, 2).join('.')],
    ['five parts', () => `${good}.a.b`],
    [
      'the public key as HMAC secret',
      () => token({ alg: 'HS256', header: { kid: 'rsa' }, signer: hmacWith(publicPem) }),
    ],
    [
      'the trimmed public key as HMAC secret',
      () => token({ alg: 'HS256', header: { kid: 'rsa' }, signer: hmacWith(publicPem.trim()) }),
    ],
    [
      'HS512',
      () =>
        token({
          alg: 'HS512',
          header: { kid: 'rsa' },
          signer: (input) => createHmac('sha512', publicPem).update(input).digest(),
        }),
    ],
    [
      'an algorithm that is not allowed',
      () =>
        token({
          alg: 'RS384',
          header: { kid: 'rsa' },
          signer: (input) => createSign('sha384').update(input).sign(rsa.privateKey),
        }),
    ],
    ['another algorithm than the key has', () => token({ alg: 'ES256', header: { kid: 'rsa' } })],
    ['RS256 with an EC key', () => token({ header: { kid: 'ec' } })],
    ["a stranger's signature", () => token({ signer: byStranger })],
    [
      'a changed payload',
      () => [good.split('.')[0], part({ ...goodClaims, sub: 'you' }), good.split('.')[2]].join('.'),
    ],
    ['an unknown kid', () => token({ header: { kid: 'stranger' }, signer: byStranger })],
    ['no kid', () => token({ header: { kid: undefined } })],
    ['a kid that is not a string', () => token({ header: { kid: { a: 1 } } })],
    ['a kid that is a path', () => token({ header: { kid: '../../etc/passwd' } })],
    ['an embedded key (jwk)', () => token({ header: { kid: 'stranger', jwk: embedded }, signer: byStranger })],
    ["a jku of one's own", () => token({ header: { kid: 'stranger', jku: url }, signer: byStranger })],
    ["an x5u of one's own", () => token({ header: { kid: 'stranger', x5u: url, x5c: ['AAAA'] }, signer: byStranger })],
    ['an unknown crit', () => token({ header: { crit: ['exp'] } })],
    ['a crit that is not understood', () => token({ header: { crit: ['x'], x: 1 } })],
    ['a wrong iss', () => claims({ iss: `${issuer}/` })],
    ['a list as iss', () => claims({ iss: [issuer] })],
    ['no iss', () => claims({ iss: undefined })],
    ['a wrong aud', () => claims({ aud: 'other' })],
    ['no aud', () => claims({ aud: undefined })],
    ['no exp', () => claims({ exp: undefined })],
    ['an exp that is a text', () => claims({ exp: String(nowS + 300) })],
    ['an exp that is null', () => claims({ exp: null })],
    ['an exp that is a list', () => claims({ exp: [nowS + 300] })],
    ['expired', () => claims({ exp: nowS - 300 })],
    ['not yet valid', () => claims({ nbf: nowS + 300 })],
    ['an nbf that is a text', () => claims({ nbf: 'soon' })],
    ['no typ', () => token({ header: { typ: undefined } })],
    ['a logout token by its typ', () => token({ header: { typ: 'logout+jwt' } })],
    ['a typ that only begins so', () => token({ header: { typ: 'at+jwt+x' } })],
    ['a typ that is not a string', () => token({ header: { typ: ['JWT'] } })],
    ['an ID token, by its nonce', () => claims({ nonce: 'n' })],
    ['an ID token, by its nonce, although its typ is JWT', () => claims({ nonce: 'n', typ: 'JWT' })],
    ['an ID token, by a nonce that is null', () => claims({ nonce: null })],
    ['an ID token of Keycloak', () => claims({ nonce: 'n', typ: 'ID' })],
    ['an ID token of PingAM', () => claims({ tokenName: 'id_token', token_type: 'Bearer', nonce: 'n' })],
    ['a refresh token of PingAM', () => claims({ tokenName: 'refresh_token', token_type: 'Bearer' })],
    ['an ID token of Curity', () => claims({ purpose: 'id' })],
    ['a refresh token of Curity', () => claims({ purpose: 'refresh_token' })],
    ['an ID token, by the hash of the access token', () => claims({ at_hash: 'x' })],
    ['an ID token, by the hash of the code', () => claims({ c_hash: 'x' })],
    [
      'a logout token by its events',
      () => claims({ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }),
    ],
    ['bound to a key of its holder (cnf)', () => claims({ cnf: { jkt: 'x' } })],
    ['a cnf that is null', () => claims({ cnf: null })],
    ['no iat', () => claims({ iat: undefined })],
    ['an iat that is a text', () => claims({ iat: String(nowS) })],
    ['issued in the future', () => claims({ iat: nowS + 300, exp: nowS + 600 })],
    ['valid for longer than the longest lifetime', () => claims({ exp: nowS + 3601 })],
    ['an old one, valid for longer than the longest lifetime', () => claims({ iat: nowS - 3400, exp: nowS + 300 })],
    ['no sub', () => claims({ sub: undefined })],
    ['an empty sub', () => claims({ sub: '' })],
    ['a sub with a NUL', () => claims({ sub: 'a\u0000b' })],
    ['a binding that is not a string', () => claims({ bank_client_id: null })],
    ['an empty binding', () => claims({ bank_client_id: '' })],
    ['a payload that is a list', () => token({ claims: [goodClaims] })],
    ['a payload that is a text', () => token({ claims: '"x"' })],
    ['a payload that is null', () => token({ claims: 'null' })],
    ['a payload that is not JSON', () => token({ claims: '{' })],
    ['a header that is not JSON', () => `${part('{')}.${part(goodClaims)}.AAAA`],
    ['a header that is null', () => `${part('null')}.${part(goodClaims)}.AAAA`],
    ['dots', () => '..'],
    ['a signature in another encoding', () => `${good}=`],
    ['16 KB of nothing', () => 'A'.repeat(16_000)],
  ])('%s', async (_what, make) => {
    // contract: permission-9
    const { app } = await start();
    const response = await app.inject({ method: 'GET', url: '/', headers: { authorization: `Bearer ${make()}` } });
    expect([response.statusCode, response.json().code, response.json().message]).toEqual([
      401,
      'invalid_credentials',
      'the credentials are not valid',
    ]);
    expect(response.headers['www-authenticate']).toContain('Bearer');
  });
});

describe("the issuer's keys", () => {
  afterEach(() => void vi.restoreAllMocks());
  const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  test('are fetched once, and again when a new kid appears', async () => {
    // contract: permission-8
    const { status } = await start();
    await Promise.all([
      status(token()),
      status(token({ claims: { ...goodClaims, sub: 'a' } })),
      status(token({ alg: 'ES256' })),
    ]);
    expect(fetches).toBe(1);
    published = [jwk(rsa.publicKey, { kid: 'rsa' }), jwk(stranger.publicKey, { kid: 'new' })];
    await sleep(110);
    expect(await status(token({ header: { kid: 'new' }, signer: byStranger }))).toBe(200);
    expect(fetches).toBe(2);
  });

  test('unknown kids cause few requests to the issuer', async () => {
    vi.spyOn(Date, 'now').mockReturnValue(nowS * 1000);
    const { status } = await start();
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => status(token({ header: { kid: `k${i}` } }))),
    );
    expect(new Set(answers)).toEqual(new Set([401]));
    expect(fetches).toBe(1);
  });

  test('tokens that do not name the issuer cause no request to it', async () => {
    const { status } = await start();
    expect(await status(claims({ iss: 'https://other.example' }))).toBe(401);
    expect(fetches).toBe(0);
  });

  /** Successive times of a gateway that keeps keys for this long. */
  async function age(maxStaleMs: number) {
    let now = nowS * 1000;
    vi.spyOn(Date, 'now').mockImplementation(() => now);
    const { status } = await start({ keySet: createKeySet({ ...keySetOptions(), maxStaleMs }) });
    return {
      status,
      pass: (ms: number) => void (now += ms),
      fresh: () => claims({ exp: nowS + 3000, jti: String(Math.random()) }),
    };
  }
  test('a withdrawn key is refused at the first token after an idle time', async () => {
    const { status, pass, fresh } = await age(300_000);
    const seen = fresh();
    expect(await status(seen)).toBe(200);
    published = [jwk(ec.publicKey, { kid: 'ec', alg: 'ES256' })];
    pass(300_000);
    expect(await status(fresh())).toBe(401);
    expect(await status(seen)).toBe(401);
  });

  test('a withdrawn key is refused within a fifth of the time under load, also for verified tokens', async () => {
    const { status, pass, fresh } = await age(300_000);
    const seen = fresh();
    expect(await status(seen)).toBe(200);
    published = [jwk(ec.publicKey, { kid: 'ec', alg: 'ES256' })];
    pass(59_000);
    expect(await status(seen)).toBe(200);
    pass(1_000);
    // This token causes the keys to be fetched in the background.
    await status(seen);
    await vi.waitFor(async () => expect([await status(seen), await status(fresh())]).toEqual([401, 401]), 10_000);
    expect(fetches).toBe(2);
  });

  test('are kept while the issuer is unavailable, at most for five minutes: then 503, also for verified tokens', async () => {
    // contract: permission-8
    const { status, pass, fresh } = await age(300_000);
    const seen = fresh();
    expect(await status(seen)).toBe(200);
    away = true;
    pass(299_000);
    expect([await status(seen), await status(fresh())]).toEqual([200, 200]);
    pass(1_000);
    expect([await status(seen), await status(fresh())]).toEqual([503, 503]);
    away = false;
    pass(5_000);
    expect([await status(seen), await status(fresh())]).toEqual([200, 200]);
  });

  test('verified tokens are not verified again while the keys are unchanged, although they are fetched again', async () => {
    let now = nowS * 1000;
    vi.spyOn(Date, 'now').mockImplementation(() => now);
    const keySet = createKeySet(keySetOptions());
    let found = 0;
    const verify = await createTokenVerifier(fastify(), {
      ...tokenOptions(),
      keySet: { current: keySet.current, find: (header) => (found++, keySet.find(header)) },
    });
    const one = token();
    for (let i = 0; i < 2; i++) expect(await verify(one)).toBeDefined();
    const before = found;
    now += 60_000;
    keySet.current();
    await vi.waitFor(() => expect(fetches).toBe(2), 10_000);
    expect(await verify(one)).toBeDefined();
    expect(found).toBe(before);
  });

  test('if the issuer was never reached, a plausible token is 503, and an invalid one still 401', async () => {
    away = true;
    const { app, status } = await start();
    const response = await app.inject({ method: 'GET', url: '/', headers: { authorization: `Bearer ${token()}` } });
    expect([response.statusCode, response.json().code, response.headers['retry-after']]).toEqual([
      503,
      'service_unavailable',
      '1',
    ]);
    expect(await status('a.b.c')).toBe(401);
    away = false;
    await sleep(110);
    expect(await status(token())).toBe(200);
  });

  test('unreadable keys, and those for encryption, are ignored', async () => {
    published = [
      { kty: 'RSA', kid: 'broken', n: '!', e: 'AQAB' },
      { kty: 'oct', kid: 'oct', k: 'AAAA' },
      jwk(stranger.publicKey, { kid: 'enc', use: 'enc' }),
      jwk(rsa.publicKey, { kid: 'rsa' }),
    ];
    const { status } = await start();
    expect(await status(token())).toBe(200);
    expect(await status(token({ header: { kid: 'enc' }, signer: byStranger }))).toBe(401);
    expect(await status(token({ alg: 'HS256', header: { kid: 'oct' }, signer: hmacWith('') }))).toBe(401);
  });
});

describe('access to the whole bank', () => {
  const wholeBank = async (wholeBankClients: string[], ...claimed: object[]) => {
    const verify = await createTokenVerifier(fastify(), { ...tokenOptions(), wholeBankClients });
    return Promise.all(claimed.map(async (changes) => (await verify(claims(changes))) !== undefined));
  };

  test('is for tokens of the named OAuth clients, by azp, else by client_id', async () => {
    // contract: permission-12
    const front = { azp: 'front-end' };
    expect(
      await wholeBank(
        ['front-end', 'batch'],
        front,
        { client_id: 'batch' },
        { azp: 'other' },
        { client_id: 'other' },
        {},
        { azp: 'other', client_id: 'batch' },
      ),
    ).toEqual([true, true, false, false, false, false]);
    expect(await wholeBank([], front, {}, { azp: '*' })).toEqual([false, false, false]);
    expect(await wholeBank(['*'], front, {})).toEqual([true, true]);
  });

  test('is for nobody who is bound to a client; bound ones need not be named', async () => {
    const verify = await createTokenVerifier(fastify(), { ...tokenOptions(), wholeBankClients: [] });
    const caller = await verify(
      claims({ azp: 'app', bank_client_id: 'cli_y', scope: 'accounts:read audit:read transactions:write' }),
    );
    expect(caller).toMatchObject({ boundClientId: 'cli_y', scopes: new Set(['accounts:read']) });
  });
});

describe('scopes', () => {
  const verifiedScopes = async (options: Partial<TokenOptions>, changes: object) => {
    const verify = await createTokenVerifier(fastify(), { ...tokenOptions(), ...options });
    return [...((await verify(claims(changes)))?.scopes ?? [])].sort();
  };
  const roleScopes = new Map([
    ['teller', ['transactions:write', 'clients:read']],
    ['auditor', ['books:read']],
  ]);

  test('come from the named claim, a text or a list, and then not from scope', async () => {
    // contract: permission-11
    const scopesClaim = 'permissions';
    expect(await verifiedScopes({ scopesClaim }, { permissions: ['books:read', 'audit:read', 7, 'nonsense'] })).toEqual(
      ['audit:read', 'books:read'],
    );
    expect(await verifiedScopes({ scopesClaim }, { permissions: 'books:read audit:read' })).toEqual([
      'audit:read',
      'books:read',
    ]);
    for (const permissions of [undefined, null, 7, { 'books:read': true }])
      expect(await verifiedScopes({ scopesClaim }, { permissions })).toEqual([]);
    expect(await verifiedScopes({}, { permissions: ['books:read'] })).toEqual(['accounts:read', 'clients:read']);
  });

  test('come from a nested claim, and from a claim whose name contains dots', async () => {
    expect(
      await verifiedScopes({ scopesClaim: 'realm_access.roles' }, { realm_access: { roles: ['books:read'] } }),
    ).toEqual(['books:read']);
    expect(
      await verifiedScopes(
        { scopesClaim: 'https://bank.example/roles' },
        { 'https://bank.example/roles': ['books:read'] },
      ),
    ).toEqual(['books:read']);
    for (const scopesClaim of ['realm_access.roles.length', '__proto__', 'constructor.name'])
      expect(await verifiedScopes({ scopesClaim }, { realm_access: { roles: [] } })).toEqual([]);
  });

  test('are those of the roles; an unknown role has none, even if a scope has its name', async () => {
    // contract: permission-11
    expect(
      await verifiedScopes(
        { scopesClaim: 'roles', roleScopes },
        { roles: ['teller', 'auditor', 'ops:manage', 'toString'] },
      ),
    ).toEqual(['books:read', 'clients:read', 'transactions:write']);
  });
});

test('a cached token ends with its exp and the skew', async () => {
  let now = nowS * 1000;
  let verified = 0;
  const keySet = { find: async () => (verified++, publicKey), current: () => 'keys' };
  const publicKey = await importSPKI(publicPem, 'RS256', { extractable: true });
  const { status } = await start({ keySet }, () => now);
  const mine = claims({ exp: nowS + 10 });
  for (const [later, expected] of [
    [0, 200],
    [35_000, 200],
    [6_000, 401],
  ] as const) {
    now += later;
    expect(await status(mine)).toBe(expected);
  }
  // The third time it was verified again.
  expect(verified).toBe(2);
});
