/**
 * The identity provider of local development: a real OpenID provider (oidc-provider), in a process of its own.
 * It issues RS256 JWT access tokens by the client credentials grant to these confidential clients, all with the
 * secret in IDP_CLIENT_SECRET:
 *   core-banking-local   every scope
 *   reader               the reading scopes only
 *   bound:<client_id>    every scope, bound to that client of the bank by the claim bank_client_id
 * Without a `scope` parameter a token carries all scopes of its client. Environment: IDP_PORT, IDP_KEYS_FILE,
 * IDP_CLIENT_SECRET, IDP_AUDIENCE.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import Provider, { errors } from 'oidc-provider';
import type { Adapter, AdapterPayload, ClientMetadata, Configuration, JWKS } from 'oidc-provider';
import { scopes } from '#libs/contracts/scopes.ts';
import { MAIN_CLIENT } from './bank.ts';
import { writeAtomically } from './local-dir.ts';

const READER_CLIENT = 'reader';
const BOUND_PREFIX = 'bound:';
/** OAuth asks for a URI here (RFC 8707); the audience in the token is IDP_AUDIENCE. */
const RESOURCE = 'urn:core-banking';
const TOKEN_SECONDS = 3600;

type Keys = { jwks: JWKS; cookie_key: string };

/** The signing key, made once and kept: tokens stay valid over a restart. */
function loadKeys(file: string): Keys {
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Keys;
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const kid = randomBytes(8).toString('hex');
  const keys = { jwks: { keys: [{ ...key, kid, use: 'sig', alg: 'RS256' }] }, cookie_key: randomBytes(32).toString('hex') } as Keys;
  writeAtomically(file, JSON.stringify(keys));
  return keys;
}

function clientMetadata(id: string, secret: string): ClientMetadata | undefined {
  const readable = scopes.filter((scope) => scope.endsWith(':read') && scope !== 'audit:read');
  const known = id === MAIN_CLIENT || id === READER_CLIENT || id.startsWith(`${BOUND_PREFIX}cli_`);
  if (!known) return undefined;
  return {
    client_id: id,
    client_secret: secret,
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    scope: (id === READER_CLIENT ? readable : scopes).join(' '),
  };
}

/** Keeps what the provider stores in memory (access tokens are JWTs and not stored), and makes up the clients by their name. */
function memoryAdapter(model: string, secret: string): Adapter {
  const entries = new Map<string, AdapterPayload>();
  const findBy = (test: (entry: AdapterPayload) => boolean) => [...entries.values()].find(test);
  return {
    async upsert(id, payload, expiresIn) {
      entries.set(id, payload);
      if (expiresIn) setTimeout(() => entries.delete(id), expiresIn * 1000).unref();
    },
    find: async (id) => (model === 'Client' ? clientMetadata(id, secret) : entries.get(id)),
    findByUid: async (uid) => findBy((entry) => entry.uid === uid),
    findByUserCode: async (userCode) => findBy((entry) => entry.userCode === userCode),
    async consume(id) {
      const entry = entries.get(id);
      if (entry !== undefined) entry.consumed = Math.floor(Date.now() / 1000);
    },
    async destroy(id) {
      entries.delete(id);
    },
    async revokeByGrantId(grantId) {
      for (const [id, entry] of entries) if (entry.grantId === grantId) entries.delete(id);
    },
  };
}

function configuration(keys: Keys, secret: string, audience: string): Configuration {
  return {
    adapter: (model: string) => memoryAdapter(model, secret),
    jwks: keys.jwks,
    cookies: { keys: [keys.cookie_key] },
    scopes: [...scopes],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post'],
    ttl: { AccessToken: TOKEN_SECONDS, ClientCredentials: TOKEN_SECONDS },
    extraTokenClaims: (_ctx, token) => {
      const id = token.clientId ?? '';
      return id.startsWith(BOUND_PREFIX) ? { bank_client_id: id.slice(BOUND_PREFIX.length) } : undefined;
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (ctx, client) => {
          // Called before the scopes are looked at: no scope asked for means all that the client may have.
          if (ctx.oidc.params !== undefined) ctx.oidc.params['scope'] ??= client?.scope;
          return RESOURCE;
        },
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource) => {
          if (resource !== RESOURCE) throw new errors.InvalidTarget();
          return { audience, scope: scopes.join(' '), accessTokenFormat: 'jwt', accessTokenTTL: TOKEN_SECONDS, jwt: { sign: { alg: 'RS256' } } };
        },
      },
    },
  };
}

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set`);
  return value;
}

function main(): void {
  const port = Number(setting('IDP_PORT'));
  const keys = loadKeys(setting('IDP_KEYS_FILE'));
  const provider = new Provider(`http://127.0.0.1:${port}`, configuration(keys, setting('IDP_CLIENT_SECRET'), setting('IDP_AUDIENCE')));
  provider.on('server_error', (_ctx, error) => console.error(error));
  const server = createServer(provider.callback());
  server.listen(port, '127.0.0.1');
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      server.close(() => process.exit(0));
      server.closeAllConnections();
    });
  }
}

if (import.meta.main) main();
