import { generateKeyPairSync } from 'node:crypto';
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
 * Tests docs/security/identity-providers.md with access tokens of Keycloak, Entra ID, and Auth0. A real OpenID provider
 * issues and signs them. The three differ only in their claims, which replace the provider's own.
 * `npm run check:deploy -- --only keycloak` uses a real Keycloak.
 */
const [subject, oid] = ['5f0c1f6e-7f0e-4c5a-9d0e-3f6a1c2b4d5e', '0b1d6b1e-52b0-4a3c-8f8e-1f2a3b4c5d6e'];
type Shape = (payload: Record<string, unknown>) => { header?: object; payload: Record<string, unknown> };
interface Product {
  settings: { JWT_SCOPES_CLAIM?: string; JWT_ROLE_SCOPES?: string };
  person: Shape;
  machine: Shape;
  customer: Shape;
  /** Returns an ID token of the same issuer. */
  idToken: Shape;
}

const roles = 'teller=clients:read accounts:read;auditor=books:read audit:read';
const base = ({ iss, iat, exp, jti }: Record<string, unknown>) => ({ iss, iat, exp, jti });
const keycloak = (payload: Record<string, unknown>, more: object) => ({
  header: { typ: 'JWT' },
  payload: {
    ...base(payload),
    aud: ['core-banking', 'account'],
    sub: subject,
    typ: 'Bearer',
    azp: 'dashboard',
    acr: '1',
    scope: 'profile email',
    ...more,
  },
});
const entra = (payload: Record<string, unknown>, more: object) => ({
  header: { typ: 'JWT' },
  payload: {
    ...base(payload),
    nbf: payload['iat'],
    aud: 'core-banking',
    sub: 'AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ',
    oid,
    azp: 'dashboard',
    azpacr: '1',
    tid: subject,
    ver: '2.0',
    ...more,
  },
});
const auth0 = (payload: Record<string, unknown>, more: object) => ({
  header: { typ: 'at+jwt' },
  payload: {
    ...base(payload),
    aud: ['core-banking', 'https://tenant.example/userinfo'],
    sub: 'auth0|507f1f77bcf86cd799439011',
    azp: 'dashboard',
    scope: 'openid profile',
    permissions: ['clients:read', 'accounts:read'],
    ...more,
  },
});

const products: Record<string, Product> = {
  Keycloak: {
    settings: { JWT_SCOPES_CLAIM: 'realm_access.roles', JWT_ROLE_SCOPES: roles },
    person: (payload) =>
      keycloak(payload, {
        sid: 'x',
        realm_access: { roles: ['offline_access', 'teller'] },
        preferred_username: 'amina',
      }),
    machine: (payload) =>
      keycloak(payload, {
        realm_access: { roles: ['teller'] },
        preferred_username: 'service-account-dashboard',
        clientHost: '192.0.2.1',
      }),
    customer: (payload) =>
      keycloak(payload, {
        sid: 'x',
        azp: 'app',
        realm_access: { roles: ['teller', 'auditor'] },
        bank_client_id: ids.client,
      }),
    idToken: (payload) => keycloak(payload, { sid: 'x', typ: 'ID', at_hash: 'x', realm_access: { roles: ['teller'] } }),
  },
  'Entra ID': {
    settings: { JWT_SCOPES_CLAIM: 'roles', JWT_ROLE_SCOPES: roles },
    person: (payload) => entra(payload, { scp: 'access', roles: ['teller'] }),
    machine: (payload) => entra(payload, { sub: oid, roles: ['teller'] }),
    customer: (payload) =>
      entra(payload, { azp: 'app', scp: 'access', roles: ['teller', 'auditor'], bank_client_id: ids.client }),
    idToken: (payload) => entra(payload, { nonce: 'x', roles: ['teller'] }),
  },
  Auth0: {
    settings: { JWT_SCOPES_CLAIM: 'permissions' },
    person: (payload) => auth0(payload, {}),
    machine: (payload) => auth0(payload, { sub: 'dashboard@clients', gty: 'client-credentials' }),
    customer: (payload) =>
      auth0(payload, {
        azp: 'app',
        permissions: ['clients:read', 'accounts:read', 'books:read'],
        bank_client_id: ids.client,
      }),
    idToken: (payload) => ({ ...auth0(payload, { nonce: 'x' }), header: { typ: 'JWT' } }),
  },
};

const kinds = ['person', 'machine', 'customer', 'idToken'] as const;
const servers: Server[] = [];
afterAll(() => Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve)))));

/** Returns the provider, its issuer, and a function that requests a token of each kind from its token endpoint. */
async function startIssuer(product: Product) {
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const configuration: Configuration = {
    jwks: { keys: [{ ...key, kid: 'one', use: 'sig', alg: 'RS256' }] } as JWKS,
    clients: kinds.map((client_id) => ({
      client_id,
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
        jwt(_ctx, token, jwt) {
          const kind = kinds.find((one) => one === token.clientId) ?? 'person';
          const shaped = product[kind](jwt.payload as Record<string, unknown>);
          Object.assign(jwt, { header: { ...(jwt.header as object), ...shaped.header }, payload: shaped.payload });
        },
      },
    },
  };
  server.on('request', new Provider(issuer, configuration).callback());
  const requestToken = async (kind: (typeof kinds)[number]): Promise<string> => {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: kind,
      client_secret: 'a secret of this test',
    });
    const answer = await fetch(`${issuer}/token`, { method: 'POST', body });
    const text = await answer.text();
    expect(answer.status, text).toBe(200);
    return (JSON.parse(text) as { access_token: string }).access_token;
  };
  return { issuer, requestToken };
}

describe.each(Object.entries(products))('%s', (_name, product) => {
  it('roles become scopes, machines are not people, customers are bound, and ID tokens are refused', async () => {
    // contract: permission-9
    const { issuer, requestToken } = await startIssuer(product);
    const { JWT_ROLE_SCOPES: roleScopes } = loadConfig(
      z.object({ JWT_ROLE_SCOPES: gatewayConfig.shape.JWT_ROLE_SCOPES }),
      { JWT_ROLE_SCOPES: product.settings.JWT_ROLE_SCOPES },
    );
    const keySet = createKeySet({ url: `${issuer}/jwks`, logger: pino({ level: 'silent' }), maxStaleMs: 300_000 });
    const scopesClaim = product.settings.JWT_SCOPES_CLAIM;
    const tokens = {
      issuer,
      audience: 'core-banking',
      algorithms: asymmetricAlgorithms,
      types: ['at+jwt', 'JWT'] as const,
      keySet,
      wholeBankClients: ['dashboard'],
      maxLifetimeS: 3600,
      ...(scopesClaim && { scopesClaim }),
      ...(roleScopes && { roleScopes }),
    };
    const { app, sent } = await testApp(() => ok(samples.client), { tokens });
    const ask = async (kind: (typeof kinds)[number]) => {
      const headers = { authorization: `Bearer ${await requestToken(kind)}` };
      const status = async (url: string) => (await app.inject({ method: 'GET', url, headers })).statusCode;
      const [client, books] = [await status(`/clients/${ids.client}`), await status('/admin/trial-balance')];
      const { headers: message = {} } = sent.find(({ headers: { actor } }) => actor !== undefined) ?? {};
      sent.length = 0;
      return { client, books, staff: message['staff'], bound: message['bound-client-id'] };
    };
    expect(await ask('person')).toEqual({ client: 200, books: 403, staff: 'true', bound: undefined });
    expect(await ask('machine')).toEqual({ client: 200, books: 403, staff: undefined, bound: undefined });
    // Scopes of the bank are ignored in a bound token, whatever its role.
    expect(await ask('customer')).toEqual({ client: 200, books: 403, staff: undefined, bound: ids.client });
    expect(await ask('idToken')).toEqual({ client: 401, books: 401, staff: undefined, bound: undefined });
    await app.close();
  });
});
