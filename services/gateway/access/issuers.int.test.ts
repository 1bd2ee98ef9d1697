import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Configuration, JWKS } from 'oidc-provider';
import Provider from 'oidc-provider';
import { pino } from 'pino';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '#libs/service/config.ts';
import { gatewayConfig } from '../config.ts';
import { ids, ok, samples, testApp } from '../test/test-app.ts';
import { createKeySet } from './jwks.ts';
import { asymmetricAlgorithms } from './tokens.ts';

/**
 * Tests docs/security/identity-providers.md: each issuer in its table, with the settings in its table, and with tokens of
 * the form that the issuer writes. A real OpenID provider issues and signs them; the forms replace its own.
 * `npm run check:deploy -- --only keycloak` uses a real Keycloak.
 */
type Claims = Record<string, unknown>;
/** A token: the typ of its header (undefined: none), and its claims besides iss, iat, and exp. */
type Token = [typ: string | undefined, claims: Claims];
interface Tokens {
  person: Token;
  machine: Token;
  customer: Token;
  /** Other tokens of the same issuer, as if they had the bank's audience. */
  refused: Record<string, Token>;
}

const [user, machine] = ['5f0c1f6e-7f0e-4c5a-9d0e-3f6a1c2b4d5e', '0b1d6b1e-52b0-4a3c-8f8e-1f2a3b4c5d6e'];
const aud = 'core-banking';
const bound = { bank_client_id: ids.client };
/** The roles of a customer are more than it may use. */
const [teller, both] = [['teller'], ['teller', 'auditor']];

function keycloak(): Tokens {
  const token = (typ: string, more: Claims): Token => [
    'JWT',
    { jti: 'x', aud: [aud, 'account'], sub: user, typ, azp: 'dashboard', acr: '1', scope: 'profile email', ...more },
  ];
  const roles = (names: string[]) => ({ realm_access: { roles: ['offline_access', ...names] } });
  const session = { sid: 'x', preferred_username: 'amina', ...roles(teller) };
  return {
    person: token('Bearer', session),
    machine: token('Bearer', { ...roles(teller), preferred_username: 'service-account-dashboard' }),
    customer: token('Bearer', { sid: 'x', azp: 'app', ...roles(both), ...bound }),
    refused: {
      'ID token': token('ID', { ...session, at_hash: 'x', nonce: 'x' }),
      'ID token of a refresh, without at_hash and nonce': token('ID', session),
      'refresh token': token('Refresh', session),
      'offline token': token('Offline', session),
      'logout token': token('Logout', { ...session, events: {} }),
      'logout token without events': token('Logout', session),
      'token of an action': token('verify-email', session),
      'initial access token': token('InitialAccessToken', session),
      'token of a client registration': token('RegistrationAccessToken', session),
    },
  };
}

/** Issued by login.microsoftonline.com (2.0) or sts.windows.net (1.0). */
function entra(ver: '1.0' | '2.0'): Tokens {
  const of = (client: string) => (ver === '2.0' ? { azp: client, azpacr: '1' } : { appid: client, appidacr: '1' });
  const token = (client: string, more: Claims): Token => [
    'JWT',
    {
      aud,
      nbf: 1,
      sub: 'AAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ',
      oid: user,
      tid: user,
      ver,
      uti: 'x',
      ...of(client),
      ...more,
    },
  ];
  const delegated = { scp: 'access', roles: teller };
  return {
    person: token('dashboard', delegated),
    machine: token('dashboard', { sub: machine, oid: machine, roles: teller }),
    customer: token('app', { scp: 'access', roles: both, ...bound }),
    refused: {
      'ID token': token('dashboard', { ...delegated, nonce: 'x', preferred_username: 'amina' }),
      'ID token of a code flow': token('dashboard', { ...delegated, c_hash: 'x' }),
      'token of another application': token('other', delegated),
    },
  };
}

/** With either of the two profiles of access tokens. */
function auth0(profile: 'Auth0' | 'RFC 9068'): Tokens {
  const token = (client: string, more: Claims): Token => [
    profile === 'Auth0' ? 'JWT' : 'at+jwt',
    {
      aud: [aud, 'https://tenant.example/userinfo'],
      sub: 'auth0|507f1f77bcf86cd799439011',
      scope: 'openid profile',
      permissions: ['clients:read', 'accounts:read'],
      ...(profile === 'Auth0' ? { azp: client } : { client_id: client, jti: 'x' }),
      ...more,
    },
  ];
  return {
    person: token('dashboard', {}),
    machine: token('dashboard', { sub: 'dashboard@clients', gty: 'client-credentials' }),
    customer: token('app', { permissions: ['clients:read', 'accounts:read', 'books:read'], ...bound }),
    refused: {
      'ID token': ['JWT', { aud, sub: 'auth0|1', azp: 'dashboard', nonce: 'x', sid: 'x' }],
      'ID token with a hash': ['JWT', { aud, sub: 'auth0|1', azp: 'dashboard', at_hash: 'x', permissions: teller }],
      'logout token': ['logout+jwt', { aud, sub: 'auth0|1', azp: 'dashboard', events: {}, sid: 'x' }],
    },
  };
}

/** A custom authorization server: `default`, or one of the bank's own. */
function okta(): Tokens {
  const token = (cid: string, more: Claims, typ?: string): Token => [
    typ,
    { ver: 1, jti: 'AT.x', aud, cid, uid: '00u1', sub: 'amina@bank.example', scp: ['openid', 'clients:read'], ...more },
  ];
  return {
    person: token('dashboard', { auth_time: 1 }),
    machine: token('dashboard', { sub: 'dashboard', uid: undefined, scp: ['clients:read'] }),
    customer: token('app', { scp: ['openid', 'clients:read', 'books:read'], ...bound }),
    refused: {
      'ID token': token('dashboard', { jti: 'ID.x', amr: ['pwd'], idp: 'x', at_hash: 'x', nonce: 'x' }),
      'ID token of a refresh': token('dashboard', { jti: 'ID.x', amr: ['pwd'], idp: 'x', at_hash: 'x' }),
      "token of the organization's server": token('dashboard', {}, 'application/okta-internal-at+jwt'),
    },
  };
}

/** With a trigger before the generation of tokens, which adds aud and bank_client_id. */
function cognito(): Tokens {
  const token = (client_id: string, token_use: string, more: Claims): Token => [
    undefined,
    {
      aud: client_id === 'app' ? 'app' : aud,
      sub: user,
      client_id,
      token_use,
      scope: 'openid core-banking/teller',
      username: 'amina',
      version: 2,
      origin_jti: 'x',
      ...more,
    },
  ];
  return {
    person: token('dashboard', 'access', { 'cognito:groups': teller, auth_time: 1 }),
    machine: token('dashboard', 'access', { sub: 'dashboard', username: undefined, scope: 'core-banking/teller' }),
    customer: token('app', 'access', { scope: 'openid core-banking/teller core-banking/auditor', ...bound }),
    refused: {
      'ID token': token('dashboard', 'id', { 'cognito:username': 'amina', at_hash: 'x' }),
      'ID token of a refresh': token('dashboard', 'id', { 'cognito:username': 'amina' }),
      'access token of another app client': token('dashboard', 'access', { aud: 'shop' }),
    },
  };
}

/** With a token customizer, which adds client_id, aud, and bank_client_id. */
function spring(): Tokens {
  const token = (client_id: string, more: Claims): Token => [
    undefined,
    { jti: 'x', aud: [aud], sub: 'amina', nbf: 1, scope: ['openid', 'clients:read'], client_id, ...more },
  ];
  return {
    person: token('dashboard', {}),
    machine: token('dashboard', { aud, sub: 'dashboard', scope: ['clients:read'] }),
    customer: token('app', { scope: ['clients:read', 'books:read'], ...bound }),
    refused: {
      'ID token': token('dashboard', { azp: 'dashboard', nonce: 'x', sid: 'x', scope: undefined }),
      'logout token': token('dashboard', { events: {}, scope: undefined }),
      'access token without customizer': token('dashboard', { client_id: undefined }),
    },
  };
}

function pingOne(): Tokens {
  const token = (client_id: string, more: Claims): Token => [
    undefined,
    { jti: 'x', aud: [aud], sub: user, client_id, env: user, org: user, scope: 'openid clients:read', ...more },
  ];
  return {
    person: token('dashboard', { sid: 'x', acr: 'Single_Factor', auth_time: 1 }),
    machine: token('dashboard', { sub: 'dashboard', scope: 'clients:read' }),
    customer: token('app', { sid: 'x', scope: 'clients:read books:read', ...bound }),
    refused: {
      'ID token': token('dashboard', { amr: ['pwd'], nonce: 'x', at_hash: 'x' }),
      'logout token': token('dashboard', { events: {} }),
      'sender-constrained token': token('dashboard', { cnf: { jkt: 'x' } }),
    },
  };
}

/** The tokens of each issuer that the page names. Some have two forms. */
const issuers: Record<string, Tokens[]> = {
  Keycloak: [keycloak()],
  'Entra ID 2.0': [entra('2.0')],
  'Entra ID 1.0': [entra('1.0')],
  Auth0: [auth0('Auth0'), auth0('RFC 9068')],
  Okta: [okta()],
  'AWS Cognito': [cognito()],
  'Spring Authorization Server': [spring()],
  PingOne: [pingOne()],
};

/** The table of the page: the settings of each issuer, without empty ones. */
const page = readFileSync(new URL('../../../docs/security/identity-providers.md', import.meta.url), 'utf8');
const [names = [], ...rows] = page
  .split('\n')
  .filter((line) => line.startsWith('|') && !line.startsWith('|--'))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  );
const documented = new Map(
  rows.map(([name = '', ...cells]) => [
    name,
    Object.fromEntries(cells.flatMap((cell, i) => (cell === '' ? [] : [[names[i + 1] ?? '', cell]]))),
  ]),
);

it('the page names these issuers', () => {
  expect([...documented.keys()].sort()).toEqual(Object.keys(issuers).sort());
});

const servers: Server[] = [];
afterAll(() => Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve)))));

/** Starts a provider whose clients get these tokens. Returns its issuer, and a function that requests a token. */
async function startIssuer(tokens: Record<string, Token>) {
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kinds = Object.keys(tokens);
  const configuration: Configuration = {
    jwks: { keys: [{ ...key, kid: 'one', use: 'sig', alg: 'RS256' }] } as JWKS,
    clients: kinds.map((_, i) => ({
      client_id: String(i),
      client_secret: 'a secret of this test',
      token_endpoint_auth_method: 'client_secret_post' as const,
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
    })),
    clientAuthMethods: ['client_secret_post'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:core-banking',
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          audience: 'core-banking',
          scope: '',
          accessTokenFormat: 'jwt',
          accessTokenTTL: 600,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    formats: {
      customizers: {
        jwt(_ctx, { clientId }, jwt) {
          const [typ, claims] = tokens[kinds[Number(clientId)] ?? ''] ?? [];
          const { iss, iat, exp } = jwt.payload as Claims;
          Object.assign(jwt, {
            header: { ...(jwt.header as object), typ },
            payload: { iss, iat, exp, ...claims, ...(claims?.['nbf'] !== undefined && { nbf: iat }) },
          });
        },
      },
    },
  };
  server.on('request', new Provider(issuer, configuration).callback());
  const requestToken = async (kind: string): Promise<string> => {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: String(kinds.indexOf(kind)),
      client_secret: 'a secret of this test',
    });
    const answer = await fetch(`${issuer}/token`, { method: 'POST', body });
    const text = await answer.text();
    expect(answer.status, text).toBe(200);
    return (JSON.parse(text) as { access_token: string }).access_token;
  };
  return { issuer, requestToken };
}

const { JWT_TOKEN_TYPES, JWT_SCOPES_CLAIM, JWT_ROLE_SCOPES } = gatewayConfig.shape;
const settings = z.object({ JWT_TOKEN_TYPES, JWT_SCOPES_CLAIM, JWT_ROLE_SCOPES });

describe.each(Object.entries(issuers).flatMap(([name, forms]) => forms.map((form) => [name, form] as const)))(
  '%s',
  (name, { person, machine: program, customer, refused }) => {
    it('roles become scopes, machines are not people, customers are bound, and other tokens are refused', async () => {
      // contract: permission-9, permission-10
      const { issuer, requestToken } = await startIssuer({ person, program, customer, ...refused });
      const config = loadConfig(settings, documented.get(name) ?? {});
      const tokens = {
        issuer,
        audience: [aud, 'app'],
        algorithms: asymmetricAlgorithms,
        types: config.JWT_TOKEN_TYPES,
        keySet: createKeySet({ url: `${issuer}/jwks`, logger: pino({ level: 'silent' }), maxStaleMs: 300_000 }),
        wholeBankClients: ['dashboard'],
        maxLifetimeS: 3600,
        ...(config.JWT_SCOPES_CLAIM && { scopesClaim: config.JWT_SCOPES_CLAIM }),
        ...(config.JWT_ROLE_SCOPES && { roleScopes: config.JWT_ROLE_SCOPES }),
      };
      const { app, sent } = await testApp(() => ok(samples.client), { tokens });
      const ask = async (kind: string) => {
        const headers = { authorization: `Bearer ${await requestToken(kind)}` };
        const status = async (url: string) => (await app.inject({ method: 'GET', url, headers })).statusCode;
        const [client, books] = [await status(`/clients/${ids.client}`), await status('/admin/trial-balance')];
        const { headers: message = {} } = sent.find(({ headers: { actor } }) => actor !== undefined) ?? {};
        sent.length = 0;
        return { client, books, staff: message['staff'], bound: message['bound-client-id'] };
      };
      expect(await ask('person')).toEqual({ client: 200, books: 403, staff: 'true', bound: undefined });
      expect(await ask('program')).toEqual({ client: 200, books: 403, staff: undefined, bound: undefined });
      // Scopes of the bank are ignored in a bound token, whatever its role.
      expect(await ask('customer')).toEqual({ client: 200, books: 403, staff: undefined, bound: ids.client });
      for (const kind of Object.keys(refused))
        expect([kind, await ask(kind)]).toEqual([
          kind,
          { client: 401, books: 401, staff: undefined, bound: undefined },
        ]);
      await app.close();
    });
  },
);
