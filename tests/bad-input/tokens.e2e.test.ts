import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { everyEndpoint, exchange, expectNothingDone, expectRefused } from '../support/hostile.ts';
import { useBank } from '../support/world.ts';

/**
 * Hostile input: forged tokens, signed by the test's own issuer. A trap counts connections to URLs
 * in tokens.
 */
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ed = generateKeyPairSync('ed25519');
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
const strangerEc = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = (key: KeyObject) => key.export({ format: 'jwk' });

const visits: string[] = [];
const server = createServer((request, response) => {
  const isIssuer = request.url === '/jwks';
  if (!isIssuer) visits.push(request.url ?? '');
  // `rsa`, `ec`, and `ed` do not state their algorithm. `shared` is a symmetric key, which must never be accepted.
  const keys = [
    { ...jwk(rsa.publicKey), kid: 'rsa' },
    { ...jwk(ec.publicKey), kid: 'ec' },
    { ...jwk(ed.publicKey), kid: 'ed' },
    { ...jwk(rsa.publicKey), kid: 'encryption', use: 'enc' },
    { kty: 'oct', k: 'c2VjcmV0', kid: 'shared' },
  ];
  response
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify({ keys: isIssuer ? keys : [{ ...jwk(stranger.publicKey), kid: 'stranger' }] }));
});
await new Promise<void>((resolve) => {
  server.listen(0, '127.0.0.1', resolve);
});
const here = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const issuer = 'https://issuer.example/realm';
const audience = 'bank';
const world = useBank({
  env: { JWT_ISSUER: issuer, JWT_AUDIENCE: audience, JWKS_URL: `${here}/jwks`, JWT_WHOLE_BANK_CLIENTS: '*' },
});
const { api } = world;
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
type Sign = (input: string) => Buffer;
const by = {
  RS256:
    (key = rsa.privateKey): Sign =>
    (input) =>
      sign('sha256', Buffer.from(input), key),
  RS512: (): Sign => (input) => sign('sha512', Buffer.from(input), rsa.privateKey),
  PS256: (): Sign => (input) => sign('sha256', Buffer.from(input), { key: rsa.privateKey, padding: 6, saltLength: 32 }),
  ES256:
    (key = ec.privateKey): Sign =>
    (input) =>
      sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }),
  DER: (): Sign => (input) => sign('sha256', Buffer.from(input), ec.privateKey),
  EdDSA: (): Sign => (input) => sign(null, Buffer.from(input), ed.privateKey),
  HMAC:
    (secret: string | Buffer, hash = 'sha256'): Sign =>
    (input) =>
      createHmac(hash, secret).update(input).digest(),
  bytes:
    (bytes: Buffer): Sign =>
    () =>
      bytes,
};
function token(header: object, claims: unknown, signer: Sign): string {
  const input = `${part({ typ: 'JWT', ...header })}.${part(claims)}`;
  return `${input}.${signer(input).toString('base64url')}`;
}
const now = Math.floor(Date.now() / 1000);
const good = { iss: issuer, aud: audience, sub: 'me', iat: now, exp: now + 3600, scope: 'clients:read accounts:read' };
const rs = (claims: object = {}, header: object = {}) =>
  token({ alg: 'RS256', typ: 'JWT', kid: 'rsa', ...header }, { ...good, ...claims }, by.RS256());
const without = (name: string) =>
  token(
    { alg: 'RS256', kid: 'rsa' },
    Object.fromEntries(Object.entries(good).filter(([key]) => key !== name)),
    by.RS256(),
  );
/** Returns a token signed with another key, with a header that names the location of that key. */
const strange = (header: object) =>
  token({ alg: 'RS256', kid: 'stranger', ...header }, good, by.RS256(stranger.privateKey));
const [head = '', payload = '', signature = ''] = rs().split('.');
const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString();
const confused = (secret: string | Buffer, alg = 'HS256', hash = 'sha256') =>
  token({ alg, kid: 'rsa' }, good, by.HMAC(secret, hash));
const certificate = rsa.publicKey.export({ type: 'spki', format: 'der' }).toString('base64');

const forgeries: Record<string, string> = {
  'no typ': rs({}, { typ: undefined }),
  'a logout token': rs({ events: {} }, { typ: 'logout+jwt' }),
  'an ID token': rs({ nonce: 'n' }),
  'bound to a key': rs({ cnf: { jkt: 'x' } }),
  'no iat': without('iat'),
  'valid for too long': rs({ exp: now + 90_000 }),
  'alg none': token({ alg: 'none' }, good, by.bytes(Buffer.alloc(0))),
  'alg none, kid': token({ alg: 'none', kid: 'rsa' }, good, by.bytes(Buffer.alloc(0))),
  'alg NONE': token({ alg: 'NONE', kid: 'rsa' }, good, by.bytes(Buffer.alloc(0))),
  'alg nOnE with a signature': token({ alg: 'nOnE', kid: 'rsa' }, good, by.RS256()),
  'no alg': token({ kid: 'rsa' }, good, by.RS256()),
  'alg null': token({ alg: null, kid: 'rsa' }, good, by.RS256()),
  'alg a list': token({ alg: ['RS256'], kid: 'rsa' }, good, by.RS256()),
  'alg empty': token({ alg: '', kid: 'rsa' }, good, by.RS256()),
  'alg in lower case': token({ alg: 'rs256', kid: 'rsa' }, good, by.RS256()),
  'alg with a blank': token({ alg: 'RS256 ', kid: 'rsa' }, good, by.RS256()),
  'alg toString': token({ alg: 'toString', kid: 'rsa' }, good, by.RS256()),
  'HS256, PEM': confused(pem),
  'HS256, trimmed PEM': confused(pem.trim()),
  'HS256, CRLF PEM': confused(pem.replaceAll('\n', '\r\n')),
  'HS256, PKCS#1 PEM': confused(rsa.publicKey.export({ type: 'pkcs1', format: 'pem' })),
  'HS256, DER': confused(rsa.publicKey.export({ type: 'spki', format: 'der' })),
  'HS256, modulus': confused(Buffer.from(String(jwk(rsa.publicKey).n), 'base64url')),
  'HS256, JWK': confused(JSON.stringify(jwk(rsa.publicKey))),
  'HS384, PEM': confused(pem, 'HS384', 'sha384'),
  'HS512, PEM': confused(pem, 'HS512', 'sha512'),
  'RS256, but an HMAC': confused(pem, 'RS256'),
  'HS256, empty secret': confused(''),
  'HS256, a shared key of the issuer': token({ alg: 'HS256', kid: 'shared' }, good, by.HMAC('secret')),
  'HS256, no kid': token({ alg: 'HS256' }, good, by.HMAC(pem)),
  'RS256 with an EC key': token({ alg: 'RS256', kid: 'ec' }, good, by.ES256()),
  'ES256 with an RSA key': token({ alg: 'ES256', kid: 'rsa' }, good, by.RS256()),
  'ES256 with an Ed key': token({ alg: 'ES256', kid: 'ed' }, good, by.EdDSA()),
  'EdDSA with an EC key': token({ alg: 'EdDSA', kid: 'ec' }, good, by.ES256()),
  'PS256 said, RS256 signed': token({ alg: 'PS256', kid: 'rsa' }, good, by.RS256()),
  'RS256 said, PS256 signed': token({ alg: 'RS256', kid: 'rsa' }, good, by.PS256()),
  RS512: token({ alg: 'RS512', kid: 'rsa' }, good, by.RS512()),
  ES256K: token({ alg: 'ES256K', kid: 'ec' }, good, by.ES256()),
  'a key for encryption': token({ alg: 'RS256', kid: 'encryption' }, good, by.RS256()),
  'psychic: zeros': token({ alg: 'ES256', kid: 'ec' }, good, by.bytes(Buffer.alloc(64))),
  'psychic: r = 0': token(
    { alg: 'ES256', kid: 'ec' },
    good,
    by.bytes(Buffer.concat([Buffer.alloc(32), Buffer.alloc(32, 1)])),
  ),
  'psychic: the order': token(
    { alg: 'ES256', kid: 'ec' },
    good,
    by.bytes(Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551'.repeat(2), 'hex')),
  ),
  'psychic: DER zeros': token({ alg: 'ES256', kid: 'ec' }, good, by.bytes(Buffer.from('3006020100020100', 'hex'))),
  'ES256 in DER': token({ alg: 'ES256', kid: 'ec' }, good, by.DER()),
  'ES256 of a stranger': token({ alg: 'ES256', kid: 'ec' }, good, by.ES256(strangerEc.privateKey)),
  'EdDSA zeros': token({ alg: 'EdDSA', kid: 'ed' }, good, by.bytes(Buffer.alloc(64))),
  'RSA zeros': token({ alg: 'RS256', kid: 'rsa' }, good, by.bytes(Buffer.alloc(256))),
  'RSA one': token({ alg: 'RS256', kid: 'rsa' }, good, by.bytes(Buffer.concat([Buffer.alloc(255), Buffer.from([1])]))),
  'an empty signature': `${head}.${payload}.`,
  'no signature': `${head}.${payload}`,
  'the signature of another token': `${head}.${part({ ...good, scope: 'keys:manage' })}.${signature}`,
  'another header': `${part({ alg: 'RS256', kid: 'rsa', x: 1 })}.${payload}.${signature}`,
  'half a signature': `${head}.${payload}.${signature.slice(0, 100)}`,
  'a longer signature': `${head}.${payload}.${signature}AAAA`,
  'the signature twice': `${head}.${payload}.${signature}${signature}`,
  'trailing dot': `${rs()}.`,
  'trailing dots': `${rs()}..`,
  'leading dot': `.${rs()}`,
  dots: '..',
  'one dot': '.',
  'five parts (JWE)': `${head}.${payload}.${signature}.${payload}.${signature}`,
  'four parts': `${rs()}.${signature}`,
  'JWE-looking': `${part({ alg: 'RSA-OAEP', enc: 'A256GCM' })}.AAAA.AAAA.AAAA.AAAA`,
  padding: `${rs()}==`,
  'plain base64': `${head}.${payload}.+/${signature.slice(2)}`,
  'a blank': `${head}. ${payload}.${signature}`,
  'two in one': `${rs()},${rs()}`,
  'percent-encoded': rs().replaceAll('.', '%2E'),
  'JSON serialisation': JSON.stringify({ protected: head, payload, signature }),
  nested: token({ alg: 'RS256', kid: 'rsa', cty: 'JWT' }, rs(), by.RS256()),
  'a payload that is a list': token({ alg: 'RS256', kid: 'rsa' }, [good], by.RS256()),
  'a payload that is null': token({ alg: 'RS256', kid: 'rsa' }, 'null', by.RS256()),
  'a payload that is a text': token({ alg: 'RS256', kid: 'rsa' }, '"x"', by.RS256()),
  'a payload that is not JSON': token({ alg: 'RS256', kid: 'rsa' }, '{', by.RS256()),
  'an empty payload': token({ alg: 'RS256', kid: 'rsa' }, '', by.RS256()),
  'a header that is a list': `${part([])}.${payload}.${signature}`,
  'a header that is null': `${part('null')}.${payload}.${signature}`,
  'a header that is not JSON': `${part('{')}.${payload}.${signature}`,
  __proto__: token({ alg: 'RS256', kid: 'rsa' }, '{"__proto__":{"iss":"x"}}', by.RS256()),
  expired: rs({ exp: now - 31 }),
  'expired long ago': rs({ exp: 1 }),
  'exp 0': rs({ exp: 0 }),
  'exp negative': rs({ exp: -1 }),
  'exp a text': rs({ exp: String(now + 3600) }),
  'exp null': rs({ exp: null }),
  'exp true': rs({ exp: true }),
  'exp a list': rs({ exp: [now + 3600] }),
  'exp an object': rs({ exp: { $gt: 0 } }),
  'no exp': without('exp'),
  'exp infinite': token(
    { alg: 'RS256', kid: 'rsa' },
    JSON.stringify(good).replace(/"exp":\d+/, '"exp":1e999'),
    by.RS256(),
  ),
  'exp beyond all dates': rs({ exp: 1e300 }),
  'not yet valid': rs({ nbf: now + 3600 }),
  'nbf a text': rs({ nbf: 'now' }),
  'nbf null': rs({ nbf: null }),
  'nbf huge': rs({ nbf: 1e300 }),
  'another aud': rs({ aud: 'shop' }),
  'aud in upper case': rs({ aud: audience.toUpperCase() }),
  'aud with a blank': rs({ aud: `${audience} ` }),
  'aud a list of others': rs({ aud: ['shop', 'bank2'] }),
  'aud an empty list': rs({ aud: [] }),
  'aud a list in a list': rs({ aud: [[audience]] }),
  'aud an object': rs({ aud: { 0: audience } }),
  'aud empty': rs({ aud: '' }),
  'aud null': rs({ aud: null }),
  'no aud': without('aud'),
  'another iss': rs({ iss: 'https://evil.example' }),
  'iss with a slash': rs({ iss: `${issuer}/` }),
  'iss as a prefix': rs({ iss: `${issuer}.evil.example` }),
  'iss in upper case': rs({ iss: issuer.toUpperCase() }),
  'iss a list': rs({ iss: [issuer] }),
  'iss null': rs({ iss: null }),
  'iss is the trap': rs({ iss: here }),
  'no iss': without('iss'),
  'no sub': without('sub'),
  'sub empty': rs({ sub: '' }),
  'sub a number': rs({ sub: 1 }),
  'sub a list': rs({ sub: ['me'] }),
  'sub with NUL': rs({ sub: 'me\u0000' }),
  'sub of two lines': rs({ sub: 'me\nyou' }),
  'sub of 10 KB': rs({ sub: 'x'.repeat(10_000) }),
  ...Object.fromEntries(
    Object.entries({
      'of one blank': ' ',
      'that begins with a blank': ' me',
      'that ends with a blank': 'me ',
      'with two blanks': 'a  b',
      'with a tab': 'a\tb',
      'with a no-break space': 'a\u00a0b',
      'with an ideographic space': 'a\u3000b',
      'with a line separator': 'a\u2028b',
      'with a right-to-left override': 'me\u202eem',
      'with a right-to-left isolate': 'me\u2067em',
      'with a right-to-left mark': 'me\u200f',
      'with a zero-width space': 'me\u200b',
      'with a zero-width joiner': 'm\u200de',
      'with a soft hyphen': 'm\u00ade',
      'with a byte order mark': '\ufeffme',
      'with a variation selector': 'me\ufe0f',
      'with a combining joiner': 'm\u034fe',
      'of a Hangul filler': '\u3164',
      'of an empty braille pattern': '\u2800',
      'with a tag': 'me\u{e0041}',
      'with a private character': 'me\ue000',
      'with an unassigned character': 'me\u0378',
      'with a lone surrogate': 'me\ud800',
      'with a C1 control': 'me\u0085',
      'of 256 characters': 'x'.repeat(256),
    }).map(([name, sub]) => [`sub ${name}`, rs({ sub })]),
  ),
  ...Object.fromEntries(
    ['typ', 'token_use', 'token_type'].flatMap((claim) =>
      [
        'ID',
        'id',
        'id_token',
        'Refresh',
        'refresh',
        'refresh_token',
        'Offline',
        'Logout',
        'Serialized-ID',
        'DPoP',
        'bearer ',
        '',
        1,
        null,
        ['Bearer'],
      ].map((value) => [`the claim ${claim} is ${JSON.stringify(value)}`, rs({ [claim]: value })]),
    ),
  ),
  'a hash of the state': rs({ s_hash: 'x' }),
  'bank_client_id null': rs({ bank_client_id: null }),
  'bank_client_id empty': rs({ bank_client_id: '' }),
  'bank_client_id a list': rs({ bank_client_id: [] }),
  'bank_client_id a number': rs({ bank_client_id: 1 }),
  'no kid': rs({}, { kid: undefined }),
  'kid unknown': rs({}, { kid: 'nobody' }),
  'kid null': rs({}, { kid: null }),
  'kid a number': rs({}, { kid: 1 }),
  'kid a list': rs({}, { kid: ['rsa'] }),
  'kid empty': rs({}, { kid: '' }),
  'kid in upper case': rs({}, { kid: 'RSA' }),
  'kid __proto__': rs({}, { kid: '__proto__' }),
  'kid constructor': rs({}, { kid: 'constructor' }),
  'kid a path': strange({ kid: '../../../../dev/null' }),
  'kid /etc/passwd': strange({ kid: '/etc/passwd' }),
  'kid SQL': strange({ kid: "' union select 'x' --" }),
  'kid a command': strange({ kid: '$(sleep 5)' }),
  'kid a URL': strange({ kid: `${here}/kid` }),
  'kid of another key': rs({}, { kid: 'ed' }),
  'kid with a line break': rs({}, { kid: 'rsa\r\nx: y' }),
  'kid of 10 KB': rs({}, { kid: 'k'.repeat(10_000) }),
  'kid /dev/null, HMAC': token({ alg: 'HS256', kid: '/dev/null' }, good, by.HMAC('')),
  jku: strange({ jku: `${here}/jku` }),
  'jku, known kid': strange({ kid: 'rsa', jku: `${here}/jku2` }),
  x5u: strange({ x5u: `${here}/x5u` }),
  x5c: strange({ x5c: [certificate] }),
  jwk: strange({ jwk: jwk(stranger.publicKey) }),
  'jwk, known kid': strange({ kid: 'rsa', jwk: { ...jwk(stranger.publicKey), kid: 'rsa' } }),
  'jwk private': strange({ jwk: jwk(stranger.privateKey) }),
  'jku a file': strange({ jku: 'file:///etc/passwd' }),
  x5t: strange({ x5t: 'AAAA' }),
  'all of them': strange({ jku: `${here}/a`, x5u: `${here}/b`, x5c: [certificate], jwk: jwk(stranger.publicKey) }),
  'crit unknown': rs({}, { crit: ['exp'], exp: 1 }),
  'crit b64': rs({}, { crit: ['b64'], b64: false }),
  'crit b64 true': rs({}, { crit: ['b64'], b64: true }),
  'crit alg': rs({}, { crit: ['alg'] }),
  'crit empty': rs({}, { crit: [] }),
  'crit null': rs({}, { crit: null }),
  'crit a text': rs({}, { crit: 'b64' }),
  'crit false': rs({}, { crit: false }),
  '30 KB': 'A'.repeat(30_000),
  '25 KB of claims, unsigned': `${head}.${part({ ...good, x: 'x'.repeat(15_000) })}.${signature}`,
  'deeply nested claims': token(
    { alg: 'RS256', kid: 'rsa' },
    `${'['.repeat(8000)}${']'.repeat(8000)}`,
    by.RS256(stranger.privateKey),
  ),
};

describe('forged tokens', () => {
  expectNothingDone(world);
  const challenges = new Set<string>();

  it.each(Object.entries(forgeries))('%s', async (_, forged) => {
    const answer = await api.withToken(forged).get('/clients');
    const { message } = expectRefused(answer, 401, 'invalid_credentials');
    expect(message).toBe('the credentials are not valid');
    challenges.add(answer.header('www-authenticate') ?? '');
  });

  it('all get the same challenge, and no URL of a token was requested', () => {
    expect([...challenges]).toEqual([expect.stringMatching(/^Bearer /)]);
    expect(visits).toEqual([]);
  });

  it('a token of 80 KB exceeds the header limit', async () => {
    const { answers } = await exchange(
      api.baseUrl,
      `GET /clients HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${'A'.repeat(81_920)}\r\n\r\n`,
      { quietMs: 20 },
    );
    expect(answers.map(({ status }) => status)).toEqual([431]);
  });

  it.each([
    '',
    'Bearer',
    'Bearer ',
    'bearer',
    'Basic @',
    'JWT @',
    'Token @',
    'Bearer:@',
    'Bearer=@',
    'Bearer\t@',
    'Bearer "@"',
    'Bearer token=@',
    'Bearer @ x',
    'Bearer @, Bearer @',
    'Bearer Bearer @',
    '@',
    'x-api-key @',
    'Digest @',
    'Bearer @;',
  ])('Authorization: %s', async (form) => {
    expectRefused(
      await api.with({ authorization: form.replaceAll('@', rs()) }).get('/clients'),
      401,
      'invalid_credentials',
    );
  });

  it.each(everyEndpoint.map(({ method, path }) => [method, path] as const))('%s %s', async (method, path) => {
    expectRefused(
      await api
        .withToken(rs({ exp: now - 60, scope: 'clients:write accounts:write transactions:write' }))
        .send(method, path, method === 'GET' ? {} : { raw: '{' }),
      401,
      'invalid_credentials',
    );
  });
});

describe('valid tokens are accepted, so the forgeries are refused because of their own defects', () => {
  let ok: (jwt: string, scheme?: string) => Promise<number>;
  beforeAll(() => {
    ok = async (jwt, scheme = 'Bearer ') => (await api.with({ authorization: scheme + jwt }).get('/clients')).status;
  });

  it.each<[string, string]>([
    ['RS256', rs()],
    ['PS256', token({ alg: 'PS256', kid: 'rsa' }, good, by.PS256())],
    ['ES256', token({ alg: 'ES256', kid: 'ec' }, good, by.ES256())],
    ['EdDSA', token({ alg: 'EdDSA', kid: 'ed' }, good, by.EdDSA())],
    ['a list of aud', rs({ aud: ['shop', audience] })],
    ['typ at+jwt', rs({}, { typ: 'at+jwt' })],
    ['a list of scopes', rs({ scope: ['clients:read', 'accounts:read'] })],
    ...['Bearer', 'bearer', 'at+jwt', 'JWT'].map((typ): [string, string] => [`the claim typ ${typ}`, rs({ typ })]),
    ['the claim token_use access', rs({ token_use: 'access' })],
    ['the claim token_type Bearer', rs({ token_type: 'Bearer' })],
    ...[
      'auth0|5f',
      'amina@bank.example',
      'CN=Amina Otieno, O=Bank',
      '\u0623\u0645\u064a\u0646\u0629',
      'x'.repeat(255),
    ].map((sub): [string, string] => [`sub ${sub}`, rs({ sub })]),
  ])('%s', async (_, jwt) => {
    expect(await ok(jwt)).toBe(200);
  });

  it('with a clock skew of up to 30 s', async () => {
    const seconds = Math.floor(Date.now() / 1000);
    expect(await ok(rs({ exp: seconds - 5, nbf: seconds + 20 }))).toBe(200);
  });

  it.each(['bearer ', 'BEARER ', 'Bearer  ', 'Bearer      '])('with the scheme written as %j', async (scheme) => {
    expect(await ok(rs(), scheme)).toBe(200);
  });

  it.each([
    [''],
    ['  '],
    ['clients'],
    ['clients:*'],
    ['*'],
    ['CLIENTS:READ'],
    ['clients:read,accounts:read'],
    ['clients:readx xclients:read'],
    [{ 'clients:read': true }],
    [true],
    [null],
    ['\u0000clients:read'],
    ['clients:read\u00a0'],
  ])('a scope of %j grants nothing', async (scope) => {
    expectRefused(await api.withToken(rs({ scope })).get('/clients'), 403, 'insufficient_scope');
  });

  it('scopes elsewhere in the token grant no permission', async () => {
    const elsewhere = {
      scope: undefined,
      scp: ['clients:read'],
      scopes: 'clients:read',
      roles: ['clients:read'],
      permissions: ['clients:read'],
      realm_access: { roles: ['admin'] },
    };
    expectRefused(await api.withToken(rs(elsewhere)).get('/clients'), 403, 'insufficient_scope');
    expectRefused(
      await api.withToken(rs({ scope: 'x' }, { scope: 'clients:read' })).get('/clients'),
      403,
      'insufficient_scope',
    );
  });
});
